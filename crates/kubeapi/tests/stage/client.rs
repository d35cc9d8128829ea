//! Clients: requests with JSON answers, watches as streams of events, and bytes as they come.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::DEADLINE;

#[allow(clippy::disallowed_types, reason = "a client dials")]
type Tcp = tokio::net::TcpStream;

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http {
    One,
    Two,
}

/// A client with an identity. Requests share a connection; a watch over HTTP/1.1 has its own.
pub struct Client {
    address: SocketAddr,
    tls: ClientConfig,
    http: Http,
    kept: tokio::sync::Mutex<Option<Sender>>,
    drivers: Mutex<JoinSet<()>>,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// A whole answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A watch that is open.
pub struct Stream {
    pub status: u16,
    pub headers: HeaderMap,
    body: Incoming,
    buffer: BytesMut,
    /// Keeps an HTTP/1.1 connection: without its sender it would end.
    _sender: Option<Sender>,
}

/// An event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub kind: String,
    pub object: Value,
}

/// A GET request for a path and query.
pub fn send(method: Method, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(path)
}

impl Client {
    pub fn new(address: SocketAddr, tls: ClientConfig, http: Http) -> Self {
        Self {
            address,
            tls,
            http,
            kept: tokio::sync::Mutex::default(),
            drivers: Mutex::default(),
        }
    }

    /// A TLS connection that speaks this protocol.
    pub async fn dial(&self, http: Http) -> TlsStream<Tcp> {
        let mut tls = self.tls.clone();
        tls.alpn_protocols = vec![match http {
            Http::One => b"http/1.1".to_vec(),
            Http::Two => b"h2".to_vec(),
        }];
        let tcp = Tcp::connect(self.address).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let name = ServerName::from(self.address.ip());
        TlsConnector::from(Arc::new(tls))
            .connect(name, tcp)
            .await
            .unwrap()
    }

    async fn connect(&self) -> Sender {
        let io = TokioIo::new(self.dial(self.http).await);
        match self.http {
            Http::One => {
                let (sender, connection) = http1::handshake(io).await.unwrap();
                self.drivers
                    .lock()
                    .spawn(async move { drop(connection.await) });
                Sender::One(sender)
            }
            Http::Two => {
                let handshake = http2::handshake(TokioExecutor::new(), io).await;
                let (sender, connection) = handshake.unwrap();
                self.drivers
                    .lock()
                    .spawn(async move { drop(connection.await) });
                Sender::Two(sender)
            }
        }
    }

    /// The answer's JSON to a GET that must succeed.
    pub async fn json(&self, path: &str) -> Value {
        let reply = self.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.ask(send(Method::GET, path)).await
    }

    /// GET with an Accept header.
    pub async fn get_as(&self, path: &str, accept: &str) -> Reply {
        self.ask(send(Method::GET, path).header("accept", accept))
            .await
    }

    /// A request without a body.
    pub async fn ask(&self, request: http::request::Builder) -> Reply {
        self.exchange(request, Bytes::new()).await
    }

    pub async fn exchange(&self, request: http::request::Builder, body: Bytes) -> Reply {
        let request = self.addressed(request, body);
        let mut kept = self.kept.lock().await;
        let reused = kept.take().filter(Sender::is_usable);
        let answered = async {
            if let Some(mut sender) = reused {
                // A connection that was kept may have been closed meanwhile: then a new one is
                // used, as every client does.
                if let Ok(reply) = sender.whole(request.clone()).await {
                    return (sender, reply);
                }
            }
            let mut sender = self.connect().await;
            let reply = sender.whole(request).await.unwrap();
            (sender, reply)
        };
        let answered = tokio::time::timeout(DEADLINE, answered).await;
        let (sender, reply) = answered.expect("no answer");
        *kept = Some(sender);
        reply
    }

    /// Sends these bytes over a connection of their own, and gives what comes back before it ends.
    pub async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.dial(Http::One).await;
        // The server may have ended the connection before it read all.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await;
        let _ = read.expect("the connection was not closed");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Starts a watch, which must begin.
    pub async fn watch(&self, path: &str) -> Stream {
        let stream = self.open(send(Method::GET, path)).await;
        assert_eq!(stream.status, 200, "{path}");
        stream
    }

    /// Sends a request and leaves its answer to be read.
    pub async fn open(&self, request: http::request::Builder) -> Stream {
        let request = self.addressed(request, Bytes::new());
        let mut sender = match (self.http, self.kept.lock().await.as_ref()) {
            (Http::Two, Some(Sender::Two(sender))) => Sender::Two(sender.clone()),
            _ => self.connect().await,
        };
        let answered = tokio::time::timeout(DEADLINE, sender.send(request)).await;
        let (parts, body) = answered.expect("no answer").unwrap().into_parts();
        Stream {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            buffer: BytesMut::new(),
            _sender: Some(sender),
        }
    }

    fn addressed(&self, request: http::request::Builder, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = request.body(Full::new(body)).unwrap();
        let address = self.address;
        match self.http {
            Http::One => {
                let host = address.to_string().parse().unwrap();
                request.headers_mut().insert("host", host);
            }
            Http::Two => {
                let uri = format!("https://{address}{}", request.uri());
                *request.uri_mut() = uri.parse().unwrap();
            }
        }
        request
    }
}

impl Sender {
    fn is_usable(&self) -> bool {
        match self {
            Self::One(sender) => sender.is_ready(),
            Self::Two(sender) => !sender.is_closed(),
        }
    }

    /// Sends a request and reads its whole answer. Only what never arrived is an error.
    async fn whole(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Reply> {
        let (parts, body) = self.send(request).await?.into_parts();
        let body = body
            .collect()
            .await
            .expect("the answer broke off")
            .to_bytes();
        Ok(Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        })
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::One(sender) => sender.send_request(request).await,
            Self::Two(sender) => sender.send_request(request).await,
        }
    }
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

impl Stream {
    /// The next event; nothing when the stream has ended in order.
    pub async fn next(&mut self) -> Option<Event> {
        let next = tokio::time::timeout(DEADLINE, self.next_line()).await;
        let line = next.expect("no event in time")?;
        let mut event: Value = serde_json::from_slice(&line).unwrap();
        Some(Event {
            kind: event["type"].as_str().unwrap().to_owned(),
            object: event["object"].take(),
        })
    }

    async fn next_line(&mut self) -> Option<Bytes> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return Some(self.buffer.split_to(end + 1).freeze());
            }
            match self.body.frame().await {
                Some(frame) => {
                    let data = frame.expect("the stream broke").into_data().unwrap();
                    self.buffer.extend_from_slice(&data);
                }
                None => {
                    assert!(self.buffer.is_empty(), "half an event: {:?}", self.buffer);
                    return None;
                }
            }
        }
    }

    /// The next event, which must be this one.
    #[track_caller]
    pub fn expect<'a>(
        &'a mut self,
        kind: &'a str,
        object: &'a Value,
    ) -> impl Future<Output = ()> + use<'a> {
        let caller = std::panic::Location::caller();
        async move {
            let event = self.next().await;
            let event = event.unwrap_or_else(|| panic!("{caller}: the stream ended"));
            assert_eq!(event.kind, kind, "{caller}: {}", event.object);
            assert_eq!(event.object, *object, "{caller}");
        }
    }

    /// The next event, whatever it is about, which must be of this kind.
    pub async fn expect_kind(&mut self, kind: &str) -> Value {
        let event = self.next().await.expect("the stream ended");
        assert_eq!(event.kind, kind, "{}", event.object);
        event.object
    }

    /// The end of the stream, in order.
    pub async fn expect_end(&mut self) {
        let event = self.next().await;
        assert_eq!(event, None, "it should have ended");
    }

    /// Whether the stream breaks within this time, read or not. Reads nothing more of it.
    pub async fn breaks_within(mut self, time: Duration) -> bool {
        let broken = async {
            loop {
                match self.body.frame().await {
                    Some(Ok(_)) => {}
                    Some(Err(_)) => return true,
                    None => return false,
                }
            }
        };
        tokio::time::timeout(time, broken).await.unwrap_or(false)
    }
}
