//! An authority, the certificates it issues, and what a peer's certificate says.
//!
//! Keys are ECDSA P-256. A key is written with mode 0600, is never printed, and one that others may
//! read is refused.

mod authority; // a name and a key that issues certificates
mod folder; // the same on disk: load, make, renew
mod key; // a key that has no certificate yet
mod leaf; // what a certificate says
mod pin; // an authority by the hash of its key
mod request; // what someone asks to have certified
mod subject; // names with several organizations
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::PathBuf;

use jiff::SignedDuration;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::files;
pub use authority::Authority;
pub use folder::Folder;
pub use key::Key;
pub use leaf::{Leaf, Validity};
pub use pin::{NotAPin, Pin};
pub use request::{BadRequest, REQUEST_BYTES_MAX, Request};

/// How long an authority lives. It cannot be replaced without telling every client, so: long.
pub const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// How long an issued certificate lives. It is renewed when less than a third is left.
pub const LEAF_LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);

/// How far before its making a certificate is valid, for peers whose clocks are behind.
pub const BACKDATED: SignedDuration = SignedDuration::from_mins(60);

/// What a certificate should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A server that is reached by these names and addresses.
    Server {
        /// The common name; clients look at the names below instead.
        name: String,
        /// DNS names.
        dns: Vec<String>,
        /// IP addresses.
        ips: Vec<IpAddr>,
    },
    /// A client, as Kubernetes reads it: the common name is the user, organizations are groups.
    Client {
        /// The user.
        user: String,
        /// Its groups.
        groups: Vec<String>,
    },
}

/// A certificate with its key. The key is not shown by any formatting of it.
pub struct Credential {
    /// The certificate.
    pub certificate: CertificateDer<'static>,
    /// Its key.
    pub key: PrivatePkcs8KeyDer<'static>,
}

impl Credential {
    /// The certificate as PEM.
    pub fn certificate_pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    /// The key as PEM. A secret.
    pub fn key_pem(&self) -> String {
        pem("PRIVATE KEY", self.key.secret_pkcs8_der())
    }
}

impl Clone for Credential {
    fn clone(&self) -> Self {
        Self {
            certificate: self.certificate.clone(),
            key: self.key.clone_key(),
        }
    }
}

/// Why a certificate or key cannot be used or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be used.
    #[error(transparent)]
    File(#[from] files::Error),
    /// What was asked for cannot be in a certificate.
    #[error("cannot make a certificate")]
    Make(#[source] rcgen::Error),
    /// These bytes are not a certificate.
    #[error("not a valid X.509 certificate: {0}")]
    NotACertificate(String),
    /// These bytes are not exactly one certificate as PEM.
    #[error("not one PEM certificate")]
    NotOneCertificate,
    /// These bytes are not exactly one key of ours as PEM.
    #[error("not one PEM P-256 private key")]
    NotOneKey,
    /// The certificate was issued for another key.
    #[error("the certificate is of another key")]
    NotItsKey,
    /// This certificate is not one of an authority.
    #[error("the certificate may not issue others")]
    NotAnAuthority,
    /// This file does not hold exactly one certificate.
    #[error("{} does not hold one PEM certificate; restore it from a backup", .0.display())]
    BadCertificateFile(PathBuf),
    /// This file does not hold exactly one key that we can use.
    #[error("{} does not hold one PEM P-256 private key; restore it from a backup", .0.display())]
    BadKeyFile(PathBuf),
    /// The two files are not a pair.
    #[error(
        "{} is not the key of {}; restore both from one backup",
        key.display(), certificate.display()
    )]
    NotAPair {
        /// The certificate.
        certificate: PathBuf,
        /// The key that is not its.
        key: PathBuf,
    },
    /// The key of an authority is gone, and with it the trust of every client that has its
    /// certificate.
    #[error(
        "{} is missing while its certificate is there; restore it, or remove the folder to start \
         with a new authority (every kubeconfig made so far then stops working)",
        .0.display()
    )]
    KeyLost(PathBuf),
    /// The authority is past its end.
    #[error(
        "the authority in {} expired at {at}; move the folder away to start with a new one",
        path.display()
    )]
    AuthorityExpired {
        /// Its certificate.
        path: PathBuf,
        /// When.
        at: jiff::Timestamp,
    },
}

/// The certificate that these bytes are, as the only PEM block.
pub fn certificate_from_pem(bytes: &[u8]) -> Result<CertificateDer<'static>, Error> {
    let der = one_block(bytes, "CERTIFICATE").ok_or(Error::NotOneCertificate)?;
    let certificate = der.into();
    Leaf::read(&certificate)?;
    Ok(certificate)
}

/// A certificate as PEM.
pub fn certificate_pem(certificate: &CertificateDer<'_>) -> String {
    pem("CERTIFICATE", certificate)
}

/// The one PEM block that there is. A second block of any kind means that this is not ours.
fn one_block(bytes: &[u8], label: &str) -> Option<Vec<u8>> {
    let [block] = <[pem::Pem; 1]>::try_from(pem::parse_many(bytes).ok()?).ok()?;
    (block.tag() == label).then(|| block.into_contents())
}

fn pem(label: &str, der: &[u8]) -> String {
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(&pem::Pem::new(label, der), config)
}
