//! Keys: how they are read, named and published.

use super::*;

#[test]
fn keys_are_published_for_others_to_verify_with() {
    let key = signing_key();
    let keys = [key.public().clone()];
    let set = key_set(&keys);
    let published = &set["keys"][0];
    assert_eq!(published["kid"], key.public().id());
    assert_eq!(
        (&published["alg"], &published["crv"]),
        (&json!("ES256"), &json!("P-256"))
    );
    for number in ["x", "y"] {
        let bytes = URL_SAFE_NO_PAD
            .decode(published[number].as_str().unwrap())
            .unwrap();
        assert_eq!(bytes.len(), 32);
    }
    let document = discovery_document(ISSUER, "https://host/openid/v1/jwks", &keys);
    assert_eq!(
        document,
        json!({
            "issuer": ISSUER, "jwks_uri": "https://host/openid/v1/jwks",
            "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    );
}

#[test]
fn a_key_is_named_by_the_hash_of_its_public_half() {
    // The key and the name that OpenSSL and SHA-256 give for it.
    let keys = VerifyingKey::many_from_pem(KNOWN_KEY.as_bytes()).unwrap();
    assert_eq!(keys[0].id(), KNOWN_ID);
}

#[test]
fn keys_of_other_kinds_are_refused_with_a_reason() {
    assert_eq!(SigningKey::from_pem(b"x").unwrap_err(), BadKey::NotPem);
    assert_eq!(
        SigningKey::from_pem(KNOWN_KEY.as_bytes()).unwrap_err(),
        BadKey::NotPem
    );
    assert_eq!(
        SigningKey::from_pkcs8(b"x").unwrap_err(),
        BadKey::NotPrivate
    );
    assert_eq!(
        VerifyingKey::from_spki(b"x").unwrap_err(),
        BadKey::NotPublic
    );
    assert_eq!(
        VerifyingKey::many_from_pem(b"").unwrap_err(),
        BadKey::NotPem
    );
    let other = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let pem = other.public_key_pem();
    assert_eq!(
        VerifyingKey::many_from_pem(pem.as_bytes()).unwrap_err(),
        BadKey::NotPublic
    );
}
