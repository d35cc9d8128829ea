//! A handshake -> a turn and its time.
//!
//! Over a slow link a handshake takes long, and that is no fault: it is given time by what has
//! arrived, see [`crate::pace`]. It costs nobody else anything. Quick handshakes have turns, which
//! nobody holds for more than a few seconds; who needs longer goes on in another room.

#[cfg(test)]
mod tests;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::pace::Pace;

/// How many handshakes run at once. Others wait for their turn, so that a storm of reconnecting
/// clients costs each a moment and not all of them their handshake.
pub const HANDSHAKES_MAX: usize = 512;

/// How long a handshake has a turn. Who has said nothing by then is closed.
pub const TURN_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a connection waits for a turn. That is longer than one who is slow has one, and shorter
/// than a client waits for a first word.
pub const WAIT_TIME_MAX: Duration = Duration::from_secs(8);

/// How many handshakes go on after their turn, over slow links. Further ones are closed: they come
/// again, and those who are quick do not wait for them.
pub const SLOW_HANDSHAKES_MAX: usize = 512;

/// How fast a handshake must arrive. At 9,600 bits a second one with two certificates takes two
/// seconds and three ways across the link; a packet that is lost costs some more each time.
pub const PACE: Pace = Pace {
    longest: Duration::from_secs(60),
    ..Pace::SLOWEST_LINK
};

/// Why a handshake did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// Too many others shake hands.
    #[error("no turn was free in time")]
    NoTurn,
    /// It is slow, and so are too many others.
    #[error("too many others are as slow")]
    NoRoom,
    /// Nothing came.
    #[error("the peer said nothing")]
    Silent,
    /// It broke, or was too slow.
    #[error(transparent)]
    Broken(#[from] io::Error),
}

/// Who shakes hands at a port: a bounded number, each for a bounded time. Clones share the turns.
#[derive(Clone)]
pub(crate) struct Handshakes {
    turns: Arc<Semaphore>,
    slow: Arc<Semaphore>,
}

impl Handshakes {
    /// Nobody yet.
    pub(crate) fn new() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(HANDSHAKES_MAX)),
            slow: Arc::new(Semaphore::new(SLOW_HANDSHAKES_MAX)),
        }
    }

    /// Waits for a turn and runs a handshake; `arrived` says how many bytes of it are there.
    pub(crate) async fn shake<F, T>(
        &self,
        begin: impl FnOnce() -> F,
        arrived: impl Fn(&F) -> usize,
    ) -> Result<T, Failed>
    where
        F: Future<Output = io::Result<T>> + Unpin,
    {
        let turn = timeout(WAIT_TIME_MAX, self.turns.acquire()).await;
        let turn = turn
            .map_err(|_| Failed::NoTurn)?
            .map_err(|_| Failed::NoTurn)?;
        let began = Instant::now();
        let mut handshake = begin();
        if let Ok(done) = timeout(TURN_TIME_MAX, &mut handshake).await {
            return Ok(done?);
        }
        if arrived(&handshake) == 0 {
            return Err(Failed::Silent);
        }
        let _room = self.slow.try_acquire().map_err(|_| Failed::NoRoom)?;
        drop(turn);
        Ok(paced(handshake, PACE, began, arrived).await?)
    }
}

/// Runs a handshake that began then for as long as it arrives at a pace.
pub(crate) async fn paced<F, T>(
    mut handshake: F,
    pace: Pace,
    began: Instant,
    arrived: impl Fn(&F) -> usize,
) -> io::Result<T>
where
    F: Future<Output = io::Result<T>> + Unpin,
{
    let mut end = began + pace.allows(arrived(&handshake));
    loop {
        if let Ok(done) = timeout_at(end, &mut handshake).await {
            return done;
        }
        let later = began + pace.allows(arrived(&handshake));
        if later <= end {
            let late = "the TLS handshake took too long";
            return Err(io::Error::new(io::ErrorKind::TimedOut, late));
        }
        end = later;
    }
}

/// A stream that counts what arrives.
#[derive(Debug)]
pub struct Counted<S> {
    stream: S,
    arrived: u32,
}

impl<S> Counted<S> {
    /// Nothing has arrived yet.
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, arrived: 0 }
    }

    /// The stream itself.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The bytes that have arrived, up to as many as the counter has room for.
    pub(crate) fn arrived(&self) -> usize {
        self.arrived as usize
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let more = u32::try_from(buffer.filled().len() - before).unwrap_or(u32::MAX);
        self.arrived = self.arrived.saturating_add(more);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
