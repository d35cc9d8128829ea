//! Against another implementation of the client, over pipes of all widths and over TCP.

#![expect(
    clippy::disallowed_types,
    reason = "a test of sockets needs some of its own"
)]

mod ends; // how connections end, well and badly
mod flow; // what passes, and what is held for it

use std::task::Waker;

use jiff::Timestamp;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;
use crate::clock::Clock;
use crate::pki::{Authority, Credential, Leaf, Wanted};
use crate::tls::{self, Shown};

trait Both: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Both for S {}

type Wire = Box<dyn Both>;
type Version = &'static SupportedProtocolVersion;

const VERSIONS: [Version; 2] = [&TLS12, &TLS13];

/// What is between the two ends.
#[derive(Clone, Copy, Debug)]
enum Path {
    /// So many bytes fit into it.
    Pipe(usize),
    Tcp,
    /// Our end can read and write one byte at a time, and has to ask twice for each.
    Drip,
}

const PATHS: [Path; 5] = [
    Path::Pipe(1),
    Path::Pipe(700),
    Path::Pipe(64 * 1024),
    Path::Tcp,
    Path::Drip,
];

impl Path {
    async fn open(self) -> (Wire, Wire) {
        let bytes = match self {
            Self::Pipe(bytes) => bytes,
            Self::Drip => 64 * 1024,
            Self::Tcp => {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let there = TcpStream::connect(listener.local_addr().unwrap());
                let (there, here) = tokio::join!(there, listener.accept());
                return (Box::new(there.unwrap()), Box::new(here.unwrap().0));
            }
        };
        let (there, here) = tokio::io::duplex(bytes);
        match self {
            Self::Drip => (Box::new(there), Box::new(Drip::new(here))),
            Self::Pipe(_) | Self::Tcp => (Box::new(there), Box::new(here)),
        }
    }
}

/// One byte at a time, and each only when asked for the second time.
struct Drip<S> {
    stream: S,
    read_asked: bool,
    write_asked: bool,
}

impl<S> Drip<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            read_asked: false,
            write_asked: false,
        }
    }
}

fn refuse_first(asked: &mut bool, context: &Context<'_>) -> Poll<()> {
    *asked = !*asked;
    match *asked {
        true => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
        false => Poll::Ready(()),
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Drip<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(refuse_first(&mut self.read_asked, context));
        let mut byte = [0];
        let mut one = ReadBuf::new(&mut byte);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut one))?;
        space.put_slice(one.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Drip<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(refuse_first(&mut self.write_asked, context));
        Pin::new(&mut self.stream).poll_write(context, &bytes[..1])
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A hub with its authority.
struct Hub {
    authority: Authority,
    config: Arc<ServerConfig>,
}

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn clock() -> Clock {
    Clock::manual(now()).0
}

fn node(authority: &Authority) -> Credential {
    let wanted = Wanted::Client {
        user: "node-1".into(),
        groups: vec![],
    };
    authority.issue(&wanted, now()).unwrap()
}

impl Hub {
    fn new() -> Self {
        let authority = Authority::create("link-ca", now()).unwrap();
        let wanted = Wanted::Server {
            name: "hub".into(),
            dns: vec!["hub.example".into()],
            ips: vec![],
        };
        let shown = Shown::new(&authority.issue(&wanted, now()).unwrap()).unwrap();
        let config = tls::server(shown, authority.certificate(), &clock()).unwrap();
        Self { authority, config }
    }

    fn client(&self, version: Version, own: Option<&Credential>) -> Arc<ClientConfig> {
        let roots = tls::roots(std::slice::from_ref(self.authority.certificate())).unwrap();
        let config = ClientConfig::builder_with_details(tls::provider(), tls::time(&clock()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match own {
            None => config.with_no_client_auth(),
            Some(own) => config
                .with_client_auth_cert(vec![own.certificate.clone()], own.key.clone_key().into())
                .unwrap(),
        };
        config.alpn_protocols = vec![tls::HTTP1.to_vec()];
        Arc::new(config)
    }

    /// What both ends have after their handshake.
    async fn meet(
        &self,
        path: Path,
        client: Arc<ClientConfig>,
    ) -> (io::Result<TlsStream<Wire>>, io::Result<Lean<Wire>>) {
        let (there, here) = path.open().await;
        let name = "hub.example".try_into().unwrap();
        let connect = TlsConnector::from(client).connect(name, there);
        tokio::join!(connect, accept(here, self.config.clone()))
    }

    /// A node with its certificate, and our end.
    async fn pair(&self, path: Path, version: Version) -> (TlsStream<Wire>, Lean<Wire>) {
        let own = node(&self.authority);
        let (client, lean) = self.meet(path, self.client(version, Some(&own))).await;
        (client.unwrap(), lean.unwrap())
    }
}

async fn pair(path: Path, version: Version) -> (TlsStream<Wire>, Lean<Wire>) {
    Hub::new().pair(path, version).await
}

/// Asks for something to read when there is nothing, as one does who waits.
async fn wait_idle<S: AsyncRead + AsyncWrite + Unpin>(lean: &mut Lean<S>) {
    let mut space = [0; 100];
    // Twice, since a drip has to be asked twice.
    for _ in 0..2 {
        let mut space = ReadBuf::new(&mut space);
        let mut context = Context::from_waker(Waker::noop());
        let asked = Pin::new(&mut *lean).poll_read(&mut context, &mut space);
        assert!(asked.is_pending(), "{asked:?}");
    }
}

/// Writes all of it, as far as the last byte.
async fn say(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    to.write_all(bytes).await.unwrap();
    to.flush().await.unwrap();
}

/// The alert that this end got.
fn alert(error: &io::Error) -> rustls::AlertDescription {
    let inner = error.get_ref().expect("an error of TLS");
    match inner.downcast_ref() {
        Some(rustls::Error::AlertReceived(alert)) => *alert,
        _ => panic!("no alert, but {error}"),
    }
}

fn pattern(length: usize, salt: usize) -> Vec<u8> {
    (0..length)
        .map(|at| ((at * 31 + at / 251 + salt) % 253) as u8)
        .collect()
}
