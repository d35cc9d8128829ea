//! Certificates -> rustls configurations: TLS 1.2 and 1.3, with an optional client certificate.

pub mod lean; // the server's end of a connection, which holds no buffer while it rests
mod pinned; // a server that is known by the pin of its authority alone
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{
    ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::clock::Clock;
use crate::pki::Credential;

pub use pinned::{Introducing, NotPinned, pinned_client};

/// The application protocols that we speak, best first.
pub const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The application protocol of links and of what leads to them.
pub const HTTP1: &[u8] = b"http/1.1";

/// Why a configuration cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot use these certificates for TLS")]
pub struct Error(#[source] Box<dyn std::error::Error + Send + Sync>);

/// The certificate that a server shows. It can be replaced while connections are open: those that
/// follow see the new one.
pub struct Shown {
    now: RwLock<Arc<CertifiedKey>>,
}

impl Shown {
    /// Shows this certificate.
    pub fn new(credential: &Credential) -> Result<Arc<Self>, Error> {
        let now = RwLock::new(certified(credential)?);
        Ok(Arc::new(Self { now }))
    }

    /// Shows another one from now on. On an error the old one stays.
    pub fn replace(&self, credential: &Credential) -> Result<(), Error> {
        let certified = certified(credential)?;
        *self.now.write() = certified;
        Ok(())
    }

    /// What is shown now.
    fn now(&self) -> Arc<CertifiedKey> {
        self.now.read().clone()
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

/// A server that shows a certificate and asks clients for theirs.
///
/// A client without one is let in as nobody: who it is may be said by a token. One whose
/// certificate `clients` did not issue, or that is not valid now, is refused.
pub fn server(
    shown: Arc<dyn ResolvesServerCert>,
    clients: &CertificateDer<'static>,
    clock: &Clock,
) -> Result<Arc<ServerConfig>, Error> {
    server_of(shown, std::slice::from_ref(clients), clock)
}

/// The same with clients of several authorities.
pub fn server_of(
    shown: Arc<dyn ResolvesServerCert>,
    clients: &[CertificateDer<'static>],
    clock: &Clock,
) -> Result<Arc<ServerConfig>, Error> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(clients)?, provider())
        .allow_unauthenticated()
        .build()
        .map_err(refused)?;
    let mut config = ServerConfig::builder_with_details(provider(), time(clock))
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(shown);
    config.alpn_protocols = ALPN.map(Vec::from).to_vec();
    // No resumption: a resumed session would keep an identity past the end of its certificate, and
    // keeping sessions costs memory for each client that ever came.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Whom a client trusts, what it shows, and what it wants to speak.
pub struct Party {
    /// The authorities whose servers it trusts.
    pub servers: Vec<CertificateDer<'static>>,
    /// Its certificate, those between it and its authority, and its key.
    pub own: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    /// The application protocols that it offers, best first.
    pub protocols: Vec<Vec<u8>>,
}

/// A client that trusts one authority and shows a certificate if it has one.
pub fn client(
    servers: &CertificateDer<'static>,
    credential: Option<&Credential>,
    clock: &Clock,
) -> Result<Arc<ClientConfig>, Error> {
    let own = credential.map(|own| (vec![own.certificate.clone()], own.key.clone_key().into()));
    let servers = vec![servers.clone()];
    let protocols = ALPN.map(Vec::from).to_vec();
    let party = Party {
        servers,
        own,
        protocols,
    };
    client_of(party, clock)
}

/// A client of any kind.
pub fn client_of(party: Party, clock: &Clock) -> Result<Arc<ClientConfig>, Error> {
    let roots = roots(&party.servers)?;
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider())
        .build()
        .map_err(refused)?;
    let config = ClientConfig::builder_with_details(provider(), time(clock))
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .with_webpki_verifier(verifier);
    let mut config = match party.own {
        None => config.with_no_client_auth(),
        Some((chain, key)) => config.with_client_auth_cert(chain, key).map_err(refused)?,
    };
    config.alpn_protocols = party.protocols;
    Ok(Arc::new(config))
}

fn certified(credential: &Credential) -> Result<Arc<CertifiedKey>, Error> {
    let chain = vec![credential.certificate.clone()];
    let key = credential.key.clone_key().into();
    // This also checks that the key belongs to the certificate.
    CertifiedKey::from_der(chain, key, &provider())
        .map(Arc::new)
        .map_err(refused)
}

fn roots(authorities: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, Error> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone()).map_err(refused)?;
    }
    Ok(Arc::new(roots))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn time(clock: &Clock) -> Arc<dyn TimeProvider> {
    Arc::new(WallTime(clock.clone()))
}

/// Certificates are valid by the time of day of our clock.
#[derive(Debug)]
struct WallTime(Clock);

impl TimeProvider for WallTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.wall().as_second()).unwrap_or(0);
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(
            seconds,
        )))
    }
}

fn refused(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error(Box::new(error))
}
