//! What only a replica can meet: parts that are not held, resets, scopes that end, epochs.

use std::sync::atomic::Ordering;

use object::{Resource, Version};
use serde_json::json;
use store::replica::{Change, CutEnd, Until};
use store::{Range, Scope};

use crate::stage::{self, item, lasting, pod, version};

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn secrets() -> Resource {
    Resource::new("", "secrets")
}

/// Never a partial list, never a 404: what is not held is said to be not here yet.
#[tokio::test]
async fn what_no_scope_covers_is_not_here_yet() {
    stage::on_replica(async |stage, _| {
        for path in [
            "/api/v1/secrets",
            "/api/v1/secrets?resourceVersion=0",
            "/api/v1/secrets?resourceVersion=7",
            "/api/v1/secrets?resourceVersion=7&resourceVersionMatch=Exact",
            "/api/v1/namespaces/a/secrets",
            "/api/v1/namespaces/a/secrets/x",
            "/api/v1/namespaces/a/secrets/x?resourceVersion=7",
            "/api/v1/secrets?watch=1",
            "/api/v1/secrets?watch=1&resourceVersion=7",
            "/api/v1/secrets?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        ] {
            let asked = tokio::time::Instant::now();
            let reply = stage.client.get(path).await;
            assert_eq!(reply.status, 503, "{path}: {}", reply.text());
            assert_eq!(reply.json()["reason"], "ServiceUnavailable", "{path}");
            assert_eq!(reply.header("retry-after"), "1", "{path}");
            assert!(
                asked.elapsed().as_secs() < 2,
                "{path}: it waited for what cannot come"
            );
        }
        // A kind that does not exist is another matter.
        assert_eq!(stage.client.get("/api/v1/unknown").await.status, 404);
    })
    .await;
}

/// No 404 for known empty kinds: a list with a version that a watch can start from.
#[tokio::test]
async fn a_kind_that_is_held_and_empty_is_an_empty_list() {
    stage::on_replica(async |stage, source| {
        let path = "/apis/node.k8s.io/v1/runtimeclasses";
        let list = stage.client.json(path).await;
        assert_eq!(
            (&list["kind"], &list["items"]),
            (&"RuntimeClassList".into(), &json!([]))
        );
        let at = version(&list).to_owned();
        let mut stream = stage
            .client
            .watch(&lasting(path, &format!("resourceVersion={at}")))
            .await;
        let resource = Resource::new("node.k8s.io", "runtimeclasses");
        let now = source.progress(&resource).await;
        stage.hands.advance(std::time::Duration::from_secs(60));
        let bookmark = stream.expect_kind("BOOKMARK").await;
        assert_eq!(version(&bookmark), now);
        assert_eq!(stage.client.get(&format!("{path}/none")).await.status, 404);
    })
    .await;
}

/// A scope of one namespace answers for that namespace and for nothing else.
#[tokio::test]
async fn a_part_that_is_held_answers_for_itself_alone() {
    stage::on_replica(async |stage, source| {
        let scope = Scope::of(Range::Namespace("a".into()));
        source.reset(&secrets(), scope, &[]).await;
        let cases = [
            ("/api/v1/namespaces/a/secrets", 200),
            (
                "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dx",
                200,
            ),
            ("/api/v1/namespaces/a/secrets/x", 404),
            ("/api/v1/namespaces/b/secrets", 503),
            ("/api/v1/namespaces/b/secrets/x", 503),
            ("/api/v1/secrets", 503),
            ("/api/v1/secrets?fieldSelector=metadata.namespace%3Db", 503),
        ];
        for (path, code) in cases {
            assert_eq!(stage.client.get(path).await.status, code, "{path}");
        }
    })
    .await;
}

/// What a node's kubelet asks: its own pods, by field.
#[tokio::test]
async fn the_pods_of_a_node_are_listed_by_the_node_that_is_held() {
    stage::on_replica(async |stage, source| {
        source.end(&pods(), Scope::all()).await;
        let scope = Scope::of(Range::Node("n1".into()));
        let mine = source.object(&pod("a", "mine").assigned("n1"));
        source.reset(&pods(), scope, &[mine]).await;
        let path = "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1";
        let list = stage.client.json(path).await;
        assert_eq!(list["items"].as_array().unwrap().len(), 1);
        for path in [
            "/api/v1/pods",
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2",
        ] {
            assert_eq!(stage.client.get(path).await.status, 503, "{path}");
        }
        // What is there is there; what is not may be on another node.
        let at = version(&list);
        for (path, code) in [
            ("/api/v1/namespaces/a/pods/mine".to_owned(), 200),
            ("/api/v1/namespaces/a/pods/mine/status".to_owned(), 200),
            (
                format!("/api/v1/namespaces/a/pods/mine?resourceVersion={at}"),
                200,
            ),
            ("/api/v1/namespaces/a/pods/other".to_owned(), 503),
            (
                format!("/api/v1/namespaces/a/pods/other?resourceVersion={at}"),
                503,
            ),
        ] {
            assert_eq!(stage.client.get(&path).await.status, code, "{path}");
        }
    })
    .await;
}

/// Upstream's twin: `TestCacherDontMissEventsOnReinitialization`. A reset ends the watches whose
/// content changed; the others go on and miss nothing.
#[tokio::test]
async fn a_reset_ends_the_watches_whose_content_it_changed() {
    stage::on_replica(async |stage, source| {
        let (in_a, in_b) = (pod("a", "x"), pod("b", "y"));
        stage.put(&in_a).await;
        let kept = stage.put(&in_b).await;
        let at = stage.pods_version().await;
        let query = format!("resourceVersion={at}");
        let open = async |path: &str| stage.client.watch(&lasting(path, &query)).await;
        let mut all = open("/api/v1/pods").await;
        let mut a = open("/api/v1/namespaces/a/pods").await;
        let mut b = open("/api/v1/namespaces/b/pods").await;
        // What comes before the reset is told before the watch ends.
        let before = stage.put(&in_a.clone().note("before")).await;
        all.expect("MODIFIED", &before).await;
        a.expect("MODIFIED", &before).await;

        let replaced = source.object(&in_a.clone().note("reset"));
        let row = source
            .reader()
            .object(&pods(), &in_b.name())
            .unwrap()
            .unwrap();
        let reset_at = source.reset(&pods(), Scope::all(), &[replaced, row]).await;
        for stream in [&mut all, &mut a] {
            let status = stream.expect_kind("ERROR").await;
            assert_eq!(
                (&status["code"], &status["reason"]),
                (&410.into(), &"Expired".into())
            );
            stream.expect_end().await;
        }
        let after = stage.put(&in_b.clone().note("after")).await;
        b.expect("MODIFIED", &after).await;
        stage.finish(b).await;

        // The list that follows has everything, at a version from which nothing is missing.
        let list = stage.client.json("/api/v1/pods").await;
        assert_eq!(list["items"][0]["metadata"]["annotations"]["note"], "reset");
        assert_eq!(list["items"][1], item(&after));
        for old in [version(&kept), version(&before)] {
            let path = lasting("/api/v1/pods", &format!("resourceVersion={old}"));
            let status = stage.client.watch(&path).await.expect_kind("ERROR").await;
            assert_eq!(status["code"], 410, "{old}");
            let path = format!("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion={old}");
            assert_eq!(stage.client.get(&path).await.status, 410, "{old}");
        }
        let path = lasting("/api/v1/pods", &format!("resourceVersion={reset_at}"));
        stage
            .client
            .watch(&path)
            .await
            .expect("MODIFIED", &after)
            .await;
    })
    .await;
}

#[tokio::test]
async fn a_scope_that_ends_ends_its_watches_and_answers_no_more() {
    stage::on_replica(async |stage, source| {
        stage.put(&pod("a", "x")).await;
        let mut stream = stage.client.watch("/api/v1/pods?watch=1").await;
        stream.expect_kind("ADDED").await;
        source.end(&pods(), Scope::all()).await;
        let status = stream.expect_kind("ERROR").await;
        assert_eq!(status["code"], 410);
        stream.expect_end().await;
        for path in [
            "/api/v1/pods",
            "/api/v1/namespaces/a/pods/x",
            "/api/v1/pods?watch=1",
        ] {
            let reply = stage.client.get(path).await;
            assert_eq!(reply.status, 503, "{path}: {}", reply.text());
        }
        // It starts again, and everything is there at once.
        let objects = [source.object(&pod("a", "x")), source.object(&pod("a", "z"))];
        source.reset(&pods(), Scope::all(), &objects).await;
        let list = stage.client.json("/api/v1/pods").await;
        assert_eq!(list["items"].as_array().unwrap().len(), 2);
    })
    .await;
}

/// A cluster restored from a backup: its versions are lower, and nobody is shown a mixture.
#[tokio::test]
async fn a_new_epoch_replaces_everything() {
    stage::on_replica(async |stage, source| {
        source.jump("100000");
        let old = stage.put(&pod("a", "x")).await;
        let mut stream = stage
            .client
            .watch(&lasting("/api/v1/pods", "resourceVersion=0"))
            .await;
        stream.expect("ADDED", &old).await;
        stream.expect_kind("BOOKMARK").await;
        source.jump("500");
        source.new_epoch();
        let restored = source.object(&pod("a", "restored"));
        let reset_at = source.reset(&pods(), Scope::all(), &[restored]).await;
        let status = stream.expect_kind("ERROR").await;
        assert_eq!(status["code"], 410);
        stream.expect_end().await;
        let list = stage.client.json("/api/v1/pods").await;
        assert_eq!(version(&list), reset_at);
        assert_eq!(list["items"].as_array().unwrap().len(), 1);
        assert_eq!(list["items"][0]["metadata"]["name"], "restored");
        let path = lasting("/api/v1/pods", &format!("resourceVersion={reset_at}"));
        let mut stream = stage.client.watch(&path).await;
        let made = stage.put(&pod("a", "new")).await;
        stream.expect("ADDED", &made).await;
    })
    .await;
}

/// No version is shown before everything up to it is there: changes of an unfinished cut come in
/// order, and progress follows them.
#[tokio::test]
async fn bookmarks_follow_progress_through_the_pieces_of_a_cut() {
    stage::on_replica(async |stage, source| {
        let path = lasting("/api/v1/pods", "resourceVersion=0");
        let mut stream = stage.client.watch(&path).await;
        stream.expect_kind("BOOKMARK").await;
        let mut shown = Vec::new();
        for name in ["one", "two"] {
            let object = source.object(&pod("a", name));
            let value: serde_json::Value = serde_json::from_slice(&object.bytes).unwrap();
            let piece = vec![Change::Put(object)];
            let aim = "1000000".parse().unwrap();
            source.cut(&pods(), piece, Until::Piece { aim }).await;
            stream.expect("ADDED", &value).await;
            let list = stage.client.json("/api/v1/pods").await;
            assert_eq!(version(&list), version(&value));
            shown.push(value);
        }
        stage.hands.advance(std::time::Duration::from_secs(60));
        let bookmark = stream.expect_kind("BOOKMARK").await;
        assert_eq!(version(&bookmark), version(&shown[1]));
        let now = source.progress(&pods()).await;
        assert_eq!(stage.finish(stream).await, now);
    })
    .await;
}

/// Who has his version from the cluster may have seen there what was made and went before the node
/// was told: he must list again, and is told so.
#[tokio::test]
async fn a_watch_from_a_version_that_was_passed_over_begins_anew() {
    stage::on_node(async |stage, source| {
        stage.put(&pod("a", "one")).await;
        let [(two, between), (three, until)] = ["two", "three"].map(|name| {
            let object = source.object(&pod("a", name));
            (object, source.next())
        });
        let shown = two.header.version.clone();
        let from =
            |version: &Version| lasting("/api/v1/pods", &format!("resourceVersion={version}"));
        // One who is ahead of the node waits, and is told when it is clear.
        let mut ahead = stage.client.watch(&from(&between)).await;
        let changes = vec![Change::Put(two), Change::Put(three)];
        let end = CutEnd {
            progress: until.clone(),
            resets: vec![],
            ended: vec![],
        };
        source.cut(&pods(), changes, end).await;
        let gone = |error: serde_json::Value| {
            assert_eq!(
                (&error["code"], &error["reason"]),
                (&410.into(), &"Expired".into())
            );
        };
        gone(ahead.expect_kind("ERROR").await);
        for link in [true, false] {
            stage.link.store(link, Ordering::Relaxed);
            let mut stream = stage.client.watch(&from(&between)).await;
            gone(stream.expect_kind("ERROR").await);
            for known in [&shown, &until] {
                let mut stream = stage.client.watch(&from(known)).await;
                if *known == shown {
                    stream.expect_kind("ADDED").await;
                }
            }
        }
    })
    .await;
}
