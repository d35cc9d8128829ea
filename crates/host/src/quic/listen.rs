//! A UDP port -> accepted, authenticated streams.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::Arc;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime};
use rustls::pki_types::CertificateDer;
use tracing::debug;

use super::{ALPN, NotUsable, Stream, transport};
use crate::handshake::Handshakes;
use crate::listen::Error;
use crate::shutdown::Shutdown;
use crate::tasks::Crowd;

/// Connections whose first packet is kept until somebody looks at it. Further ones are refused.
const INCOMING_MAX: usize = 1024;
/// Bytes that are kept of all of them.
const INCOMING_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes that are kept of one.
const INCOMING_BYTES_EACH_MAX: u64 = 16 * 1024;

/// A stream that a peer opened.
pub struct Accepted {
    /// The stream.
    pub stream: Stream,
    /// The certificate that the peer showed, verified; none if it showed none.
    pub peer: Option<CertificateDer<'static>>,
    /// Where it comes from. It may move.
    pub remote: SocketAddr,
}

/// A UDP port that is ours.
pub struct Listener {
    socket: UdpSocket,
    address: SocketAddr,
}

impl Listener {
    /// Takes the port. With port 0 the system chooses one, see [`Listener::address`].
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        let socket = UdpSocket::bind(address).map_err(|error| Error::of(address, error))?;
        let bound = socket.local_addr();
        let address = bound.map_err(|error| Error::of(address, error))?;
        Ok(Self { socket, address })
    }

    /// Where we listen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts connections until the shutdown and runs `serve` for each in a place of `crowd`. When
    /// the crowd is full a new connection is refused at once.
    pub async fn run<F>(
        self,
        tls: Arc<rustls::ServerConfig>,
        crowd: Crowd,
        shutdown: Shutdown,
        serve: impl Fn(Accepted) -> F + Clone + Send + 'static,
    ) -> Result<(), Error>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let address = self.address;
        let endpoint = self
            .endpoint(&tls)
            .map_err(|error| Error::of(address, error))?;
        let handshakes = Handshakes::new();
        let mut stop = pin!(shutdown.triggered());
        loop {
            let incoming = tokio::select! {
                incoming = endpoint.accept() => incoming,
                () = &mut stop => None,
            };
            // Sessions that are open have the endpoint as well, and end when they like.
            let Some(incoming) = incoming else {
                return Ok(());
            };
            if !incoming.remote_address_validated() {
                // A made-up address costs nothing but this answer.
                drop(incoming.retry());
                continue;
            }
            let remote = incoming.remote_address();
            match crowd.place() {
                Some(place) => {
                    let entering = enter(incoming, handshakes.clone());
                    place.spawn_then(entering, serve.clone());
                }
                None => {
                    incoming.refuse();
                    debug!(%remote, open = crowd.busy(), "connection refused: no place is free");
                }
            }
        }
    }

    fn endpoint(self, tls: &rustls::ServerConfig) -> io::Result<Endpoint> {
        let config = config(tls).map_err(io::Error::other)?;
        let runtime = Arc::new(TokioRuntime);
        Endpoint::new(
            EndpointConfig::default(),
            Some(config),
            self.socket,
            runtime,
        )
    }
}

/// The TLS of the hub's other port, for QUIC.
fn config(tls: &rustls::ServerConfig) -> Result<ServerConfig, NotUsable> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    // Nothing is taken before the handshake is over: it could be repeated by anybody.
    tls.max_early_data_size = 0;
    let tls = QuicServerConfig::try_from(tls).map_err(NotUsable::of)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config
        .transport_config(transport())
        .max_incoming(INCOMING_MAX)
        .incoming_buffer_size(INCOMING_BYTES_EACH_MAX)
        .incoming_buffer_size_total(INCOMING_BYTES_MAX);
    Ok(config)
}

/// How much of a handshake arrives cannot be seen here. It has as long, with the first word, as one
/// over TCP of which so many bytes have arrived.
const HANDSHAKE_BYTES: usize = 4096;

async fn enter(incoming: Incoming, handshakes: Handshakes) -> Option<Accepted> {
    let remote = incoming.remote_address();
    let open = || {
        Box::pin(async {
            let connection = incoming.accept()?.await?;
            let both = connection.accept_bi().await?;
            Ok::<_, io::Error>((connection, both))
        })
    };
    let (connection, both) = match handshakes.shake(open, |_| HANDSHAKE_BYTES).await {
        Ok(open) => open,
        Err(error) => {
            debug!(%remote, %error, "QUIC handshake failed");
            return None;
        }
    };
    let peer = connection.peer_identity();
    let peer = peer.and_then(|peer| peer.downcast::<Vec<CertificateDer<'static>>>().ok());
    let peer = peer.and_then(|chain| chain.into_iter().next());
    Some(Accepted {
        stream: Stream::new(connection, both, None),
        peer,
        remote,
    })
}
