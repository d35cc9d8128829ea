//! A pin: the hash of an authority's public key, short enough to be copied by hand.

use std::fmt;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Error;
use crate::secret;

/// The SHA-256 of an authority's public key (its SubjectPublicKeyInfo). Who has it can tell the
/// authority from any other without trusting anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin([u8; 32]);

/// A text that is no pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a pin: write sha256: and 64 hexadecimal digits in lower case")]
pub struct NotAPin;

impl Pin {
    /// The pin of an authority with this certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, Error> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|error| Error::NotACertificate(error.to_string()))?;
        Ok(Self(secret::sha256(parsed.public_key().raw)))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", secret::hex(&self.0))
    }
}

impl FromStr for Pin {
    type Err = NotAPin;

    fn from_str(text: &str) -> Result<Self, NotAPin> {
        let digits = text.strip_prefix(PREFIX).ok_or(NotAPin)?;
        secret::from_hex(digits).map(Self).ok_or(NotAPin)
    }
}

const PREFIX: &str = "sha256:";
