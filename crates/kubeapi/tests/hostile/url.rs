//! C1, C2, C3, C7: paths, queries, bodies and headers that mean harm or nothing.

use bytes::Bytes;
use http::Method;
use kubeapi::serve::Limits;

use crate::stage::{self, Http, Stage, pod, send};

/// The status of a raw answer, 0 for none.
pub fn status(answer: &str) -> u16 {
    let line = answer.lines().next().unwrap_or("");
    line.split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0)
}

async fn get_raw(stage: &Stage, target: &str) -> u16 {
    let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    status(&stage.client.raw(request.as_bytes()).await)
}

#[tokio::test]
async fn paths_that_could_mean_two_things_are_refused() {
    stage::on_server(Http::One, Limits::default(), async |stage| {
        stage.put(&pod("a", "x")).await;
        let long = |length: usize| format!("/api/v1/pods/{}", "a".repeat(length));
        let cases = [
            ("//", &[404][..]),
            ("/./api/v1/pods", &[404]),
            ("/../api/v1/pods", &[404]),
            ("/api/v1//pods", &[404]),
            ("//api/v1/pods", &[404]),
            ("/api/v1/namespaces/../secrets", &[404]),
            ("/api/v1/namespaces/%2e%2e/secrets", &[404]),
            ("/api/v1/namespaces/%2e%2e%2fsecrets", &[404]),
            ("/api/v1/namespaces/a/pods/x%2Fstatus", &[404]),
            ("/api/v1/namespaces/a/pods/x%5c", &[404]),
            ("/api/v1/namespaces/a/pods/x%00", &[404]),
            ("/api/v1/namespaces/a/pods/x%0d%0aX:y", &[404]),
            ("/api/v1/namespaces/a/pods/%ff%fe", &[404]),
            ("/api/v1/namespaces/a/pods/%zz", &[404]),
            ("/api/v1/namespaces/a/pods/%252e%252e", &[404]),
            ("/api/v1/namespaces/a/pods/x.", &[404]),
            ("/api/v1/namespaces/a/pods/x;a=b", &[404]),
            ("/api/v1/pods;a=b", &[404]),
            ("/API/v1/pods", &[404]),
            ("http://other/api/v1/nowhere", &[404]),
            ("*", &[400, 404, 405]),
            (&long(9 * 1024), &[414]),
            (&long(64 * 1024), &[414, 431]),
            (&long(256 * 1024), &[414, 431, 0]),
        ];
        for (target, codes) in cases {
            let code = get_raw(stage, target).await;
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
        let terms: Vec<String> = (0..10_000).map(|number| format!("k{number}")).collect();
        let terms = format!("labelSelector={}", terms.join(","));
        let cases = [
            ("resourceVersion=-1", 400),
            ("resourceVersion=01", 200),
            ("resourceVersion=1e9", 400),
            ("resourceVersion=NaN", 400),
            ("resourceVersion=+1", 400),
            ("resourceVersion=%D9%A1", 400),
            ("limit=-1", 200),
            ("limit=", 400),
            ("limit=1.5", 400),
            ("limit=99999999999999999999", 400),
            ("limit=1000000000000", 200),
            ("continue=x", 400),
            ("resourceVersionMatch=Newest&resourceVersion=1", 422),
            ("fieldSelector=spec.containers%3Dx", 400),
            ("fieldSelector=spec.nodeName", 400),
            ("fieldSelector=metadata.name%3D%3D%3Dx", 400),
            ("labelSelector=-bad-%3Dx", 400),
            ("labelSelector=a+in", 400),
            ("labelSelector=a+in+(b", 400),
            (&terms, 400),
            ("watch=true&timeoutSeconds=", 400),
            ("watch=true&timeoutSeconds=1e3", 400),
            ("a=%zz", 400),
            ("a=%ff", 400),
            ("unknown=anything", 200),
            ("limit=1&limit=-1", 200),
        ];
        for (query, code) in cases {
            let reply = stage.client.get(&format!("/api/v1/pods?{query}")).await;
            let shown = &query[..query.len().min(60)];
            assert_eq!(reply.status, code, "{shown}: {}", reply.text());
            let kind = if code == 200 { "PodList" } else { "Status" };
            assert_eq!(reply.json()["kind"], kind, "{shown}");
        }
        let many = "a&".repeat(300);
        let reply = stage.client.get(&format!("/api/v1/pods?{many}")).await;
        assert_eq!(reply.status, 400);
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
        for text in ["", "null", "[]", "{", "{\"kind\":1}", "\u{feff}{}"] {
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
        for (name, value) in [
            ("x-remote-user", "admin"),
            ("x-remote-group", "system:masters"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-user", "admin"),
            ("impersonate-user", "admin"),
            ("impersonate-group", "system:masters"),
        ] {
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
