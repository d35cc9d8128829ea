//! Headers, gzip, HEAD and refusals.

use std::io::Read;

use http::Method;
use object::Resource;
use serde_json::Value;
use store::Scope;

use crate::stage::{self, CALLED, pod, send};

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_end(&mut out)
        .unwrap();
    out
}

/// Upstream compresses what is worth it, for who wants it, and never a watch.
#[tokio::test]
async fn large_answers_are_compressed_for_who_wants_it() {
    stage::everywhere(async |stage| {
        stage.put(&pod("a", "small")).await;
        let text = "x".repeat(4000);
        for number in 0..100 {
            stage
                .put(&pod("b", &format!("p{number}")).note(&text))
                .await;
        }
        let ask = async |path: &str, coding: &str| {
            let request = send(Method::GET, path).header("accept-encoding", coding);
            stage.client.ask(request).await
        };
        let plain = stage.client.get("/api/v1/namespaces/b/pods").await;
        assert_eq!(plain.header("content-encoding"), "");
        assert_eq!(plain.header("cache-control"), "no-cache, private");
        for coding in ["gzip", "br, gzip"] {
            let zipped = ask("/api/v1/namespaces/b/pods", coding).await;
            assert_eq!(zipped.header("content-encoding"), "gzip", "{coding}");
            assert_eq!(zipped.header("vary"), "Accept-Encoding");
            assert!(zipped.body.len() * 5 < plain.body.len());
            assert_eq!(unzipped(&zipped.body), plain.body, "{coding}");
        }
        for (path, coding) in [
            ("/api/v1/namespaces/a/pods", "gzip"),
            ("/api/v1/namespaces/b/pods", "gzip;q=0"),
            ("/api/v1/namespaces/b/pods", "gzip;q=0.5"),
            ("/api/v1/namespaces/b/pods", "GZIP"),
            ("/api/v1/namespaces/b/pods", "*"),
            ("/api/v1/namespaces/b/pods", "identity"),
        ] {
            assert_eq!(
                ask(path, coding).await.header("content-encoding"),
                "",
                "{coding}"
            );
        }
        let request = send(Method::GET, "/api/v1/pods?watch=1").header("accept-encoding", "gzip");
        let mut stream = stage.client.open(request).await;
        assert!(!stream.headers.contains_key("content-encoding"));
        stream.expect_kind("ADDED").await;
    })
    .await;
}

/// A list longer than one piece is the same list.
#[tokio::test]
async fn a_long_list_is_whole() {
    stage::everywhere(async |stage| {
        let text = "x".repeat(30_000);
        for number in 0..60 {
            stage
                .put(&pod("a", &format!("p{number:02}")).note(&text))
                .await;
        }
        let list = stage.client.json("/api/v1/pods").await;
        let items = list["items"].as_array().unwrap();
        assert_eq!(items.len(), 60);
        for (number, item) in items.iter().enumerate() {
            assert_eq!(item["metadata"]["name"], format!("p{number:02}"));
            assert_eq!(item["metadata"]["annotations"]["note"], text);
        }
    })
    .await;
}

/// HEAD has the status and no body, and the connection is good for the next request.
#[tokio::test]
async fn head_is_get_without_a_body() {
    stage::everywhere(async |stage| {
        stage.put(&pod("a", "x")).await;
        for (path, code) in [
            ("/api/v1/namespaces/a/pods/x", 200),
            ("/api/v1/pods", 200),
            ("/version", 200),
            ("/api/v1/namespaces/a/pods/none", 404),
            ("/api/v1/pods?resourceVersion=abc", 400),
            ("/api/v1/pods?watch=1", 200),
        ] {
            let reply = stage.client.ask(send(Method::HEAD, path)).await;
            assert_eq!((reply.status, reply.body.len()), (code, 0), "{path}");
            let next = stage.client.json("/api/v1/pods").await;
            assert_eq!(next["kind"], "PodList");
        }
        assert_eq!(stage.api.gate.watches(), 0);
    })
    .await;
}

/// Every refusal is a Status with the words that clients switch on.
#[tokio::test]
async fn refusals_have_the_shape_that_clients_read() {
    stage::everywhere(async |stage| {
        let cases = [
            (Method::GET, "/api/v1/unknown", 404, "NotFound"),
            (Method::PUT, "/api/v1/pods", 405, "MethodNotAllowed"),
            (Method::POST, "/version", 405, "MethodNotAllowed"),
            (Method::OPTIONS, "/api/v1/pods", 405, "MethodNotAllowed"),
            (Method::GET, "/api/v1/pods?limit=x", 400, "BadRequest"),
            (
                Method::GET,
                "/api/v1/pods?resourceVersionMatch=Exact",
                422,
                "Invalid",
            ),
            (Method::GET, "/api/v1/pods?timeout=later", 400, "BadRequest"),
        ];
        for (method, path, code, reason) in cases {
            let reply = stage.client.ask(send(method, path)).await;
            let body = reply.json();
            assert_eq!(reply.status, code, "{path}: {body}");
            assert_eq!(body["kind"], "Status", "{path}");
            assert_eq!(body["apiVersion"], "v1", "{path}");
            assert_eq!(body["status"], "Failure", "{path}");
            assert_eq!(body["reason"], reason, "{path}");
            assert_eq!(body["code"], code, "{path}");
            assert_eq!(reply.header("x-content-type-options"), "");
            assert!(
                body["message"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{path}"
            );
        }
        for path in ["/apis/none.example/v1/things", "/nowhere", "/healthz/none"] {
            let reply = stage.client.get(path).await;
            assert_eq!(reply.status, 404, "{path}");
            assert_eq!(reply.text(), "404 page not found\n");
            assert_eq!(reply.header("x-content-type-options"), "nosniff");
        }
    })
    .await;
}

/// Who is nobody is refused, whatever he asks for; who says he is somebody has to prove it.
#[tokio::test]
async fn a_stranger_sees_nothing() {
    stage::everywhere(async |stage| {
        stage.put(&pod("a", "x")).await;
        let stranger = stage.stranger();
        for path in [
            "/api/v1/pods",
            "/api/v1/namespaces/a/pods/x",
            "/api/v1/pods?watch=1",
            "/api",
            "/openapi/v2",
            "/nowhere",
        ] {
            let reply = stranger.get(path).await;
            assert_eq!(reply.status, 403, "{path}: {}", reply.text());
            assert_eq!(reply.json()["reason"], "Forbidden");
        }
        let with = |header: &'static str| {
            stranger.ask(send(Method::GET, "/version").header("authorization", header))
        };
        let reply = with("Bearer x.y.z").await;
        assert_eq!(reply.status, 401);
        assert_eq!(reply.json()["reason"], "Unauthorized");
        for header in ["Basic eDp5", "Bearer", "nonsense"] {
            let reply = with(header).await;
            assert_eq!(reply.status, 403, "no credential is no wrong one: {header}");
        }
    })
    .await;
}

#[tokio::test]
async fn pretty_is_the_same_with_spaces() {
    stage::both(async |stage| {
        let made = stage.put(&pod("a", "x")).await;
        let reply = stage
            .client
            .get("/api/v1/namespaces/a/pods/x?pretty=true")
            .await;
        assert!(reply.text().contains("\n  \"metadata\""));
        assert_eq!(serde_json::from_slice::<Value>(&reply.body).unwrap(), made);
    })
    .await;
}

/// What is held is JSON: an answer in JSON can be compared with it on its way. Of what is not held
/// protobuf is shorter.
#[tokio::test]
async fn writes_of_what_a_node_holds_are_answered_in_json_to_those_who_take_it() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    stage::on_node(async |stage, source| {
        stage.put(&pod("a", "x")).await;
        // Some were held once.
        let were = Resource::new("", stage::UNCOVERED);
        source.reset(&were, Scope::all(), &[]).await;
        source.end(&were, Scope::all()).await;
        let both = format!("{PROTOBUF},application/json");
        let status = "/api/v1/namespaces/a/pods/x/status";
        let pods = "/api/v1/namespaces/a/pods";
        let secrets = "/api/v1/namespaces/a/secrets";
        for (method, path, accept, passed) in [
            (Method::PATCH, status, &*both, "application/json"),
            (Method::POST, pods, &both, "application/json"),
            (Method::PATCH, status, PROTOBUF, PROTOBUF),
            (Method::POST, secrets, &both, &both),
        ] {
            let request = send(method, path).header("accept", accept);
            let reply = stage.client.exchange(request, "{}".into()).await;
            let said = reply.text();
            assert_eq!(reply.status, CALLED, "{path}: {said}");
            assert!(
                said.contains(&format!("and takes {passed}\"")),
                "{path}: {said}"
            );
        }
    })
    .await;
}
