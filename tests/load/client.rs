//! A client of our own: HTTP/1.1 and HTTP/2 over TLS, with the certificate from the kubeconfig.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Where a cluster is and how one gets in as its administrator.
#[derive(Clone)]
pub(crate) struct Door {
    address: String,
    tls: Arc<ClientConfig>,
}

impl Door {
    /// Reads a kubeconfig as `holdfast up` writes it.
    pub(crate) fn from_kubeconfig(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a kubeconfig");
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(key));
            line.expect("the key is in the kubeconfig")
                .trim()
                .to_owned()
        };
        let pem = |key: &str| BASE64_STANDARD.decode(value(key)).expect("base64");
        let certificate = |key: &str| CertificateDer::from_pem_slice(&pem(key)).expect("PEM");
        let mut roots = RootCertStore::empty();
        roots
            .add(certificate("certificate-authority-data:"))
            .expect("a certificate");
        let chain = vec![certificate("client-certificate-data:")];
        let key = PrivateKeyDer::from_pem_slice(&pem("client-key-data:")).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions that the provider knows")
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .expect("a certificate and its key");
        let server = value("server:");
        let address = server.strip_prefix("https://").expect("https").to_owned();
        Self {
            address,
            tls: Arc::new(tls),
        }
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self, protocol: Protocol) -> Client {
        let io = TokioIo::new(self.dial(protocol).await);
        match protocol {
            Protocol::Http1 => {
                let (client, connection) = http1::handshake(io).await.expect("HTTP/1.1");
                tokio::spawn(connection);
                Client::Http1(client)
            }
            Protocol::Http2 => {
                let made = http2::Builder::new(TokioExecutor::new())
                    .handshake(io)
                    .await;
                let (client, connection) = made.expect("HTTP/2");
                tokio::spawn(connection);
                Client::Http2(client)
            }
        }
    }

    /// A connection on which nothing was said yet.
    pub(crate) async fn dial(&self, protocol: Protocol) -> TlsStream<TcpStream> {
        let mut tls = (*self.tls).clone();
        tls.alpn_protocols = match protocol {
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 => vec![b"h2".to_vec()],
        };
        let tcp = TcpStream::connect(&self.address)
            .await
            .expect("somebody listens");
        tcp.set_nodelay(true).expect("a socket of ours");
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        TlsConnector::from(Arc::new(tls))
            .connect(name, tcp)
            .await
            .expect("TLS")
    }
}

/// An open connection.
pub(crate) enum Client {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Whether an answer may be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Plain,
    Gzip,
}

impl Client {
    /// The answer's head; its body is still to be read.
    pub(crate) async fn ask(&mut self, mut request: Request<Full<Bytes>>) -> Response<Incoming> {
        let answered = match self {
            Self::Http1(client) => {
                // The older protocol says the host in a header, and only the path in its first line.
                let (headers, host) =
                    (request.headers_mut(), HeaderValue::from_static("127.0.0.1"));
                headers.insert(HOST, host);
                let path = request.uri().path_and_query().cloned();
                *request.uri_mut() = path.map(Uri::from).expect("a request has a path");
                client.ready().await.expect("the connection lives");
                client.send_request(request).await
            }
            Self::Http2(client) => client.send_request(request).await,
        };
        answered.expect("an answer")
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
