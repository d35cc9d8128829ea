//! An address -> a stream.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint};
use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout};

use super::{ALPN, NotUsable, Stream, transport};
use crate::dial::ADDRESSES_MAX;

/// Opens a stream to `host:port` within a time; the peer must be `name`. Each address of a name is
/// tried in turn with a fair share of the time that is left.
pub async fn dial(
    address: &str,
    name: &ServerName<'static>,
    tls: &rustls::ClientConfig,
    within: Duration,
) -> io::Result<Stream> {
    let end = Instant::now() + within;
    let config = config(tls).map_err(io::Error::other)?;
    let found = timeout(within, tokio::net::lookup_host(address)).await;
    let found = found.map_err(|_| late("the name was not resolved in time"))??;
    let all: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for (tried, address) in all.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(all.len() - tried).unwrap_or(u32::MAX);
        match timeout(share, open(*address, name, config.clone())).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = late("nobody answered in time"),
        }
    }
    Err(last)
}

async fn open(
    address: SocketAddr,
    name: &ServerName<'static>,
    config: ClientConfig,
) -> io::Result<Stream> {
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let endpoint = Endpoint::client(any)?;
    let connecting = endpoint.connect_with(config, address, &name.to_str());
    let connection = connecting.map_err(io::Error::other)?.await?;
    // The peer learns of it when something is sent.
    let both = connection.open_bi().await?;
    Ok(Stream::new(connection, both, Some(endpoint)))
}

/// The TLS of a link over TCP, for QUIC.
fn config(tls: &rustls::ClientConfig) -> Result<ClientConfig, NotUsable> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.enable_early_data = false;
    // No session is resumed: who we are is shown each time.
    tls.resumption = rustls::client::Resumption::disabled();
    let tls = QuicClientConfig::try_from(tls).map_err(NotUsable::of)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(transport());
    Ok(config)
}

fn late(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, what)
}
