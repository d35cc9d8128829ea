//! A client of a server for tests: HTTP/1.1 and HTTP/2 over TLS, as anybody.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a client under test stands outside the program: it has its own sockets and tasks"
)]

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use host::pki::{Credential, Key, certificate_from_pem};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{HOST, HeaderValue};
use hyper::{HeaderMap, Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Site;
use crate::site::tls;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: one request at a time.
    Http1,
    /// HTTP/2: many.
    Http2,
}

/// Where a server is, and who comes in.
#[derive(Clone)]
pub struct Door {
    address: String,
    tls: Arc<ClientConfig>,
    /// Without any certificate.
    stranger: Arc<ClientConfig>,
}

/// An open connection.
pub enum Client {
    /// It speaks HTTP/1.1.
    Http1(http1::SendRequest<Full<Bytes>>),
    /// It speaks HTTP/2.
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens there, or TLS failed.
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    /// The connection was closed before the request was sent: another may be tried.
    #[error("the connection was closed")]
    Unsent(#[source] hyper::Error),
    /// The connection ended before the answer did.
    #[error("the connection broke: {0}")]
    Broken(#[source] hyper::Error),
}

impl From<hyper::Error> for Error {
    fn from(error: hyper::Error) -> Self {
        match error.is_canceled() {
            true => Self::Unsent(error),
            false => Self::Broken(error),
        }
    }
}

impl Door {
    /// The door of a server for one with this certificate, or with none.
    pub fn open(site: &Site, credential: Option<&Credential>) -> Result<Self, crate::Error> {
        Ok(Self {
            address: site.address().to_owned(),
            tls: Arc::new(site.tls(credential)?),
            stranger: Arc::new(site.tls(None)?),
        })
    }

    /// The door of a server for its administrator.
    pub fn for_admin(site: &Site) -> Result<Self, crate::Error> {
        Self::open(site, Some(&site.admin()?))
    }

    /// The door that a kubeconfig leads to, with certificates inside.
    pub fn of_kubeconfig(path: &Path) -> Result<Self, crate::Error> {
        let text = std::fs::read_to_string(path).map_err(crate::Error::file(path))?;
        let wrong = || {
            let error = std::io::Error::other("it lacks something, or it is not ours");
            let path = path.to_owned();
            crate::Error::File { path, error }
        };
        let line = |start: &str| {
            let found = text
                .lines()
                .find_map(|line| line.trim().strip_prefix(start));
            found.ok_or_else(wrong)
        };
        let pem = |start: &str| {
            let bytes = BASE64_STANDARD.decode(line(start)?);
            bytes.map_err(|_| wrong())
        };
        let authority = certificate_from_pem(&pem("certificate-authority-data: ")?)?;
        let stranger = tls([&authority], None).map_err(|_| wrong())?;
        let certificate = certificate_from_pem(&pem("client-certificate-data: ")?)?;
        let key = Key::from_pem(&pem("client-key-data: ")?)?;
        let credential = key.certified(certificate)?;
        Ok(Self {
            address: line("server: https://")?.to_owned(),
            tls: Arc::new(tls([&authority], Some(&credential)).map_err(|_| wrong())?),
            stranger: Arc::new(stranger),
        })
    }

    /// The door at an address for one without a certificate, who trusts these authorities (PEM):
    /// what a pod is given.
    pub fn trusting(address: &str, authorities: &str) -> Result<Self, rustls::Error> {
        let all = CertificateDer::pem_slice_iter(authorities.as_bytes());
        let all: Result<Vec<_>, _> = all.collect();
        let all = all.map_err(|error| rustls::Error::General(error.to_string()))?;
        let tls = Arc::new(tls(&all, None)?);
        Ok(Self {
            address: address.to_owned(),
            stranger: tls.clone(),
            tls,
        })
    }

    /// The same door for one without a certificate.
    pub fn as_nobody(self) -> Self {
        Self {
            tls: self.stranger.clone(),
            ..self
        }
    }

    /// The address that it leads to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Opens a connection.
    pub async fn connect(&self, protocol: Protocol) -> Result<Client, Error> {
        let io = TokioIo::new(self.dial(protocol).await?);
        match protocol {
            Protocol::Http1 => {
                let (client, connection) = http1::handshake(io).await?;
                tokio::spawn(connection);
                Ok(Client::Http1(client))
            }
            Protocol::Http2 => {
                let builder = http2::Builder::new(TokioExecutor::new());
                let (client, connection) = builder.handshake(io).await?;
                tokio::spawn(connection);
                Ok(Client::Http2(client))
            }
        }
    }

    /// Sends these bytes over a connection of their own, and gives what comes back before it ends.
    pub async fn raw(&self, bytes: &[u8]) -> Result<String, Error> {
        let mut stream = self.dial(Protocol::Http1).await?;
        // The server may have ended the connection before it read all.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// A connection on which nothing was said yet.
    pub async fn dial(&self, protocol: Protocol) -> Result<TlsStream<TcpStream>, Error> {
        let mut tls = (*self.tls).clone();
        tls.alpn_protocols = match protocol {
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 => vec![b"h2".to_vec()],
        };
        let tcp = TcpStream::connect(&self.address).await?;
        tcp.set_nodelay(true)?;
        let name = ServerName::try_from("127.0.0.1").map_err(std::io::Error::other)?;
        Ok(TlsConnector::from(Arc::new(tls)).connect(name, tcp).await?)
    }
}

impl Answer {
    /// Reads the rest of an answer.
    pub async fn whole(answer: Response<Incoming>) -> Result<Self, Error> {
        let (head, body) = answer.into_parts();
        Ok(Self {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.collect().await?.to_bytes(),
        })
    }
}

impl Client {
    /// The answer's head; its body is still to be read. The request's target is a path, or a URI of
    /// any host.
    pub async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Error> {
        match self {
            Self::Http1(client) => {
                client.ready().await?;
                Ok(client.send_request(in_origin_form(request)).await?)
            }
            Self::Http2(client) => Ok(client.send_request(request).await?),
        }
    }

    /// The whole answer.
    pub async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
        Answer::whole(self.ask(request).await?).await
    }

    /// Whether nothing can be asked on this connection any more.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Http1(client) => client.is_closed(),
            Self::Http2(client) => client.is_closed(),
        }
    }
}

/// A request as HTTP/1.1 has it: the path in its first line, the host in a header.
fn in_origin_form(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let uri = request.uri().clone();
    let Some((host, path)) = uri.authority().zip(uri.path_and_query()) else {
        return request;
    };
    if let Ok(host) = HeaderValue::from_str(host.as_str()) {
        request.headers_mut().entry(HOST).or_insert(host);
        *request.uri_mut() = Uri::from(path.clone());
    }
    request
}
