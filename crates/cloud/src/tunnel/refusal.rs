//! Answers of the hub itself, as Kubernetes words them: a client shows them like the cluster's own.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde_json::json;

use super::head::Refused;
use crate::cluster::Error;

/// How soon to try again what failed on the way.
const RETRY_SECONDS: u64 = 1;

/// An answer of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    code: StatusCode,
    message: String,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let message = format!("the hub does not pass this on: {}", refused.words);
        let code = refused.code;
        Self { code, message }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::BadRequest(_) => StatusCode::BAD_REQUEST,
            // Whether the cluster did it is not known.
            Error::Unreachable { .. } => StatusCode::BAD_GATEWAY,
            // A person has to see to it; others may not need it.
            Error::Config(_) => StatusCode::SERVICE_UNAVAILABLE,
            Error::Refused(_) | Error::Malformed(_) | Error::TooLarge { .. } => {
                StatusCode::BAD_GATEWAY
            }
        };
        let message = match error {
            // What is wrong with the hub's credentials concerns nobody else.
            Error::Config(_) => "the hub has no usable credentials for the cluster".to_owned(),
            error => format!("the hub reached no answer: {}", host::chain(&error)),
        };
        Self { code, message }
    }
}

impl Refusal {
    /// As an answer.
    pub(super) fn answer(self) -> Response<Full<Bytes>> {
        let again = self.code.is_server_error();
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
        let refusal = Refusal::from(Error::Unreachable { what, source });
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

    #[test]
    fn what_the_caller_did_wrong_is_not_to_be_tried_again() {
        let (code, words) = (StatusCode::BAD_REQUEST, "the path leads back");
        let answer = Refusal::from(Refused { code, words }).answer();
        assert!(!answer.headers().contains_key(RETRY_AFTER));
    }
}
