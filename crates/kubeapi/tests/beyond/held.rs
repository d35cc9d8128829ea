//! What a node holds and is not always answered with.

use std::sync::atomic::Ordering;

use object::Resource;
use store::Scope;

use crate::stage::{self, CALLED, UNCOVERED, pod, version};

const X: &str = "/api/v1/namespaces/a/pods/x";

/// As an API server does that has everything.
#[tokio::test]
async fn a_read_says_how_long_it_may_take_in_words_that_are_understood() {
    stage::on_node(async |stage, _| {
        stage.put(&pod("a", "x")).await;
        for path in [X, "/api/v1/pods"] {
            for (time, code) in [("abc", 400), ("5", 400), ("5s", 200), ("", 200)] {
                let path = format!("{path}?timeout={time}");
                assert_eq!(stage.client.get(&path).await.status, code, "{path}");
            }
        }
        let watch = "/api/v1/pods?watch=1&timeoutSeconds=1&timeout=abc";
        stage.client.watch(watch).await.expect_kind("ADDED").await;
    })
    .await;
}

/// What cannot be read any more is asked of the cluster, by name as in a list.
#[tokio::test]
async fn what_is_damaged_is_not_held() {
    stage::on_node(async |stage, _| {
        stage.put(&pod("a", "x")).await;
        assert_eq!(stage.client.get(X).await.status, 200);
        stage.feeder.damage();
        for code in [CALLED, 503] {
            for path in [X, X, "/api/v1/pods"] {
                assert_eq!(stage.client.get(path).await.status, code, "{path}");
            }
            stage.link.store(false, Ordering::Relaxed);
        }
    })
    .await;
}

/// Who would see something else at the cluster is never sent there, whatever keeps it from being
/// answered here.
#[tokio::test]
async fn what_is_awaited_on_the_node_is_not_asked_of_the_cluster() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    stage::on_node(async |stage, source| {
        let made = stage.put(&pod("a", "x")).await;
        let account = stage.client("system:serviceaccount:a:b");
        stage.script.comes.store(true, Ordering::Relaxed);
        let ahead = format!("/api/v1/pods?resourceVersion={}", source.next());
        for (path, accept, code) in [
            ("/api/v1/secrets", "", 429),
            ("/api/v1/secrets", PROTOBUF, 429),
            (&*ahead, "", 429),
            ("/api/v1/pods", "", 200),
            // It is not on its way in this form.
            ("/api/v1/pods", PROTOBUF, 406),
            ("/api/v1/namespaces/a/secrets/x", "", CALLED),
        ] {
            let reply = stage.client.get_as(path, accept).await;
            assert_eq!(reply.status, code, "{path}: {}", reply.text());
        }
        // It comes while it is waited for, and from a later version on: he is to begin anew. Told
        // to come again, he would do so with the same version for ever.
        let path = format!("/api/v1/secrets?watch=1&resourceVersion={}", version(&made));
        let secrets = Resource::new("", UNCOVERED);
        let (reply, _) = tokio::join!(account.get(&path), async {
            stage.script.waits.notified().await;
            source.reset(&secrets, Scope::all(), &[]).await
        });
        let event = reply.json();
        assert_eq!(
            (&event["type"], &event["object"]["code"]),
            (&"ERROR".into(), &410.into())
        );
        stage.link.store(false, Ordering::Relaxed);
        source.end(&secrets, Scope::all()).await;
        assert_eq!(stage.client.get("/api/v1/secrets").await.status, 503);
    })
    .await;
}
