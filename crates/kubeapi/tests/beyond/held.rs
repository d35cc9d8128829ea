//! What a node holds and is not always answered with.

use std::sync::atomic::Ordering;

use crate::stage::{self, CALLED, pod};

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
