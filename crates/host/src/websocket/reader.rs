//! The half that reads: one message at a time, and nothing is lost if the wait for it is given up.

use std::io;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::frame::{Role, Violation};
use super::message::{Incoming, Received, Space};

/// Why nothing more can be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadFailed {
    /// The path failed, or the peer left without a word. Open another connection, with backoff.
    #[error("connection lost")]
    Lost(#[source] io::Error),
    /// The peer broke the rules. It is told [`Violation::code`] in a close.
    #[error("the other end broke the rules of WebSocket")]
    Misbehaved(#[source] Violation),
}

/// Reads what the peer says.
#[derive(Debug)]
pub struct Reader<R> {
    stream: R,
    incoming: Incoming,
    early: Bytes,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(stream: R, from: Role, early: Bytes) -> Self {
        Self {
            stream,
            incoming: Incoming::new(from),
            early,
        }
    }

    /// Waits for the next thing that the peer says. A message of more than `bytes_max` bytes is an
    /// error; the limit may be another one the next time.
    ///
    /// A ping is handed out, to be answered by [`pong`](super::Writer::pong): so one task writes,
    /// and a peer that asks without reading our answers is not read from any more. After a close or
    /// a violation the answer stays the same.
    ///
    /// The future may be dropped at any time: what has arrived is kept, and the next call goes on.
    pub async fn read(&mut self, bytes_max: usize) -> Result<Received, ReadFailed> {
        if let Some(end) = self.incoming.end() {
            return end.map_err(ReadFailed::Misbehaved);
        }
        if let Some(received) = self.read_early(bytes_max)? {
            return Ok(received);
        }
        loop {
            let read = match self.incoming.space() {
                Space::Head(free) => self.stream.read(free).await,
                Space::Content(mut free) => self.stream.read_buf(&mut free).await,
            };
            // From here to the next wait nothing can be dropped half done.
            let count = match read {
                Ok(0) => return Err(ReadFailed::Lost(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => count,
                Err(error) => return Err(ReadFailed::Lost(error)),
            };
            let received = self.incoming.filled(count, bytes_max);
            if let Some(received) = received.map_err(ReadFailed::Misbehaved)? {
                return Ok(received);
            }
        }
    }

    /// Bytes of memory that are held for what has arrived and was not handed out.
    pub fn held_bytes(&self) -> usize {
        self.incoming.held_bytes() + self.early.len()
    }

    /// Bytes that have arrived of what was not handed out yet: over a slow link a sign of life.
    pub fn arrived_bytes(&self) -> usize {
        self.incoming.arrived_bytes() + self.early.len()
    }

    fn read_early(&mut self, bytes_max: usize) -> Result<Option<Received>, ReadFailed> {
        let received = self.incoming.take(&mut self.early, bytes_max);
        if !self.early.has_remaining() {
            self.early = Bytes::new();
        }
        received.map_err(ReadFailed::Misbehaved)
    }
}
