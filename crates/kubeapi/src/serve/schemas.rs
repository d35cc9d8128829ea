//! Schemas on a node: what the cluster answers to `/openapi/…` passes as it comes, and a copy is
//! kept for a time without the cluster. All authenticated users get the same of it.
//!
//! There is one copy of each path in each form; what it was asked for with is not part of its
//! name. Which copies there is room for, whoever keeps them decides.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, HeaderMap,
    HeaderName, HeaderValue, LAST_MODIFIED, RANGE, VARY,
};
use http::response::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::beyond::Beyond;
use super::paths::unchanged;
use super::payload::{Copying, Payload};
use super::route::{Asked, accept, takes_gzip};
use crate::request::Query;
use crate::request::accept::ranges;

/// Bytes of an answer that is kept, at most. A larger one passes all the same.
pub const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Forms in which a copy is looked for, at most, of those that a client takes.
const FORMS_MAX: usize = 8;

/// Headers that belong to what is kept.
const HEADERS: [HeaderName; 7] = [
    CONTENT_TYPE,
    CONTENT_ENCODING,
    ETAG,
    CACHE_CONTROL,
    EXPIRES,
    LAST_MODIFIED,
    VARY,
];

/// A question whose answer is kept, if it is a good one.
pub(super) struct Question {
    path: String,
    hash: String,
}

impl Question {
    /// The question of a request, if it is one about schemas.
    pub(super) fn of(request: &Request<Incoming>) -> Option<Self> {
        let path = request.uri().path();
        let whole = *request.method() == Method::GET && !request.headers().contains_key(RANGE);
        let query = Query::parse(request.uri().query().unwrap_or("")).ok()?;
        (whole && is_about_schemas(path)).then(|| Self {
            path: path.to_owned(),
            hash: query.text("hash").to_owned(),
        })
    }

    /// The answer as it passes on, with a copy of it taken if it is to be kept.
    pub(super) fn copied(
        self,
        answer: Response<Incoming>,
        beyond: &Arc<dyn Beyond>,
    ) -> Response<Payload> {
        let (head, body) = answer.into_parts();
        let Some(name) = self.name(&head) else {
            return Response::from_parts(head, Payload::passed(body));
        };
        let kept = Kept {
            hash: self.hash,
            headers: worth_keeping(&head.headers),
            body: Bytes::new(),
        };
        let beyond = beyond.clone();
        let copying = Copying::new(KEPT_BYTES_MAX, move |body: Vec<u8>| {
            let body = body.into();
            beyond.keep(&name, Kept { body, ..kept }.encode());
        });
        Response::from_parts(head, Payload::passed(body).copied_to(copying))
    }

    fn name(&self, head: &Parts) -> Option<String> {
        let word = |name| match head.headers.get(&name) {
            Some(value) => value.to_str().ok(),
            None => Some(""),
        };
        let (media, coding) = (word(CONTENT_TYPE)?, word(CONTENT_ENCODING)?);
        let media = media.split(';').next().unwrap_or("").trim();
        (head.status == StatusCode::OK).then(|| name(&self.path, media, coding))
    }
}

/// What is kept of an earlier answer, if it is one to this question.
pub(super) fn kept(beyond: &dyn Beyond, asked: &Asked, path: &str) -> Option<Response<Payload>> {
    if !is_about_schemas(path) || !matches!(asked.method, Method::GET | Method::HEAD) {
        return None;
    }
    let mut names = names(path, &asked.headers).into_iter();
    let kept = names.find_map(|name| Kept::decode(&beyond.kept(&name)?))?;
    let etag = kept.headers.get(ETAG).and_then(|etag| etag.to_str().ok());
    let known = etag.is_some_and(|etag| unchanged(&asked.headers, etag));
    let (code, body) = match known {
        true => (StatusCode::NOT_MODIFIED, Bytes::new()),
        false => (StatusCode::OK, kept.body),
    };
    let mut answer = Response::new(match asked.method == Method::HEAD || known {
        true => Payload::empty(),
        false => Payload::full(body),
    });
    *answer.status_mut() = code;
    *answer.headers_mut() = kept.headers;
    if kept.hash != asked.query.text("hash") {
        // How long it may be kept was said of another question.
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        headers.remove(EXPIRES);
    }
    Some(answer)
}

fn is_about_schemas(path: &str) -> bool {
    path == "/openapi/v2" || path == INDEX || path.starts_with("/openapi/v3/")
}

fn worth_keeping(headers: &HeaderMap) -> HeaderMap {
    let worth = HEADERS.into_iter().filter_map(|name| {
        let value = headers.get(&name)?.clone();
        Some((name, value))
    });
    worth.collect()
}

/// The names of all copies that a client may be given, the one that it likes best first.
fn names(path: &str, headers: &HeaderMap) -> Vec<String> {
    let accept = accept(headers);
    let mut media: Vec<String> = ranges(&accept)
        .iter()
        .map(|range| match range.takes_json() {
            true => "application/json".to_owned(),
            // A client asks with an `@`, and is answered without.
            false => format!("{}/{}", range.kind, range.subkind).replace('@', "."),
        })
        .take(FORMS_MAX)
        .collect();
    if media.is_empty() {
        media.push("application/json".to_owned());
    }
    let gzip = headers.contains_key(ACCEPT_ENCODING) && takes_gzip(headers);
    let codings: &[&str] = if gzip { &["gzip", ""] } else { &[""] };
    let each = media.iter().flat_map(|media| {
        let coded = codings.iter();
        coded.map(move |coding| name(path, media, coding))
    });
    each.collect()
}

fn name(path: &str, media: &str, coding: &str) -> String {
    // The index is JSON whatever its server calls it: a real one says plain text.
    let media = if path == INDEX {
        "application/json"
    } else {
        media
    };
    format!("{path} {media} {coding}")
}

/// Which schemas there are.
const INDEX: &str = "/openapi/v3";

/// An answer that is kept.
#[derive(Debug, PartialEq)]
struct Kept {
    /// The hash that it was asked for with, if any.
    hash: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Kept {
    /// As bytes: a sum, the hash, a line for each header, an empty line, and the body.
    fn encode(&self) -> Bytes {
        let mut text = format!("{}\n", self.hash.replace('\n', ""));
        for (name, value) in &self.headers {
            if let Ok(value) = value.to_str() {
                text += &format!("{name}: {value}\n");
            }
        }
        text += "\n";
        let mut rest = text.into_bytes();
        rest.extend_from_slice(&self.body);
        let mut out = format!("{:08x}\n", crc32fast::hash(&rest)).into_bytes();
        out.append(&mut rest);
        out.into()
    }

    /// Nothing if a bit of it is not as it was.
    fn decode(bytes: &Bytes) -> Option<Self> {
        let sum = bytes.get(..SUM_BYTES)?;
        let rest = bytes[SUM_BYTES..].strip_prefix(b"\n")?;
        let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
        if sum != crc32fast::hash(rest) {
            return None;
        }
        let end = rest.windows(2).position(|pair| pair == b"\n\n")?;
        let head = std::str::from_utf8(&rest[..end]).ok()?;
        let (hash, lines) = head.split_once('\n').unwrap_or((head, ""));
        let headers = lines.lines().filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.parse().ok()?, value.parse().ok()?))
        });
        Some(Self {
            hash: hash.to_owned(),
            headers: headers.collect(),
            body: bytes.slice(SUM_BYTES + 1 + end + 2..),
        })
    }
}

const SUM_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use http::header::IF_NONE_MATCH;

    use super::*;
    use crate::serve::{Name, Passing};
    use crate::who::User;

    fn headers(all: &[(HeaderName, &'static str)]) -> HeaderMap {
        let value = HeaderValue::from_static;
        all.iter()
            .map(|(name, text)| (name.clone(), value(text)))
            .collect()
    }

    fn kept() -> Kept {
        Kept {
            hash: "AB".to_owned(),
            headers: headers(&[(ETAG, "\"AB\""), (CONTENT_TYPE, "application/json")]),
            body: Bytes::from_static(b"{\"a\":\n\n1}"),
        }
    }

    #[test]
    fn what_is_kept_comes_back_byte_for_byte() {
        assert_eq!(Kept::decode(&kept().encode()), Some(kept()));
        let bare = Kept {
            hash: String::new(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        assert_eq!(Kept::decode(&bare.encode()), Some(bare));
    }

    /// One copy, of whatever is asked for.
    struct One(Bytes);

    impl Beyond for One {
        fn is_open(&self) -> bool {
            false
        }

        fn lends_itself_to(&self, _: &User) -> bool {
            false
        }

        fn pass(&self, _: Request<Incoming>, _: Name, _: Option<&User>) -> Passing<'_> {
            unreachable!("nothing is passed on")
        }

        fn keep(&self, _: &str, _: Bytes) {}

        fn kept(&self, _: &str) -> Option<Bytes> {
            Some(self.0.clone())
        }
    }

    #[test]
    fn how_long_a_copy_may_be_kept_counts_for_the_question_that_it_answered() {
        let mut copy = kept();
        let immutable = HeaderValue::from_static("public, immutable");
        copy.headers.insert(CACHE_CONTROL, immutable);
        let beyond = One(copy.encode());
        let answer = |query: &str, headers: HeaderMap| {
            let asked = Asked {
                user: Arc::new(User::anonymous()),
                method: Method::GET,
                headers,
                query: Query::parse(query).unwrap(),
            };
            super::kept(&beyond, &asked, "/openapi/v3/api/v1").unwrap()
        };
        let cache = |query: &str| answer(query, HeaderMap::new()).headers()[CACHE_CONTROL].clone();
        assert_eq!(cache("hash=AB&timeout=32s"), "public, immutable");
        for other in ["", "hash=CD"] {
            assert_eq!(cache(other), "no-cache, private", "{other}");
        }
        let same = answer("hash=AB", headers(&[(IF_NONE_MATCH, "\"AB\"")]));
        assert_eq!(same.status(), 304);
        let older = answer("hash=AB", headers(&[(IF_NONE_MATCH, "\"CD\"")]));
        assert_eq!(older.status(), 200);
    }

    #[test]
    fn what_is_damaged_is_not_there() {
        let whole = kept().encode();
        for place in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged[place] ^= 0x10;
            assert_eq!(Kept::decode(&damaged.into()), None, "{place}");
        }
        for length in 0..whole.len() {
            assert_eq!(Kept::decode(&whole.slice(..length)), None, "{length}");
        }
    }

    #[test]
    fn a_client_gets_the_form_that_it_asks_for_and_no_coding_that_it_does_not_take() {
        let names = |all: &[(HeaderName, &'static str)]| names("/openapi/v2", &headers(all));
        assert_eq!(names(&[]), ["/openapi/v2 application/json "]);
        let kubectl = [
            (
                http::header::ACCEPT,
                "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            ),
            (ACCEPT_ENCODING, "gzip"),
        ];
        let media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        let wanted = [
            format!("/openapi/v2 {media} gzip"),
            format!("/openapi/v2 {media} "),
        ];
        assert_eq!(names(&kubectl), wanted);
    }

    #[test]
    fn only_schemas_are_kept() {
        for path in ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1"] {
            assert!(is_about_schemas(path), "{path}");
        }
        for path in [
            "/openapi",
            "/openapi/v2/x",
            "/openapi/v3x",
            "/apis",
            "/metrics",
        ] {
            assert!(!is_about_schemas(path), "{path}");
        }
    }
}
