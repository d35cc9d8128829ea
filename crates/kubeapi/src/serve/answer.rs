//! An answer -> an HTTP response: status, headers, and a body that may still be in the making.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, RETRY_AFTER,
    VARY, WARNING, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};

use super::payload::Payload;
use crate::Status;

/// What goes back to a client.
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) content_type: &'static str,
    pub(super) payload: Payload,
    pub(super) warnings: Vec<String>,
    pub(super) etag: Option<String>,
    pub(super) cache: &'static str,
    /// What the answer depends on besides its path.
    pub(super) varies: Option<&'static str>,
    /// Whether browsers are told to take the content type as it is said.
    pub(super) nosniff: bool,
}

/// An answer that nobody keeps.
const NOT_KEPT: &str = "no-cache, private";

pub(super) const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// Bodies from this size on are compressed for clients that want it: what a kube-apiserver
/// compresses.
pub(super) const GZIP_BYTES_MIN: usize = 128 * 1024;

impl Answer {
    /// A whole body.
    pub(super) fn full(code: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self::streamed(code, content_type, Payload::full(body.into()))
    }

    /// JSON.
    pub(super) fn json(code: u16, body: &serde_json::Value) -> Self {
        Self::full(code, JSON, body.to_string())
    }

    /// A body that is made while the client reads.
    pub(super) fn streamed(code: u16, content_type: &'static str, payload: Payload) -> Self {
        Self {
            code,
            content_type,
            payload,
            warnings: Vec::new(),
            etag: None,
            cache: NOT_KEPT,
            varies: None,
            nosniff: false,
        }
    }

    /// 404 in plain words: where nothing of the API begins.
    pub(super) fn no_page() -> Self {
        Self::full(404, TEXT, "404 page not found\n").guarded()
    }

    /// The same, and browsers guess nothing.
    pub(super) fn guarded(mut self) -> Self {
        self.nosniff = true;
        self
    }

    /// The HTTP response. `gzip` says whether the client takes compressed bodies.
    pub(super) fn into_response(self, request_number: u64, gzip: bool) -> Response<Payload> {
        let payload = if gzip {
            self.payload.compressed(GZIP_BYTES_MIN)
        } else {
            self.payload
        };
        let compressed = payload.is_compressed();
        let mut response = Response::new(payload);
        *response.status_mut() =
            StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(self.cache));
        headers.insert(AUDIT_ID, HeaderValue::from(request_number));
        if compressed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if let Some(header) = self.varies {
            headers.append(VARY, HeaderValue::from_static(header));
        }
        if self.nosniff {
            headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
        for warning in self.warnings {
            if let Some(value) = warning_value(&warning) {
                headers.append(WARNING, value);
            }
        }
        if let Some(value) = self.etag.and_then(|etag| HeaderValue::from_str(&etag).ok()) {
            headers.insert(ETAG, value);
        }
        response
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        let mut answer = Self::json(status.code, &status.to_json());
        answer.warnings = status.warnings;
        answer
    }
}

/// A warning as the header has it: quoted, and without what a header cannot carry.
fn warning_value(warning: &str) -> Option<HeaderValue> {
    let plain: String = warning.chars().filter(|c| !c.is_control()).collect();
    let escaped = plain.replace('\\', r"\\").replace('"', r#"\""#);
    HeaderValue::from_bytes(format!("299 - \"{escaped}\"").as_bytes()).ok()
}

/// A refusal as a response, with the headers that go with it.
pub(super) fn refusal(status: Status, request_number: u64) -> Response<Payload> {
    let retry = status.retry_after_seconds();
    let mut response = Answer::from(status).into_response(request_number, false);
    if let Some(seconds) = retry {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_keep_their_quotes_and_lose_their_line_ends() {
        for (warning, value) in [
            (r#"unknown field "a""#, r#"299 - "unknown field \"a\"""#),
            (r"back\slash", r#"299 - "back\\slash""#),
            ("two\r\nlines", r#"299 - "twolines""#),
            ("grün", r#"299 - "grün""#),
        ] {
            assert_eq!(warning_value(warning).unwrap().as_bytes(), value.as_bytes());
        }
    }
}
