//! A client that expects to be served: what it is refused ends the run.

use std::path::Path;

use ::cluster::{Site, client};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

pub(crate) use client::Protocol;

/// Where a cluster is and how one gets in as its administrator.
#[derive(Clone)]
pub(crate) struct Door(client::Door);

impl Door {
    /// The door of the server that keeps its kubeconfig and its keys in this folder.
    pub(crate) fn of(home: &Path) -> Self {
        let site = Site::open(home).expect("a server's folder");
        Self(client::Door::for_admin(&site).expect("an authority that signs"))
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self, protocol: Protocol) -> Client {
        Client(self.0.connect(protocol).await.expect("a connection"))
    }

    /// A connection on which nothing was said yet.
    pub(crate) async fn dial(&self, protocol: Protocol) -> TlsStream<TcpStream> {
        self.0.dial(protocol).await.expect("a connection")
    }
}

impl From<client::Door> for Door {
    /// Whatever door leads to a server, and whoever comes in by it.
    fn from(door: client::Door) -> Self {
        Self(door)
    }
}

/// An open connection.
pub(crate) struct Client(client::Client);

/// Whether an answer may be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Plain,
    Gzip,
}

impl Client {
    /// The answer's head; its body is still to be read.
    pub(crate) async fn ask(&mut self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.0.ask(request).await.expect("an answer")
    }

    /// The body of an answer that must be a success.
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: Bytes) -> Bytes {
        let answer = self.ask(request(method, path, body, Coding::Plain)).await;
        whole(answer).await
    }

    /// Reads.
    pub(crate) async fn read(&mut self, path: &str) -> Bytes {
        self.call("GET", path, Bytes::new()).await
    }

    /// Starts to read something long.
    pub(crate) async fn open(&mut self, path: &str) -> Incoming {
        let answer = self
            .ask(request("GET", path, Bytes::new(), Coding::Plain))
            .await;
        assert_eq!(answer.status(), 200, "GET {path}");
        answer.into_body()
    }
}

/// A request with JSON or nothing in it.
pub(crate) fn request(
    method: &str,
    path: &str,
    body: Bytes,
    coding: Coding,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("https://127.0.0.1{path}"))
        .header("accept", "application/json");
    if coding == Coding::Gzip {
        request = request.header("accept-encoding", "gzip");
    }
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    request
        .body(Full::new(body))
        .expect("a request that can be said")
}

/// All of a body, which must be that of a success.
pub(crate) async fn whole(answer: Response<Incoming>) -> Bytes {
    let status = answer.status();
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("a whole body")
        .to_bytes();
    assert!(
        status.is_success(),
        "{status}: {}",
        String::from_utf8_lossy(&body)
    );
    body
}
