//! Requests, lists and watches.

use std::time::Duration;

use cloud::cluster::{Error, Event, Paging, Patience, canonical};
use host::{Clock, Shutdown, Tasks};
use object::Resource;

use crate::stage::{Stage, config_map, config_maps};

#[tokio::test]
async fn objects_are_made_read_changed_and_deleted_as_bytes() {
    let mut stage = Stage::open().await;
    let hub = stage.hub();
    let served = config_maps();
    let collection = served.namespace_path("default");
    hub.create(&collection, config_map("a", "one"))
        .await
        .unwrap();
    let refused = hub
        .create(&collection, config_map("a", "one"))
        .await
        .unwrap_err();
    let status = refused.status().unwrap();
    assert_eq!(
        (status.code, status.reason.as_str()),
        (409, "AlreadyExists")
    );

    let path = format!("{collection}/a");
    let patched = hub
        .patch(&path, r#"{"data":{"text":"two"}}"#.into())
        .await
        .unwrap();
    let read = hub.get(&path).await.unwrap();
    assert_eq!(patched, read);
    let object = canonical(&served, &read).unwrap();
    assert!(
        object
            .bytes
            .starts_with(br#"{"apiVersion":"v1","kind":"ConfigMap","#)
    );
    let updated = String::from_utf8(read.to_vec())
        .unwrap()
        .replace("two", "three");
    hub.update(&path, updated.into()).await.unwrap();
    hub.delete(&path, None).await.unwrap();
    assert!(hub.get(&path).await.unwrap_err().is_code(404));
    let odd = hub.get("/api/v1/name with spaces").await.unwrap_err();
    assert!(matches!(odd, Error::BadRequest(_)), "{odd}");
}

#[tokio::test]
async fn resources_are_found_in_the_version_that_the_cluster_prefers() {
    let mut stage = Stage::open().await;
    let hub = stage.hub();
    for (group, plural, api_version, kind) in [
        ("", "pods", "v1", "Pod"),
        ("apps", "deployments", "apps/v1", "Deployment"),
        (
            "discovery.k8s.io",
            "endpointslices",
            "discovery.k8s.io/v1",
            "EndpointSlice",
        ),
    ] {
        let served = hub
            .served(&Resource::new(group, plural))
            .await
            .unwrap()
            .unwrap();
        assert_eq!((&*served.api_version, &*served.kind), (api_version, kind));
        hub.get(&served.path()).await.unwrap();
    }
    for (group, plural) in [
        ("", "nothings"),
        ("apps", "nothings"),
        ("no.such.group", "x"),
    ] {
        let served = hub.served(&Resource::new(group, plural)).await.unwrap();
        assert_eq!(served, None, "{group}/{plural}");
    }
}

#[tokio::test]
async fn a_list_of_many_pages_has_every_object_once_and_one_version() {
    let mut stage = Stage::open().await;
    for number in 0..1_203 {
        stage.create(&format!("m{number:04}"), "x").await;
    }
    let hub = stage.hub();
    let served = config_maps();
    let mut versions = Vec::new();
    for paging in [Paging::Pages, Paging::Whole] {
        let mut listing = hub.list(&served, paging);
        let mut names = Vec::new();
        while let Some(item) = listing.next().await.unwrap() {
            assert!(listing.version().is_none(), "not before all of it was read");
            let object = canonical(&served, &item).unwrap();
            names.push(object.header.name.name().to_owned());
        }
        names.retain(|name| name.starts_with('m'));
        let expected: Vec<String> = (0..1_203).map(|number| format!("m{number:04}")).collect();
        assert_eq!(names, expected);
        versions.push(listing.version().unwrap().clone());
    }
    assert!(versions[0] <= versions[1]);
    assert!(hub.version(&served).await.unwrap() >= versions[1]);
}

#[tokio::test]
async fn a_watch_tells_everything_after_its_version_and_ends_in_time() {
    let mut stage = Stage::open().await;
    let hub = stage.hub();
    let served = config_maps();
    stage.create("before", "x").await;
    let from = hub.version(&served).await.unwrap();
    let patience = Patience {
        whole: Duration::from_secs(2),
        silent: Duration::from_secs(30),
    };
    let mut events = hub.watch(&served, &from, patience).await.unwrap();
    stage.create("a", "one").await;
    stage.change("a", "two").await;
    stage.delete("a").await;
    let mut seen = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        seen.push(match event {
            Event::Put(bytes) => format!("put {}", canonical(&served, &bytes).unwrap().header.name),
            Event::Delete(bytes) => {
                let header = canonical(&served, &bytes).unwrap().header;
                assert!(header.version > from);
                format!("delete {}", header.name)
            }
            Event::Bookmark(version) => {
                assert!(version > from);
                "bookmark".to_owned()
            }
            Event::Error(status) => panic!("{status}"),
        });
    }
    let changes: Vec<&String> = seen.iter().filter(|seen| *seen != "bookmark").collect();
    assert_eq!(
        changes,
        ["put default/a", "put default/a", "delete default/a"]
    );
}

#[tokio::test]
async fn a_connection_that_broke_is_opened_anew_and_http1_will_do() {
    let mut stage = Stage::open().await;
    let hub = stage.hub();
    hub.get("/version").await.unwrap();
    stage.cut().await;
    let lost = hub.get("/version").await.unwrap_err();
    let unreached = matches!(lost, Error::Unreachable { .. } | Error::NotSent { .. });
    assert!(unreached, "{lost}");
    stage.heal().await;
    hub.get("/version").await.unwrap();
    stage.cut().await;
    stage.heal_with_http1().await;
    // The old connection may still have to be found dead.
    while hub.get("/version").await.is_err() {
        tokio::task::yield_now().await;
    }
    let both = tokio::join!(hub.get("/version"), hub.get("/api/v1/namespaces/default"));
    both.0.unwrap();
    both.1.unwrap();
}

#[tokio::test]
async fn many_ask_at_once_over_one_connection_and_a_full_crowd_is_an_error() {
    let mut stage = Stage::open().await;
    let hub = stage.hub();
    let asked = (0..64).map(|_| hub.get("/api/v1/namespaces/default"));
    for answer in join_all(asked).await {
        answer.unwrap();
    }
    let config = cloud::cluster::Config::from_kubeconfig(&stage.kubeconfig()).unwrap();
    let mut tasks = Tasks::new(Shutdown::new());
    let nowhere = cloud::cluster::Client::new(config, tasks.crowd("none", 0), Clock::machine());
    let refused = nowhere.get("/version").await.unwrap_err();
    assert!(matches!(refused, Error::NotSent { .. }), "{refused}");
}

#[tokio::test]
async fn who_acts_as_somebody_else_is_that_and_no_more() {
    let mut stage = Stage::open().await;
    let hub = stage.hub();
    let nobody = hub
        .acting_as("somebody", &["system:authenticated"])
        .unwrap();
    let refused = nobody.get("/api/v1/secrets").await.unwrap_err();
    assert!(refused.is_code(403), "{refused}");
    hub.get("/api/v1/secrets").await.unwrap();
    assert!(hub.acting_as("two\nlines", &[]).is_err());
}

/// Runs all of them at once.
async fn join_all<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|cx| {
        let mut waits = false;
        for (one, output) in &mut running {
            if output.is_none() {
                match one.as_mut().poll(cx) {
                    std::task::Poll::Ready(ready) => *output = Some(ready),
                    std::task::Poll::Pending => waits = true,
                }
            }
        }
        match waits {
            true => std::task::Poll::Pending,
            false => std::task::Poll::Ready(()),
        }
    })
    .await;
    running
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}
