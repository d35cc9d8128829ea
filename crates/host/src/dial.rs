//! An address -> a connection, plain or encrypted.
//!
//! A name may stand for several addresses. Each is tried in turn with a fair share of the time that
//! is left, so that one which swallows everything does not use up the others' chance.

#![expect(
    clippy::disallowed_types,
    reason = "this is the place where sockets live"
)]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};
use tokio_rustls::{Connect, TlsConnector};

use crate::handshake::{self, Counted};
use crate::listen::{Protocol, tune};
use crate::pace::Pace;

/// Addresses of one name that are tried. A name with more of them has the rest ignored.
pub const ADDRESSES_MAX: usize = 8;

/// A connection that we opened, as it is.
pub type Stream = TcpStream;

/// How large the packets of a connection may be, both ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Packets {
    /// As large as the machines at both ends believe.
    #[default]
    Usual,
    /// So small that every path carries them. Some swallow larger ones and tell nobody, and TCP
    /// goes on to send them for ever.
    Small,
}

/// Bytes in a small packet: with its heads it has fewer than 1,280, which is what IPv6 asks of
/// every path.
const SMALL_BYTES: u32 = 1200;

/// An encrypted connection that we opened.
pub type Secure = tokio_rustls::client::TlsStream<Counted<TcpStream>>;

/// Opens a connection to `host:port` within a time, name resolution included.
///
/// What is written goes out at once, and a peer that vanished is noticed within about a minute.
pub async fn dial(address: &str, within: Duration) -> io::Result<Stream> {
    dial_with(address, within, Packets::Usual).await
}

/// The same with packets of another size.
pub async fn dial_with(address: &str, within: Duration, packets: Packets) -> io::Result<Stream> {
    let end = Instant::now() + within;
    let found = timeout(within, tokio::net::lookup_host(address)).await;
    let found = found.map_err(|_| late("the name was not resolved in time"))??;
    let all: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for (tried, address) in all.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(all.len() - tried).unwrap_or(u32::MAX);
        match timeout(share, connect(*address, packets)).await {
            Ok(Ok(tcp)) => {
                tune(&tcp)?;
                return Ok(tcp);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = late("nobody answered in time"),
        }
    }
    Err(last)
}

async fn connect(address: SocketAddr, packets: Packets) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if packets == Packets::Small {
        // It is said when the connection is opened, and binds the other end as well.
        SockRef::from(&socket).set_tcp_mss(SMALL_BYTES)?;
    }
    socket.connect(address).await
}

/// Opens an encrypted connection to `host:port` within a time; the peer must be `name`. One that
/// answers over a slow link has longer, as in [`encrypted`].
pub async fn secure(
    address: &str,
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
    within: Duration,
) -> io::Result<Secure> {
    let end = Instant::now() + within;
    let tcp = dial(address, within).await?;
    let left = end.saturating_duration_since(Instant::now());
    encrypted(tcp, name, tls, left).await
}

/// Whether a handshake failed since the connection went away without a word: what took it may be a
/// balancer or a proxy, and nobody is behind it.
pub fn nobody_answered(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let gone = [
        BrokenPipe,
        ConnectionAborted,
        ConnectionReset,
        UnexpectedEof,
    ];
    gone.contains(&error.kind())
}

/// Encrypts a connection that is open, within a time; the peer must be `name`. A peer that answers
/// over a slow link has longer, for as long as its answer comes.
pub async fn encrypted(
    tcp: Stream,
    name: ServerName<'static>,
    tls: Arc<ClientConfig>,
    within: Duration,
) -> io::Result<Secure> {
    let began = Instant::now();
    let handshake = TlsConnector::from(tls).connect(name, Counted::new(tcp));
    let arrived = |connect: &Connect<_>| connect.get_ref().map_or(0, Counted::arrived);
    let pace = Pace {
        first: within,
        longest: handshake::PACE.longest.max(within),
        ..handshake::PACE
    };
    handshake::paced(handshake, pace, began, arrived).await
}

/// What both ends of a connection agreed to speak.
pub fn protocol(stream: &Secure) -> Protocol {
    Protocol::of(stream.get_ref().1.alpn_protocol())
}

fn late(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_name_is_resolved_and_the_address_that_answers_is_taken() {
        // localhost may stand for ::1 as well, where nobody listens.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = format!("localhost:{port}");
        let mut ours = dial(&address, Duration::from_secs(5)).await.unwrap();
        let accepted = listener.accept().await.unwrap();
        assert!(ours.nodelay().unwrap());
        ours.write_all(b"x").await.unwrap();
        let mut theirs = accepted.0;
        assert_eq!(theirs.read_u8().await.unwrap(), b'x');
    }

    #[tokio::test]
    async fn a_port_where_nobody_listens_is_an_error_and_so_is_no_port() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let refused = dial(&address, Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(dial("127.0.0.1", Duration::from_secs(5)).await.is_err());
    }

    #[tokio::test]
    async fn a_server_that_never_shakes_hands_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let now = crate::Clock::machine().wall();
        let authority = crate::pki::Authority::create("test-ca", now).unwrap();
        let clock = crate::Clock::machine();
        let tls = crate::tls::client(authority.certificate(), None, &clock).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let silent = secure(
            &address,
            name.clone(),
            tls.clone(),
            Duration::from_millis(200),
        );
        let silent = silent.await.unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        assert!(!nobody_answered(&silent), "it may have much to do");

        // A balancer without a hub takes the connection and lets it go.
        let gone = async {
            loop {
                drop(listener.accept().await.unwrap());
            }
        };
        let left = secure(&address, name, tls, Duration::from_secs(5));
        let left = tokio::select! {
            left = left => left,
            () = gone => unreachable!("it goes on"),
        };
        assert!(nobody_answered(&left.unwrap_err()));
    }
}
