//! The two directions of a stream, as one stream of bytes. The connection ends with it.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use quinn::{Connection, Endpoint, RecvStream, SendStream, VarInt};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection's only stream.
pub struct Stream {
    send: SendStream,
    receive: RecvStream,
    connection: Connection,
    /// The end of what is sent, on its way to the peer.
    ending: Option<Ending>,
    /// Of a connection that we opened: nobody else has its socket.
    _socket: Option<Endpoint>,
}

type Ending = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

impl Stream {
    pub(super) fn new(
        connection: Connection,
        (send, receive): (SendStream, RecvStream),
        socket: Option<Endpoint>,
    ) -> Self {
        Self {
            send,
            receive,
            connection,
            ending: None,
            _socket: socket,
        }
    }

    /// Ends the connection at once, with words that the peer may see.
    pub fn refuse(&self, words: &str) {
        self.connection.close(REFUSED, words.as_bytes());
    }
}

/// The code of a connection that is refused.
const REFUSED: VarInt = VarInt::from_u32(1);
/// The code of one that is over.
const OVER: VarInt = VarInt::from_u32(0);

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.close(OVER, b"");
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream")
            .field(&self.connection.remote_address())
            .finish()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut self.receive), context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.send), context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.send), context)
    }

    /// Ends what is sent, and waits until the peer has it: a connection that is dropped takes back
    /// what is on its way.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.ending.is_none() {
            ready!(AsyncWrite::poll_shutdown(Pin::new(&mut this.send), context))?;
        }
        let ending = this.ending.get_or_insert_with(|| {
            let stopped = this.send.stopped();
            Box::pin(async move { stopped.await.map(|_| ()).map_err(io::Error::other) })
        });
        ending.as_mut().poll(context)
    }
}
