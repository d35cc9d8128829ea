//! Good tokens, and the many ways of not being one.

mod form;
mod keys;

use std::cell::RefCell;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use aws_lc_rs::{hmac, rsa, signature};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://kubernetes.default.svc";

fn signing_key() -> SigningKey {
    let pkcs8 =
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    SigningKey::from_pkcs8(pkcs8.unwrap().as_ref()).unwrap()
}

fn verifier(keys: &[&SigningKey]) -> Verifier {
    Verifier {
        keys: keys.iter().map(|key| key.public().clone()).collect(),
        issuers: vec![ISSUER.into()],
        audiences: vec![ISSUER.into(), "api".into()],
        bound: Bound::Any,
    }
}

fn reference(name: &str, uid: &str) -> Reference {
    Reference {
        name: name.into(),
        uid: uid.into(),
    }
}

fn bound_to_pod() -> BoundTo {
    BoundTo {
        namespace: "ns".into(),
        serviceaccount: reference("sa", "sa-uid"),
        pod: Some(reference("pod", "pod-uid")),
        node: Some(reference("node", "node-uid")),
        ..BoundTo::default()
    }
}

fn claims() -> Claims {
    let life = lifetime(3600, Mounted::Yes);
    Claims::new(bound_to_pod(), vec!["api".into()], life, NOW).issued(ISSUER, "jti-1")
}

/// Everything exists, with the uid that its name promises.
fn everything(referent: Referent<'_>) -> Option<Record> {
    let name = match referent {
        Referent::ServiceAccount { name, .. }
        | Referent::Pod { name, .. }
        | Referent::Secret { name, .. }
        | Referent::Node { name } => name,
    };
    Some(Record {
        uid: format!("{name}-uid"),
        deleted_at: None,
        node: "here".into(),
    })
}

fn verify(token: &str, key: &SigningKey) -> Result<Verified, Refused> {
    verifier(&[key]).verify(token, NOW, &everything)
}

/// A token with this header and body, signed with the key whatever they say.
fn signed(key: &EcdsaKeyPair, header: &str, body: &str) -> String {
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(body)
    );
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// A key pair, and the same key as we hold it.
fn raw_key() -> (EcdsaKeyPair, SigningKey) {
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref()).unwrap();
    (pair, SigningKey::from_pkcs8(pkcs8.as_ref()).unwrap())
}

fn body_text() -> String {
    serde_json::to_string(&claims()).unwrap()
}

#[test]
fn a_good_token_speaks_for_its_service_account() {
    let key = signing_key();
    let verified = verify(&key.sign(&claims()), &key).unwrap();
    let user = &verified.user;
    assert_eq!(user.name, "system:serviceaccount:ns:sa");
    assert_eq!(user.uid, "sa-uid");
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        "system:authenticated",
    ];
    assert_eq!(user.groups, groups);
    assert_eq!(
        serde_json::to_value(&user.extra).unwrap(),
        json!({
            "authentication.kubernetes.io/credential-id": ["JTI=jti-1"],
            "authentication.kubernetes.io/pod-name": ["pod"],
            "authentication.kubernetes.io/pod-uid": ["pod-uid"],
            "authentication.kubernetes.io/node-name": ["node"],
            "authentication.kubernetes.io/node-uid": ["node-uid"],
        })
    );
    assert_eq!(verified.audiences, ["api"]);
    assert_eq!(verified.pod, Some(reference("pod", "pod-uid")));
    assert_eq!(verified.stale_seconds, None);
}

#[test]
fn the_claims_stand_in_a_token_as_kubernetes_writes_them() {
    let key = signing_key();
    let token = key.sign(&claims());
    let parts: Vec<&str> = token.split('.').collect();
    let read = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(
        read(parts[0]),
        json!({"alg": "ES256", "kid": key.public().id()})
    );
    assert_eq!(
        read(parts[1]),
        json!({
            "aud": ["api"], "exp": NOW + 3600, "iat": NOW, "iss": ISSUER, "jti": "jti-1",
            "kubernetes.io": {
                "namespace": "ns",
                "node": {"name": "node", "uid": "node-uid"},
                "pod": {"name": "pod", "uid": "pod-uid"},
                "serviceaccount": {"name": "sa", "uid": "sa-uid"},
            },
            "nbf": NOW, "sub": "system:serviceaccount:ns:sa",
        })
    );
}

#[test]
fn a_mounted_token_lives_a_year_and_warns_after_an_hour() {
    let life = lifetime(LIFETIME_SECONDS_MOUNTED, Mounted::Yes);
    assert_eq!(life.seconds, 365 * 24 * 3600);
    assert_eq!(life.warn_after_seconds, Some(3607));
    assert_eq!(
        lifetime(LIFETIME_SECONDS_MOUNTED, Mounted::No).seconds,
        3607
    );
    let key = signing_key();
    let claims = Claims::new(bound_to_pod(), vec!["api".into()], life, NOW).issued(ISSUER, "j");
    let token = key.sign(&claims);
    let later = NOW + 3607 + 100;
    let verified = verifier(&[&key])
        .verify(&token, later, &everything)
        .unwrap();
    assert_eq!(verified.stale_seconds, Some(100));
}

#[test]
fn only_two_algorithms_are_accepted_and_none_is_not_one() {
    let (pair, key) = raw_key();
    for name in [
        "none", "None", "NONE", "", "HS256", "ES384", "PS256", "EdDSA", "es256",
    ] {
        let header = json!({"alg": name, "kid": key.public().id()}).to_string();
        let token = signed(&pair, &header, &body_text());
        assert_eq!(verify(&token, &key), Err(Refused::Algorithm), "{name}");
    }
    let unsigned = format!(
        "{}.{}.",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#),
        URL_SAFE_NO_PAD.encode(body_text())
    );
    assert_eq!(verify(&unsigned, &key), Err(Refused::Algorithm));
}

#[test]
fn a_public_key_is_never_taken_for_a_shared_secret() {
    let (pair, key) = raw_key();
    use aws_lc_rs::signature::KeyPair;
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#),
        URL_SAFE_NO_PAD.encode(body_text())
    );
    let secret = hmac::Key::new(hmac::HMAC_SHA256, pair.public_key().as_ref());
    let tag = hmac::sign(&secret, text.as_bytes());
    let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(tag));
    assert_eq!(verify(&token, &key), Err(Refused::Algorithm));
}

#[test]
fn a_key_verifies_in_its_own_algorithm_only() {
    let (pair, key) = raw_key();
    let token = signed(&pair, r#"{"alg":"RS256"}"#, &body_text());
    assert_eq!(verify(&token, &key), Err(Refused::UnknownKey));
}

#[test]
fn a_changed_token_or_a_strange_key_is_refused() {
    let (key, other) = (signing_key(), signing_key());
    let token = key.sign(&claims());
    assert_eq!(verify(&token, &other), Err(Refused::UnknownKey));
    let mut rich = claims();
    rich.sub = "system:serviceaccount:kube-system:admin".into();
    let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&rich).unwrap());
    let parts: Vec<&str> = token.split('.').collect();
    let forged = [parts[0], &body, parts[2]].join(".");
    assert_eq!(verify(&forged, &key), Err(Refused::Signature));
    // Without a key id every key is tried.
    let (pair, known) = raw_key();
    let nameless = signed(&pair, r#"{"alg":"ES256"}"#, &body_text());
    let both = verifier(&[&other, &known]);
    assert!(both.verify(&nameless, NOW, &everything).is_ok());
    assert_eq!(verify(&nameless, &other), Err(Refused::Signature));
    let misnamed = signed(&pair, r#"{"alg":"ES256","kid":"x"}"#, &body_text());
    assert_eq!(verify(&misnamed, &known), Err(Refused::UnknownKey));
}

#[test]
fn after_a_rotation_old_tokens_still_count() {
    let (old, new) = (signing_key(), signing_key());
    let token = old.sign(&claims());
    assert!(
        verifier(&[&new, &old])
            .verify(&token, NOW, &everything)
            .is_ok()
    );
}

#[test]
fn tokens_of_a_real_cluster_are_verified_with_its_rsa_key() {
    let pair = rsa::KeyPair::generate(rsa::KeySize::Rsa2048).unwrap();
    use aws_lc_rs::encoding::AsDer;
    use aws_lc_rs::signature::KeyPair;
    let der: aws_lc_rs::encoding::PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        STANDARD.encode(der.as_ref())
    );
    let keys = VerifyingKey::many_from_pem(pem.repeat(2).as_bytes()).unwrap();
    assert_eq!(keys.len(), 2);
    let header = json!({"alg": "RS256", "kid": keys[0].id()}).to_string();
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(body_text())
    );
    let mut bytes = vec![0; pair.public_modulus_len()];
    let encoding = &signature::RSA_PKCS1_SHA256;
    pair.sign(encoding, &SystemRandom::new(), text.as_bytes(), &mut bytes)
        .unwrap();
    let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(&bytes));
    let mut verifier = verifier(&[]);
    verifier.keys = keys.clone();
    assert!(verifier.verify(&token, NOW, &everything).is_ok());
    let published = key_set(&keys[..1]);
    assert_eq!(published["keys"][0]["kty"], "RSA");
    assert_eq!(published["keys"][0]["e"], "AQAB");
}

#[test]
fn time_is_kept_with_a_minute_of_leeway() {
    let key = signing_key();
    let token = key.sign(&claims());
    let at = |now: i64| verifier(&[&key]).verify(&token, now, &everything).err();
    assert_eq!(at(NOW - 60), None);
    assert_eq!(at(NOW - 61), Some(Refused::NotYet));
    assert_eq!(at(NOW + 3600 + 60), None);
    assert_eq!(at(NOW + 3600 + 61), Some(Refused::Expired));
    assert_eq!(at(i64::MAX), Some(Refused::Expired));
    assert_eq!(at(i64::MIN), Some(Refused::NotYet));
    let mut early = claims();
    early.iat = NOW + 120;
    let refused = verify(&key.sign(&early), &key);
    assert_eq!(refused, Err(Refused::FromTheFuture));
}

#[test]
fn issuer_and_audience_must_be_ours() {
    let key = signing_key();
    let mut foreign = claims();
    foreign.iss = "https://elsewhere".into();
    assert_eq!(
        verify(&key.sign(&foreign), &key),
        Err(Refused::Issuer("https://elsewhere".into()))
    );
    let mut vault = claims();
    vault.aud = Audience::Many(vec!["vault".into()]);
    let token = key.sign(&vault);
    let refused = verify(&token, &key).unwrap_err();
    assert!(matches!(refused, Refused::Audience { .. }));
    assert_eq!(refused.status().code, 401);
    let wanted = ["vault".to_owned(), "more".to_owned()];
    let verified = verifier(&[&key]).verify_for(&wanted, &token, NOW, &everything);
    assert_eq!(verified.unwrap().audiences, ["vault"]);
}

#[test]
fn claims_that_disagree_are_refused() {
    let key = signing_key();
    let check = |change: &dyn Fn(&mut Claims)| {
        let mut claims = claims();
        change(&mut claims);
        verify(&key.sign(&claims), &key)
    };
    let wrong: [&dyn Fn(&mut Claims); 5] = [
        &|claims| claims.sub = "system:serviceaccount:ns:other".into(),
        &|claims| claims.sub = "admin".into(),
        &|claims| claims.bound.namespace = String::new(),
        &|claims| claims.bound.serviceaccount.uid = String::new(),
        &|claims| claims.bound.secret = Some(reference("secret", "secret-uid")),
    ];
    for change in wrong {
        assert_eq!(check(change), Err(Refused::Inconsistent));
    }
}

#[test]
fn a_token_falls_with_what_it_is_bound_to() {
    let key = signing_key();
    let bound = |bound: BoundTo| {
        let life = lifetime(3600, Mounted::No);
        let claims = Claims::new(bound, vec!["api".into()], life, NOW);
        key.sign(&claims.issued(ISSUER, "j"))
    };
    let account = || BoundTo {
        namespace: "ns".into(),
        serviceaccount: reference("sa", "sa-uid"),
        ..BoundTo::default()
    };
    let secret = BoundTo {
        secret: Some(reference("secret", "secret-uid")),
        ..account()
    };
    let node = BoundTo {
        node: Some(reference("node", "node-uid")),
        ..account()
    };
    for (token, object) in [
        (bound(bound_to_pod()), "pod"),
        (bound(secret), "secret"),
        (bound(node), "node"),
        (bound(account()), "sa"),
    ] {
        let with = |change: &dyn Fn(Record) -> Option<Record>| {
            let exists = |referent: Referent<'_>| {
                let record = everything(referent)?;
                match record.uid == format!("{object}-uid") {
                    true => change(record),
                    false => Some(record),
                }
            };
            verifier(&[&key]).verify(&token, NOW, &exists).is_ok()
        };
        let ending = |at: i64| {
            move |record: Record| {
                Some(Record {
                    deleted_at: Some(at),
                    ..record
                })
            }
        };
        assert!(with(&Some), "{object}");
        assert!(!with(&|_| None), "{object} deleted");
        let replaced = |record: Record| {
            Some(Record {
                uid: "new".into(),
                ..record
            })
        };
        assert!(!with(&replaced), "{object} replaced");
        assert!(with(&ending(NOW - 60)), "{object} just ending");
        assert!(!with(&ending(NOW - 61)), "{object} ending for long");
    }
}

#[test]
fn a_pod_need_not_have_its_node_registered() {
    let key = signing_key();
    let mut claims = claims();
    claims.bound.node = Some(reference("node", ""));
    let asked = RefCell::new(Vec::new());
    let exists = |referent: Referent<'_>| {
        asked.borrow_mut().push(format!("{referent:?}"));
        everything(referent)
    };
    let token = key.sign(&claims);
    let verified = verifier(&[&key]).verify(&token, NOW, &exists).unwrap();
    assert!(
        !verified
            .user
            .extra
            .contains_key("authentication.kubernetes.io/node-uid")
    );
    assert!(!asked.borrow().iter().any(|text| text.starts_with("Node")));
}

proptest! {
    #[test]
    fn no_text_makes_the_verifier_panic_or_believe(text in ".{0,200}") {
        let key = signing_key();
        prop_assert!(verify(&text, &key).is_err());
    }

    #[test]
    fn a_token_with_one_byte_changed_is_not_believed(at in 0usize..700, to in "[A-Za-z0-9_.-]") {
        let key = signing_key();
        let token = key.sign(&claims());
        let at = at % token.len();
        prop_assume!(token[at..=at] != to);
        let changed = format!("{}{to}{}", &token[..at], &token[at + 1..]);
        prop_assert!(verify(&changed, &key).is_err());
    }
}

const KNOWN_KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAECmH6j8qDZTlbpN7Yra3R92v1Pz+O\n\
VqCEHTr/j/QX1E6kvrjSGrJQRdt/ouGfxuP7TjkwgEsc3U1qKocrCC6COA==\n\
-----END PUBLIC KEY-----\n";
const KNOWN_ID: &str = "yHmF-nnbuTS5H2WzTi8TmMkqQH-UmeKiBuX_HYynGzs";

#[test]
fn on_a_node_a_token_must_be_of_a_pod_that_runs_there() {
    let key = signing_key();
    let on = |node: &str| Verifier {
        bound: Bound::PodOn(node.into()),
        ..verifier(&[&key])
    };
    let of_pod = key.sign(&claims());
    assert!(on("here").verify(&of_pod, NOW, &everything).is_ok());
    let elsewhere = on("there").verify(&of_pod, NOW, &everything);
    assert_eq!(elsewhere.unwrap_err(), Refused::NotHere);
    let mut free = claims();
    (free.bound.pod, free.bound.node) = (None, None);
    let free = key.sign(&free);
    assert!(verifier(&[&key]).verify(&free, NOW, &everything).is_ok());
    let free = on("here").verify(&free, NOW, &everything);
    assert_eq!(free.unwrap_err(), Refused::NotHere);
}

#[test]
fn what_a_cluster_publishes_is_enough_to_know_its_tokens() {
    let key = signing_key();
    let configuration = discovery_document(ISSUER, "https://keys", &[key.public().clone()]);
    let keys = key_set(&[key.public().clone()]);
    let (configuration, keys) = (configuration.to_string(), keys.to_string());
    let read = Published::read(configuration.as_bytes(), keys.as_bytes()).unwrap();
    let read = Published::parse(read.text().as_bytes()).unwrap();
    let mut for_api = claims();
    for_api.aud = Audience::One(ISSUER.to_owned());
    let verified = read
        .verifier(Bound::Any)
        .verify(&key.sign(&for_api), NOW, &everything);
    assert_eq!(verified.unwrap().user.name, "system:serviceaccount:ns:sa");
    // For another audience it is none of this API's.
    let other = read
        .verifier(Bound::Any)
        .verify(&key.sign(&claims()), NOW, &everything);
    assert!(matches!(other, Err(Refused::Audience { .. })), "{other:?}");
    assert!(Published::read(b"{}", keys.as_bytes()).is_err());
    assert!(Published::parse(b"[]").is_err());
}

#[test]
fn keys_that_cannot_verify_are_left_out() {
    let key = signing_key();
    let jwk = key_set(&[key.public().clone()])["keys"][0].clone();
    assert_eq!(VerifyingKey::from_jwk(&jwk).as_ref(), Some(key.public()));
    for (field, value) in [
        ("kty", json!("OKP")),
        ("crv", json!("P-384")),
        ("use", json!("enc")),
        ("x", json!("AAAA")),
        ("x", json!(7)),
        ("kid", Value::Null),
    ] {
        let mut other = jwk.clone();
        other[field] = value;
        assert_eq!(VerifyingKey::from_jwk(&other), None, "{field}");
    }
}
