//! A port -> accepted, authenticated connections.
//!
//! Sockets live here and in `dial`. A connection gets a place in a bounded crowd, some time for its
//! TLS handshake (see [`crate::handshake`]), and then a task of its own. What a peer does wrong
//! before that ends its own connection and nothing else.

#![expect(
    clippy::disallowed_types,
    reason = "this is the place where sockets live"
)]

pub mod socket; // the same of a path, for who runs the program
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tracing::{debug, warn};

use crate::handshake::{Counted, Handshakes};
use crate::shutdown::Shutdown;
use crate::tasks::Crowd;
use crate::tls::lean::{self, Accepting, Lean};

/// An encrypted connection.
pub type Stream = Lean<Counted<TcpStream>>;

/// A connection that finished its handshake.
pub struct Accepted {
    /// The connection.
    pub stream: Stream,
    /// The certificate that the peer showed, verified; none if it showed none.
    pub peer: Option<CertificateDer<'static>>,
    /// Where it comes from.
    pub remote: SocketAddr,
    /// What both ends agreed to speak.
    pub protocol: Protocol,
}

/// What both ends agreed to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, or no word about it.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Protocol {
    /// What a handshake settled on.
    pub(crate) fn of(alpn: Option<&[u8]>) -> Self {
        match alpn {
            Some(b"h2") => Self::Http2,
            _ => Self::Http1,
        }
    }
}

/// Why a port cannot be listened on, or not any more.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another program has it.
    #[error("{0} is in use by another program; stop that program or choose another port")]
    InUse(SocketAddr),
    /// This machine does not have the address.
    #[error("{0} is not an address of this machine; choose 127.0.0.1, 0.0.0.0 or one of its own")]
    NotOurs(SocketAddr),
    /// Ports below 1024 need a privilege.
    #[error("no permission to listen on {0}; choose a port of 1024 or above")]
    Forbidden(SocketAddr),
    /// The system refused for another reason.
    #[error("cannot listen on {address}")]
    System {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// What the system said about an address.
    pub(crate) fn of(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::InUse(address),
            io::ErrorKind::AddrNotAvailable => Self::NotOurs(address),
            io::ErrorKind::PermissionDenied => Self::Forbidden(address),
            _ => Self::System { address, source },
        }
    }
}

/// A port that is ours and closed: who comes is refused at once and goes elsewhere, instead of
/// waiting for somebody who is not ready.
pub struct Reserved {
    socket: TcpSocket,
    address: SocketAddr,
}

/// Connections that wait to be accepted. Further ones are turned away by the system.
const BACKLOG: u32 = 1024;

impl Reserved {
    /// Takes the port. With port 0 the system chooses one, see [`Reserved::address`].
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        let bound = || {
            let socket = match address {
                SocketAddr::V4(_) => TcpSocket::new_v4(),
                SocketAddr::V6(_) => TcpSocket::new_v6(),
            }?;
            // Connections of the program that had it before do not keep it.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        };
        bound().map_err(|source| Error::of(address, source))
    }

    /// Where it will be listened.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens it.
    pub fn open(self) -> Result<Listener, Error> {
        let address = self.address;
        let opened = self.socket.listen(BACKLOG);
        let socket = opened.map_err(|source| Error::of(address, source))?;
        Ok(Listener::new(socket, address))
    }
}

/// A port that is ours and open.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    /// Who came before anybody was let in.
    first: Option<(TcpStream, SocketAddr)>,
}

impl Listener {
    fn new(socket: TcpListener, address: SocketAddr) -> Self {
        Self {
            socket,
            address,
            first: None,
        }
    }

    /// Waits until somebody comes, who is the first that [`Listener::run`] lets in. Whoever came
    /// before and was not let in is turned away. What [`Listener::run`] takes can be made then.
    pub async fn knock(&mut self) -> Result<(), Error> {
        self.first = None;
        let mut pause = Pause::default();
        loop {
            match self.socket.accept().await {
                Ok(first) => {
                    self.first = Some(first);
                    return Ok(());
                }
                Err(error) => self.endure(error, &mut pause).await?,
            }
        }
    }

    /// Goes on after an error, if that is of use.
    async fn endure(&self, error: io::Error, pause: &mut Pause) -> Result<(), Error> {
        match severity(&error) {
            Severity::Connection => debug!(%error, "connection lost before it began"),
            Severity::Machine => pause.wait(&error).await,
            Severity::Listener => {
                return Err(Error::System {
                    address: self.address,
                    source: error,
                });
            }
        }
        Ok(())
    }

    /// Takes the port. With port 0 the system chooses one, see [`Listener::address`].
    pub async fn bind(address: SocketAddr) -> Result<Self, Error> {
        let bound = TcpListener::bind(address).await;
        let socket = bound.map_err(|source| Error::of(address, source))?;
        let address = socket
            .local_addr()
            .map_err(|source| Error::System { address, source })?;
        Ok(Self::new(socket, address))
    }

    /// Where we listen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts connections until the shutdown and runs `serve` for each in a place of `crowd`.
    ///
    /// When the crowd is full a new connection is closed at once: a client then tries again or
    /// goes elsewhere, instead of waiting for an answer that does not come. Connections that are
    /// open at the shutdown belong to `serve`, which was given the same word.
    pub async fn run<F>(
        mut self,
        tls: Arc<ServerConfig>,
        crowd: Crowd,
        shutdown: Shutdown,
        serve: impl Fn(Accepted) -> F + Clone + Send + 'static,
    ) -> Result<(), Error>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let door = Door {
            tls,
            handshakes: Handshakes::new(),
        };
        let mut pause = Pause::default();
        let mut stop = pin!(shutdown.triggered());
        loop {
            let accepted = match self.first.take() {
                Some(first) => Ok(first),
                None => tokio::select! {
                    accepted = self.socket.accept() => accepted,
                    () = &mut stop => return Ok(()),
                },
            };
            match (accepted, crowd.place()) {
                (Ok((tcp, remote)), Some(place)) => {
                    pause = Pause::default();
                    place.spawn_then(door.clone().enter(tcp, remote), serve.clone());
                }
                (Ok((tcp, remote)), None) => {
                    drop(tcp);
                    debug!(%remote, open = crowd.busy(), "connection refused: no place is free");
                }
                (Err(error), _) => self.endure(error, &mut pause).await?,
            }
        }
    }
}

/// What stands between a connection and its session.
#[derive(Clone)]
struct Door {
    tls: Arc<ServerConfig>,
    handshakes: Handshakes,
}

impl Door {
    async fn enter(self, tcp: TcpStream, remote: SocketAddr) -> Option<Accepted> {
        if let Err(error) = tune(&tcp) {
            debug!(%remote, %error, "connection lost before its TLS handshake");
            return None;
        }
        let begin = || lean::accept(Counted::new(tcp), self.tls);
        let arrived = |accepting: &Accepting<_>| accepting.get_ref().map_or(0, Counted::arrived);
        let stream = match self.handshakes.shake(begin, arrived).await {
            Ok(stream) => stream,
            Err(error) => {
                debug!(%remote, %error, "TLS handshake failed");
                return None;
            }
        };
        let peer = stream.peer_certificates().and_then(<[_]>::first);
        let peer = peer.map(|certificate| certificate.clone().into_owned());
        let protocol = Protocol::of(stream.alpn_protocol());
        Some(Accepted {
            stream,
            peer,
            remote,
            protocol,
        })
    }
}

/// Small answers go out at once, and a peer that vanished is noticed within about a minute.
pub(crate) fn tune(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    sockopt::set_socket_keepalive(tcp, true)?;
    sockopt::set_tcp_keepidle(tcp, Duration::from_secs(30))?;
    sockopt::set_tcp_keepintvl(tcp, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(tcp, 3)?;
    Ok(())
}

/// Whose trouble an error of `accept` is.
#[derive(Debug, PartialEq, Eq)]
enum Severity {
    /// That of the connection which was to be accepted.
    Connection,
    /// The machine is short of something and may have it again later.
    Machine,
    /// Ours: this socket will never accept again.
    Listener,
}

fn severity(error: &io::Error) -> Severity {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    match errno {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Severity::Machine,
        Some(Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP) => Severity::Listener,
        // Linux hands pending network errors of the new connection to accept(2).
        _ => Severity::Connection,
    }
}

/// A pause that grows while the machine stays short: without it the loop would spin.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(Duration::from_millis(10))
    }
}

impl Pause {
    async fn wait(&mut self, error: &io::Error) {
        warn!(%error, pause = ?self.0, "cannot accept connections for now");
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Duration::from_secs(1));
    }
}
