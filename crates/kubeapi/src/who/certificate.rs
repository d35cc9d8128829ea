//! A client certificate, already verified by TLS, as a user: the common name is the name, the
//! organizations are the groups.

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use x509_parser::asn1_rs::Tag;
use x509_parser::certificate::X509Certificate;
use x509_parser::der_parser::oid;
use x509_parser::prelude::FromDer;
use x509_parser::x509::AttributeTypeAndValue;

use super::User;
use super::user::CREDENTIAL_ID;

/// Bytes of a certificate that are read. Real ones have two or three thousand.
pub const CERTIFICATE_BYTES_MAX: usize = 64 * 1024;

/// Why a certificate names no user. The caller gets a 401 and nothing more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unnamed {
    /// The bytes are not one certificate.
    #[error("the client certificate cannot be read")]
    Unreadable,
    /// There is no common name.
    #[error("the client certificate has no common name")]
    NoName,
    /// A name stands in an encoding or with characters that can be read in more than one way.
    #[error("a name in the client certificate is not plain text")]
    OddText,
    /// There is more than one uid, or an empty one.
    #[error("the client certificate must have one uid or none")]
    OddUid,
}

/// The user that a client certificate (DER) stands for.
///
/// Of several common names the last one counts, as in Kubernetes. Unlike there, the text must be
/// one that nobody can read in two ways: UTF-8, printable, IA5 or numeric, without control
/// characters.
pub fn user(der: &[u8]) -> Result<User, Unnamed> {
    if der.len() > CERTIFICATE_BYTES_MAX {
        return Err(Unnamed::Unreadable);
    }
    let (rest, certificate) = X509Certificate::from_der(der).map_err(|_| Unnamed::Unreadable)?;
    if !rest.is_empty() {
        return Err(Unnamed::Unreadable);
    }
    let mut user = subject(certificate.subject())?;
    user.extra
        .insert(CREDENTIAL_ID.to_owned(), vec![fingerprint(der)]);
    Ok(user.authenticated())
}

/// The certificate request (DER) in base64 of PEM, which may have text before it.
pub fn request_in(base64: &str) -> Option<Vec<u8>> {
    let pem = STANDARD.decode(base64).ok()?;
    let (_, block) = x509_parser::pem::parse_x509_pem(&pem).ok()?;
    (block.label == "CERTIFICATE REQUEST").then_some(block.contents)
}

/// The common name of a certificate request (DER), as [`user`] would read it from the certificate.
pub fn requested_name(der: &[u8]) -> Result<String, Unnamed> {
    use x509_parser::certification_request::X509CertificationRequest;
    if der.len() > CERTIFICATE_BYTES_MAX {
        return Err(Unnamed::Unreadable);
    }
    let (rest, request) =
        X509CertificationRequest::from_der(der).map_err(|_| Unnamed::Unreadable)?;
    if !rest.is_empty() {
        return Err(Unnamed::Unreadable);
    }
    Ok(subject(&request.certification_request_info.subject)?.name)
}

fn subject(subject: &x509_parser::x509::X509Name<'_>) -> Result<User, Unnamed> {
    let (common_name, organization) = (oid!(2.5.4.3), oid!(2.5.4.10));
    let uid = oid!(1.3.6.1.4.1.57683.2);
    let mut user = User::default();
    for attribute in subject.iter_rdn().flat_map(|names| names.iter()) {
        let kind = attribute.attr_type();
        if *kind == common_name {
            user.name = text(attribute)?;
        } else if *kind == organization {
            let group = text(attribute)?;
            if group.is_empty() {
                return Err(Unnamed::OddText);
            }
            user.join(&group);
        } else if *kind == uid {
            let value = text(attribute)?;
            if value.is_empty() || !user.uid.is_empty() {
                return Err(Unnamed::OddUid);
            }
            user.uid = value;
        }
    }
    match user.name.as_str() {
        "" => Err(Unnamed::NoName),
        _ => Ok(user),
    }
}

fn text(attribute: &AttributeTypeAndValue<'_>) -> Result<String, Unnamed> {
    let value = attribute.attr_value();
    let plain = match value.tag() {
        Tag::Utf8String => true,
        Tag::PrintableString | Tag::Ia5String | Tag::NumericString => value.data.is_ascii(),
        _ => false,
    };
    let text = std::str::from_utf8(value.data).map_err(|_| Unnamed::OddText)?;
    if !plain || text.chars().any(char::is_control) {
        return Err(Unnamed::OddText);
    }
    Ok(text.to_owned())
}

fn fingerprint(der: &[u8]) -> String {
    let mut text = String::from("X509SHA256=");
    for byte in digest(&SHA256, der).as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    fn certificate(names: &[(DnType, DnValue)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind.clone(), value.clone());
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    fn utf8(text: &str) -> DnValue {
        DnValue::Utf8String(text.to_owned())
    }

    #[test]
    fn common_name_and_organization_become_name_and_group() {
        let der = certificate(&[
            (DnType::OrganizationName, utf8("system:nodes")),
            (DnType::CommonName, utf8("system:node:edge-1")),
        ]);
        let found = user(&der).unwrap();
        assert_eq!(found.name, "system:node:edge-1");
        assert_eq!(found.groups, ["system:nodes", "system:authenticated"]);
        assert_eq!(found.node(), Some("edge-1"));
        let id = &found.extra[CREDENTIAL_ID][0];
        assert!(id.starts_with("X509SHA256=") && id.len() == 11 + 64, "{id}");
    }

    #[test]
    fn a_certificate_without_a_common_name_names_nobody() {
        let der = certificate(&[(DnType::OrganizationName, utf8("system:masters"))]);
        assert_eq!(user(&der), Err(Unnamed::NoName));
        let der = certificate(&[(DnType::CommonName, utf8(""))]);
        assert_eq!(user(&der), Err(Unnamed::NoName));
    }

    #[test]
    fn text_that_can_be_read_in_two_ways_is_refused() {
        for name in ["admin\0.evil", "admin\n", "a\u{85}b"] {
            let der = certificate(&[(DnType::CommonName, utf8(name))]);
            assert_eq!(user(&der), Err(Unnamed::OddText), "{name:?}");
        }
        let bmp = DnValue::BmpString("admin".try_into().unwrap());
        assert_eq!(
            user(&certificate(&[(DnType::CommonName, bmp)])),
            Err(Unnamed::OddText)
        );
        let teletex = DnValue::TeletexString("admin".try_into().unwrap());
        assert_eq!(
            user(&certificate(&[(DnType::CommonName, teletex)])),
            Err(Unnamed::OddText)
        );
        let empty_group = certificate(&[
            (DnType::OrganizationName, utf8("")),
            (DnType::CommonName, utf8("x")),
        ]);
        assert_eq!(user(&empty_group), Err(Unnamed::OddText));
    }

    #[test]
    fn the_last_of_several_names_counts_and_groups_are_a_set() {
        // rcgen keeps one value per kind, so the sequence is put together by hand:
        // O=a, CN=first, O=b, O=a, CN=last.
        let parts: [(u8, &str); 5] = [(10, "a"), (3, "first"), (10, "b"), (10, "a"), (3, "last")];
        let mut names = Vec::new();
        for (kind, value) in parts {
            let mut pair = vec![0x06, 3, 0x55, 4, kind, 0x0c, value.len() as u8];
            pair.extend_from_slice(value.as_bytes());
            let sequence = [&[0x30, pair.len() as u8], pair.as_slice()].concat();
            names.extend([&[0x31, sequence.len() as u8], sequence.as_slice()].concat());
        }
        let der = [&[0x30, names.len() as u8], names.as_slice()].concat();
        let (_, name) = x509_parser::x509::X509Name::from_der(&der).unwrap();
        let found = subject(&name).unwrap();
        assert_eq!(found.name, "last");
        assert_eq!(found.groups, ["a", "b"]);
    }

    #[test]
    fn one_uid_is_taken_and_two_are_refused() {
        let kind = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let der = certificate(&[(DnType::CommonName, utf8("x")), (kind.clone(), utf8("u-1"))]);
        assert_eq!(user(&der).unwrap().uid, "u-1");
        let der = certificate(&[(DnType::CommonName, utf8("x")), (kind, utf8(""))]);
        assert_eq!(user(&der), Err(Unnamed::OddUid));
    }

    #[test]
    fn bytes_that_are_not_one_certificate_are_refused() {
        let der = certificate(&[(DnType::CommonName, utf8("x"))]);
        let longer = [der.as_slice(), &[0]].concat();
        for bytes in [&[][..], &der[..der.len() - 1], &longer, &[0x30; 100]] {
            assert_eq!(user(bytes), Err(Unnamed::Unreadable));
        }
    }

    #[test]
    fn a_certificate_request_is_read_like_a_certificate() {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, "system:node:a");
        let key = KeyPair::generate().unwrap();
        let request = params.serialize_request(&key).unwrap();
        assert_eq!(requested_name(request.der()).unwrap(), "system:node:a");
    }
}
