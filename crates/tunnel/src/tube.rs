//! One stream as a connection: what reads and writes bytes can use it.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::frame::Cause;

use crate::board::Shared;
use crate::closed::Closed;
use crate::pipe::{Outward, Pipe, Readable};

/// A stream of a link. What is written arrives in order and whole, or the other end is told that it
/// does not.
///
/// One that is dropped after it was shut down still sends what was written. One that is dropped
/// before, or by whoever opened it before all of the answer came, is closed in both directions, and
/// what was written may be lost.
pub struct Tube {
    shared: Arc<Shared>,
    id: u64,
}

impl Tube {
    pub(crate) fn new(shared: Arc<Shared>, id: u64) -> Self {
        Self { shared, id }
    }

    /// Closes it for a reason. What was written and not sent is lost.
    pub fn close(self, cause: Cause, words: &str) {
        self.shared.with(|state| state.close(self.id, cause, words));
    }

    fn gone() -> io::Error {
        Closed::by_link("").error()
    }
}

impl AsyncRead for Tube {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let id = self.id;
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.shared.with(|state| {
            let Some(pipe) = state.pipes.get_mut(&id) else {
                return Poll::Ready(Err(Self::gone()));
            };
            match pipe.read(into) {
                Readable::Bytes(bytes) => {
                    state.streams.consumed(id, bytes);
                    Poll::Ready(Ok(()))
                }
                Readable::End => Poll::Ready(Ok(())),
                Readable::Closed(closed) => Poll::Ready(Err(closed.error())),
                Readable::Nothing => {
                    pipe.awaits_bytes(context.waker());
                    Poll::Pending
                }
            }
        })
    }
}

impl AsyncWrite for Tube {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let id = self.id;
        self.shared.with(|state| {
            let Some(pipe) = state.pipes.get_mut(&id) else {
                return Poll::Ready(Err(Self::gone()));
            };
            if let Some(refused) = refused(pipe, bytes.len()) {
                return Poll::Ready(refused);
            }
            match state.streams.write(id, bytes) {
                Ok(0) if !bytes.is_empty() => {
                    pipe.awaits_room(context.waker());
                    Poll::Pending
                }
                Ok(taken) => {
                    pipe.wrote();
                    Poll::Ready(Ok(taken))
                }
                Err(error) => Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, error))),
            }
        })
    }

    /// What is written is on its way as soon as the link has nothing better to do.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let id = self.id;
        self.shared.with(|state| {
            let Some(pipe) = state.pipes.get_mut(&id) else {
                return;
            };
            if pipe.outward == Outward::Open && pipe.closed.is_none() {
                pipe.outward = Outward::Ending;
                state.streams.end(id);
            }
        });
        Poll::Ready(Ok(()))
    }
}

/// What becomes of a write to a stream that takes none; nothing if it does.
fn refused(pipe: &Pipe, bytes: usize) -> Option<io::Result<usize>> {
    let closed = match &pipe.closed {
        None if pipe.outward == Outward::Open => return None,
        None => {
            let ended = "this direction was shut down";
            return Some(Err(io::Error::new(io::ErrorKind::BrokenPipe, ended)));
        }
        Some(closed) => closed,
    };
    match closed.cause {
        // The peer said all it had to say and does not need the rest. What it said must be read
        // all the same, and a failed write would keep the reader from it.
        Cause::Cancelled if pipe.is_whole() => Some(Ok(bytes)),
        _ => Some(Err(closed.error())),
    }
}

impl Drop for Tube {
    fn drop(&mut self) {
        self.shared.with(|state| state.release(self.id));
    }
}

impl fmt::Debug for Tube {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tube({})", self.id)
    }
}
