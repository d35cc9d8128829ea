//! A connection that ends at once when it is dropped without a goodbye.
//!
//! The system goes on sending what was written to a connection that is closed, for minutes if the
//! path is broken. When the path is back, that arrives at somebody who has begun anew long since,
//! and has to be paid for. So it is thrown away, unless the connection was shut down properly.

#![expect(
    clippy::disallowed_types,
    reason = "this is the place where sockets live"
)]

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What stands on a TCP connection.
pub trait OnTcp {
    /// The connection.
    fn tcp(&self) -> &TcpStream;
}

impl OnTcp for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl OnTcp for crate::listen::Stream {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().get_ref()
    }
}

impl OnTcp for crate::dial::Secure {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0.get_ref()
    }
}

/// A connection that ends at once when it is dropped without a goodbye.
#[derive(Debug)]
pub struct Curt<S>(S);

impl<S: OnTcp> Curt<S> {
    /// From now on, dropping it throws away what was written and has not arrived.
    pub fn new(stream: S) -> io::Result<Self> {
        stream.tcp().set_zero_linger()?;
        Ok(Self(stream))
    }
}

impl<S: OnTcp + AsyncRead + Unpin> AsyncRead for Curt<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, space)
    }
}

impl<S: OnTcp + AsyncWrite + Unpin> AsyncWrite for Curt<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    /// The goodbye: what was written is delivered, also when this is dropped afterwards.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        linger(self.0.tcp())?;
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Back to what the system does by itself.
fn linger(tcp: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(tcp).set_linger(None)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Both ends of a connection.
    async fn pair() -> (Curt<TcpStream>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = TcpStream::connect(listener.local_addr().unwrap());
        let (there, here) = tokio::join!(there, listener.accept());
        (Curt::new(there.unwrap()).unwrap(), here.unwrap().0)
    }

    /// More than the queues of both ends hold.
    const MUCH: usize = 64 << 20;

    /// Writes until nothing more is taken.
    async fn fill(curt: &mut Curt<TcpStream>) {
        let piece = vec![7; 1 << 20];
        let mut wrote = 0;
        while wrote < MUCH {
            let write = curt.0.try_write(&piece);
            match write {
                Ok(count) => wrote += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
            tokio::task::yield_now().await;
        }
        panic!("the queues have no end");
    }

    #[tokio::test]
    async fn without_a_goodbye_the_rest_is_thrown_away() {
        let (mut curt, mut peer) = pair().await;
        fill(&mut curt).await;
        drop(curt);
        let mut rest = Vec::new();
        let read = peer.read_to_end(&mut rest).await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn after_a_goodbye_everything_arrives() {
        let (mut curt, mut peer) = pair().await;
        curt.write_all(b"the last words").await.unwrap();
        curt.shutdown().await.unwrap();
        drop(curt);
        let mut words = Vec::new();
        peer.read_to_end(&mut words).await.unwrap();
        assert_eq!(words, b"the last words");
    }
}
