//! Answers of the hub itself, as Kubernetes words them: a client shows them like the cluster's own.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use serde_json::json;

use super::head::Refused;
use crate::cluster::Error;

/// How soon to try again what failed on the way. Clients of Kubernetes send again whatever says so.
const RETRY_SECONDS: u64 = 1;

/// An answer of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    code: StatusCode,
    message: String,
    again: Again,
}

/// Whether a request may be sent again as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    Yes,
    /// It makes no sense, or was done already, perhaps.
    No,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let message = format!("the hub does not pass this on: {}", refused.words);
        let (code, again) = (refused.code, Again::No);
        Self {
            code,
            message,
            again,
        }
    }
}

impl Refusal {
    /// What is left of the hub's room is not for this one. Nothing was sent.
    pub(super) fn busy() -> Self {
        Self {
            code: StatusCode::TOO_MANY_REQUESTS,
            message: "the hub is busy, and what is left is for nodes themselves".to_owned(),
            again: Again::Yes,
        }
    }

    /// A request of this method came to nothing.
    pub(super) fn of(error: &Error, method: &Method) -> Self {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let (code, again) = match error {
            Error::BadRequest(_) => (StatusCode::BAD_REQUEST, Again::No),
            Error::NotSent { .. } => (StatusCode::BAD_GATEWAY, Again::Yes),
            // A person has to see to it; others may not need it.
            Error::Config(_) => (StatusCode::SERVICE_UNAVAILABLE, Again::Yes),
            Error::Unreachable { .. }
            | Error::Refused(_)
            | Error::Malformed(_)
            | Error::TooLarge { .. } => match reads {
                true => (StatusCode::BAD_GATEWAY, Again::Yes),
                false => (StatusCode::BAD_GATEWAY, Again::No),
            },
        };
        let message = match error {
            // What is wrong with the hub's credentials concerns nobody else.
            Error::Config(_) => "the hub has no usable credentials for the cluster".to_owned(),
            error => format!("the hub reached no answer: {}", host::chain(error)),
        };
        let message = match (code, again) {
            (StatusCode::BAD_GATEWAY, Again::No) => {
                format!("{message}; the cluster may have done it, see before you repeat it")
            }
            _ => message,
        };
        Self {
            code,
            message,
            again,
        }
    }

    /// As an answer.
    pub(super) fn answer(self) -> Response<Full<Bytes>> {
        let again = self.again == Again::Yes;
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": reason(self.code),
            "code": self.code.as_u16(),
        });
        if again {
            status["details"] = json!({"retryAfterSeconds": RETRY_SECONDS});
        }
        let mut answer = Response::new(Full::new(status.to_string().into()));
        *answer.status_mut() = self.code;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if again {
            headers.insert(RETRY_AFTER, RETRY_SECONDS.into());
        }
        answer
    }
}

/// The reason for programs, as `k8s.io/apimachinery` knows them.
fn reason(code: StatusCode) -> &'static str {
    match code {
        StatusCode::BAD_REQUEST => "BadRequest",
        StatusCode::UNAUTHORIZED => "Unauthorized",
        StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "InternalError",
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn a_refusal_can_be_read_by_any_client() {
        let (what, source) = ("cannot connect", None);
        let refusal = Refusal::of(&Error::NotSent { what, source }, &Method::POST);
        let answer = refusal.answer();
        assert_eq!(answer.status(), 502);
        assert_eq!(answer.headers()[RETRY_AFTER], "1");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let status: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status["kind"], "Status");
        assert_eq!(status["code"], 502);
        let message = status["message"].as_str().unwrap();
        assert!(message.contains("cannot connect"), "{message}");
    }

    #[tokio::test]
    async fn a_write_that_may_have_been_done_is_not_to_be_sent_again() {
        let (what, source) = ("the connection broke", None);
        let broke = Error::Unreachable { what, source };
        let read = Refusal::of(&broke, &Method::GET).answer();
        assert_eq!(read.headers()[RETRY_AFTER], "1");
        let written = Refusal::of(&broke, &Method::POST).answer();
        assert_eq!(written.status(), 502);
        assert!(!written.headers().contains_key(RETRY_AFTER));
        let body = written.into_body().collect().await.unwrap().to_bytes();
        let status: Value = serde_json::from_slice(&body).unwrap();
        assert!(status.get("details").is_none(), "{status}");
        let message = status["message"].as_str().unwrap();
        assert!(message.contains("may have done it"), "{message}");
    }

    #[test]
    fn what_the_caller_did_wrong_is_not_to_be_tried_again() {
        let (code, words) = (StatusCode::BAD_REQUEST, "the path leads back");
        let answer = Refusal::from(Refused { code, words }).answer();
        assert!(!answer.headers().contains_key(RETRY_AFTER));
    }
}
