//! Which headers concern one connection only, and do not go further.

use http::header::{
    CONNECTION, EXPECT, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

/// Headers of one connection, beside those that `Connection` names.
const HOPS: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    // Whoever takes the head answers it.
    EXPECT,
];

/// The protocol to which a connection is to change, if the headers say so.
pub fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let wanted = named(headers).any(|name| name == "upgrade");
    headers.get(UPGRADE).filter(|_| wanted).cloned()
}

/// Takes away what concerns one connection only. Gives the protocol of [`upgrade`].
pub fn strip(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let upgrade = upgrade(headers);
    let named: Vec<HeaderName> = named(headers)
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .collect();
    for name in HOPS.iter().chain(&named) {
        headers.remove(name);
    }
    upgrade
}

/// Says that the connection changes to another protocol.
pub fn say_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, protocol);
}

/// What `Connection` names, in lower case.
fn named(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let values = headers.get_all(CONNECTION).into_iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let names = texts.flat_map(|text| text.split(','));
    names.map(|name| name.trim().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        };
        all.iter().map(pair).collect()
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_concerns_one_connection_goes_no_further() {
        let mut all = headers(&[
            ("Connection", "close, X-Own ,, bad name"),
            ("Connection", "Keep-Alive"),
            ("Keep-Alive", "timeout=5"),
            ("X-Own", "1"),
            ("TE", "trailers"),
            ("Trailer", "x"),
            ("Transfer-Encoding", "chunked"),
            ("Proxy-Authorization", "Basic x"),
            ("Expect", "100-continue"),
            ("Upgrade", "websocket"),
            ("Accept", "application/json"),
            ("Content-Length", "3"),
        ]);
        // An upgrade counts only if the connection says so too.
        assert_eq!(strip(&mut all), None);
        assert_eq!(names(&all), ["accept", "content-length"]);
    }

    #[test]
    fn an_upgrade_is_found_and_can_be_said_again() {
        let mut all = headers(&[
            ("Connection", "keep-alive, UPGRADE"),
            ("Upgrade", "SPDY/3.1"),
        ]);
        let protocol = strip(&mut all).unwrap();
        assert_eq!(protocol, "SPDY/3.1");
        assert!(all.is_empty());
        say_upgrade(&mut all, protocol);
        assert_eq!(upgrade(&all).unwrap(), "SPDY/3.1");
    }
}
