//! First contact: a client that knows nothing of a server but the pin of its authority, and a
//! server that introduces its authority to such a client and to no other.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore,
    SignatureScheme,
};

use super::{Error, HTTP1, Shown, provider, refused, time};
use crate::clock::Clock;
use crate::pki::Pin;

/// What a client says that wants to be shown the authority. It is never agreed on; it stands beside
/// a protocol that is.
const INTRODUCE: &[u8] = b"holdfast-introduce";

/// A client without a certificate that trusts exactly the authority with this pin, which the server
/// must show. Everything else is checked as ever: its signature, the server's name, the time.
pub fn pinned_client(pin: Pin, clock: &Clock) -> Result<Arc<ClientConfig>, Error> {
    let verifier = Pinned {
        pin,
        provider: provider(),
    };
    let mut config = ClientConfig::builder_with_details(provider(), time(clock))
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .dangerous() // Not skipped, but done by `Pinned` below, with one root.
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![INTRODUCE.to_vec(), HTTP1.to_vec()];
    Ok(Arc::new(config))
}

/// The server did not show an authority with the pin that we were given: it is another server, or
/// someone between us and it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server's authority is not the one with pin {0}")]
pub struct NotPinned(pub Pin);

#[derive(Debug)]
struct Pinned {
    pin: Pin,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let is_pinned =
            |shown: &&CertificateDer<'_>| Pin::of(shown).is_ok_and(|pin| pin == self.pin);
        let Some(authority) = intermediates.iter().find(is_pinned) else {
            let other = OtherError(Arc::new(NotPinned(self.pin)));
            return Err(CertificateError::Other(other).into());
        };
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone())
                .build()
                .map_err(|error| rustls::Error::General(error.to_string()))?;
        verifier.verify_server_cert(end_entity, &[], server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// Shows a certificate, and the authority behind it to who asks for that. Others know it already
/// and are spared its bytes.
pub struct Introducing {
    shown: Arc<Shown>,
    authority: CertificateDer<'static>,
}

impl Introducing {
    /// Introduces this authority, which issued what is shown.
    pub fn new(shown: Arc<Shown>, authority: &CertificateDer<'static>) -> Arc<Self> {
        let authority = authority.clone();
        Arc::new(Self { shown, authority })
    }
}

impl fmt::Debug for Introducing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Introducing")
    }
}

impl ResolvesServerCert for Introducing {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut offered = hello.alpn().into_iter().flatten();
        let wanted = offered.any(|protocol| protocol == INTRODUCE);
        let shown = self.shown.now();
        if !wanted {
            return Some(shown);
        }
        let mut chain = shown.cert.clone();
        chain.push(self.authority.clone());
        Some(Arc::new(CertifiedKey::new(chain, shown.key.clone())))
    }
}
