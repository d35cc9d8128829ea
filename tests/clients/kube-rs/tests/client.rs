//! kube-rs against the cluster that KUBECONFIG names: watcher, reflector, controller, finalizer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event as Told, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self, Event as Step, finalizer};
use kube::runtime::reflector::{self, Store};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use kube_rs_client::{PATIENCE, Place, config_map};
use serde_json::json;
use tokio::time::timeout;

fn ours() -> Config {
    Config::default().labels("ours=yes")
}

/// The next event, as a word and a name.
async fn next(events: impl Stream<Item = watcher::Result<Event<ConfigMap>>>) -> (String, String) {
    pin_mut!(events);
    let event = timeout(PATIENCE, events.next())
        .await
        .expect("in time")
        .expect("no end");
    match event.expect("no error") {
        Event::Init => ("init".to_owned(), String::new()),
        Event::InitApply(map) => ("there".to_owned(), map.name_any()),
        Event::InitDone => ("done".to_owned(), String::new()),
        Event::Apply(map) => ("apply".to_owned(), map.name_any()),
        Event::Delete(map) => ("delete".to_owned(), map.name_any()),
    }
}

/// What is there first, then each change.
async fn watch_and_change(place: &Place, config: Config) {
    for name in ["a", "b", "c"] {
        place.create(name).await;
    }
    let mut events = Box::pin(watcher(place.maps(), config));
    assert_eq!(next(&mut events).await.0, "init");
    for name in ["a", "b", "c"] {
        assert_eq!(
            next(&mut events).await,
            ("there".to_owned(), name.to_owned())
        );
    }
    assert_eq!(next(&mut events).await.0, "done");
    place.create("d").await;
    assert_eq!(
        next(&mut events).await,
        ("apply".to_owned(), "d".to_owned())
    );
    place
        .maps()
        .delete("a", &DeleteParams::default())
        .await
        .expect("deleted");
    assert_eq!(
        next(&mut events).await,
        ("delete".to_owned(), "a".to_owned())
    );
    let leaves = Patch::Merge(json!({"metadata": {"labels": {"ours": "no"}}}));
    let patched = place
        .maps()
        .patch("b", &PatchParams::default(), &leaves)
        .await;
    patched.expect("patched");
    assert_eq!(
        next(&mut events).await,
        ("delete".to_owned(), "b".to_owned())
    );
}

#[tokio::test]
async fn a_watcher_lists_in_pages_and_then_watches() {
    let place = Place::new("watcher-pages").await;
    watch_and_change(&place, ours().page_size(2)).await;
}

#[tokio::test]
async fn a_watcher_streams_its_list() {
    let place = Place::new("watcher-streams").await;
    watch_and_change(&place, ours().streaming_lists()).await;
}

/// Names and versions, which together say everything.
fn content(maps: impl IntoIterator<Item = impl AsRef<ConfigMap>>) -> BTreeMap<String, String> {
    let entry = |map: &ConfigMap| (map.name_any(), map.resource_version().expect("a version"));
    maps.into_iter().map(|map| entry(map.as_ref())).collect()
}

struct Listed(ConfigMap);

impl AsRef<ConfigMap> for Listed {
    fn as_ref(&self) -> &ConfigMap {
        &self.0
    }
}

/// Several writers create, change and delete at once, always the same few names.
async fn change_heavily(place: &Place) {
    let writers = (0..4_u32).map(|writer| async move {
        for turn in 0..150_u32 {
            let name = format!("map-{}", (turn * 7 + writer * 3) % 20);
            let maps = place.maps();
            match (turn + writer) % 3 {
                0 => drop(
                    maps.create(&PostParams::default(), &config_map(&name))
                        .await,
                ),
                1 => {
                    let data = Patch::Merge(json!({"data": {"turn": turn.to_string()}}));
                    drop(maps.patch(&name, &PatchParams::default(), &data).await);
                }
                _ => drop(maps.delete(&name, &DeleteParams::default()).await),
            }
        }
    });
    futures::future::join_all(writers).await;
}

async fn equals_a_fresh_list(place: &Place, store: &Store<ConfigMap>) {
    let params = ListParams::default().labels("ours=yes");
    let list = place.maps().list(&params).await.expect("a list");
    let expected = content(list.items.into_iter().map(Listed));
    assert!(!expected.is_empty(), "something is left to compare");
    for _ in 0..600 {
        if content(store.state()) == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(
        content(store.state()),
        expected,
        "the reflector never caught up"
    );
}

async fn reflect(name: &str, config: Config) {
    let place = Place::new(name).await;
    let (store, writer) = reflector::store::<ConfigMap>();
    let stream = reflector::reflector(writer, watcher(place.maps(), config));
    let follow = stream.try_for_each(|_| futures::future::ok(()));
    let work = async {
        timeout(PATIENCE, store.wait_until_ready())
            .await
            .expect("in time")
            .expect("a writer");
        change_heavily(&place).await;
        equals_a_fresh_list(&place, &store).await;
    };
    tokio::select! {
        ended = follow => panic!("the watcher ended: {ended:?}"),
        () = work => {}
    }
}

#[tokio::test]
async fn a_reflector_equals_a_fresh_list_after_heavy_change() {
    reflect("reflector-pages", ours()).await;
}

#[tokio::test]
async fn a_reflector_that_streams_its_list_equals_a_fresh_list_after_heavy_change() {
    reflect("reflector-streams", ours().streaming_lists()).await;
}

/// Gives each config map a secret of the same name, with the same data, that it owns.
async fn reconcile(map: Arc<ConfigMap>, place: Arc<Place>) -> Result<Action, kube::Error> {
    let secrets: Api<Secret> = Api::namespaced(place.client.clone(), &place.namespace);
    let wanted = Secret {
        metadata: ObjectMeta {
            name: map.metadata.name.clone(),
            owner_references: Some(vec![map.controller_owner_ref(&()).expect("it is stored")]),
            ..ObjectMeta::default()
        },
        string_data: map.data.clone(),
        ..Secret::default()
    };
    let name = map.name_any();
    match secrets.create(&PostParams::default(), &wanted).await {
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
            let patch = Patch::Merge(&wanted);
            secrets
                .patch(&name, &PatchParams::default(), &patch)
                .await?;
        }
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    Ok(Action::await_change())
}

#[tokio::test]
async fn a_controller_makes_follows_and_mends_what_it_owns() {
    let place = Arc::new(Place::new("controller").await);
    let secrets: Api<Secret> = Api::namespaced(place.client.clone(), &place.namespace);
    let retry = |_, _: &kube::Error, _| Action::requeue(Duration::from_millis(100));
    let controller = Controller::new(place.maps(), ours())
        .owns(secrets.clone(), Config::default())
        .run(reconcile, retry, place.clone())
        .for_each(|_| futures::future::ready(()));
    let work = async {
        for number in 0..10 {
            place.create(&format!("map-{number}")).await;
        }
        for number in 0..10 {
            holds(&secrets, &format!("map-{number}"), |_| true).await;
        }
        let data = Patch::Merge(json!({"data": {"word": "new"}}));
        let changed = place
            .maps()
            .patch("map-3", &PatchParams::default(), &data)
            .await;
        changed.expect("patched");
        let has_word = |secret: &Secret| {
            let data = secret.data.as_ref().and_then(|data| data.get("word"));
            data.is_some_and(|word| word.0 == b"new")
        };
        holds(&secrets, "map-3", has_word).await;
        let old = secrets.get("map-5").await.expect("it is there").uid();
        secrets
            .delete("map-5", &DeleteParams::default())
            .await
            .expect("deleted");
        holds(&secrets, "map-5", |secret| secret.uid() != old).await;
    };
    tokio::select! {
        () = controller => panic!("the controller ended"),
        () = work => {}
    }
}

/// Waits until there is a secret of this name that is as wanted.
async fn holds(secrets: &Api<Secret>, name: &str, wanted: impl Fn(&Secret) -> bool) {
    let condition = |secret: Option<&Secret>| secret.is_some_and(&wanted);
    let waiting = await_condition(secrets.clone(), name, condition);
    timeout(PATIENCE, waiting)
        .await
        .expect(name)
        .expect("a watch");
}

#[tokio::test]
async fn a_finalizer_holds_an_object_until_it_is_cleaned_up() {
    let place = Place::new("finalizer").await;
    let made = place.create("held").await;
    step(&place, made).await.expect("added");
    let held = place.maps().get("held").await.expect("there");
    assert_eq!(held.finalizers(), ["tests.example/held"]);
    place
        .maps()
        .delete("held", &DeleteParams::default())
        .await
        .expect("asked");
    let going = place.maps().get("held").await.expect("still there");
    let uid = going.uid().expect("a uid");
    assert!(going.meta().deletion_timestamp.is_some());
    step(&place, going).await.expect("removed");
    let gone = await_condition(place.maps(), "held", conditions::is_deleted(&uid));
    timeout(PATIENCE, gone)
        .await
        .expect("in time")
        .expect("a watch");
}

async fn step(
    place: &Place,
    map: ConfigMap,
) -> Result<Action, finalizer::Error<std::convert::Infallible>> {
    finalizer(
        &place.maps(),
        "tests.example/held",
        Arc::new(map),
        |step| async move {
            match step {
                Step::Apply(_) | Step::Cleanup(_) => Ok(Action::await_change()),
            }
        },
    )
    .await
}

#[tokio::test]
async fn events_are_recorded_and_counted() {
    let place = Place::new("events").await;
    let made = place.create("subject").await;
    let reporter = Reporter::from("tests");
    let recorder = Recorder::new(place.client.clone(), reporter);
    let told = Told {
        type_: EventType::Normal,
        reason: "Tested".to_owned(),
        note: Some("it was seen".to_owned()),
        action: "Testing".to_owned(),
        secondary: None,
    };
    for _ in 0..3 {
        recorder
            .publish(&told, &made.object_ref(&()))
            .await
            .expect("recorded");
    }
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(place.client.clone(), &place.namespace);
    let list = events.list(&ListParams::default()).await.expect("a list");
    let [event] = &list.items[..] else {
        panic!("one event that is counted, not {}", list.items.len());
    };
    assert_eq!(event.series.as_ref().map(|series| series.count), Some(3));
}
