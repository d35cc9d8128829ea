//! A cluster that tells what it was asked, and by whom.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use cloud::cluster::Config;
use cloud::tunnel::Tunnels;
use host::files::{self, Audience};
use host::listen::{Accepted, Listener, Protocol};
use host::pki::{Authority, Wanted};
use host::tls::Shown;
use host::{Clock, Shutdown, Tasks};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The cluster, and a hub's side of tunnels to it.
pub(crate) struct Mirror {
    pub(crate) tunnels: Tunnels,
    /// Requests whose answer is not at its end and was not given up.
    pub(crate) open: Arc<AtomicUsize>,
    /// On so many connections it says goodbye to the first request, and does not look at it.
    pub(crate) goodbyes: Arc<AtomicUsize>,
    _tasks: Tasks,
    _folder: TempDir,
}

impl Mirror {
    pub(crate) async fn start() -> Self {
        Self::speaking(&host::tls::ALPN).await
    }

    /// A cluster that speaks these protocols only.
    pub(crate) async fn speaking(protocols: &[&[u8]]) -> Self {
        let clock = Clock::machine();
        let now = clock.wall();
        let authority = Authority::create("test-ca", now).unwrap();
        let server = Wanted::Server {
            name: "test".to_owned(),
            dns: vec!["localhost".to_owned()],
            ips: vec![Ipv4Addr::LOCALHOST.into()],
        };
        let shown = Shown::new(&authority.issue(&server, now).unwrap()).unwrap();
        let tls = host::tls::server(shown, authority.certificate(), &clock).unwrap();
        let mut tls = ServerConfig::clone(&tls);
        tls.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into())
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let address = listener.address().to_string();
        let config = Config::from_kubeconfig(&kubeconfig(&folder, &authority, &address)).unwrap();
        let mut tasks = Tasks::new(Shutdown::new());
        let crowd = tasks.crowd("connections", 100);
        let open = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&open);
        let goodbyes = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&goodbyes);
        let serve = move |accepted: Accepted| {
            let (counts, left) = (Arc::clone(&counts), Arc::clone(&left));
            async move {
                let less = |left: usize| left.checked_sub(1);
                match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
                    Ok(_) => say_goodbye(accepted).await,
                    Err(_) => serve(accepted, counts).await,
                }
            }
        };
        let shutdown = tasks.shutdown().clone();
        tasks.add("mirror", listener.run(tls.into(), crowd, shutdown, serve));
        Self {
            tunnels: Tunnels::new(&config, clock, &mut tasks),
            open,
            goodbyes,
            _tasks: tasks,
            _folder: folder,
        }
    }

    /// Waits until so many requests are open.
    pub(crate) async fn has(&self, count: usize) {
        let looking = async {
            while self.open.load(Ordering::SeqCst) != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let looked = tokio::time::timeout(Duration::from_secs(60), looking).await;
        let open = self.open.load(Ordering::SeqCst);
        assert!(
            looked.is_ok(),
            "{open} requests are open instead of {count}"
        );
    }
}

/// The hub is known by a certificate.
fn kubeconfig(folder: &TempDir, authority: &Authority, address: &str) -> PathBuf {
    let hub = Wanted::Client {
        user: "hub".to_owned(),
        groups: Vec::new(),
    };
    let own = authority.issue(&hub, Clock::machine().wall()).unwrap();
    let encoded = |pem: String| BASE64_STANDARD.encode(pem);
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters:\n- name: test\n  cluster:\n    server: https://{address}\n    \
         certificate-authority-data: {}\nusers:\n- name: hub\n  user:\n    \
         client-certificate-data: {}\n    client-key-data: {}\n\
         contexts:\n- name: test\n  context:\n    cluster: test\n    user: hub\n",
        encoded(authority.certificate_pem()),
        encoded(own.certificate_pem()),
        encoded(own.key_pem()),
    );
    let path = folder.path().join("kubeconfig");
    files::write(&path, text.as_bytes(), Audience::Owner).unwrap();
    path
}

/// Speaks as much HTTP/2 as it takes to say that nothing more is looked at: frames of settings and,
/// at the first request, of goodbye.
async fn say_goodbye(accepted: Accepted) {
    const SETTINGS: u8 = 4;
    const GOAWAY: u8 = 7;
    const HEADERS: u8 = 1;
    let mut stream = accepted.stream;
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    stream
        .write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        if head[3] == HEADERS {
            // The last stream that was looked at is none, and nothing is wrong.
            let frame = [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            stream.write_all(&frame).await.unwrap();
        }
    }
}

async fn serve(accepted: Accepted, open: Arc<AtomicUsize>) {
    let known = accepted.peer.is_some();
    let protocol = accepted.protocol;
    let service = service_fn(move |request| {
        let held = Held::new(&open);
        async move { Ok::<_, Infallible>(answer(request, (known, protocol), held).await) }
    });
    let stream = TokioIo::new(accepted.stream);
    match protocol {
        Protocol::Http2 => {
            let http = http2::Builder::new(TokioExecutor::new());
            drop(http.serve_connection(stream, service).await);
        }
        Protocol::Http1 => {
            let http = http1::Builder::new();
            let served = http.serve_connection(stream, service).with_upgrades();
            drop(served.await);
        }
    }
}

async fn answer(
    mut request: Request<Incoming>,
    (known, protocol): (bool, Protocol),
    held: Held,
) -> Answer {
    match request.uri().path() {
        "/never" => {
            let _held = held;
            std::future::pending().await
        }
        "/ticks" => Ticks::answer(held, 1, Then::Never),
        "/large" => {
            let body = Full::new(Bytes::from(vec![b'x'; LARGE]));
            Response::new(body.boxed_unsync())
        }
        "/tiny" => Ticks::answer(held, TINY, Then::End),
        "/broken" => {
            let mut answer = Ticks::answer(held, 3, Then::End);
            let length = answer.headers_mut().entry("content-length");
            length.or_insert(1_000_000.into());
            answer
        }
        "/echo" => echo(&mut request, held),
        _ => {
            let told = told(request, known, protocol).await;
            let body = Full::new(Bytes::from(told.to_string()));
            Response::new(body.boxed_unsync())
        }
    }
}

/// What was asked, and by whom.
async fn told(request: Request<Incoming>, known: bool, protocol: Protocol) -> Value {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let line = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        format!("{name}: {}", value.to_str().unwrap())
    };
    let mut headers: Vec<String> = head.headers.iter().map(line).collect();
    headers.sort();
    json!({
        "method": head.method.as_str(),
        "uri": head.uri.path_and_query().unwrap().as_str(),
        "headers": headers,
        "certificate": known,
        "http2": protocol == Protocol::Http2,
        "body": String::from_utf8(body.to_vec()).unwrap(),
    })
}

/// Changes the protocol to one that says everything again.
fn echo(request: &mut Request<Incoming>, held: Held) -> Answer {
    let upgrade = hyper::upgrade::on(&mut *request);
    #[expect(clippy::disallowed_methods, reason = "it ends with its connection")]
    tokio::spawn(async move {
        let _held = held;
        let mut stream = TokioIo::new(upgrade.await.unwrap());
        let mut buffer = vec![0; 4096];
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(count) => {
                    if stream.write_all(&buffer[..count]).await.is_err() {
                        break;
                    }
                }
            }
        }
        drop(stream.shutdown().await);
    });
    let answer = Response::builder().status(101);
    let answer = answer
        .header("connection", "Upgrade")
        .header("upgrade", "echo/1");
    answer.body(Full::default().boxed_unsync()).unwrap()
}

/// A request that is open.
struct Held(Arc<AtomicUsize>);

impl Held {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(open))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Pieces of an answer in tiny pieces.
const TINY: usize = 2000;
/// Bytes of a large answer.
pub(crate) const LARGE: usize = 1024 * 1024;
pub(crate) const TICK: &str = "tick tick tick tick tick tick tick tick tick tick tick tick tick\n";

/// An answer of so many pieces, after which it ends, or never does.
struct Ticks {
    _held: Held,
    left: usize,
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    End,
    Never,
}

impl Ticks {
    fn answer(held: Held, left: usize, then: Then) -> Answer {
        let ticks = Self {
            _held: held,
            left,
            then,
        };
        Response::new(ticks.boxed_unsync())
    }
}

impl Body for Ticks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match (self.left, self.then) {
            (0, Then::End) => Poll::Ready(None),
            (0, Then::Never) => Poll::Pending,
            (left, _) => {
                self.left = left - 1;
                Poll::Ready(Some(Ok(Frame::data(TICK.into()))))
            }
        }
    }
}
