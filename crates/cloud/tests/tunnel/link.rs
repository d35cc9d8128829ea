//! A node's end of a link, and the hub's: frames are carried between them in memory.

use std::sync::Arc;

use bytes::Bytes;
use cloud::tunnel::Tunnels;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tunnel::pieces::{Base, Head, Pieces};
use tunnel::{Board, Caller, HTTP, PACKED_HTTP, Tube};
use wire::frame::Frame;
use wire::stream::{Limits, Side};

/// A node that has a session.
pub(crate) struct Link {
    ends: Arc<[(Board, Arc<Notify>); 2]>,
    /// Carries frames, and runs the node's connections.
    tasks: Mutex<JoinSet<()>>,
}

/// An answer that was read to its end.
pub(crate) struct Read {
    pub(crate) status: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

impl Read {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Link {
    pub(crate) fn open(tunnels: &Tunnels, node: &str) -> Self {
        let ends = Arc::new([Side::Agent, Side::Hub].map(|side| {
            let woken = Arc::new(Notify::new());
            let wake = Arc::clone(&woken);
            let board = Board::new(side, Limits::default(), move || wake.notify_one());
            (board, woken)
        }));
        let mut tasks = JoinSet::new();
        let node: Arc<str> = node.into();
        for from in [0, 1] {
            let (ends, tunnels, node) = (Arc::clone(&ends), tunnels.clone(), Arc::clone(&node));
            tasks.spawn(async move { carry(&ends, from, (&tunnels, &node)).await });
        }
        let tasks = Mutex::new(tasks);
        Self { ends, tasks }
    }

    /// The session is over, at the hub.
    pub(crate) fn cut(&self) {
        self.ends[1].0.end("the link was cut");
    }

    /// Streams that the hub has.
    pub(crate) fn streams(&self) -> usize {
        self.ends[1].0.len()
    }

    pub(crate) fn tube(&self, purpose: &str) -> Tube {
        let opener = self.ends[0].0.opener();
        opener.open(purpose, Caller::Waits).unwrap()
    }

    /// Sends a request, and gives the head of the answer.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        self.send_over(self.tube(HTTP), request).await
    }

    /// The same, packed both ways.
    pub(crate) async fn send_packed(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let tube = self.tube(PACKED_HTTP);
        let pieces = Pieces::asking(tube, Base::default(), Head::Open);
        self.send_over(pieces, request).await
    }

    async fn send_over(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        self.tasks.lock().spawn(async move {
            drop(connection.with_upgrades().await);
        });
        sender.send_request(request).await
    }

    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>) -> Read {
        read(self.send(request).await.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Read {
        self.ask(request("GET", path, headers, "")).await
    }
}

pub(crate) async fn read(answer: Response<Incoming>) -> Read {
    let (head, body) = answer.into_parts();
    Read {
        status: head.status,
        headers: head.headers,
        body: body.collect().await.unwrap().to_bytes(),
    }
}

pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Request<Full<Bytes>> {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    let mut request = Request::builder().method(method).uri(path);
    request = request.header("host", tunnel::HOST);
    let mut request = request.body(body).unwrap();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        let value = HeaderValue::from_str(value).unwrap();
        request.headers_mut().append(name, value);
    }
    request
}

async fn carry(
    ends: &[(Board, Arc<Notify>); 2],
    from: usize,
    (tunnels, node): (&Tunnels, &Arc<str>),
) {
    let (board, woken) = &ends[from];
    let (other, wakes) = &ends[1 - from];
    loop {
        woken.notified().await;
        while let Some(frame) = board.next(16 * 1024) {
            let Frame::Stream { id, said } = frame else {
                panic!("only streams are carried");
            };
            if let Some(arrived) = other.take(id, said).unwrap() {
                tunnels.serve(node, arrived);
            }
            wakes.notify_one();
            tokio::task::yield_now().await;
        }
    }
}
