//! The stream of an HTTP/1 connection, listened to from two sides: by what reads requests, and
//! beside it by one who waits for the client to hang up.
//!
//! What reads requests stops to read while it has more than it needs: a client may have said too
//! much before it went. A watch without events would then last until its time is over.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::patience::Patience;

/// Bytes that are kept of what a client says while it is being answered. Beyond it nothing more is
/// read: whether such a client is still there is found out by the next event.
const AHEAD_BYTES_MAX: usize = 4 * 1024;

/// A stream. Clones share it.
pub(super) struct Line<S> {
    ends: Arc<Mutex<Ends<S>>>,
    patience: Arc<Patience>,
}

struct Ends<S> {
    stream: S,
    /// What came while nobody wanted it.
    ahead: Vec<u8>,
}

impl<S> Clone for Line<S> {
    fn clone(&self) -> Self {
        Self {
            ends: self.ends.clone(),
            patience: self.patience.clone(),
        }
    }
}

impl<S: AsyncRead + Unpin> Line<S> {
    pub(super) fn new(stream: S, patience: Arc<Patience>) -> Self {
        let ahead = Vec::new();
        let ends = Arc::new(Mutex::new(Ends { stream, ahead }));
        Self { ends, patience }
    }

    /// Comes back when the client has hung up while it was being answered. It must be polled by the
    /// task that reads requests, and after that.
    pub(super) async fn hung_up(&self) {
        poll_fn(|cx| self.poll_hung_up(cx)).await;
    }

    fn poll_hung_up(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.patience.is_answering() {
            // Who reads requests finds out.
            return Poll::Pending;
        }
        let mut ends = self.ends.lock();
        let mut space = [0; 256];
        while ends.ahead.len() < AHEAD_BYTES_MAX {
            let mut buffer = ReadBuf::new(&mut space);
            let Ok(()) = ready!(Pin::new(&mut ends.stream).poll_read(cx, &mut buffer)) else {
                return Poll::Ready(());
            };
            if buffer.filled().is_empty() {
                return Poll::Ready(());
            }
            ends.ahead.extend_from_slice(buffer.filled());
            // It may be a body that is waited for.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Line<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut ends = self.ends.lock();
        let before = buffer.filled().len();
        let read = match ends.ahead.len().min(buffer.remaining()) {
            0 => Pin::new(&mut ends.stream).poll_read(cx, buffer),
            count => {
                buffer.put_slice(&ends.ahead[..count]);
                ends.ahead.drain(..count);
                Poll::Ready(Ok(()))
            }
        };
        if buffer.filled().len() > before {
            self.patience.bytes_came();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Line<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.ends.lock().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.ends.lock().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.ends.lock().stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.ends.lock().stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.ends.lock().stream).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use host::Clock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn now<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn who_hangs_up_is_noticed_whatever_it_said_before() {
        let (clock, _hands) = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let patience = Patience::new(clock);
        let mut line = Line::new(server, patience.clone());
        let other = line.clone();
        let mut hung_up = pin!(other.hung_up());
        client.write_all(b"one").await.unwrap();
        assert!(
            now(hung_up.as_mut()).is_pending(),
            "nobody is being answered"
        );
        let answering = patience.request();
        client.write_all(b"two").await.unwrap();
        assert!(now(hung_up.as_mut()).is_pending(), "it is there");
        // What came meanwhile is not lost.
        let mut said = [0; 6];
        line.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"onetwo");
        drop(client);
        assert!(now(hung_up.as_mut()).is_ready());
        drop(answering);
    }

    #[tokio::test]
    async fn of_one_who_says_too_much_little_is_kept() {
        let (clock, _hands) = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let patience = Patience::new(clock);
        let line = Line::new(server, patience.clone());
        let _answering = patience.request();
        client.write_all(&[b'x'; 64 * 1024]).await.unwrap();
        assert!(now(pin!(line.hung_up())).is_pending());
        let kept = line.ends.lock().ahead.len();
        assert!(
            (AHEAD_BYTES_MAX..AHEAD_BYTES_MAX + 256).contains(&kept),
            "{kept}"
        );
    }
}
