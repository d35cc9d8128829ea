//! Real connections over loopback: who gets in, who does not, and what it costs the others.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use super::*;
use crate::clock::Clock;
use crate::handshake::TURN_TIME_MAX;
use crate::pki::{Authority, Credential, Leaf, Wanted};
use crate::tasks::Tasks;
use crate::tls::{self, Shown};

struct Server {
    tasks: Tasks,
    authority: Authority,
    shown: Arc<Shown>,
    address: SocketAddr,
    crowd: Crowd,
}

fn wanted_server() -> Wanted {
    let ips = vec![[127, 0, 0, 1].into()];
    Wanted::Server {
        name: "test".into(),
        dns: vec!["localhost".into()],
        ips,
    }
}

/// A server that answers each connection with the user it sees there, and then echoes.
async fn server(places: u32) -> Server {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await;
    serving(listener.unwrap(), places)
}

fn serving(listener: Listener, places: u32) -> Server {
    let clock = Clock::machine();
    let authority = Authority::create("test-ca", clock.wall()).unwrap();
    let shown = Shown::new(&authority.issue(&wanted_server(), clock.wall()).unwrap()).unwrap();
    let config = tls::server(shown.clone(), authority.certificate(), &clock).unwrap();
    let address = listener.address();
    let shutdown = Shutdown::new();
    let mut tasks = Tasks::new(shutdown.clone());
    let crowd = tasks.crowd("connections", places);
    tasks.add(
        "listen",
        listener.run(config, crowd.clone(), shutdown, echo),
    );
    Server {
        tasks,
        authority,
        shown,
        address,
        crowd,
    }
}

async fn echo(mut accepted: Accepted) {
    let user = match &accepted.peer {
        Some(certificate) => Leaf::read(certificate).unwrap().common_name,
        None => "nobody".into(),
    };
    let greeting = format!("{user} {:?}\n", accepted.protocol);
    accepted.stream.write_all(greeting.as_bytes()).await.ok();
    let mut buffer = [0; 64];
    while let Ok(count @ 1..) = accepted.stream.read(&mut buffer).await {
        accepted.stream.write_all(&buffer[..count]).await.ok();
    }
}

impl Server {
    async fn greeting(&self, own: Option<&Credential>) -> io::Result<String> {
        let config = tls::client(self.authority.certificate(), own, &Clock::machine()).unwrap();
        let tcp = TcpStream::connect(self.address).await?;
        let name = "localhost".try_into().unwrap();
        let mut stream = TlsConnector::from(config).connect(name, tcp).await?;
        let mut greeting = Vec::new();
        while greeting.last() != Some(&b'\n') {
            greeting.push(stream.read_u8().await?);
        }
        Ok(String::from_utf8(greeting).unwrap().trim().to_owned())
    }

    async fn stop(self) {
        self.tasks.shutdown().trigger();
        self.tasks.join(Duration::from_secs(5)).await.unwrap();
    }
}

fn client(authority: &Authority) -> Credential {
    let wanted = Wanted::Client {
        user: "ada".into(),
        groups: vec!["engineers".into()],
    };
    authority.issue(&wanted, Clock::machine().wall()).unwrap()
}

#[tokio::test]
async fn who_knocks_is_let_in_once_there_is_a_server_and_whoever_knocked_in_vain_is_not() {
    let bound = Listener::bind("127.0.0.1:0".parse().unwrap()).await;
    let mut listener = bound.unwrap();
    let mut vain = TcpStream::connect(listener.address()).await.unwrap();
    listener.knock().await.unwrap();
    let address = listener.address();
    let first = TcpStream::connect(address).await.unwrap();
    listener.knock().await.unwrap();
    let turned_away = vain.read_u8().await.unwrap_err();
    assert_ne!(turned_away.kind(), io::ErrorKind::TimedOut);
    let server = serving(listener, 4);
    let authority = server.authority.certificate();
    let config = tls::client(authority, None, &Clock::machine()).unwrap();
    let name = "localhost".try_into().unwrap();
    let mut stream = TlsConnector::from(config)
        .connect(name, first)
        .await
        .unwrap();
    let mut greeting = [0; 6];
    stream.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"nobody");
    drop(stream);
    assert_eq!(server.greeting(None).await.unwrap(), "nobody Http2");
    server.stop().await;
}

#[tokio::test]
async fn a_client_is_known_by_its_certificate_or_is_nobody() {
    let server = server(8).await;
    let ada = client(&server.authority);
    assert_eq!(server.greeting(Some(&ada)).await.unwrap(), "ada Http2");
    assert_eq!(server.greeting(None).await.unwrap(), "nobody Http2");
    server.stop().await;
}

#[tokio::test]
async fn certificates_of_others_and_of_the_wrong_kind_are_refused() {
    let server = server(8).await;
    let now = Clock::machine().wall();
    let stranger = client(&Authority::create("test-ca", now).unwrap());
    assert!(server.greeting(Some(&stranger)).await.is_err());
    let serving_only = server.authority.issue(&wanted_server(), now).unwrap();
    assert!(server.greeting(Some(&serving_only)).await.is_err());
    let ada = Wanted::Client {
        user: "ada".into(),
        groups: vec![],
    };
    let expired = now - jiff::SignedDuration::from_hours(2 * 365 * 24);
    let expired = server.authority.issue(&ada, expired).unwrap();
    assert!(server.greeting(Some(&expired)).await.is_err());
    assert_eq!(server.greeting(None).await.unwrap(), "nobody Http2");
    server.stop().await;
}

#[tokio::test]
async fn a_peer_that_is_silent_or_speaks_no_tls_is_closed_and_disturbs_nobody() {
    let server = server(8).await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut rest = Vec::new();
    plain.read_to_end(&mut rest).await.ok();
    assert_eq!(server.greeting(None).await.unwrap(), "nobody Http2");
    let mut silent = silent;
    let closed = tokio::time::timeout(TURN_TIME_MAX * 2, silent.read_to_end(&mut rest)).await;
    closed.expect("closed after five seconds").ok();
    server.stop().await;
}

#[tokio::test]
async fn when_no_place_is_free_a_connection_is_closed_at_once() {
    let server = server(1).await;
    let holds_the_place = TcpStream::connect(server.address).await.unwrap();
    while server.crowd.busy() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(server.greeting(None).await.is_err());
    drop(holds_the_place);
    while server.crowd.busy() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(server.greeting(None).await.unwrap(), "nobody Http2");
    server.stop().await;
}

#[tokio::test]
async fn a_replaced_certificate_is_shown_to_those_who_come_later() {
    let server = server(8).await;
    let now = Clock::machine().wall();
    let other = Wanted::Server {
        name: "other".into(),
        dns: vec!["other".into()],
        ips: vec![],
    };
    server
        .shown
        .replace(&server.authority.issue(&other, now).unwrap())
        .unwrap();
    assert!(
        server.greeting(None).await.is_err(),
        "the new one is not for localhost"
    );
    server
        .shown
        .replace(&server.authority.issue(&wanted_server(), now).unwrap())
        .unwrap();
    assert_eq!(server.greeting(None).await.unwrap(), "nobody Http2");

    let mut mixed = server.authority.issue(&wanted_server(), now).unwrap();
    mixed.key = client(&server.authority).key;
    assert!(
        server.shown.replace(&mixed).is_err(),
        "a key that is not its own"
    );
    assert_eq!(server.greeting(None).await.unwrap(), "nobody Http2");
    server.stop().await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_with_what_to_do() {
    let first = Listener::bind("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let second = Listener::bind(first.address()).await.err().unwrap();
    assert!(
        matches!(second, Error::InUse(at) if at == first.address()),
        "{second}"
    );
    let foreign = Listener::bind("192.0.2.1:6443".parse().unwrap())
        .await
        .err()
        .unwrap();
    assert!(matches!(foreign, Error::NotOurs(_)), "{foreign}");
}

#[tokio::test(start_paused = true)]
async fn a_shortage_is_waited_out_and_longer_each_time() {
    let clock = Clock::machine();
    let before = clock.now();
    let mut pause = Pause::default();
    let shortage = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
    for _ in 0..10 {
        assert_eq!(severity(&shortage), Severity::Machine);
        pause.wait(&shortage).await;
    }
    let waited = clock.now() - before;
    assert!(
        waited > Duration::from_secs(3) && waited < Duration::from_secs(5),
        "{waited:?}"
    );
}

#[test]
fn errors_of_accept_are_told_apart_by_whose_trouble_they_are() {
    let of = |errno: rustix::io::Errno| severity(&io::Error::from(errno));
    assert_eq!(of(rustix::io::Errno::CONNABORTED), Severity::Connection);
    assert_eq!(of(rustix::io::Errno::NETUNREACH), Severity::Connection);
    assert_eq!(of(rustix::io::Errno::BADF), Severity::Listener);
}

#[tokio::test]
async fn a_port_that_is_reserved_refuses_at_once_and_is_nobody_elses() {
    let reserved = Reserved::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = reserved.address();
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    let listener = reserved.open().unwrap();
    assert_eq!(listener.address(), address);
    TcpStream::connect(address).await.unwrap();
    assert!(matches!(Reserved::bind(address), Err(Error::InUse(taken)) if taken == address));
}
