//! Joining and opening links through TLS and HTTP, on loopback.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cloud::join::door::REQUEST_TIME_MAX;
use cloud::join::{Entered, Happening, Serving, Why, enter};
use host::http::{self, Asked, Response};
use host::listen::Listener;
use host::pki::{Credential, Key, Pin, Wanted};
use host::tls::{self, HTTP1, Party};
use host::websocket;
use host::{Clock, Shutdown, Tasks, dial};
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::{Stage, asking, csr};

/// A hub that listens.
struct Hub {
    stage: Stage,
    address: SocketAddr,
    entered: mpsc::Receiver<Entered>,
    _tasks: Tasks,
}

impl Hub {
    async fn start() -> Self {
        let stage = Stage::new();
        let wanted = Wanted::Server {
            name: "hub".into(),
            dns: vec!["localhost".into()],
            ips: vec![],
        };
        let serving = Serving::new(stage.authority.clone(), wanted, &stage.clock).unwrap();
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listener.address();
        let shutdown = Shutdown::new();
        let mut tasks = Tasks::new(shutdown.clone());
        let crowd = tasks.crowd("connections", 100);
        let (said, entered) = mpsc::channel(100);
        let desk = stage.desk.clone();
        let run = listener.run(serving.tls(), crowd, shutdown, move |accepted| {
            let (desk, said) = (desk.clone(), said.clone());
            async move {
                let entered = enter(accepted, &desk).await;
                said.send(entered).await.ok();
            }
        });
        tasks.add("listener", run);
        Self {
            stage,
            address,
            entered,
            _tasks: tasks,
        }
    }

    fn pinned(&self) -> Arc<ClientConfig> {
        let pin = Pin::of(self.stage.authority.certificate()).unwrap();
        tls::pinned_client(pin, &self.stage.clock).unwrap()
    }

    fn as_node(&self, own: &Credential) -> Arc<ClientConfig> {
        self.as_node_at(own, &self.stage.clock)
    }

    fn as_node_at(&self, own: &Credential, clock: &Clock) -> Arc<ClientConfig> {
        let party = Party {
            servers: vec![self.stage.authority.certificate().clone()],
            own: Some((vec![own.certificate.clone()], own.key.clone_key().into())),
            protocols: vec![HTTP1.to_vec()],
        };
        tls::client_of(party, clock).unwrap()
    }

    async fn dial(&self, tls: Arc<ClientConfig>) -> std::io::Result<dial::Secure> {
        let name = "localhost".try_into().unwrap();
        dial::secure(&self.address.to_string(), name, tls, Duration::from_secs(5)).await
    }

    async fn post(&self, tls: Arc<ClientConfig>, path: &str, body: &str) -> Response {
        let mut stream = self.dial(tls).await.unwrap();
        let asked = Asked {
            host: "localhost",
            path,
            body: body.as_bytes(),
        };
        http::ask(&mut stream, asked, 65_536).await.unwrap()
    }

    /// Sends these bytes and gives the status of the answer.
    async fn raw(&self, request: &str) -> u16 {
        let mut stream = self.dial(self.pinned()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    async fn joined(&self, name: &str) -> Credential {
        let (token, key) = (self.stage.token_for(name).await, Key::create().unwrap());
        let body = asking(&token.text(), name, &key).to_string();
        let answer = self.post(self.pinned(), "/join", &body).await;
        assert_eq!(answer.status, 200);
        let issued: wire::join::Issued = serde_json::from_slice(&answer.body).unwrap();
        let certificate = host::pki::certificate_from_pem(issued.certificate.as_bytes());
        key.certified(certificate.unwrap()).unwrap()
    }

    async fn next(&mut self) -> Entered {
        self.entered.recv().await.unwrap()
    }
}

#[tokio::test]
async fn a_node_joins_renews_and_opens_a_link_on_one_port() {
    let mut hub = Hub::start().await;
    let own = hub.joined("n1").await;
    let joined = hub.next().await;
    assert!(matches!(joined.happened, Some(Happening::Joined { .. })));
    let next = Key::create().unwrap();
    let body = serde_json::json!({ "csr": csr("n1", &next) }).to_string();
    let renewed = hub.post(hub.as_node(&own), "/renew", &body).await;
    assert_eq!(renewed.status, 200);
    hub.next().await;

    let stream = hub.dial(hub.as_node(&own)).await.unwrap();
    let socket = websocket::connect(stream, "localhost").await.unwrap();
    let linked = hub.next().await.link.expect("a link");
    assert_eq!(linked.peer.node.as_str(), "n1");
    drop(socket);
}

#[tokio::test]
async fn a_link_is_for_nodes_that_are_not_revoked() {
    let mut hub = Hub::start().await;
    let own = hub.joined("n1").await;
    hub.next().await;
    let stream = hub.dial(hub.pinned()).await.unwrap();
    let nobody = websocket::connect(stream, "localhost").await;
    assert!(
        nobody
            .unwrap_err()
            .to_string()
            .contains("did not let us in")
    );
    assert!(hub.next().await.link.is_none());

    let admin = Wanted::Client {
        user: "admin".into(),
        groups: vec![],
    };
    let admin = hub.stage.authority.issue(&admin, hub.stage.clock.wall());
    let stream = hub.dial(hub.as_node(&admin.unwrap())).await.unwrap();
    assert!(websocket::connect(stream, "localhost").await.is_err());
    assert!(hub.next().await.link.is_none());

    hub.stage.revoke("n1").await;
    let stream = hub.dial(hub.as_node(&own)).await.unwrap();
    assert!(websocket::connect(stream, "localhost").await.is_err());
    let refused = hub.next().await;
    assert!(refused.link.is_none());
    let Some(Happening::Refused { why, .. }) = refused.happened else {
        panic!("nothing happened");
    };
    assert_eq!(why, Why::Revoked);
}

#[tokio::test]
async fn no_session_is_resumed_so_identity_is_checked_each_time() {
    let hub = Hub::start().await;
    let own = hub.joined("n1").await;
    let tls = hub.as_node(&own);
    for _ in 0..3 {
        let mut stream = hub.dial(tls.clone()).await.unwrap();
        // Tickets would come with the first bytes of the server.
        let body = Asked {
            host: "localhost",
            path: "/renew",
            body: b"{}",
        };
        assert_eq!(
            http::ask(&mut stream, body, 65_536).await.unwrap().status,
            400
        );
        let (_, session) = stream.get_ref();
        assert_eq!(session.handshake_kind(), Some(rustls::HandshakeKind::Full));
    }
}

#[tokio::test]
async fn an_expired_certificate_does_not_get_through_tls() {
    let hub = Hub::start().await;
    let own = hub.joined("n1").await;
    // The node's clock stands still: it is the hub that must refuse.
    let (standing, _) = Clock::manual(hub.stage.clock.wall());
    let tls = hub.as_node_at(&own, &standing);
    let asked = || Asked {
        host: "localhost",
        path: "/renew",
        body: b"{}",
    };
    let mut stream = hub.dial(tls.clone()).await.unwrap();
    assert!(http::ask(&mut stream, asked(), 65_536).await.is_ok());
    hub.stage.hands.advance(Duration::from_secs(31 * 24 * 3600));
    let mut stream = hub.dial(tls).await.unwrap();
    let refused = http::ask(&mut stream, asked(), 65_536).await.unwrap_err();
    let http::ExchangeFailed::Lost(error) = refused else {
        panic!("{refused}");
    };
    assert!(error.to_string().contains("CertificateExpired"), "{error}");
}

#[tokio::test]
async fn requests_that_are_no_requests_are_refused_before_anything_is_read() {
    let hub = Hub::start().await;
    let token = hub.stage.token_for("n1").await.text();
    let head = |more: &str| format!("POST /join HTTP/1.1\r\nHost: h\r\n{more}\r\n");
    let cases = [
        (head("Content-Length: 65537\r\n"), 413),
        (head("Content-Length: 99999999999999999999\r\n"), 400),
        (head("Transfer-Encoding: chunked\r\n"), 415),
        (head("Content-Encoding: gzip\r\nContent-Length: 2\r\n"), 415),
        (head(""), 411),
        (head("Expect: 100-continue\r\nContent-Length: 2\r\n"), 417),
        (head(&format!("X: {}\r\n", "x".repeat(20_000))), 431),
        ("GET /join HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 405),
        ("POST /join HTTP/1.0\r\nHost: h\r\n\r\n".to_owned(), 505),
        (
            format!("POST /join?token={token} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"),
            404,
        ),
        (
            "POST /elsewhere HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
            404,
        ),
    ];
    for (request, status) in cases {
        assert_eq!(hub.raw(&request).await, status, "{request}");
    }
    let own = hub.joined("n2").await;
    drop(own);
}

#[tokio::test]
async fn a_request_that_breaks_off_leaves_nothing_behind() {
    let mut hub = Hub::start().await;
    let token = hub.stage.token_for("n1").await.text();
    let mut stream = hub.dial(hub.pinned()).await.unwrap();
    let half = "POST /join HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n{\"token\":";
    stream.write_all(half.as_bytes()).await.unwrap();
    stream.write_all(token.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    drop(stream);
    let entered = hub.next().await;
    assert!(entered.link.is_none() && entered.happened.is_none());
}

#[tokio::test]
async fn a_request_that_trickles_in_is_cut() {
    let mut hub = Hub::start().await;
    let mut stream = hub.dial(hub.pinned()).await.unwrap();
    let head = "POST /join HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\n\
                Content-Length: 1000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reads, mut writes) = tokio::io::split(stream);
    let began = tokio::time::Instant::now();
    let trickle = async {
        while writes.write_all(b" ").await.is_ok() && writes.flush().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let entered = async {
        tokio::select! {
            entered = hub.next() => entered,
            () = async { trickle.await; std::future::pending().await } => unreachable!(),
        }
    };
    let entered = entered.await;
    assert!(entered.link.is_none() && entered.happened.is_none());
    assert!(began.elapsed() < REQUEST_TIME_MAX + Duration::from_secs(5));
    let mut rest = Vec::new();
    drop(reads.read_to_end(&mut rest).await);
    assert!(rest.is_empty(), "nothing is said to who did not ask");
}
