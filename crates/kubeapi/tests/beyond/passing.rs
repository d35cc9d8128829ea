//! What a node passes on: whatever it does not answer, as it came.

use std::sync::atomic::Ordering;

use http::Method;

use crate::stage::{self, CALLED, send};

const PROXY: &str = "/api/v1/namespaces/a/services/web/proxy";

/// A path, a query and a selector that say nothing here may say something there.
#[tokio::test]
async fn what_makes_no_sense_here_is_passed_on_unless_it_means_harm() {
    let exec = "command=x&".repeat(300);
    stage::on_node(async |stage, _| {
        for is_open in [true, false] {
            stage.link.store(is_open, Ordering::Relaxed);
            let passed = if is_open { CALLED } else { 503 };
            for (method, path, code) in [
                (Method::GET, format!("{PROXY}//x"), passed),
                (Method::GET, format!("{PROXY}/a%2Fb"), passed),
                (Method::GET, format!("{PROXY}/100%25"), passed),
                (Method::GET, format!("{PROXY}/?q=%ff"), passed),
                (
                    Method::POST,
                    format!("/api/v1/namespaces/a/pods/x/exec?{exec}"),
                    passed,
                ),
                // Nothing of it is held, so it is not known on which fields it can be selected.
                (
                    Method::GET,
                    "/api/v1/secrets?fieldSelector=spec.new%3Dx".into(),
                    passed,
                ),
                (Method::GET, format!("{PROXY}/%2e%2e/x"), 404),
                (Method::GET, format!("{PROXY}//../x"), 404),
                (Method::GET, format!("{PROXY}/a%2F..%2Fb"), 404),
                (Method::GET, format!("{PROXY}/a%0d%0ab"), 404),
                (Method::GET, "/api/v1/pods?a=%ff".into(), 400),
            ] {
                let reply = stage.client.ask(send(method, &path)).await;
                assert_eq!(reply.status, code, "{path}: {}", reply.text());
            }
            // What is held is selected as we know it, while nobody can be asked.
            let path = "/api/v1/pods?fieldSelector=spec.new%3Dx";
            let code = if is_open { CALLED } else { 400 };
            assert_eq!(stage.client.get(path).await.status, code);
            assert_eq!(
                stage.stranger().get(&format!("{PROXY}//x")).await.status,
                401
            );
        }
    })
    .await;
}

/// That there is no such path only the cluster knows.
#[tokio::test]
async fn paths_that_are_not_known_here_are_not_said_to_lead_nowhere() {
    stage::on_node(async |stage, _| {
        for code in [CALLED, 503] {
            for path in ["/metrics", "/apis/new.test", "/apis/new.test/v1", "/api/v2"] {
                let reply = stage.client.get(path).await;
                assert_eq!(reply.status, code, "{path}: {}", reply.text());
            }
            stage.link.store(false, Ordering::Relaxed);
        }
        for path in ["/livez/none", "/openapi/v3/apis/new.test/v1"] {
            assert_eq!(stage.client.get(path).await.status, 404, "{path}");
        }
    })
    .await;
}
