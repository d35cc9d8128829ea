//! Why a tube is over before its end.

use std::error::Error;
use std::io;

use wire::frame::Cause;

/// Why a stream is over, though something was still to be read or written. It stands in the
/// [`io::Error`] that a tube gives, see [`closed`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.told())]
pub struct Closed {
    /// Why.
    pub cause: Cause,
    /// The same for people.
    pub words: Box<str>,
    /// Who closed it.
    pub by: By,
}

/// Who closed a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The other end of the link.
    Peer,
    /// The link, by being over.
    Link,
}

impl Closed {
    pub(crate) fn by_peer(cause: Cause, words: &str) -> Self {
        let (words, by) = (words.into(), By::Peer);
        Self { cause, words, by }
    }

    pub(crate) fn by_link(words: &str) -> Self {
        Self {
            cause: Cause::Broken,
            words: words.into(),
            by: By::Link,
        }
    }

    /// As an error of reading or writing.
    pub(crate) fn error(&self) -> io::Error {
        let kind = match self.by {
            By::Peer => io::ErrorKind::ConnectionReset,
            By::Link => io::ErrorKind::ConnectionAborted,
        };
        io::Error::new(kind, self.clone())
    }

    fn told(&self) -> String {
        let what = match (self.by, self.cause) {
            (By::Link, _) => "the link is over",
            (By::Peer, Cause::Cancelled) => "the other end does not need the rest",
            (By::Peer, Cause::Busy) => "the other end has no room",
            (By::Peer, Cause::NotServed) => "the other end does not take this",
            (By::Peer, Cause::Broken | Cause::Other(_)) => "it broke at the other end",
        };
        match self.words.is_empty() {
            true => what.to_owned(),
            false => format!("{what}: {}", self.words),
        }
    }
}

/// What a tube said, somewhere among the causes of an error.
pub fn closed<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Closed> {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref());
        if let Some(closed) = inner.or_else(|| error.downcast_ref()) {
            return Some(closed);
        }
        next = error.source();
    }
    None
}
