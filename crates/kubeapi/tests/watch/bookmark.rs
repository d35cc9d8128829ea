//! Bookmarks: how far a watcher is. Never behind what it was told, never ahead of what is.

use std::time::Duration;

use object::Version;
use serde_json::Value;

use crate::stage::{self, Stage, Stream, lasting, pod, version};

/// The longest time between two bookmarks.
const MINUTE: Duration = Duration::from_secs(60);

async fn watch(stage: &Stage, path: &str, bookmarks: bool) -> Stream {
    let at = stage.pods_version().await;
    let path = format!("{path}?watch=1&allowWatchBookmarks={bookmarks}&resourceVersion={at}");
    stage.client.watch(&path).await
}

/// Upstream: `RunTestWatchDispatchBookmarkEvents` and `RunOptionalTestProgressNotify`.
#[tokio::test]
async fn a_client_that_understands_bookmarks_learns_of_progress_elsewhere() {
    stage::everywhere(async |stage| {
        let foo = pod("test-ns", "foo");
        stage.put(&foo).await;
        let path = "/api/v1/namespaces/test-ns/pods";
        let mut with = watch(stage, path, true).await;
        let mut without = watch(stage, path, false).await;
        stage.put(&pod("other-ns", "foo")).await;
        let now = stage.pass_elsewhere().await;
        stage.hands.advance(MINUTE);
        let bookmark = with.expect_kind("BOOKMARK").await;
        // Nothing but a kind and a version, and what a Go object of the kind is never without.
        let expected = serde_json::json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"resourceVersion": now},
            "spec": {"containers": null}, "status": {}
        });
        assert_eq!(bookmark, expected);
        let changed = stage.put(&foo.note("1")).await;
        with.expect("MODIFIED", &changed).await;
        without.expect("MODIFIED", &changed).await;
    })
    .await;
}

/// Upstream: `RunTestOptionalWatchBookmarksWithCorrectResourceVersion`.
#[tokio::test]
async fn bookmarks_never_go_back_and_events_always_go_on() {
    stage::everywhere(async |stage| {
        let mut stream = watch(stage, "/api/v1/namespaces/test-ns/pods", true).await;
        let (mut last, mut bookmarks) = (0, 0);
        for minute in 0..10 {
            for number in 0..10 {
                stage
                    .put(&pod("test-ns", &format!("foo-{minute}-{number}")))
                    .await;
                stage
                    .put(&pod("elsewhere", "bar").note(&number.to_string()))
                    .await;
            }
            stage.hands.advance(MINUTE);
            // The minute ends before or after the last of these events is sent.
            let mut events = 0;
            while events < 10 || bookmarks <= minute {
                let event = stream.next().await.unwrap();
                let at: u64 = version(&event.object).parse().unwrap();
                if event.kind == "BOOKMARK" {
                    bookmarks += 1;
                    assert!(at >= last, "a bookmark at {at} after {last}");
                    let now = stage.reader().version(&pod("", "").resource()).unwrap();
                    assert!(version(&event.object).parse::<Version>().unwrap() <= now);
                } else {
                    events += 1;
                    assert_eq!(event.kind, "ADDED");
                    assert!(at > last, "an event at {at} after {last}");
                }
                last = at;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_watch_that_selects_nothing_stays_fresh_by_its_bookmarks() {
    stage::both(async |stage| {
        let path = lasting(
            "/api/v1/pods",
            "labelSelector=never%3Dmatches&resourceVersion=0",
        );
        let mut stream = stage.client.watch(&path).await;
        stream.expect_kind("BOOKMARK").await;
        let mut shown = Vec::new();
        for number in 0..3 {
            let changed = stage.put(&pod("a", "x").note(&number.to_string())).await;
            stage.hands.advance(MINUTE);
            let bookmark = stream.expect_kind("BOOKMARK").await;
            assert_eq!(version(&bookmark), version(&changed));
            shown.push(version(&bookmark).to_owned());
        }
        // From a bookmark the watch goes on although history before it is gone.
        stage.age_history();
        let made = stage.put(&pod("a", "y").label("never", "matches")).await;
        let mut event = stream.next().await.unwrap();
        while event.kind == "BOOKMARK" {
            event = stream.next().await.unwrap();
        }
        assert_eq!((&*event.kind, &event.object), ("ADDED", &made));
        drop(stream);
        let query = format!("resourceVersion={}", shown[2]);
        let mut stream = stage.client.watch(&lasting("/api/v1/pods", &query)).await;
        stream.expect("ADDED", &made).await;
    })
    .await;
}

/// The last bookmark lets a client come back without a list.
#[tokio::test]
async fn a_watch_that_runs_out_of_time_ends_with_a_bookmark() {
    stage::everywhere(async |stage| {
        let path = "/api/v1/pods?watch=1&timeoutSeconds=5&allowWatchBookmarks=true";
        let mut stream = stage.client.watch(path).await;
        stream.expect_kind("BOOKMARK").await;
        let made = stage.put(&pod("a", "x")).await;
        stream.expect("ADDED", &made).await;
        let now = stage.pass_elsewhere().await;
        stage.hands.advance(Duration::from_secs(5));
        let bookmark = stream.expect_kind("BOOKMARK").await;
        assert_eq!(version(&bookmark), now);
        stream.expect_end().await;
        // Who does not understand bookmarks gets none.
        let mut stream = stage
            .client
            .watch("/api/v1/pods?watch=1&timeoutSeconds=5")
            .await;
        stream.expect("ADDED", &made).await;
        stage.hands.advance(Duration::from_secs(5));
        stream.expect_end().await;
    })
    .await;
}

/// A watch from the future says nothing before that comes, not even how far it is.
#[tokio::test]
async fn a_watch_from_the_future_waits_for_it() {
    stage::both(async |stage| {
        let now: u64 = stage.pass_elsewhere().await.parse().unwrap();
        let query = format!("resourceVersion={}", now + 3);
        let mut stream = stage.client.watch(&lasting("/api/v1/pods", &query)).await;
        stage.hands.advance(2 * MINUTE);
        for name in ["a", "b", "c"] {
            stage.put(&pod("x", name)).await;
        }
        let made = stage.put(&pod("x", "d")).await;
        loop {
            let event = stream.next().await.unwrap();
            if event.kind == "ADDED" {
                break assert_eq!(event.object, made);
            }
            let at: u64 = version(&event.object).parse().unwrap();
            assert!(
                event.kind == "BOOKMARK" && at >= now + 3,
                "{}",
                event.object
            );
        }
        let last = stage.finish(stream).await;
        assert_eq!(last, version(&made));
        // One that never reaches its start ends without a word.
        let query = format!("resourceVersion={}", now + 1000);
        let mut stream = stage.client.watch(&lasting("/api/v1/pods", &query)).await;
        stage.hands.advance(30 * MINUTE);
        stream.expect_end().await;
    })
    .await;
}

#[tokio::test]
async fn bookmarks_of_other_shapes_are_of_that_shape() {
    stage::both(async |stage| {
        stage.put(&pod("a", "x")).await;
        let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
        let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        for (accept, kind) in [(table, "Table"), (metadata, "PartialObjectMetadata")] {
            let path = lasting("/api/v1/pods", "resourceVersion=0");
            let request = stage::send(http::Method::GET, &path).header("accept", accept);
            let mut stream = stage.client.open(request).await;
            let shown = stream.expect_kind("ADDED").await;
            assert_eq!(shown["kind"], kind);
            stage.hands.advance(MINUTE);
            let bookmark = stream.expect_kind("BOOKMARK").await;
            assert_eq!(bookmark["kind"], kind);
            let at = stage.pods_version().await;
            assert_eq!(
                bookmark["metadata"]["resourceVersion"],
                Value::from(at),
                "{bookmark}"
            );
        }
    })
    .await;
}
