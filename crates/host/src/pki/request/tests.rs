//! Requests that are right, and each way in which one may be wrong.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType, SignatureAlgorithm,
};

use super::super::{Authority, Key, Leaf, Validity, Wanted};
use super::*;

fn named(common_name: &str, organization: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, organization);
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params
}

fn node() -> CertificateParams {
    named("system:node:n1", "system:nodes")
}

fn asked(params: &CertificateParams, key: &KeyPair) -> String {
    params.serialize_request(key).unwrap().pem().unwrap()
}

fn with(change: impl FnOnce(&mut CertificateParams)) -> Result<Request, BadRequest> {
    let mut params = node();
    change(&mut params);
    Request::read(&asked(&params, &KeyPair::generate().unwrap()))
}

fn refused(change: impl FnOnce(&mut CertificateParams)) -> BadRequest {
    with(change).expect_err("refused")
}

#[test]
fn our_own_request_is_right_and_its_key_is_certified() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let key = Key::create().unwrap();
    let request = Request::read(&key.request("system:node:n1", "system:nodes").unwrap()).unwrap();
    assert_eq!(request.common_name, "system:node:n1");
    assert_eq!(request.organizations, ["system:nodes"]);

    let authority = Authority::create("link-ca", now).unwrap();
    let wanted = Wanted::Client {
        user: request.common_name.clone(),
        groups: request.organizations.clone(),
    };
    let validity = Validity {
        not_before: now,
        not_after: now + SignedDuration::from_hours(24),
    };
    let certificate = authority.certify(&request, &wanted, validity).unwrap();
    let leaf = Leaf::read(&certificate).unwrap();
    assert_eq!(leaf.common_name, "system:node:n1");
    assert_eq!(leaf.validity, validity);
    key.certified(certificate.clone()).unwrap();
    let other = Key::create().unwrap().certified(certificate);
    assert!(other.is_err(), "a certificate is of one key");
}

#[test]
fn the_key_types_of_a_client_are_taken() {
    let kinds: [&SignatureAlgorithm; 3] = [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ED25519,
    ];
    for kind in kinds {
        let key = KeyPair::generate_for(kind).unwrap();
        let request = Request::read(&asked(&node(), &key)).unwrap();
        request.public_key().unwrap();
    }
    let rsa = KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048);
    let request = Request::read(&asked(&node(), &rsa.unwrap())).unwrap();
    request.public_key().unwrap();
}

#[test]
fn a_wish_to_be_a_client_is_no_harm() {
    with(|params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
    })
    .unwrap();
}

#[test]
fn whoever_asks_for_more_is_refused() {
    let wishes: [fn(&mut CertificateParams); 8] = [
        |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained),
        |params| {
            let name = "hub.example".try_into().unwrap();
            params.subject_alt_names = vec![SanType::DnsName(name)];
        },
        |params| {
            let name = "*.example".try_into().unwrap();
            params.subject_alt_names = vec![SanType::DnsName(name)];
        },
        |params| params.subject_alt_names = vec![SanType::IpAddress([10, 0, 0, 1].into())],
        |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth],
        |params| {
            params.extended_key_usages = vec![
                ExtendedKeyUsagePurpose::ClientAuth,
                ExtendedKeyUsagePurpose::ServerAuth,
            ];
        },
        |params| params.key_usages = vec![KeyUsagePurpose::KeyCertSign],
        |params| {
            let unknown = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 9], vec![5, 0]);
            params.custom_extensions = vec![unknown];
        },
    ];
    for (at, wish) in wishes.into_iter().enumerate() {
        assert_eq!(refused(wish), BadRequest::Extension, "wish {at}");
    }
    let many = refused(|params| {
        let extension = |at| CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, at], vec![5, 0]);
        params.custom_extensions = (0..1000).map(extension).collect();
    });
    assert_eq!(many, BadRequest::TooLong);
}

#[test]
fn a_subject_with_anything_else_in_it_is_refused() {
    let unit = refused(|params| {
        params
            .distinguished_name
            .push(DnType::OrganizationalUnitName, "x");
    });
    assert_eq!(unit, BadRequest::Subject);
    let nameless = refused(|params| params.distinguished_name = rcgen::DistinguishedName::new());
    assert_eq!(nameless, BadRequest::Subject);
}

#[test]
fn weak_and_unknown_keys_are_refused() {
    for (pem, expected) in [
        (
            include_str!("../../../tests/requests/rsa-1024.csr"),
            BadRequest::Key,
        ),
        (
            include_str!("../../../tests/requests/p521.csr"),
            BadRequest::Key,
        ),
        (
            include_str!("../../../tests/requests/p224.csr"),
            BadRequest::Key,
        ),
        (
            include_str!("../../../tests/requests/ed448.csr"),
            BadRequest::Key,
        ),
        (
            include_str!("../../../tests/requests/rsa-sha1.csr"),
            BadRequest::Signature,
        ),
        (
            include_str!("../../../tests/requests/two-names.csr"),
            BadRequest::Subject,
        ),
        (
            include_str!("../../../tests/requests/password.csr"),
            BadRequest::Extension,
        ),
    ] {
        let kind = pem.lines().nth(1).unwrap_or_default();
        assert_eq!(Request::read(pem).err(), Some(expected), "{kind}");
    }
}

#[test]
fn a_request_that_was_changed_is_refused() {
    let key = KeyPair::generate().unwrap();
    let mine = node().serialize_request(&key).unwrap();
    let changed: Vec<u8> = mine.der().to_vec();
    let at = changed.windows(2).position(|two| two == b"n1").unwrap();
    let mut changed = changed;
    changed[at + 1] = b'2';
    let pem = super::super::pem(LABEL, &changed);
    assert_eq!(Request::read(&pem).err(), Some(BadRequest::Signature));
}

#[test]
fn what_is_no_request_is_refused() {
    let good = asked(&node(), &KeyPair::generate().unwrap());
    let der = pem::parse(&good).unwrap().into_contents();
    let longer = super::super::pem(LABEL, &[&der[..], b"x"].concat());
    let cut = super::super::pem(LABEL, &der[..der.len() - 1]);
    let relabelled = good.replace(LABEL, "CERTIFICATE");
    let garbage = format!("{good}garbage");
    let before = format!("hello\n{good}");
    let twice = format!("{good}{good}");
    let texts = [
        "",
        "x",
        &longer,
        &cut,
        &relabelled,
        &garbage,
        &before,
        &twice,
    ];
    for text in texts {
        assert_eq!(
            Request::read(text).err(),
            Some(BadRequest::NotARequest),
            "{text}"
        );
    }
    let long = "A".repeat(1024 * 1024);
    assert_eq!(Request::read(&long).err(), Some(BadRequest::TooLong));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_damaged_request_is_refused_or_the_same(at in 0_usize..2000, bit in 0_u8..8) {
        let key = KeyPair::generate().unwrap();
        let mut der = node().serialize_request(&key).unwrap().der().to_vec();
        let at = at % der.len();
        der[at] ^= 1 << bit;
        // A signature can be written in several ways; what it is about cannot be changed.
        if let Ok(request) = Request::read(&super::super::pem(LABEL, &der)) {
            prop_assert_eq!(request.common_name, "system:node:n1");
            prop_assert_eq!(request.organizations, vec!["system:nodes".to_owned()]);
        }
    }
}
