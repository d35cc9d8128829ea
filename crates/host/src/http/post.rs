//! The head of a request with content and of the answer to it, as bytes and without I/O.

use std::time::Duration;

use super::Response;
use super::head::{Head, Malformed};

/// What the head of a POST says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// What it is for.
    pub path: String,
    /// How many bytes of content follow.
    pub length: usize,
}

/// Why a request is not taken. It is told by a status, and the connection closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not a request that can be understood in one way only.
    #[error("malformed request")]
    Malformed,
    /// There is nothing at this path.
    #[error("not found")]
    Path,
    /// Only POST asks for this.
    #[error("method not allowed")]
    Method,
    /// How long the content is must be said before.
    #[error("a content length is needed")]
    Length,
    /// There is too much content.
    #[error("the content is too large")]
    TooLarge,
    /// Content is taken as it is: not compressed, not in chunks.
    #[error("the content must not be encoded")]
    Encoded,
    /// Nothing is promised before the content was sent.
    #[error("expectations are not met here")]
    Expectation,
    /// The head has too many bytes or fields.
    #[error("request header too large")]
    HeadTooLong,
    /// Only HTTP/1.1 is spoken here.
    #[error("HTTP version not supported")]
    HttpVersion,
}

impl Refused {
    /// The status that tells it.
    pub fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Path => 404,
            Self::Method => 405,
            Self::Length => 411,
            Self::TooLarge => 413,
            Self::Encoded => 415,
            Self::Expectation => 417,
            Self::HeadTooLong => 431,
            Self::HttpVersion => 505,
        }
    }
}

impl From<Malformed> for Refused {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Syntax => Self::Malformed,
            Malformed::TooLong => Self::HeadTooLong,
        }
    }
}

impl Post {
    /// Reads the head of a request, from its first byte to its empty line. More content than
    /// `bytes_max` is refused before any of it is read.
    pub fn read(head: &[u8], bytes_max: usize) -> Result<Self, Refused> {
        let head = Head::read(head)?;
        let words: Vec<&str> = head.line.split(' ').collect();
        let [method, path, version] = words[..] else {
            return Err(Refused::Malformed);
        };
        match version {
            "HTTP/1.1" => {}
            _ if version.starts_with("HTTP/") => return Err(Refused::HttpVersion),
            _ => return Err(Refused::Malformed),
        }
        if method != "POST" {
            return Err(Refused::Method);
        }
        if head.one("host")?.is_none_or(str::is_empty) {
            return Err(Refused::Malformed);
        }
        if head.all("expect").next().is_some() {
            return Err(Refused::Expectation);
        }
        let length = length(&head)?.ok_or(Refused::Length)?;
        if length > bytes_max as u64 {
            return Err(Refused::TooLarge);
        }
        Ok(Self {
            path: path.to_owned(),
            length: usize::try_from(length).map_err(|_| Refused::TooLarge)?,
        })
    }
}

/// A question, as a client asks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The host that is asked, maybe with a port.
    pub host: &'a str,
    /// What for.
    pub path: &'a str,
    /// The content, which is JSON.
    pub body: &'a [u8],
}

impl Asked<'_> {
    /// The whole request.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let Self { host, path, body } = self;
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\n\
             Host: {host}\r\n\
             Connection: close\r\n\
             Content-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }
}

impl Response {
    /// The whole answer.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let (status, length) = (self.status, self.body.len());
        let later = self.retry_after.map(|wait| wait.as_secs().max(1));
        let later = later.map(|seconds| format!("Retry-After: {seconds}\r\n"));
        let later = later.unwrap_or_default();
        // The words after the status are for people who read it on a terminal, and optional.
        let head = format!(
            "HTTP/1.1 {status} \r\n\
             Connection: close\r\n\
             Cache-Control: no-store\r\n\
             Content-Type: application/json\r\n\
             Content-Length: {length}\r\n\
             {later}\r\n"
        );
        [head.as_bytes(), &self.body].concat()
    }

    /// Reads the head of an answer: the answer without its content, and the length of that.
    pub(super) fn read_head(head: &[u8]) -> Result<(Self, u64), Malformed> {
        let head = Head::read(head)?;
        let status = head.line.strip_prefix("HTTP/1.1 ");
        let status = status.and_then(|rest| rest.split(' ').next());
        let status = status.filter(|digits| digits.len() == 3);
        let status = status.and_then(number).ok_or(Malformed::Syntax)?;
        let length = length(&head).map_err(|_| Malformed::Syntax)?;
        // A date may stand there as well; ours never has one.
        let later = head.one("retry-after")?.and_then(number);
        let response = Self {
            status: u16::try_from(status).map_err(|_| Malformed::Syntax)?,
            retry_after: later.map(|seconds| Duration::from_secs(seconds.min(LATER_SECONDS_MAX))),
            body: Vec::new(),
        };
        Ok((response, length.ok_or(Malformed::Syntax)?))
    }
}

/// How much content there is, if the head says so in the one way that is taken.
fn length(head: &Head<'_>) -> Result<Option<u64>, Refused> {
    let coded = head.all("transfer-encoding").next().is_some()
        || head
            .list("content-encoding")
            .any(|coding| coding != "identity");
    if coded {
        return Err(Refused::Encoded);
    }
    match head.one("content-length")? {
        None => Ok(None),
        Some(text) => number(text).map(Some).ok_or(Refused::Malformed),
    }
}

/// Digits and nothing else. `parse` alone would take a sign.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Who is asked to come back later than this comes back at this time.
const LATER_SECONDS_MAX: u64 = 3600;
