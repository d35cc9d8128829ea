//! C1, C2, C3, C7: paths, queries, bodies and headers that mean harm or nothing.

use bytes::Bytes;
use cluster::catalogue::{self, status};
use http::Method;
use kubeapi::serve::Limits;

use crate::stage::{self, Http, Stage, pod, send};

async fn get_raw(stage: &Stage, target: &str) -> u16 {
    let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    status(&stage.client.raw(request.as_bytes()).await)
}

#[tokio::test]
async fn paths_that_could_mean_two_things_are_refused() {
    stage::on_server(Http::One, Limits::default(), async |stage| {
        stage.put(&pod("a", "x")).await;
        for (target, codes) in catalogue::paths() {
            let code = get_raw(stage, &target).await;
            let shown = &target[..target.len().min(60)];
            assert!(codes.contains(&code), "{shown}: {code}");
        }
        assert_eq!(get_raw(stage, "/api/v1/namespaces/a/pods/x").await, 200);
    })
    .await;
}

#[tokio::test]
async fn queries_that_make_no_sense_are_refused() {
    stage::everywhere(async |stage| {
        stage.put(&pod("a", "x")).await;
        for (query, code) in catalogue::queries() {
            let reply = stage.client.get(&format!("/api/v1/pods?{query}")).await;
            let shown = &query[..query.len().min(60)];
            assert_eq!(reply.status, code, "{shown}: {}", reply.text());
            let kind = if code == 200 { "PodList" } else { "Status" };
            assert_eq!(reply.json()["kind"], kind, "{shown}");
        }
    })
    .await;
}

/// C2: a version of 22 digits is a version like any other: it has not come yet.
#[tokio::test]
async fn a_version_beyond_machine_words_is_in_the_future() {
    stage::both(async |stage| {
        let path = "/api/v1/pods?resourceVersion=9999999999999999999999";
        assert_eq!(stage.client.get(path).await.status, 504);
        let path = "/api/v1/pods?resourceVersion=0".to_owned() + &"9".repeat(70);
        assert_eq!(stage.client.get(&path).await.status, 400);
    })
    .await;
}

/// C3: bodies.
#[tokio::test]
async fn a_body_is_read_within_its_limit_and_where_one_is_expected() {
    stage::everywhere(async |stage| {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let post = || send(Method::POST, path).header("content-type", "application/json");
        let large = Bytes::from(vec![b' '; 3 * 1024 * 1024 + 1]);
        let client = stage.client("heavy");
        let reply = client.exchange(post(), large).await;
        let body = reply.json();
        let reason = "RequestEntityTooLarge";
        assert_eq!(
            (reply.status, &body["reason"]),
            (413, &reason.into()),
            "{body}"
        );
        for text in catalogue::BODIES {
            let reply = client.exchange(post(), text.into()).await;
            assert!(
                (400..423).contains(&reply.status),
                "{text:?}: {}",
                reply.status
            );
        }
        // A body that nobody expects is ignored.
        let get = send(Method::GET, "/api/v1/pods");
        let reply = client.exchange(get, "ignored".into()).await;
        assert_eq!(reply.status, 200);
    })
    .await;
}

/// C7: who somebody is comes from his certificate or token and from nothing else.
#[tokio::test]
async fn headers_make_nobody_somebody_else() {
    stage::everywhere(async |stage| {
        let stranger = stage.stranger();
        for (name, value) in catalogue::NAMES {
            let request = send(Method::GET, "/api/v1/pods").header(name, value);
            let status = stranger.ask(request).await.status;
            assert!([400, 403, 500].contains(&status), "{name}: {status}");
            let request = send(Method::GET, "/api/v1/pods").header(name, value);
            if name.starts_with("x-") {
                assert_eq!(stage.client.ask(request).await.status, 200, "{name}");
            }
        }
        // Who may impersonate is then no more than the other.
        let request = send(Method::GET, "/api/v1/pods").header("impersonate-user", "nobody");
        assert_eq!(stage.client.ask(request).await.status, 403);
    })
    .await;
}
