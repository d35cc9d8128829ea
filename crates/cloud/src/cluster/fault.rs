//! Why there is no answer, or one that says no.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;

use super::ConfigError;

/// Bytes of a refusal's words that are kept.
const WORDS_BYTES_MAX: usize = 1024;

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The way to the cluster failed, or it took too long. It may have done what was asked.
    #[error("the cluster cannot be reached: {what}")]
    Unreachable {
        /// What was tried.
        what: &'static str,
        /// Why that failed.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The way to the cluster failed before anything of the request was sent.
    #[error("the cluster cannot be reached: {what}")]
    NotSent {
        /// What was tried.
        what: &'static str,
        /// Why that failed.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The cluster said no.
    #[error("the cluster refused: {0}")]
    Refused(Status),
    /// The cluster said something that is none of its API.
    #[error("the cluster's answer makes no sense: {0}")]
    Malformed(&'static str),
    /// The answer has more bytes than we take.
    #[error("the cluster's answer has something of more than {max} bytes")]
    TooLarge {
        /// The most that is taken.
        max: usize,
    },
    /// Our own credentials cannot be used. A person has to change something.
    #[error("the credentials for the cluster cannot be used")]
    Config(#[from] ConfigError),
    /// A request that cannot be put into words, such as a name with a line break. A bug, or
    /// somebody's nonsense passed on.
    #[error("this cannot be asked")]
    BadRequest(#[source] http::Error),
}

/// A refusal, as Kubernetes words it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code} {reason}: {message}")]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The reason for programs, such as `Expired`; empty where there is none.
    pub reason: String,
    /// The words for people.
    pub message: String,
    /// When to come again, if the cluster says so.
    pub retry_after: Option<Duration>,
    /// Whether a version was asked for that the cluster has not reached.
    pub is_ahead: bool,
}

impl Error {
    pub(super) fn unreachable(what: &'static str) -> Self {
        Self::Unreachable { what, source: None }
    }

    pub(super) fn failed(
        what: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = Some(source.into());
        Self::Unreachable { what, source }
    }

    pub(super) fn not_sent(
        what: &'static str,
        source: impl Into<Option<Box<dyn std::error::Error + Send + Sync>>>,
    ) -> Self {
        let source = source.into();
        Self::NotSent { what, source }
    }

    /// The refusal, if it is one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the cluster answered with this code.
    pub fn is_code(&self, code: u16) -> bool {
        self.status().is_some_and(|status| status.code == code)
    }

    /// Whether what was asked for lies too far back.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(Status::is_expired)
    }
}

impl Status {
    /// What an answer with such a code and body says.
    pub(super) fn of(code: StatusCode, body: &[u8], retry_after: Option<Duration>) -> Self {
        let read: Read = serde_json::from_slice(body).unwrap_or_default();
        let mut message = read.message.unwrap_or_default();
        if message.is_empty() {
            message = code.canonical_reason().unwrap_or("no words").to_owned();
        }
        let details = read.details.unwrap_or_default();
        let seconds = details.retry_after_seconds;
        let mut causes = details.causes.iter().map(|cause| &*cause.reason);
        Self {
            code: code.as_u16(),
            reason: cut_short(read.reason.unwrap_or_default()),
            message: cut_short(message),
            retry_after: retry_after.or(seconds.map(Duration::from_secs)),
            is_ahead: causes.any(|reason| reason == "ResourceVersionTooLarge"),
        }
    }

    /// What an object of kind Status says.
    pub(super) fn read(body: &[u8]) -> Self {
        let read: Read = serde_json::from_slice(body).unwrap_or_default();
        let code = read.code.and_then(|code| StatusCode::from_u16(code).ok());
        Self::of(
            code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            body,
            None,
        )
    }

    /// Whether what was asked for lies too far back.
    pub fn is_expired(&self) -> bool {
        self.code == 410 || self.reason == "Expired" || self.reason == "Gone"
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Read {
    code: Option<u16>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    retry_after_seconds: Option<u64>,
    causes: Vec<Cause>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cause {
    reason: String,
}

fn cut_short(mut text: String) -> String {
    if text.len() > WORDS_BYTES_MAX {
        text.truncate(text.floor_char_boundary(WORDS_BYTES_MAX));
    }
    text
}
