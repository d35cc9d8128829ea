//! Who is let in, who is not, and what a client makes of the answer.

use proptest::prelude::*;

use super::*;
use crate::http::head::{self, HEAD_BYTES_MAX};

const KEY: Key = Key(*b"the sample nonce");

fn request() -> String {
    String::from_utf8(KEY.request("hub.example:8443").unwrap()).unwrap()
}

/// Our request with one text replaced, which must be in it.
fn with(old: &str, new: &str) -> Result<Key, Refused> {
    let request = request();
    assert!(request.contains(old));
    Key::read_request(request.replace(old, new).as_bytes())
}

/// Our request with one more field.
fn and(field: &str) -> Result<Key, Refused> {
    with("\r\n\r\n", &format!("\r\n{field}\r\n\r\n"))
}

fn response(old: &str, new: &str) -> Result<(), NotLetIn> {
    let response = String::from_utf8(KEY.response()).unwrap();
    assert!(response.contains(old));
    KEY.read_response(response.replace(old, new).as_bytes())
}

#[test]
fn the_accept_key_is_that_of_the_rfc() {
    assert_eq!(STANDARD.encode(KEY.0), "dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(KEY.accept(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn what_we_ask_is_understood_and_what_we_answer_too() {
    assert_eq!(Key::read_request(request().as_bytes()), Ok(KEY));
    assert_eq!(KEY.read_response(&KEY.response()), Ok(()));
}

#[test]
fn names_are_read_in_any_case_and_lists_in_any_order() {
    let request = "GET /link HTTP/1.1\r\nhost:h\r\nCONNECTION: keep-alive\r\n\
        connection: close ,\tUPGRADE\r\nupgrade: h2c, WebSocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-protocol: a, holdfast.v2\r\n\
        sec-websocket-protocol:holdfast.v1\r\nsec-websocket-extensions: permessage-deflate\r\n\
        sec-websocket-key:   dGhlIHNhbXBsZSBub25jZQ==  \r\ncontent-length: 0\r\n\
        x-words: gr\u{fc}n\r\n\r\n";
    assert_eq!(Key::read_request(request.as_bytes()), Ok(KEY));
}

#[test]
fn a_browser_is_refused_whatever_else_it_sends() {
    assert_eq!(and("Origin: https://hub.example"), Err(Refused::Browser));
    assert_eq!(and("origin: null"), Err(Refused::Browser));
    let elsewhere = with("Host: hub.example:8443", "Origin: x");
    assert_eq!(elsewhere, Err(Refused::Browser));
    assert_eq!(Refused::Browser.status(), 403);
}

#[test]
fn another_path_method_or_version_is_refused() {
    for path in ["/", "/link/", "/link?x", "/%6cink", "//link", "/Link", "*"] {
        assert_eq!(
            with("GET /link ", &format!("GET {path} ")),
            Err(Refused::Path)
        );
    }
    assert_eq!(with("GET ", "POST "), Err(Refused::Method));
    assert_eq!(with("HTTP/1.1", "HTTP/1.0"), Err(Refused::HttpVersion));
    assert_eq!(with("HTTP/1.1", "HTTP/2.0"), Err(Refused::HttpVersion));
    assert_eq!(with("HTTP/1.1", "http/1.1"), Err(Refused::Malformed));
    assert_eq!(with("GET /link", "GET  /link"), Err(Refused::Malformed));
    assert_eq!(
        with("GET /link HTTP/1.1", "GET /link"),
        Err(Refused::Malformed)
    );
}

#[test]
fn a_request_that_asks_for_something_else_is_told_what_is_spoken() {
    let plain = with("Upgrade: websocket\r\n", "");
    assert_eq!(plain, Err(Refused::NotAnUpgrade));
    let other = with("Upgrade: websocket", "Upgrade: h2c");
    assert_eq!(other, Err(Refused::NotAnUpgrade));
    let kept = with("Connection: Upgrade", "Connection: keep-alive");
    assert_eq!(kept, Err(Refused::NotAnUpgrade));
    for version in ["8", "13, 8", "013", ""] {
        let refused = with("Version: 13", &format!("Version: {version}"));
        assert_eq!(refused, Err(Refused::Version));
    }
    let response = String::from_utf8(Refused::Version.response()).unwrap();
    assert!(response.starts_with("HTTP/1.1 426 ") && response.contains("Version: 13\r\n"));
    for name in ["holdfast.v2", "Holdfast.v1", "holdfast"] {
        assert_eq!(with("holdfast.v1", name), Err(Refused::Subprotocol));
    }
}

#[test]
fn a_key_has_sixteen_bytes() {
    let key = "dGhlIHNhbXBsZSBub25jZQ==";
    for wrong in [
        "",
        "AAAA",
        "dGhlIHNhbXBsZSBub25jZQ",
        "dGhlIHNhbXBsZSBub25jZSE=",
        "====",
        "a b",
    ] {
        assert_eq!(with(key, wrong), Err(Refused::Malformed));
    }
    assert_eq!(with("Sec-WebSocket-Key", "X-Key"), Err(Refused::Malformed));
}

#[test]
fn what_could_be_understood_in_two_ways_is_refused() {
    let twice = [
        "Host: other",
        "Sec-WebSocket-Key: AAAA",
        "Sec-WebSocket-Version: 13",
    ];
    let content = [
        "Content-Length: 5",
        "Content-Length: 00",
        "Transfer-Encoding: chunked",
    ];
    let syntax = [
        " folded",
        "\tfolded",
        "Name : x",
        ": x",
        "Name",
        "N\u{e4}me: x",
    ];
    let control = ["A: \0", "A: x\rB: y", "A: x\nB: y", "A: \x7f", "A\n: x"];
    let all = [&twice[..], &content, &syntax, &control].concat();
    for field in all {
        assert_eq!(and(field), Err(Refused::Malformed), "{field:?}");
    }
    assert_eq!(
        with("Host: hub.example:8443\r\n", ""),
        Err(Refused::Malformed)
    );
    assert_eq!(with("hub.example:8443", ""), Err(Refused::Malformed));
    let bare = request().replace("\r\n", "\n");
    assert_eq!(Key::read_request(bare.as_bytes()), Err(Refused::Malformed));
    assert_eq!(Key::read_request(b""), Err(Refused::Malformed));
    assert_eq!(Key::read_request(b"\r\n\r\n"), Err(Refused::Malformed));
    assert_eq!(Key::read_request(b"\xff\r\n\r\n"), Err(Refused::Malformed));
}

#[test]
fn a_head_has_an_end_and_a_limit() {
    let filler = |bytes: usize| format!("X: {}", "x".repeat(bytes));
    let exact = HEAD_BYTES_MAX - request().len() - "X: \r\n".len();
    assert_eq!(and(&filler(exact)), Ok(KEY));
    assert_eq!(and(&filler(exact + 1)), Err(Refused::TooLong));
    assert_eq!(and(&"A: x\r\n".repeat(100)), Err(Refused::TooLong));
    assert_eq!(Refused::TooLong.status(), 431);
    let request = request();
    let all = [request.as_bytes(), b"early\r\n\r\n"].concat();
    for searched in 0..request.len() {
        assert_eq!(head::end(&all[..searched], 0), Ok(None));
        assert_eq!(head::end(&all, searched), Ok(Some(request.len())));
    }
    let endless = vec![b'x'; HEAD_BYTES_MAX];
    assert_eq!(head::end(&endless, 0), Err(Malformed::TooLong));
    assert_eq!(head::end(&endless[1..], 0), Ok(None));
}

#[test]
fn every_refusal_is_a_whole_answer() {
    let all = [
        Refused::Malformed,
        Refused::TooLong,
        Refused::Method,
        Refused::Path,
        Refused::HttpVersion,
        Refused::Browser,
        Refused::NotAnUpgrade,
        Refused::Version,
        Refused::Subprotocol,
    ];
    for refused in all {
        let response = refused.response();
        let end = head::end(&response, 0).unwrap().unwrap();
        let head = Head::read(&response[..end]).unwrap();
        let length = head.one("content-length").unwrap().unwrap();
        assert_eq!(length, (response.len() - end).to_string());
        assert!(has_token(&head, "connection", "close"));
        let told = KEY.read_response(&response[..end]);
        assert_eq!(told, Err(NotLetIn::Status(refused.status())));
    }
}

#[test]
fn an_answer_that_is_not_to_our_request_does_not_let_us_in() {
    let not = Err(NotLetIn::NotAWebSocket);
    assert_eq!(response("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "AAAA"), not);
    assert_eq!(response("Sec-WebSocket-Accept", "X"), not);
    assert_eq!(response("Upgrade: websocket", "Upgrade: h2c"), not);
    assert_eq!(response("Connection: Upgrade", "Connection: close"), not);
    assert_eq!(response("HTTP/1.1 101", "HTTP/1.0 101"), not);
    assert_eq!(response("HTTP/1.1 101", "HTTP/1.1 +101"), not);
    assert_eq!(response("HTTP/1.1 101", "SSH-2.0"), not);
    let extended = "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n";
    assert_eq!(response("\r\n\r\n", extended), not);
    let subprotocol = Err(NotLetIn::Subprotocol);
    assert_eq!(response("holdfast.v1", "holdfast.v2"), subprotocol);
    assert_eq!(response("Sec-WebSocket-Protocol", "X"), subprotocol);
    assert_eq!(response("101", "503"), Err(NotLetIn::Status(503)));
}

#[test]
fn a_host_cannot_smuggle_fields_into_the_request() {
    for host in ["", "a b", "a\r\nOrigin: x", "a/b", "h\u{f6}st", "a@b"] {
        assert_eq!(KEY.request(host), Err(NotAHost));
    }
    assert!(KEY.request("[::1]:443").is_ok() && KEY.request("10.0.0.1").is_ok());
}

proptest! {
    #[test]
    fn a_request_with_a_flaw_is_refused_or_understood_and_never_more(
        at: prop::sample::Index,
        flaw in prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b':'), Just(b' ')],
    ) {
        let mut flawed = request().into_bytes();
        let at = at.index(flawed.len());
        flawed[at] = flaw;
        if let Ok(key) = Key::read_request(&flawed) {
            prop_assert_eq!(Key::read_request(&key.request("hub").unwrap()), Ok(key));
        }
        let mut flawed = KEY.response();
        let at = at % flawed.len();
        flawed[at] = flaw;
        let _ = KEY.read_response(&flawed);
        let _ = Key::read_request(&flawed);
    }
}
