//! HTTP/1.1, as much as joining needs: one request with a bounded body, one answer, and the end.
//!
//! It is read strictly, see [`head`]. There is no keep-alive, no chunked body and no compression:
//! each is a way for two readers to disagree, and none is worth it for one question. This module
//! keeps no time: whoever calls decides how long anything may take.

pub mod head; // a line and fields, read strictly
mod exchange; // one question over a stream, from either end
mod post; // the head of a request with content, and of the answer to it
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;

pub use exchange::{ExchangeFailed, ask, read_body, read_opening, write_response};
pub use post::{Asked, Post, Refused};

/// The first words of a connection: a head, and what came along behind it.
#[derive(Debug)]
pub struct Opening {
    /// The head, to its empty line.
    pub head: Vec<u8>,
    /// What was read behind it.
    pub early: Bytes,
}

impl Opening {
    /// What the request is for, if it is one: the second word of its line.
    pub fn path(&self) -> Option<&str> {
        let line = self.head.split(|byte| *byte == b'\r').next()?;
        let path = line.split(|byte| *byte == b' ').nth(1)?;
        str::from_utf8(path).ok()
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status, of three digits.
    pub status: u16,
    /// When to try again, where that helps.
    pub retry_after: Option<Duration>,
    /// The content, which is JSON.
    pub body: Vec<u8>,
}
