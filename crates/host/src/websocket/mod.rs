//! WebSocket (RFC 6455) over a byte stream: whole binary messages, and no memory between them.
//!
//! A hub has thousands of connections that say nothing most of the time. So nothing is kept for a
//! connection but what a half-received frame needs, and no more is read than that frame has: what
//! follows stays in the TLS session below. Libraries keep the buffer of their largest message for
//! ever.
//!
//! The rules are pure: [`handshake`], [`frame`] and [`message`]. This module runs them over a
//! stream. It keeps no time: whoever calls decides how long anything may take.

pub mod handshake; // the request and the answer that begin it
pub mod frame; // the head of a frame, and what is wrong with it
pub mod message; // frames -> messages
mod open; // stream -> socket
mod reader; // stream -> messages
mod writer; // messages -> stream
mod pump; // a writer that works while its owner does something else

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};

pub use frame::{Close, CloseCode, Role, Violation};
pub use handshake::{NotLetIn, PATH, Refused, SUBPROTOCOL};
pub use message::Received;
pub use open::{AcceptFailed, ConnectFailed, accept, accept_opening, connect};
pub use pump::Pump;
pub use reader::{ReadFailed, Reader};
pub use writer::{WriteFailed, Writer};

/// A connection whose two ends have agreed to speak WebSocket.
#[derive(Debug)]
pub struct Socket<S> {
    stream: S,
    role: Role,
    /// What the peer said right after its part of the handshake.
    early: Bytes,
}

impl<S> Socket<S> {
    /// A socket for a connection on which the handshake was made elsewhere. `early` is what was
    /// read behind it.
    pub fn new(stream: S, role: Role, early: Bytes) -> Self {
        Self {
            stream,
            role,
            early,
        }
    }

    /// The stream below, to ask it who is at its other end.
    pub fn stream(&self) -> &S {
        &self.stream
    }
}

impl<S: AsyncRead + AsyncWrite> Socket<S> {
    /// Two halves, so that reading never waits for writing.
    pub fn split(self) -> (Reader<ReadHalf<S>>, Writer<WriteHalf<S>>) {
        let (reads, writes) = tokio::io::split(self.stream);
        let reader = Reader::new(reads, self.role.peer(), self.early);
        (reader, Writer::new(writes, self.role))
    }
}
