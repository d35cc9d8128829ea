//! Clients that ask for a watch and never read it, in both protocols.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::client::{Coding, Door, Protocol, request};
use crate::cluster::Cluster;

/// One of each kind.
pub(crate) struct StuckClients {
    /// Reads nothing from its socket.
    deaf: TlsStream<TcpStream>,
    /// Answers pings, and takes nothing from its stream.
    lazy: Incoming,
    _lazy_client: http2::SendRequest<Full<Bytes>>,
}

/// The program looks twice, half a minute apart; the pipes between must be full before the first.
const CUT_WITHIN: Duration = Duration::from_secs(120);
/// A connection that was cut ends when what is in its pipes was read.
const END_WITHIN: Duration = Duration::from_secs(10);
/// The program's own word for it.
const WORD: &str = "a client that takes nothing was cut";

impl StuckClients {
    /// Opens a watch on each.
    pub(crate) async fn open(door: &Door, path: &str) -> Self {
        let mut deaf = door.dial(Protocol::Http1).await;
        let head = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
        deaf.write_all(head.as_bytes())
            .await
            .expect("the connection lives");
        deaf.flush().await.expect("the connection lives");
        let io = TokioIo::new(door.dial(Protocol::Http2).await);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(65_535);
        let (mut client, connection) = builder.handshake(io).await.expect("HTTP/2");
        tokio::spawn(connection);
        let answer = client
            .send_request(request("GET", path, Bytes::new(), Coding::Plain))
            .await;
        let lazy = answer.expect("an answer").into_body();
        Self {
            deaf,
            lazy,
            _lazy_client: client,
        }
    }

    /// Waits until both are cut, and reads what they got: it must have an end.
    pub(crate) async fn expect_cut(mut self, cluster: &Cluster) {
        let both = async {
            while cluster.log().matches(WORD).count() < 2 {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        timeout(CUT_WITHIN, both)
            .await
            .expect("clients that never read are cut");
        let ends = async {
            let mut piece = vec![0; 64 * 1024];
            let mut deaf_bytes = 0;
            while let Ok(read @ 1..) = self.deaf.read(&mut piece).await {
                deaf_bytes += read;
            }
            let mut lazy_bytes = 0;
            while let Some(Ok(frame)) = self.lazy.frame().await {
                lazy_bytes += frame.data_ref().map_or(0, Bytes::len);
            }
            (deaf_bytes, lazy_bytes)
        };
        let (deaf, lazy) = timeout(END_WITHIN, ends).await.expect("what was cut ends");
        println!(
            "  two clients never read and were cut; {deaf} and {lazy} bytes were on their way"
        );
    }
}
