//! What a change is to a watcher: upstream's `RunTestWatch` and its small neighbours.

use serde_json::Value;

use crate::stage::{self, Body, Stage, Stream, event, lasting, left, pod, version};

async fn watch_from_now(stage: &Stage, path: &str, query: &str) -> Stream {
    let at = stage.pods_version().await;
    let path = lasting(path, &format!("{query}&resourceVersion={at}"));
    stage.client.watch(&path).await
}

/// One step: what is written (nothing: a delete), and what the watcher is told (nothing: nothing).
type Step = (Option<Body>, &'static str);

/// Upstream: `RunTestWatch`, its five cases.
#[tokio::test]
async fn entering_changing_and_leaving_are_told_as_such() {
    stage::everywhere(async |stage| {
        let foo = |namespace: &str| pod(namespace, "foo");
        let cases: [(&str, Vec<Step>); 5] = [
            ("", vec![(Some(foo("ns0")), "ADDED")]),
            (
                "fieldSelector=spec.nodeName%3Dbar",
                vec![
                    (Some(foo("ns1")), ""),
                    (Some(foo("ns1").assigned("bar")), "ADDED"),
                ],
            ),
            (
                "",
                vec![
                    (Some(foo("ns2")), "ADDED"),
                    (Some(foo("ns2").assigned("bar")), "MODIFIED"),
                ],
            ),
            (
                "fieldSelector=spec.nodeName!%3Dbar",
                vec![
                    (Some(foo("ns3")), "ADDED"),
                    (Some(foo("ns3").assigned("bar")), "DELETED"),
                ],
            ),
            (
                "labelSelector=select%3Dtrue",
                vec![
                    (Some(foo("ns4").label("select", "true")), "ADDED"),
                    (Some(foo("ns4")), "DELETED"),
                    (Some(foo("ns4").label("select", "true")), "ADDED"),
                    (
                        Some(foo("ns4").label("select", "true").assigned("bar")),
                        "MODIFIED",
                    ),
                    (None, "DELETED"),
                ],
            ),
        ];
        for (number, (query, steps)) in cases.into_iter().enumerate() {
            let path = format!("/api/v1/namespaces/ns{number}/pods");
            let stream = watch_from_now(stage, &path, query).await;
            stage.put(&foo(&format!("ns{number}-bad"))).await;
            play(stage, stream, &foo(&format!("ns{number}")), steps).await;
        }
    })
    .await;
}

async fn play(stage: &Stage, mut stream: Stream, body: &Body, steps: Vec<Step>) {
    let mut before = Value::Null;
    for (written, told) in steps {
        let after = match &written {
            Some(body) => stage.put(body).await,
            None => stage.delete(body).await,
        };
        match (told, &written) {
            ("", _) => {}
            ("DELETED", Some(_)) => stream.expect("DELETED", &left(&before, &after)).await,
            (told, _) => stream.expect(told, &after).await,
        }
        before = after;
    }
    stage.finish(stream).await;
}

/// Upstream: `RunTestWatchFromZero`.
#[tokio::test]
async fn a_watch_from_zero_begins_with_what_is_there() {
    stage::everywhere(async |stage| {
        let foo = pod("test-ns", "foo");
        let path = "/api/v1/namespaces/test-ns/pods";
        let stored = stage.put(&foo).await;
        let mut stream = stage
            .client
            .watch(&lasting(path, "resourceVersion=0"))
            .await;
        stream.expect("ADDED", &stored).await;
        stream.expect_kind("BOOKMARK").await;
        let changed = stage.put(&foo.clone().note("1")).await;
        stream.expect("MODIFIED", &changed).await;
        drop(stream);
        let mut stream = stage
            .client
            .watch(&lasting(path, "resourceVersion=0"))
            .await;
        stream.expect("ADDED", &changed).await;
        drop(stream);
        stage.put(&foo.clone().note("2")).await;
        stage.age_history();
        let newest = stage.put(&foo.clone().note("3")).await;
        let mut stream = stage
            .client
            .watch(&lasting(path, "resourceVersion=0"))
            .await;
        stream.expect("ADDED", &newest).await;
        let query = format!("resourceVersion={}", version(&changed));
        let mut gone = stage.client.watch(&lasting(path, &query)).await;
        let status = gone.expect_kind("ERROR").await;
        assert_eq!(
            (&status["code"], &status["reason"]),
            (&410.into(), &"Expired".into())
        );
        gone.expect_end().await;
    })
    .await;
}

/// Upstream: `RunTestDeleteTriggerWatch`, `RunTestWatchFromNonZero` and
/// `RunTestWatchDeleteEventObjectHaveLatestRV`.
#[tokio::test]
async fn a_deletion_is_told_at_its_own_version() {
    stage::everywhere(async |stage| {
        let foo = pod("test-ns", "foo");
        let stored = stage.put(&foo).await;
        let query = format!("resourceVersion={}", version(&stored));
        let path = lasting("/api/v1/namespaces/test-ns/pods", &query);
        let mut stream = stage.client.watch(&path).await;
        let changed = stage.put(&foo.clone().note("2")).await;
        stream.expect("MODIFIED", &changed).await;
        let gone = stage.delete(&foo).await;
        assert_ne!(version(&gone), version(&changed));
        stream.expect("DELETED", &gone).await;
        // An object of the same name is another object.
        let again = stage.put(&foo).await;
        assert_ne!(again["metadata"]["uid"], stored["metadata"]["uid"]);
        stream.expect("ADDED", &again).await;
        stage.finish(stream).await;
    })
    .await;
}

/// Upstream: `RunTestDelayedWatchDelivery`: what happens while nobody reads is not lost.
#[tokio::test]
async fn events_wait_for_a_reader_that_comes_late() {
    stage::everywhere(async |stage| {
        let mut stream = watch_from_now(stage, "/api/v1/namespaces/test-ns/pods", "").await;
        let mut written = Vec::new();
        for number in 0..600 {
            written.push(stage.put(&pod("test-ns", &format!("foo-{number}"))).await);
        }
        for made in &written {
            stream.expect("ADDED", made).await;
        }
        stage.finish(stream).await;
    })
    .await;
}

/// Events of both groups are the same objects, and each watcher is shown its own form of them,
/// whoever was served first.
#[tokio::test]
async fn events_are_shown_in_the_form_of_the_group_that_is_watched() {
    stage::everywhere(async |stage| {
        let core = "/api/v1/namespaces/a/events?watch=1";
        let group = "/apis/events.k8s.io/v1/namespaces/a/events?watch=1";
        let mut old = stage.client.watch(core).await;
        let mut new = stage.client.watch(group).await;
        for number in 0..3 {
            let happened = event("a", &format!("e{number}"))
                .with("message", "it fell".into())
                .with("reason", "Fell".into());
            let stored = stage.put(&happened).await;
            old.expect("ADDED", &stored).await;
            let shown = new.expect_kind("ADDED").await;
            assert_eq!(shown["apiVersion"], "events.k8s.io/v1");
            assert_eq!(
                (&shown["note"], &shown["message"]),
                (&"it fell".into(), &Value::Null)
            );
        }
    })
    .await;
}

/// The path that came before the parameter.
#[tokio::test]
async fn the_old_paths_of_a_watch_are_served() {
    stage::everywhere(async |stage| {
        let made = stage.put(&pod("a", "x")).await;
        stage.put(&pod("b", "y")).await;
        for path in [
            "/api/v1/watch/namespaces/a/pods",
            "/api/v1/watch/namespaces/a/pods/x",
            "/api/v1/namespaces/a/pods?watch",
            "/api/v1/watch/pods?fieldSelector=metadata.name%3Dx",
        ] {
            let mut stream = stage.client.watch(path).await;
            stream.expect("ADDED", &made).await;
        }
        let path = "/api/v1/watch/namespaces/a/pods/x?fieldSelector=metadata.name%3Dy";
        assert_eq!(stage.client.get(path).await.status, 400);
        // The path of an object asks for the object, whatever else is said.
        let path = "/api/v1/namespaces/a/pods/x?watch=true";
        assert_eq!(stage.client.json(path).await, made);
    })
    .await;
}
