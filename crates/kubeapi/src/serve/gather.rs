//! The writes of one turn of a connection -> few large TLS records.
//!
//! HTTP/2 flushes after every frame. Where one change goes to fifty watchers on a connection, that
//! would be fifty records and fifty system calls; gathered, it is a handful.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are gathered before they are written in the middle of a turn: two full TLS records.
const GATHERED_BYTES_MAX: usize = 32 * 1024;

/// A stream whose writes wait for the end of the turn in which they are made. Clones are the same
/// stream: the connection has one, and who runs the connection has another.
pub(super) struct Gathered<S>(Arc<Mutex<Gathering<S>>>);

struct Gathering<S> {
    stream: S,
    waiting: Vec<u8>,
    /// How many of the waiting bytes are written.
    written: usize,
}

impl<S> Clone for Gathered<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(Gathering {
            stream,
            waiting: Vec::new(),
            written: 0,
        })))
    }

    /// Runs the connection that writes to this stream. What it says in a turn is written after the
    /// turn, and the turn after it is waited for if it comes at once: other streams of the
    /// connection then add what they have, because they were woken by the same change.
    pub(super) async fn run<E>(
        &self,
        connection: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        let mut connection = pin!(connection);
        let mut others_had_their_turn = false;
        std::future::poll_fn(|cx| {
            let ended = connection.as_mut().poll(cx);
            let mut gathering = self.0.lock();
            if ended.is_pending() && !gathering.waiting.is_empty() && !others_had_their_turn {
                others_had_their_turn = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            others_had_their_turn = false;
            match gathering.poll_flush(cx) {
                // Nobody is there any more who could be told.
                Poll::Ready(Err(_)) if ended.is_pending() => Poll::Ready(Ok(())),
                _ => ended,
            }
        })
        .await
    }
}

impl<S: AsyncWrite + Unpin> Gathering<S> {
    fn take(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(GATHERED_BYTES_MAX - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..taken]);
        taken
    }

    /// Makes room if there is none.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.waiting.len() < GATHERED_BYTES_MAX {
            true => Poll::Ready(Ok(())),
            false => self.poll_drain(cx),
        }
    }

    /// Hands everything that waits to the stream.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.waiting.len() {
            let rest = &self.waiting[self.written..];
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        // An idle connection holds no memory for what it might say.
        self.waiting = Vec::new();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_room(cx))?;
        Poll::Ready(Ok(gathering.take(bytes)))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_room(cx))?;
        Poll::Ready(Ok(slices.iter().map(|slice| gathering.take(slice)).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing: the end of the turn flushes.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathering = self.0.lock();
        ready!(gathering.poll_flush(cx))?;
        Pin::new(&mut gathering.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test]
    async fn what_is_said_in_one_turn_is_written_once_and_in_order() {
        let (ours, mut theirs) = duplex(1024 * 1024);
        let gathered = Gathered::new(ours);
        let mut out = gathered.clone();
        let connection = async move {
            for number in 0..10_u8 {
                out.write_all(&[number; 100]).await?;
                out.flush().await?;
            }
            std::future::pending::<io::Result<()>>().await
        };
        let mut first = vec![0; 4096];
        tokio::select! {
            _ = gathered.run(connection) => unreachable!("it never ends"),
            read = theirs.read(&mut first) => assert_eq!(read.unwrap(), 1000),
        }
        assert!(first[..1000].is_sorted());
    }

    #[tokio::test]
    async fn more_than_fits_waits_for_a_reader_and_arrives_whole() {
        let (ours, mut theirs) = duplex(100);
        let gathered = Gathered::new(ours);
        let mut out = gathered.clone();
        let said: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
        let whole = said.clone();
        let connection = async move {
            out.write_all(&whole).await?;
            out.shutdown().await
        };
        let mut heard = Vec::new();
        let (ran, read) = tokio::join!(gathered.run(connection), theirs.read_to_end(&mut heard));
        assert!(ran.is_ok() && read.is_ok() && heard == said);
    }

    #[tokio::test]
    async fn a_reader_that_stands_still_holds_the_writer_back() {
        let (ours, _theirs) = duplex(100);
        let gathered = Gathered::new(ours);
        let mut out = gathered.clone();
        let connection = async move { out.write_all(&vec![0; 1024 * 1024]).await };
        let ran = tokio::time::timeout(Duration::from_millis(50), gathered.run(connection)).await;
        assert!(ran.is_err(), "a megabyte does not fit");
        assert!(gathered.0.lock().waiting.len() <= GATHERED_BYTES_MAX);
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_ends_the_connection() {
        let (ours, theirs) = duplex(100);
        drop(theirs);
        let gathered = Gathered::new(ours);
        let mut out = gathered.clone();
        let connection = async move {
            out.write_all(b"anybody there?").await?;
            std::future::pending::<io::Result<()>>().await
        };
        assert!(gathered.run(connection).await.is_ok());
    }
}
