//! Names with several organizations.
//!
//! Kubernetes reads a user's groups from the organizations of its certificate, and `rcgen` writes
//! only one attribute of a kind. So the name is written here, put in the place of the one that
//! `rcgen` wrote, and the certificate is signed again.

use rcgen::{KeyPair, SigningKey};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Error;

/// The same certificate with this common name and these organizations, signed with `issuer_key`.
pub(super) fn replace(
    certificate: &CertificateDer<'_>,
    common_name: &str,
    organizations: &[String],
    issuer_key: &KeyPair,
) -> Result<CertificateDer<'static>, Error> {
    let (_, parsed) = X509Certificate::from_der(certificate)
        .map_err(|error| Error::NotACertificate(error.to_string()))?;
    let signed: &[u8] = parsed.tbs_certificate.as_ref();
    let old = parsed.tbs_certificate.subject.as_raw();
    let start = old.as_ptr().addr() - signed.as_ptr().addr();
    let (before, after) = (
        &signed[header_len(signed)..start],
        &signed[start + old.len()..],
    );

    let signed = element(
        SEQUENCE,
        &[before, &name(common_name, organizations), after],
    );
    let signature = issuer_key.sign(&signed).map_err(Error::Make)?;
    let signature = element(BIT_STRING, &[&[0], &signature]);
    Ok(element(SEQUENCE, &[&signed, ECDSA_WITH_SHA256, &signature]).into())
}

fn name(common_name: &str, organizations: &[String]) -> Vec<u8> {
    let groups = organizations
        .iter()
        .map(|group| attribute(ORGANIZATION, group));
    let attributes: Vec<_> = groups
        .chain([attribute(COMMON_NAME, common_name)])
        .collect();
    let parts: Vec<&[u8]> = attributes.iter().map(Vec::as_slice).collect();
    element(SEQUENCE, &parts)
}

fn attribute(oid: &[u8], value: &str) -> Vec<u8> {
    let text = element(UTF8_STRING, &[value.as_bytes()]);
    element(SET, &[&element(SEQUENCE, &[oid, &text])])
}

/// A DER element: tag, length, content.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = vec![tag];
    match u8::try_from(len) {
        Ok(short) if short < 0x80 => bytes.push(short),
        _ => {
            let digits = len.to_be_bytes();
            let digits = &digits[len.leading_zeros() as usize / 8..];
            bytes.push(0x80 | u8::try_from(digits.len()).expect("a length has at most 8 bytes"));
            bytes.extend_from_slice(digits);
        }
    }
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// How many bytes the tag and length of an element take.
fn header_len(element: &[u8]) -> usize {
    match element[1] {
        short if short < 0x80 => 2,
        long => 2 + usize::from(long & 0x7f),
    }
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const BIT_STRING: u8 = 0x03;
const UTF8_STRING: u8 = 0x0c;
/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x0a];
/// The algorithm identifier 1.2.840.10045.4.3.2, which is what a P-256 key signs with here.
const ECDSA_WITH_SHA256: &[u8] = &[
    0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02,
];
