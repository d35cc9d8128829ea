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
        for value in warning_values(&self.warnings) {
            headers.append(WARNING, value);
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

/// What warnings may take together in the head of an answer. All are told whole where they fit;
/// where they do not, each is cut short, and those that do not fit even then are left out.
const WARNINGS_BYTES_MAX: usize = 4 * 1024;
const WARNING_CHARS_MAX: usize = 256;

/// Warnings as the headers have them.
fn warning_values(warnings: &[String]) -> Vec<HeaderValue> {
    let all: usize = warnings.iter().map(String::len).sum();
    let chars_max = match all > WARNINGS_BYTES_MAX {
        true => WARNING_CHARS_MAX,
        false => usize::MAX,
    };
    let mut left = WARNINGS_BYTES_MAX;
    let fits = |value: &HeaderValue| {
        let fits = value.len() <= left;
        left = left.saturating_sub(value.len());
        fits || chars_max == usize::MAX
    };
    let values = warnings
        .iter()
        .filter_map(|warning| warning_value(warning, chars_max));
    values.take_while(fits).collect()
}

/// A warning as the header has it: quoted, and without what a header cannot carry.
fn warning_value(warning: &str, chars_max: usize) -> Option<HeaderValue> {
    let plain = warning.chars().filter(|c| !c.is_control());
    let plain: String = plain.take(chars_max).collect();
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
            assert_eq!(
                warning_value(warning, usize::MAX).unwrap().as_bytes(),
                value.as_bytes()
            );
        }
    }

    #[test]
    fn warnings_take_no_more_of_an_answer_than_its_head_has_room_for() {
        let long = vec!["w".repeat(3_000)];
        assert_eq!(warning_values(&long)[0].len(), 3_008);
        let many: Vec<String> = (0..100_000)
            .map(|number| format!("warning {number}"))
            .collect();
        let values = warning_values(&many);
        assert_eq!(values[0], r#"299 - "warning 0""#);
        let bytes: usize = values.iter().map(HeaderValue::len).sum();
        assert!(bytes <= WARNINGS_BYTES_MAX, "{bytes}");
        let huge = vec!["w".repeat(1_000_000)];
        assert_eq!(warning_values(&huge)[0].len(), WARNING_CHARS_MAX + 8);
    }
}
