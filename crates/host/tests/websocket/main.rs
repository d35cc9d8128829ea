//! WebSocket over streams: against another implementation, against itself, and against bad peers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod peer; // tungstenite at the other end, in both roles
mod stream; // what a stream can do to us: pieces, pauses, ends
mod secure; // below it TLS, as in production

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use host::websocket::{Close, CloseCode, Received, Socket, WriteFailed};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

const BYTES_MAX: usize = 2 * 1024 * 1024;

/// Both ends of a connection, ours.
async fn pair(buffer_bytes: usize) -> (Socket<DuplexStream>, Socket<DuplexStream>) {
    let (left, right) = tokio::io::duplex(buffer_bytes);
    let (client, server) = tokio::join!(
        host::websocket::connect(left, "hub.example"),
        host::websocket::accept(right),
    );
    (client.unwrap(), server.unwrap())
}

/// Says everything back until the other end closes, and what it said then.
async fn echo<S: AsyncRead + AsyncWrite>(socket: Socket<S>) -> Close {
    let (mut reader, mut writer) = socket.split();
    loop {
        match reader.read(BYTES_MAX).await.unwrap() {
            Received::Message(message) => writer.write_message(&message).await.unwrap(),
            Received::Ping(ping) => writer.pong(&ping).await.unwrap(),
            Received::Closed(close) => {
                let code = close.code.unwrap_or(CloseCode::NORMAL);
                // The other end may be gone already: it has all that it needs.
                let answered: Result<(), WriteFailed> = writer.close(code, "").await;
                if answered.is_ok() {
                    writer.end().await.ok();
                }
                return close;
            }
        }
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 251) as u8).collect()
}

/// A stream that notes how many bytes each write had.
struct Counted {
    stream: DuplexStream,
    writes: Arc<Mutex<Vec<usize>>>,
}

impl Counted {
    fn new(stream: DuplexStream) -> (Self, Arc<Mutex<Vec<usize>>>) {
        let writes = Arc::new(Mutex::new(Vec::new()));
        let counted = Self {
            stream,
            writes: writes.clone(),
        };
        (counted, writes)
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(count)) = written {
            self.writes.lock().push(count);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
