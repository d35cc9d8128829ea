//! One object by name.

use crate::stage::{self, node, pod, version};

/// Upstream: `RunTestGet`, all but what is too high (see `list::freshness`).
#[tokio::test]
async fn an_object_is_given_at_least_as_new_as_asked() {
    stage::everywhere(async |stage| {
        let created = stage.put(&pod("test-ns", "foo")).await;
        let stored = stage.put(&pod("test-ns", "foo").note("1")).await;
        let other = stage.put(&pod("test-ns", "bar")).await;
        let path = "/api/v1/namespaces/test-ns/pods/foo";
        let versions = [
            "",
            "0",
            version(&created),
            version(&stored),
            version(&other),
        ];
        for at in versions {
            let found = stage
                .client
                .json(&format!("{path}?resourceVersion={at}"))
                .await;
            assert_eq!(found, stored, "{at}");
        }
        let reply = stage
            .client
            .get(&format!("{path}?resourceVersion=abc"))
            .await;
        assert_eq!(reply.status, 500);
    })
    .await;
}

#[tokio::test]
async fn what_is_not_there_is_not_found_and_named() {
    stage::everywhere(async |stage| {
        let reply = stage
            .client
            .get("/api/v1/namespaces/test-ns/pods/non-existing")
            .await;
        assert_eq!(
            reply.json(),
            serde_json::json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "pods \"non-existing\" not found", "reason": "NotFound",
                "details": {"name": "non-existing", "kind": "pods"}, "code": 404
            })
        );
        assert_eq!(reply.status, 404);
        let gone = pod("test-ns", "gone");
        stage.put(&gone).await;
        stage.delete(&gone).await;
        let reply = stage
            .client
            .get("/api/v1/namespaces/test-ns/pods/gone")
            .await;
        assert_eq!(reply.status, 404);
    })
    .await;
}

#[tokio::test]
async fn an_object_is_found_in_its_own_place_only() {
    stage::both(async |stage| {
        stage.put(&pod("a", "x")).await;
        let made = stage.put(&node("x")).await;
        assert_eq!(stage.client.json("/api/v1/nodes/x").await, made);
        for path in [
            "/api/v1/namespaces/b/pods/x",
            "/api/v1/pods/x",
            "/api/v1/namespaces/a/nodes/x",
            "/api/v1/namespaces/a/pods/x/unknown",
            "/api/v1/namespaces/a/pods/x/status/more",
            "/api/v2/nodes/x",
            "/apis/apps/v1/nodes/x",
        ] {
            assert_eq!(stage.client.get(path).await.status, 404, "{path}");
        }
        // The status is read with the whole.
        let path = "/api/v1/nodes/x/status";
        assert_eq!(stage.client.json(path).await, made);
    })
    .await;
}
