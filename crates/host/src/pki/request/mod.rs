//! A request for a client certificate (PKCS #10), read without trust.
//!
//! What may be in one is little: a common name, organizations, a strong key, its signature, and at
//! most the wish to be a client. Whatever else is asked for is refused, not left out: who asks for
//! more than it can have should hear so.

#[cfg(test)]
mod tests;

use rcgen::SubjectPublicKeyInfo;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{ExtendedKeyUsage, KeyUsage, ParsedExtension};
use x509_parser::oid_registry as oids;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::{X509Name, X509Version};

use super::one_block;
use crate::secret;

/// Bytes of a request as PEM. One with the longest key has about three thousand.
pub const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// A request whose signature is good: who sent it has the key.
#[derive(Clone, Debug)]
pub struct Request {
    /// The common name that is asked for.
    pub common_name: String,
    /// The organizations that are asked for.
    pub organizations: Vec<String>,
    key: Vec<u8>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// Too many bytes.
    #[error("the request has more than {REQUEST_BYTES_MAX} bytes")]
    TooLong,
    /// Not a request at all.
    #[error("not one PEM block of a certificate request")]
    NotARequest,
    /// The subject has something else in it, or says something twice.
    #[error("the subject may have one common name and organizations, and nothing else")]
    Subject,
    /// A key of another kind, or a weak one.
    #[error("the key must be EC P-256 or P-384, RSA of 2048 to 8192 bits, or Ed25519")]
    Key,
    /// Who sent it does not have the key, or the request was changed.
    #[error("the signature of the request is not its key's, or is made with a weak hash")]
    Signature,
    /// It asks for names, for the rights of an authority, for another use, or for the unknown.
    #[error("the request may ask for client authentication and for no other extension")]
    Extension,
}

impl Request {
    /// Reads a request as PEM.
    pub fn read(pem: &str) -> Result<Self, BadRequest> {
        if pem.len() > REQUEST_BYTES_MAX {
            return Err(BadRequest::TooLong);
        }
        // Words around the block would be skipped by the reader below; there is no reason for any.
        let pem = pem.trim_matches(['\n', '\r', ' ']);
        if !pem.starts_with(BEGIN) || !pem.ends_with(END) {
            return Err(BadRequest::NotARequest);
        }
        let der = one_block(pem.as_bytes(), LABEL).ok_or(BadRequest::NotARequest)?;
        match X509CertificationRequest::from_der(&der) {
            Ok(([], parsed)) => Self::check(&parsed),
            Ok(_) | Err(_) => Err(BadRequest::NotARequest),
        }
    }

    fn check(parsed: &X509CertificationRequest<'_>) -> Result<Self, BadRequest> {
        let inner = &parsed.certification_request_info;
        if inner.version != X509Version::V1 {
            return Err(BadRequest::NotARequest);
        }
        let (common_name, organizations) = subject(&inner.subject)?;
        check_key(parsed)?;
        if !STRONG.contains(&parsed.signature_algorithm.algorithm) {
            return Err(BadRequest::Signature);
        }
        parsed
            .verify_signature()
            .map_err(|_| BadRequest::Signature)?;
        check_attributes(parsed)?;
        Ok(Self {
            common_name,
            organizations,
            key: inner.subject_pki.raw.to_vec(),
        })
    }

    /// The SHA-256 of the public key, by which it is known again.
    pub fn key_hash(&self) -> [u8; 32] {
        secret::sha256(&self.key)
    }

    /// The public key, for the certificate.
    pub(super) fn public_key(&self) -> Result<SubjectPublicKeyInfo, rcgen::Error> {
        SubjectPublicKeyInfo::from_der(&self.key)
    }
}

fn subject(name: &X509Name<'_>) -> Result<(String, Vec<String>), BadRequest> {
    let (mut common, mut organizations) = (None, Vec::new());
    for attribute in name.iter_attributes() {
        let text = attribute.as_str().map_err(|_| BadRequest::Subject)?;
        match attribute.attr_type() {
            oid if *oid == oids::OID_X509_COMMON_NAME && common.is_none() => {
                common = Some(text.to_owned());
            }
            oid if *oid == oids::OID_X509_ORGANIZATION_NAME => organizations.push(text.to_owned()),
            _ => return Err(BadRequest::Subject),
        }
    }
    Ok((common.ok_or(BadRequest::Subject)?, organizations))
}

fn check_key(parsed: &X509CertificationRequest<'_>) -> Result<(), BadRequest> {
    let key = &parsed.certification_request_info.subject_pki;
    let curve = key.algorithm.parameters.as_ref();
    let curve = curve.and_then(|parameters| parameters.as_oid().ok());
    let strong = match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => (2048..=8192).contains(&rsa.key_size()),
        Ok(PublicKey::EC(_)) => {
            curve.is_some_and(|curve| curve == oids::OID_EC_P256 || curve == oids::OID_NIST_EC_P384)
        }
        Ok(PublicKey::Unknown(_)) => key.algorithm.algorithm == oids::OID_SIG_ED25519,
        Ok(_) | Err(_) => false,
    };
    strong.then_some(()).ok_or(BadRequest::Key)
}

fn check_attributes(parsed: &X509CertificationRequest<'_>) -> Result<(), BadRequest> {
    for attribute in parsed.certification_request_info.iter_attributes() {
        let ParsedCriAttribute::ExtensionRequest(wished) = attribute.parsed_attribute() else {
            return Err(BadRequest::Extension);
        };
        for extension in &wished.extensions {
            let harmless = match extension.parsed_extension() {
                ParsedExtension::KeyUsage(usage) => is_a_clients(usage),
                ParsedExtension::ExtendedKeyUsage(usage) => is_only_client(usage),
                _ => false,
            };
            if !harmless {
                return Err(BadRequest::Extension);
            }
        }
    }
    Ok(())
}

/// Digital signature, and for RSA key encipherment: bits 0 and 2.
fn is_a_clients(usage: &KeyUsage) -> bool {
    usage.flags & !0b101 == 0
}

fn is_only_client(usage: &ExtendedKeyUsage<'_>) -> bool {
    let others = [
        usage.any,
        usage.server_auth,
        usage.code_signing,
        usage.email_protection,
        usage.time_stamping,
        usage.ocsp_signing,
    ];
    usage.client_auth && !others.contains(&true) && usage.other.is_empty()
}

const LABEL: &str = "CERTIFICATE REQUEST";
const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";

/// How a request may be signed: not with SHA-1.
const STRONG: [oids::Oid<'static>; 6] = [
    oids::OID_SIG_ECDSA_WITH_SHA256,
    oids::OID_SIG_ECDSA_WITH_SHA384,
    oids::OID_PKCS1_SHA256WITHRSA,
    oids::OID_PKCS1_SHA384WITHRSA,
    oids::OID_PKCS1_SHA512WITHRSA,
    oids::OID_SIG_ED25519,
];
