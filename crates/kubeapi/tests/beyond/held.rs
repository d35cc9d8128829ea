//! What a node holds and is not always answered with.

use std::sync::atomic::Ordering;

use crate::stage::{self, CALLED, pod};

const X: &str = "/api/v1/namespaces/a/pods/x";

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
