//! Attempts to be somebody else, and what comes of them.

use http::header::{HeaderName, HeaderValue};
use http::{Request, StatusCode};

use super::*;

fn head(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn of(headers: &[(&str, &str)]) -> (Who, Vec<String>) {
    let mut head = head("GET", "/api/v1/pods", headers);
    let passed = pass(&mut head).unwrap();
    let line =
        |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
    let mut left: Vec<String> = head.headers.iter().map(line).collect();
    left.sort();
    (passed.who, left)
}

fn refused(method: &str, uri: &str, headers: &[(&str, &str)]) -> StatusCode {
    pass(&mut head(method, uri, headers)).unwrap_err().code
}

const CLAIMS: [(&str, &str); 9] = [
    ("Impersonate-User", "system:admin"),
    ("impersonate-group", "system:masters"),
    ("Impersonate-Uid", "1"),
    ("Impersonate-Extra-scopes", "all"),
    ("X-Remote-User", "admin"),
    ("X-REMOTE-GROUP", "system:masters"),
    ("X-Remote-Extra-a", "b"),
    ("X-Forwarded-For", "10.0.0.1"),
    ("Proxy-Authorization", "Basic x"),
];

#[test]
fn a_request_without_a_credential_is_the_nodes_own_whatever_it_claims() {
    assert_eq!(of(&[]), (Who::Node, vec![]));
    let mut all = CLAIMS.to_vec();
    all.extend([
        ("Host", "elsewhere"),
        ("Forwarded", "for=10.0.0.1"),
        ("Via", "1.1 x"),
        ("X-Real-Ip", "10.0.0.1"),
        ("Accept", "application/json"),
    ]);
    assert_eq!(
        of(&all),
        (Who::Node, vec!["accept: application/json".into()])
    );
}

#[test]
fn a_bearer_token_passes_unchanged_and_so_does_whom_its_owner_impersonates() {
    let mut all = CLAIMS.to_vec();
    all.push(("Authorization", "Bearer abc.def.ghi"));
    let (who, left) = of(&all);
    assert_eq!(who, Who::Bearer);
    let expected = [
        "authorization: Bearer abc.def.ghi",
        "impersonate-extra-scopes: all",
        "impersonate-group: system:masters",
        "impersonate-uid: 1",
        "impersonate-user: system:admin",
    ];
    assert_eq!(left, expected);
}

#[test]
fn a_request_with_any_credential_is_never_the_nodes_own() {
    for bearer in ["bearer x", "BEARER x", "Bearer", "Bearer ", "Bearer  x"] {
        assert_eq!(of(&[("Authorization", bearer)]).0, Who::Bearer, "{bearer}");
    }
    for other in ["Basic eDp5", "Bearerx y", "", "Negotiate x", "\tBearer x"] {
        let code = refused("GET", "/api", &[("Authorization", other)]);
        assert_eq!(code, StatusCode::UNAUTHORIZED, "{other:?}");
    }
    let two = [("Authorization", "Basic x"), ("Authorization", "Bearer y")];
    assert_eq!(refused("GET", "/api", &two), StatusCode::BAD_REQUEST);
    // The place that browsers have for a token.
    let token = "base64url.bearer.authorization.k8s.io.YWJj";
    for protocols in [format!("v4.channel.k8s.io, {token}"), token.to_owned()] {
        let (who, left) = of(&[
            ("Sec-WebSocket-Protocol", &protocols),
            ("Impersonate-User", "somebody"),
        ]);
        assert_eq!((who, left.len()), (Who::Bearer, 2));
    }
    let plain = [("Sec-WebSocket-Protocol", "v4.channel.k8s.io")];
    assert_eq!(of(&plain).0, Who::Node);
}

#[test]
fn a_credential_cannot_be_hidden_from_the_rule() {
    // The header is looked at before it is dropped, and what is left has no credential of ours.
    let hidden = [
        ("Connection", "authorization"),
        ("Authorization", "Bearer x"),
    ];
    assert_eq!(of(&hidden), (Who::Bearer, vec![]));
}

#[test]
fn what_concerns_the_connection_stays_and_the_rest_goes() {
    let (_, left) = of(&[
        ("Connection", "keep-alive, x-own"),
        ("X-Own", "1"),
        ("TE", "trailers"),
        ("Transfer-Encoding", "chunked"),
        ("Upgrade", "h2c"),
        ("User-Agent", "kubectl"),
        ("Accept-Encoding", "gzip"),
        ("Audit-ID", "1"),
        ("Content-Type", "application/json"),
        ("X-Kubernetes-PF-FlowSchema-UID", "u"),
        ("Warning", "299 - x"),
    ]);
    let names: Vec<&str> = left.iter().filter_map(|it| it.split(':').next()).collect();
    let expected = [
        "accept-encoding",
        "audit-id",
        "content-type",
        "user-agent",
        "warning",
        "x-kubernetes-pf-flowschema-uid",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_change_of_the_protocol_is_found() {
    let wanted = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")];
    for method in ["GET", "POST"] {
        let mut head = head(
            method,
            "/api/v1/namespaces/a/pods/b/exec?command=ls",
            &wanted,
        );
        let passed = pass(&mut head).unwrap();
        assert_eq!(passed.upgrade.unwrap(), "SPDY/3.1");
        assert!(head.headers.is_empty());
    }
    assert_eq!(refused("PUT", "/api", &wanted), StatusCode::BAD_REQUEST);
}

#[test]
fn only_a_path_that_leads_where_it_says_can_be_asked_for() {
    let refuses = |uri: &str| refused("GET", uri, &[]) == StatusCode::BAD_REQUEST;
    for uri in [
        "http://elsewhere/api",
        "https://10.0.0.1:6443/api",
        "elsewhere:443",
        "*",
        "/api/../../secret",
        "/..",
        "/api/./v1",
        "/api/%2e%2E/x",
        "/api/.%2e",
        "/api/a%2f..%2fb",
        "/api/a%5c..%5cb",
        "/api/%",
        "/api/%2",
        "/api/%zz",
        "/api/%00",
        "/api/%0d%0aX-Remote-User:%20a",
    ] {
        assert!(refuses(uri), "{uri}");
    }
    let connect = refused("CONNECT", "elsewhere:443", &[]);
    assert_eq!(connect, StatusCode::METHOD_NOT_ALLOWED);
    for uri in [
        "/",
        "/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn1",
        "/api/v1/namespaces/a/services/b:80/proxy/x%2Fy/...",
        "/apis//v1",
        "/api/v1/namespaces/a/pods/b/log?tailLines=..",
        "/%C3%A4",
    ] {
        assert!(pass(&mut head("GET", uri, &[])).is_ok(), "{uri}");
    }
}
