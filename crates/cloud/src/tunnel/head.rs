//! In whose name a request of a node goes to the cluster, and what of its head goes with it.
//!
//! This decides what a node can do through its hub, so it is exact: a request that brings a
//! credential goes on a connection that has none of ours. Any other is the node's own, and nothing
//! in its head can say otherwise. What is not clear is refused.

use http::header::{AUTHORIZATION, FORWARDED, HOST, HeaderMap, HeaderName, VIA};
use http::request::Parts;
use http::{Method, StatusCode, Uri};

/// In whose name a request goes to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// Whoever the credential says that it brings, on a connection without any of ours.
    Bearer,
    /// The node of the link.
    Node,
}

/// Why a request goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    /// The answer's code.
    pub(super) code: StatusCode,
    /// Why, for people.
    pub(super) words: &'static str,
}

/// A request that may go.
#[derive(Debug)]
pub(super) struct Passed {
    /// In whose name.
    pub(super) who: Who,
    /// The protocol to which its connection is to change.
    pub(super) upgrade: Option<http::HeaderValue>,
}

/// Who impersonates says so in such headers. They are a caller's own affair if it is known by a
/// credential of its own, and nobody's otherwise.
const IMPERSONATE: &str = "impersonate-";
/// What a proxy in front of an API server says, and what only its own connections may say.
const OF_PROXIES: [&str; 3] = ["x-remote-", "x-forwarded-", "proxy-"];
/// The same by name.
const ALSO_OF_PROXIES: [HeaderName; 4] =
    [HOST, FORWARDED, VIA, HeaderName::from_static("x-real-ip")];
/// What concerns the two ends of the link alone.
const OF_THE_LINK: HeaderName = HeaderName::from_static(tunnel::BASE);
/// A browser has no other place for a token when it opens a WebSocket, so the API server takes one
/// from here.
const PROTOCOLS: HeaderName = HeaderName::from_static("sec-websocket-protocol");
const PROTOCOL_TOKEN: &str = "base64url.bearer.authorization.k8s.io.";

/// Decides in whose name a request goes, and leaves of its head what may go with it.
pub(super) fn pass(head: &mut Parts) -> Result<Passed, Refused> {
    whole(&head.method, &head.uri)?;
    let who = who(&head.headers)?;
    let headers = &mut head.headers;
    let upgrade = tunnel::hops::strip(headers);
    if upgrade.is_some() && head.method != Method::GET && head.method != Method::POST {
        return Err(bad("only GET and POST change the protocol"));
    }
    let dropped: Vec<HeaderName> = headers
        .keys()
        .filter(|name| !goes(name, who))
        .cloned()
        .collect();
    for name in dropped {
        headers.remove(name);
    }
    Ok(Passed { who, upgrade })
}

/// Whether a header goes with a request in this name.
fn goes(name: &HeaderName, who: Who) -> bool {
    let text = name.as_str();
    let of_proxies = OF_PROXIES.iter().any(|start| text.starts_with(start));
    if of_proxies || ALSO_OF_PROXIES.contains(name) || *name == OF_THE_LINK {
        return false;
    }
    let of_callers = text.starts_with(IMPERSONATE) || name == AUTHORIZATION;
    who == Who::Bearer || !of_callers
}

/// In whose name a request goes. One that brings any credential is never the node's own.
fn who(headers: &HeaderMap) -> Result<Who, Refused> {
    let mut credentials = headers.get_all(AUTHORIZATION).into_iter();
    let credential = credentials.next();
    if credentials.next().is_some() {
        return Err(bad("more than one Authorization header"));
    }
    match credential {
        Some(credential) if is_bearer(credential.as_bytes()) => return Ok(Who::Bearer),
        Some(_) => {
            return Err(Refused {
                code: StatusCode::UNAUTHORIZED,
                words: "only bearer tokens go through a hub",
            });
        }
        None => {}
    }
    let protocols = headers.get_all(PROTOCOLS).into_iter();
    let mut named = protocols.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let token = named.any(|name| name.trim_ascii().starts_with(PROTOCOL_TOKEN.as_bytes()));
    Ok(match token {
        true => Who::Bearer,
        false => Who::Node,
    })
}

/// Whether a credential is a bearer token, whatever its worth.
fn is_bearer(credential: &[u8]) -> bool {
    let scheme = credential.split(|byte| *byte == b' ').next();
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"))
}

/// Whether it is clear what is asked for: a path from the root, which leads nowhere else.
fn whole(method: &Method, uri: &Uri) -> Result<(), Refused> {
    if *method == Method::CONNECT {
        return Err(Refused {
            code: StatusCode::METHOD_NOT_ALLOWED,
            words: "a hub opens no connections for others",
        });
    }
    if uri.scheme().is_some() || uri.authority().is_some() || !uri.path().starts_with('/') {
        return Err(bad("only a path can be asked for"));
    }
    let path = decoded(uri.path()).ok_or(bad("the path is not well escaped"))?;
    if path.iter().any(u8::is_ascii_control) {
        return Err(bad("the path has control characters"));
    }
    let mut parts = path.split(|byte| *byte == b'/' || *byte == b'\\');
    match parts.any(|part| part == b"." || part == b"..") {
        true => Err(bad("the path leads back")),
        false => Ok(()),
    }
}

/// A path without escapes.
fn decoded(path: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    Some(decoded)
}

fn bad(words: &'static str) -> Refused {
    let code = StatusCode::BAD_REQUEST;
    Refused { code, words }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
