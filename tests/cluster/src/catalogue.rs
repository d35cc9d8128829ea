//! Bad input for any server of the API, as bytes and words: what it must refuse, and with which
//! codes. The objects that are asked for are pods; `x` in the namespace `a` may be there.

/// A target of a GET that means two things or none, with the codes that are right.
pub fn paths() -> Vec<(String, &'static [u16])> {
    let long = |length: usize| format!("/api/v1/pods/{}", "a".repeat(length));
    let mut cases: Vec<(String, &'static [u16])> = [
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
    ]
    .map(|(path, codes)| (path.to_owned(), codes))
    .into();
    cases.push((long(9 * 1024), &[414]));
    cases.push((long(64 * 1024), &[414, 431]));
    // 0 for none: the connection may end instead.
    cases.push((long(256 * 1024), &[414, 431, 0]));
    cases
}

/// A query of a list of pods, with the code that is right.
pub fn queries() -> Vec<(String, u16)> {
    let terms: Vec<String> = (0..10_000).map(|number| format!("k{number}")).collect();
    let mut cases: Vec<(String, u16)> = [
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
        ("watch=true&timeoutSeconds=", 400),
        ("watch=true&timeoutSeconds=1e3", 400),
        ("a=%zz", 400),
        ("a=%ff", 400),
        ("unknown=anything", 200),
        ("limit=1&limit=-1", 200),
    ]
    .map(|(query, code)| (query.to_owned(), code))
    .into();
    cases.push((format!("labelSelector={}", terms.join(",")), 400));
    cases.push(("a&".repeat(300), 400));
    cases
}

/// Text that is no body of a review.
pub const BODIES: [&str; 6] = ["", "null", "[]", "{", "{\"kind\":1}", "\u{feff}{}"];

/// Headers by which nobody becomes somebody else. Those that ask for it are refused, the others
/// mean nothing.
pub const NAMES: [(&str, &str); 6] = [
    ("x-remote-user", "admin"),
    ("x-remote-group", "system:masters"),
    ("x-forwarded-for", "127.0.0.1"),
    ("x-forwarded-user", "admin"),
    ("impersonate-user", "admin"),
    ("impersonate-group", "system:masters"),
];

/// A request hidden in what another reader would take for a body. Its answer has [`TOLD`].
pub const HIDDEN: &str = "GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
/// What is in the answer to [`HIDDEN`], and in no other.
pub const TOLD: &str = "gitVersion";

/// Bytes that two readers could take for different requests: POST to a path, and something hidden.
/// They are refused, and the rest is never a request.
pub fn ambiguous(path: &str) -> Vec<String> {
    let post = format!("POST {path} HTTP/1.1\r\nHost: x\r\n");
    let old = format!("POST {path} HTTP/1.0\r\nHost: x\r\n");
    let length = HIDDEN.len();
    vec![
        format!("{post}Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        format!("{post}Content-Length: +0\r\n\r\n{HIDDEN}"),
        format!("{post}Content-Length: -1\r\n\r\n{HIDDEN}"),
        format!("{post}Content-Length: 0x0\r\n\r\n{HIDDEN}"),
        format!("{post}Content-Length: 99999999999999999999\r\n\r\n{HIDDEN}"),
        format!("{post}Content-Length : 0\r\n\r\n{HIDDEN}"),
        format!("{post}Content-Length: 0, {length}\r\n\r\n{HIDDEN}"),
        format!("{post}Transfer-Encoding: xchunked\r\n\r\n{HIDDEN}"),
        format!("{post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{HIDDEN}"),
        format!("{post}Transfer-Encoding: identity\r\n\r\n{HIDDEN}"),
        format!("{post}Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n{HIDDEN}"),
        format!("{post}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n{HIDDEN}"),
        format!("{old}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"),
        format!("{post}X: a\rContent-Length: 0\r\n\r\n{HIDDEN}"),
        format!("{post}X: a\0b\r\n\r\n{HIDDEN}"),
        format!("{post}X y: a\r\n\r\n{HIDDEN}"),
        format!("{post}: empty\r\n\r\n{HIDDEN}"),
        format!("POST  {path} HTTP/1.1\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("POST {path} HTTP/1.2\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("POST {path} HTTP/2.0\r\nHost: x\r\n\r\n{HIDDEN}"),
        format!("PO ST {path} HTTP/1.1\r\n\r\n{HIDDEN}"),
        format!("\0\0\0\0{HIDDEN}"),
        format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{HIDDEN}"),
    ]
}

/// Two framings in one request: the chunks count and the connection ends, or all is refused.
pub fn twice_framed(path: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}",
        5 + HIDDEN.len()
    )
}

/// A request with a body of a hundred megabytes that never comes.
pub fn announced_too_large(path: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: 104857600\r\n\r\n{HIDDEN}"
    )
}

/// A request with more headers than anybody reads.
pub fn wide() -> String {
    let text = "x".repeat(1000);
    let mut request = "GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n".to_owned();
    for number in 0..100 {
        request += &format!("X-{number}: {text}\r\n");
    }
    request + "\r\n"
}

/// The status of a raw answer, 0 for none.
pub fn status(answer: &str) -> u16 {
    let line = answer.lines().next().unwrap_or("");
    let code = line.split(' ').nth(1);
    code.and_then(|code| code.parse().ok()).unwrap_or(0)
}

/// What an HTTP/2 client says first.
pub fn preface() -> Vec<u8> {
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    out.extend(frame(4, 0, 0, b""));
    out
}

/// A frame of HTTP/2 on the wire. The payload is of 16 MB at most.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut out = length[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// A GET in HTTP/2, of a path of 126 characters at most.
pub fn get(stream: u32, target: &str) -> Vec<u8> {
    let (method_get, scheme_https, path, authority) = (0x82, 0x87, 0x04, 0x01);
    let mut head = vec![method_get, scheme_https];
    for (name, value) in [(path, target), (authority, "localhost")] {
        assert!(value.len() < 127, "a length in one byte");
        head.extend([name, value.len() as u8]);
        head.extend(value.as_bytes());
    }
    let end_of_stream_and_headers = 0x5;
    frame(1, end_of_stream_and_headers, stream, &head)
}

/// Rapid reset (CVE-2023-44487): so many requests for a path, each with its reset right behind it.
pub fn flood_of_resets(target: &str, requests: u32) -> Vec<u8> {
    let cancel = 8_u32.to_be_bytes();
    let mut flood = preface();
    for number in 0..requests {
        let stream = 2 * number + 1;
        flood.extend(get(stream, target));
        flood.extend(frame(3, 0, stream, &cancel));
    }
    flood
}

/// A head in HTTP/2 that goes on without end (CVE-2024-27316): so many continuations.
pub fn flood_of_continuations(frames: usize) -> Vec<u8> {
    let mut flood = preface();
    flood.extend(frame(1, 0, 1, &[0x82, 0x87]));
    let mut field = vec![0x00, 0x01, b'x', 0x7f, 0x81, 0x7d];
    field.extend(vec![b'y'; 0x7f + 0x81 - 0x80 + (0x7d << 7)]);
    for _ in 0..frames {
        flood.extend(frame(9, 0, 1, &field));
    }
    flood
}

/// So many pings, settings and frames that say nothing.
pub fn flood_of_nothing(frames: u32) -> Vec<u8> {
    let mut flood = preface();
    for _ in 0..frames {
        flood.extend(frame(6, 0, 0, &[0; 8]));
        flood.extend(frame(4, 0, 0, b""));
        flood.extend(frame(8, 0, 0, &1_u32.to_be_bytes()));
    }
    flood
}
