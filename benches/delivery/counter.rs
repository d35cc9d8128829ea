//! A server between a hub and its cluster that counts requests: it ends TLS, reads the first line
//! of each request, and passes everything on as the administrator.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use host::Clock;
use host::pki::Wanted;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::client::{Door, Protocol};
use crate::ground::Ground;

/// A counter that runs until it is dropped.
pub(crate) struct Counter {
    /// How a hub gets to the cluster through it.
    pub(crate) kubeconfig: PathBuf,
    seen: Arc<Mutex<BTreeMap<String, usize>>>,
    accepting: JoinHandle<()>,
}

impl Counter {
    pub(crate) async fn before(ground: &Ground) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let site = ground.site();
        let text = std::fs::read_to_string(site.kubeconfig()).expect("a kubeconfig");
        let text = text.replace(site.server(), &format!("https://{address}"));
        let kubeconfig = ground.folder.path().join("counted.kubeconfig");
        let owner = host::files::Audience::Owner;
        host::files::write(&kubeconfig, text.as_bytes(), owner).expect("a file");
        let seen = Arc::default();
        let (tls, door) = (tls(ground), ground.server.door.clone());
        let accepting = tokio::spawn(accept(listener, tls, door, Arc::clone(&seen)));
        Self {
            kubeconfig,
            seen,
            accepting,
        }
    }

    /// Forgets what was seen, and gives it.
    pub(crate) fn take(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut *self.seen.lock().expect("nobody panicked"))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn tls(ground: &Ground) -> TlsAcceptor {
    let authority = ground.site().authority().expect("the cluster's authority");
    let wanted = Wanted::Server {
        name: "counter".to_owned(),
        dns: vec!["localhost".to_owned()],
        ips: vec![[127, 0, 0, 1].into()],
    };
    let issued = authority.issue(&wanted, Clock::machine().wall());
    let issued = issued.expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![issued.certificate], issued.key.into());
    let mut config = config.expect("a certificate for TLS");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

type Seen = Arc<Mutex<BTreeMap<String, usize>>>;

async fn accept(listener: TcpListener, tls: TlsAcceptor, door: Door, seen: Seen) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(pass(client, tls.clone(), door.clone(), seen.clone()));
    }
}

async fn pass(client: TcpStream, tls: TlsAcceptor, door: Door, seen: Seen) {
    let Ok(client) = tls.accept(client).await else {
        return;
    };
    let server = door.dial(Protocol::Http1).await;
    let (from_client, mut to_client) = split(client);
    let (mut from_server, to_server) = split(server);
    let answers = async move {
        tokio::io::copy(&mut from_server, &mut to_client).await.ok();
        to_client.shutdown().await.ok();
    };
    tokio::join!(requests(from_client, to_server, seen), answers);
}

/// Passes requests on and notes the first line of each. Bodies here are JSON, in which no line
/// ends as one of HTTP does.
async fn requests(
    mut from: impl AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
    seen: Seen,
) {
    let mut line = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        for byte in &buffer[..count] {
            match byte {
                b'\n' => note(&std::mem::take(&mut line), &seen),
                _ if line.len() < LINE_MAX => line.push(*byte),
                _ => {}
            }
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
    to.shutdown().await.ok();
}

fn note(line: &[u8], seen: &Seen) {
    let line = String::from_utf8_lossy(line);
    let Some(request) = line.trim_end().strip_suffix(" HTTP/1.1") else {
        return;
    };
    // A body may stand before it on the same line.
    let at = METHODS.iter().filter_map(|method| request.rfind(method));
    let Some(at) = at.max() else { return };
    let request = &request[at..];
    let watches = request.contains("watch=");
    let (path, _) = request.split_once('?').unwrap_or((request, ""));
    let told = match watches {
        true => path.replacen("GET ", "WATCH ", 1),
        false => path.to_owned(),
    };
    *seen
        .lock()
        .expect("nobody panicked")
        .entry(told)
        .or_default() += 1;
}

const METHODS: [&str; 5] = ["GET /", "POST /", "PUT /", "PATCH /", "DELETE /"];
/// Bytes of a line that are kept.
const LINE_MAX: usize = 1024 * 1024;
