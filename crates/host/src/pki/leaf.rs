//! What a certificate says.

use std::net::IpAddr;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{AttributeTypeAndValue, FromDer, GeneralName, X509Certificate};

use super::{Authority, Error, Wanted};

/// What a certificate says, read once.
///
/// Reading verifies nothing: a peer's certificate has been verified by TLS, and one of our own is
/// compared with what is wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The common name; for Kubernetes the user. Empty if there is none.
    pub common_name: String,
    /// The organizations; for Kubernetes the groups.
    pub organizations: Vec<String>,
    /// The serial number, as its big-endian bytes.
    pub serial: Vec<u8>,
    /// When it is valid.
    pub validity: Validity,
    dns: Vec<String>,
    ips: Vec<IpAddr>,
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From here.
    pub not_before: Timestamp,
    /// To here.
    pub not_after: Timestamp,
}

impl Validity {
    /// Whether less than a third of the life is left, or it has not begun: then the clock was wrong
    /// when the certificate was made, or is wrong now, and a new one serves either way.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let life = self.not_before.duration_until(self.not_after);
        now < self.not_before || now.duration_until(self.not_after) < life / 3
    }
}

impl Leaf {
    /// Reads a certificate.
    pub fn read(certificate: &CertificateDer<'_>) -> Result<Self, Error> {
        let (_, parsed) = X509Certificate::from_der(certificate)
            .map_err(|error| Error::NotACertificate(error.to_string()))?;
        let subject = parsed.subject();
        let validity = Validity {
            not_before: moment(parsed.validity().not_before.timestamp()),
            not_after: moment(parsed.validity().not_after.timestamp()),
        };
        let common_name = subject.iter_common_name().next().map(text).transpose()?;
        let (dns, ips) = alternative_names(&parsed)?;
        Ok(Self {
            common_name: common_name.unwrap_or_default(),
            organizations: subject
                .iter_organization()
                .map(text)
                .collect::<Result<_, _>>()?,
            serial: parsed.tbs_certificate.raw_serial().to_vec(),
            validity,
            dns,
            ips,
        })
    }

    /// Whether this certificate says what is wanted, no more and no less.
    pub(super) fn says(&self, wanted: &Wanted) -> bool {
        match wanted {
            Wanted::Server { name, dns, ips } => {
                self.common_name == *name && self.dns == *dns && self.ips == *ips
            }
            Wanted::Client { user, groups } => {
                self.common_name == *user && self.organizations == *groups
            }
        }
    }
}

/// The public key in a certificate: for P-256 an uncompressed point.
pub(super) fn public_key(certificate: &CertificateDer<'_>) -> Result<Vec<u8>, Error> {
    let (_, parsed) = X509Certificate::from_der(certificate)
        .map_err(|error| Error::NotACertificate(error.to_string()))?;
    Ok(parsed.public_key().subject_public_key.data.to_vec())
}

/// Whether a certificate is one of an authority.
pub(super) fn is_authority(certificate: &CertificateDer<'_>) -> Result<bool, Error> {
    let (_, parsed) = X509Certificate::from_der(certificate)
        .map_err(|error| Error::NotACertificate(error.to_string()))?;
    Ok(parsed.is_ca())
}

/// Whether this authority's key signed the certificate.
pub(super) fn is_signed_by(certificate: &CertificateDer<'_>, authority: &Authority) -> bool {
    let Ok(key) = public_key(authority.certificate()) else {
        return false;
    };
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
        return false;
    };
    let signed = parsed.tbs_certificate.as_ref();
    let signature = parsed.signature_value.data.as_ref();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key)
        .verify(signed, signature)
        .is_ok()
}

fn alternative_names(parsed: &X509Certificate<'_>) -> Result<(Vec<String>, Vec<IpAddr>), Error> {
    let extension = parsed
        .subject_alternative_name()
        .map_err(|error| Error::NotACertificate(error.to_string()))?;
    let names = extension
        .map(|found| found.value.general_names.as_slice())
        .unwrap_or_default();
    let (mut dns, mut ips) = (Vec::new(), Vec::new());
    for name in names {
        match name {
            GeneralName::DNSName(name) => dns.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => ips.extend(address(bytes)),
            _ => {}
        }
    }
    Ok((dns, ips))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

fn text(attribute: &AttributeTypeAndValue<'_>) -> Result<String, Error> {
    let text = attribute
        .as_str()
        .map_err(|error| Error::NotACertificate(error.to_string()))?;
    Ok(text.to_owned())
}

/// A date beyond what a timestamp can say (the year 9999 fits) is shown as the nearest one.
fn moment(seconds: i64) -> Timestamp {
    let nearest = if seconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_second(seconds).unwrap_or(nearest)
}
