//! Tests of what the client is told: kubeconfigs, tokens, refusals, awkward objects.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bytes::Bytes;
use host::Clock;
use host::files::{self, Audience};
use host::pki::{Authority, Wanted};
use object::{ObjectName, Resource};
use tempfile::TempDir;

use super::config::{Pem, Server, Token};
use super::*;

/// A folder with certificates, a key, and the parts of a kubeconfig.
struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = Clock::machine().wall();
        let authority = Authority::create("test-ca", now).unwrap();
        let wanted = Wanted::Client {
            user: "ada".into(),
            groups: vec![],
        };
        let own = authority.issue(&wanted, now).unwrap();
        let desk = Self { folder };
        desk.write("ca.crt", &authority.certificate_pem(), Audience::Everyone);
        desk.write("own.crt", &own.certificate_pem(), Audience::Everyone);
        desk.write("own.key", &own.key_pem(), Audience::Owner);
        desk.write("token", "first\n", Audience::Owner);
        desk
    }

    fn write(&self, name: &str, text: &str, audience: Audience) -> PathBuf {
        let path = self.folder.path().join(name);
        files::write(&path, text.as_bytes(), audience).unwrap();
        path
    }

    fn read(&self, cluster: &str, user: &str) -> Result<Config, ConfigError> {
        let text = format!(
            "apiVersion: v1\nkind: Config\npreferences: {{}}\ncurrent-context: here\n\
             contexts:\n- name: there\n  context: {{cluster: x, user: x}}\n\
             - name: here\n  context: {{cluster: c, user: u, namespace: n}}\n\
             clusters:\n- name: c\n  cluster: {{{cluster}}}\n\
             users:\n- name: u\n  user: {{{user}}}\n"
        );
        let path = self.write("kubeconfig", &text, Audience::Owner);
        Config::from_kubeconfig(&path)
    }
}

const CLUSTER: &str = "server: 'https://hub.example:6443', certificate-authority: ca.crt";
const USER: &str = "client-certificate: own.crt, client-key: own.key";

#[test]
fn files_beside_a_kubeconfig_are_used() {
    let desk = Desk::new();
    let config = desk.read(CLUSTER, USER).unwrap();
    assert_eq!(config.address(), "hub.example:6443");
    config.tls(&host::tls::ALPN, &Clock::machine()).unwrap();
    assert!(!format!("{config:?}").contains("PRIVATE"));
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let desk = Desk::new();
    let config = desk.read(CLUSTER, USER).unwrap();
    let key = desk.folder.path().join("own.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = config.tls(&host::tls::ALPN, &Clock::machine()).unwrap_err();
    assert!(refused.to_string().contains("chmod 600"), "{refused}");
    let path = desk.folder.path().join("kubeconfig");
    desk.read(CLUSTER, "token: secret-token").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = Config::from_kubeconfig(&path).unwrap_err();
    assert!(matches!(
        refused,
        ConfigError::File(files::Error::Exposed { .. })
    ));
}

#[test]
fn files_that_are_not_there_are_seen_at_the_start() {
    let desk = Desk::new();
    let clock = Clock::machine();
    desk.read(CLUSTER, USER).unwrap().check(&clock).unwrap();
    let gone = "client-certificate: own.crt, client-key: gone.key";
    let gone = desk.read(CLUSTER, gone).unwrap().check(&clock);
    assert!(gone.unwrap_err().to_string().contains("gone.key"));
    let gone = desk.read(CLUSTER, "tokenFile: gone").unwrap().check(&clock);
    assert!(matches!(gone, Err(ConfigError::File(_))));
}

#[test]
fn what_we_do_not_do_is_refused_in_words() {
    let desk = Desk::new();
    let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}";
    for (cluster, user, word) in [
        (
            &format!("{CLUSTER}, insecure-skip-tls-verify: true"),
            USER,
            "insecure-skip-tls-verify",
        ),
        (
            &format!("{CLUSTER}, proxy-url: 'http://p'"),
            USER,
            "proxy-url",
        ),
        (&CLUSTER.to_owned(), exec, "exec plugins"),
        (
            &CLUSTER.to_owned(),
            "auth-provider: {name: gcp}",
            "auth-provider",
        ),
        (
            &CLUSTER.to_owned(),
            "username: ada, password: x",
            "username",
        ),
        (&CLUSTER.to_owned(), "token: x, as: root", "as is not"),
        (
            &CLUSTER.to_owned(),
            "client-key: own.key",
            "client-certificate",
        ),
        (&CLUSTER.to_owned(), "", "a client certificate or a token"),
        (
            &"server: 'https://x:1'".to_owned(),
            USER,
            "certificate-authority-data",
        ),
        (&CLUSTER.replace("https", "http"), USER, "not an address"),
        (
            &CLUSTER.replace("hub.", "user:pw@hub."),
            USER,
            "not an address",
        ),
    ] {
        let refused = desk.read(cluster, user).unwrap_err();
        assert!(refused.to_string().contains(word), "{word}: {refused}");
    }
}

#[test]
fn what_is_no_kubeconfig_is_refused_without_quoting_it() {
    let desk = Desk::new();
    for text in [
        "secret-text",
        "clusters: {secret-text: [",
        "current-context: secret-text",
        "users:\n- name: secret-text\n  user: 7\n",
        "a: &secret-text [1]\nb: *secret-text\n",
    ] {
        let path = desk.write("kubeconfig", text, Audience::Owner);
        let refused = Config::from_kubeconfig(&path).unwrap_err().to_string();
        assert!(refused.contains("is not a kubeconfig"), "{refused}");
        assert!(!refused.contains("secret-text"), "{refused}");
    }
    let missing = Config::from_kubeconfig(&desk.folder.path().join("none")).unwrap_err();
    assert!(missing.to_string().contains("does not exist"), "{missing}");
}

#[test]
fn a_pods_token_is_read_anew_and_a_named_one_must_be_private() {
    let desk = Desk::new();
    let folder = desk.folder.path();
    desk.write("token", "first\n", Audience::Everyone);
    let config = Config::in_pod("fd00::1", "443", folder).unwrap();
    assert_eq!(config.address(), "[fd00::1]:443");
    let token = config.token.clone().unwrap();
    assert_eq!(&*token.read().unwrap(), "first");
    desk.write("token", "second", Audience::Everyone);
    assert_eq!(&*token.read().unwrap(), "second");
    desk.write("token", "two words", Audience::Everyone);
    assert!(matches!(token.read(), Err(ConfigError::Unusable { .. })));
    assert!(Config::in_pod("10.0.0.1", "443", &folder.join("none")).is_err());

    let named = desk
        .read(CLUSTER, "tokenFile: token, token: older")
        .unwrap();
    assert!(matches!(&named.token, Some(Token::Named(_))));
    assert!(named.token.unwrap().read().is_err(), "others may read it");
}

#[test]
fn data_comes_before_files_and_must_be_what_it_says() {
    let desk = Desk::new();
    let config = desk.read(CLUSTER, &format!("{USER}, client-key-data: bm90IGEga2V5"));
    let config = config.unwrap();
    assert!(matches!(
        &config.certificate,
        Some((Pem::File(_), Pem::Inline(_)))
    ));
    let refused = config.tls(&host::tls::ALPN, &Clock::machine()).unwrap_err();
    assert!(
        refused.to_string().contains("in the kubeconfig"),
        "{refused}"
    );
    assert!(
        desk.read(CLUSTER, "client-certificate-data: '%%%'")
            .is_err()
    );
}

#[test]
fn an_address_may_have_a_path_and_another_name() {
    let server = Server::parse("https://proxy.example/k8s/clusters/c-1/", None).unwrap();
    assert_eq!(server.address, "proxy.example:443");
    assert_eq!(server.prefix, "/k8s/clusters/c-1");
    let server = Server::parse("https://[::1]:6443", Some("kubernetes")).unwrap();
    assert_eq!(server.address, "[::1]:6443");
    assert_eq!(server.name.to_str(), "kubernetes");
    for bad in ["", "https://", "ftp://x", "https://x?y=z", "x:6443"] {
        assert!(Server::parse(bad, None).is_err(), "{bad}");
    }
}

fn pods() -> Served {
    Served::new(Resource::new("", "pods"), "v1", "Pod")
}

#[test]
fn an_object_is_kept_in_one_form_however_it_came() {
    let metadata = r#""metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"}"#;
    let spec = r#""spec":{"x":1.50,"y":"\u00e9 }"}"#;
    let expected = format!(r#"{{"apiVersion":"v1","kind":"Pod",{metadata},{spec}}}"#);
    for text in [
        // An item of a list: neither apiVersion nor kind.
        r#"{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"},
            "spec":{"x":1.50,"y":"\u00e9 }"}}"#,
        // They come last, and managed fields in between.
        r#"{ "metadata" : {"name":"a","namespace":"b","managedFields":[{"a":"}"}],"uid":"u",
            "resourceVersion":"7"}, "spec":{"x":1.50,"y":"\u00e9 }"},"kind":"Pod",
            "apiVersion":"v1"}"#,
        // Managed fields alone behind the rest.
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u",
            "resourceVersion":"7","managedFields":null},"spec":{"x":1.50,"y":"\u00e9 }"}}"#,
    ] {
        let object = canonical(&pods(), &Bytes::from(text)).unwrap();
        assert_eq!(object.bytes, expected.as_bytes(), "{:?}", object.bytes);
        assert_eq!(object.header.name, ObjectName::new("b", "a"));
        assert_eq!(
            canonical(&pods(), &object.bytes).unwrap().bytes,
            object.bytes
        );
    }
}

#[test]
fn what_is_no_object_is_not_kept() {
    for text in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"metadata":{"name":"a","uid":"u"}}"#,
        r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"metadata":{}}"#,
        r#"{"kind":"Pod","kind":"Node","metadata":{"name":"a","uid":"u","resourceVersion":"7"}}"#,
        r#"{"metadata":{"name":"a/b","uid":"u","resourceVersion":"7"}}"#,
    ] {
        assert!(canonical(&pods(), &Bytes::from(text)).is_err(), "{text}");
    }
    let deep = format!(
        r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"7"}},"x":{}{}}}"#,
        "[".repeat(500),
        "]".repeat(500)
    );
    assert!(canonical(&pods(), &Bytes::from(deep)).is_err());
}

#[test]
fn paths_are_where_the_cluster_has_things() {
    let slices = Resource::new("discovery.k8s.io", "endpointslices");
    let slices = Served::new(slices, "discovery.k8s.io/v1", "EndpointSlice");
    assert_eq!(slices.path(), "/apis/discovery.k8s.io/v1/endpointslices");
    assert_eq!(
        slices.object_path(&ObjectName::new("a", "b")),
        "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/b"
    );
    let roles = Resource::new("rbac.authorization.k8s.io", "clusterroles");
    let roles = Served::new(roles, "rbac.authorization.k8s.io/v1", "ClusterRole");
    let odd = roles.object_path(&ObjectName::from_path("system:node? #x"));
    assert!(
        odd.ends_with("/clusterroles/system:node%3F%20%23x"),
        "{odd}"
    );
}

#[test]
fn refusals_are_understood_with_and_without_words() {
    let body = br#"{"kind":"Status","code":429,"reason":"TooManyRequests","message":"busy",
        "details":{"retryAfterSeconds":7}}"#;
    let status = Status::of(http::StatusCode::TOO_MANY_REQUESTS, body, None);
    assert_eq!((status.code, &*status.message), (429, "busy"));
    assert_eq!(status.retry_after.unwrap().as_secs(), 7);
    let body = br#"{"kind":"Status","code":504,"reason":"Timeout",
        "message":"Too large resource version: 9, current: 5","details":{"retryAfterSeconds":1,
        "causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}"#;
    let ahead = Status::of(http::StatusCode::GATEWAY_TIMEOUT, body, None);
    assert!(ahead.is_ahead && !status.is_ahead);
    let plain = Status::of(http::StatusCode::BAD_GATEWAY, b"<html>", None);
    assert_eq!((&*plain.reason, &*plain.message), ("", "Bad Gateway"));
    let long = format!(r#"{{"message":"{}"}}"#, "é".repeat(5_000));
    let long = Status::of(http::StatusCode::CONFLICT, long.as_bytes(), None);
    assert!(long.message.len() <= 1024 && !long.message.is_empty());
}
