//! The keys of service-account tokens: the one that signs, those that verify, and how they are
//! published.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::Claims;

/// Why a key cannot be used. The operator gave it, so it is said plainly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Not PEM, or not the PEM block that belongs here.
    #[error("not a PEM block of the kind that is wanted here")]
    NotPem,
    /// Not a private key that we can sign with.
    #[error(
        "not a P-256 private key in PKCS#8; make one with `openssl genpkey -algorithm EC \
             -pkeyopt ec_paramgen_curve:P-256`"
    )]
    NotPrivate,
    /// Not a public key that we can verify with.
    #[error("not a P-256 public key and not an RSA public key of 2048 to 8192 bits")]
    NotPublic,
}

/// The key that tokens are signed with: ECDSA on P-256.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    public: VerifyingKey,
}

/// A key that tokens are verified with. It may be on P-256 (`ES256`) or, for the keys of real
/// clusters, RSA (`RS256`); the key decides the algorithm, never the token.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    id: String,
    kind: KeyKind,
}

#[derive(Clone, PartialEq, Eq)]
enum KeyKind {
    /// The uncompressed point.
    P256 { point: Vec<u8> },
    /// Its two numbers.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

impl KeyKind {
    /// Whether the numbers have sizes that we verify with.
    fn is_fit(&self) -> bool {
        match self {
            Self::P256 { point } => point.len() == 65,
            Self::Rsa { modulus, exponent } => {
                (256..=1024).contains(&modulus.len()) && (1..=8).contains(&exponent.len())
            }
        }
    }
}

impl SigningKey {
    /// The key in a PEM block `PRIVATE KEY` (PKCS#8).
    pub fn from_pem(pem: &[u8]) -> Result<Self, BadKey> {
        let der = pem_contents(pem, "PRIVATE KEY")?;
        Self::from_pkcs8(&der)
    }

    /// The key in PKCS#8.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, BadKey> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der)
            .map_err(|_| BadKey::NotPrivate)?;
        let point = pair.public_key().as_ref();
        let public = VerifyingKey::from_spki(&[P256_SPKI_PREFIX, point].concat())?;
        Ok(Self { pair, public })
    }

    /// The public half.
    pub fn public(&self) -> &VerifyingKey {
        &self.public
    }

    /// The claims as a signed token.
    ///
    /// # Panics
    /// Never: claims are plain strings and numbers, and P-256 signs any message.
    pub fn sign(&self, claims: &Claims) -> String {
        let header = json!({"alg": "ES256", "kid": self.public.id});
        let body = serde_json::to_vec(claims).expect("claims are strings and numbers");
        let mut token = URL_SAFE_NO_PAD.encode(header.to_string());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(body, &mut token);
        let signature = self
            .pair
            .sign(&SystemRandom::new(), token.as_bytes())
            .expect("a checked P-256 key signs any message");
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        token
    }
}

impl VerifyingKey {
    /// The keys in a file of PEM blocks `PUBLIC KEY`, in their order.
    pub fn many_from_pem(pem: &[u8]) -> Result<Vec<Self>, BadKey> {
        let mut keys = Vec::new();
        for block in Pem::iter_from_buffer(pem) {
            let block = block.map_err(|_| BadKey::NotPem)?;
            if block.label != "PUBLIC KEY" {
                return Err(BadKey::NotPem);
            }
            keys.push(Self::from_spki(&block.contents)?);
        }
        match keys.is_empty() {
            true => Err(BadKey::NotPem),
            false => Ok(keys),
        }
    }

    /// The key in a SubjectPublicKeyInfo.
    pub fn from_spki(der: &[u8]) -> Result<Self, BadKey> {
        let (rest, info) = SubjectPublicKeyInfo::from_der(der).map_err(|_| BadKey::NotPublic)?;
        if !rest.is_empty() {
            return Err(BadKey::NotPublic);
        }
        let kind = match info.parsed().map_err(|_| BadKey::NotPublic)? {
            PublicKey::RSA(rsa) => KeyKind::Rsa {
                modulus: without_zeros(rsa.modulus),
                exponent: without_zeros(rsa.exponent),
            },
            PublicKey::EC(point) if der.starts_with(P256_SPKI_PREFIX) => KeyKind::P256 {
                point: point.data().to_vec(),
            },
            _ => return Err(BadKey::NotPublic),
        };
        if !kind.is_fit() {
            return Err(BadKey::NotPublic);
        }
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, der));
        Ok(Self { id, kind })
    }

    /// The key in a JWK, under the name that it has there. Nothing for a key that we cannot verify
    /// with, or that is not for signatures.
    pub fn from_jwk(jwk: &Value) -> Option<Self> {
        let text = |field: &str| jwk.get(field).and_then(Value::as_str);
        let number = |field: &str| URL_SAFE_NO_PAD.decode(text(field)?).ok();
        if text("use").is_some_and(|it| it != "sig") {
            return None;
        }
        let kind = match (text("kty")?, text("crv")) {
            ("RSA", _) => KeyKind::Rsa {
                modulus: without_zeros(&number("n")?),
                exponent: without_zeros(&number("e")?),
            },
            ("EC", Some("P-256")) => KeyKind::P256 {
                point: [vec![4], number("x")?, number("y")?].concat(),
            },
            _ => return None,
        };
        let id = text("kid")?.to_owned();
        kind.is_fit().then_some(Self { id, kind })
    }

    /// The key's name in tokens (`kid`): the SHA-256 of its SubjectPublicKeyInfo.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The one algorithm that a token signed with this key may name.
    pub fn algorithm(&self) -> &'static str {
        match self.kind {
            KeyKind::P256 { .. } => "ES256",
            KeyKind::Rsa { .. } => "RS256",
        }
    }

    /// Whether the signature is this key's.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match &self.kind {
            KeyKind::P256 { point } => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            KeyKind::Rsa { modulus, exponent } => {
                let (n, e) = (modulus, exponent);
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
        };
        verified.is_ok()
    }

    fn to_jwk(&self) -> Value {
        let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.kind {
            KeyKind::P256 { point } => {
                let (x, y) = point[1..].split_at(32);
                json!({
                    "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
                    "x": number(x), "y": number(y),
                })
            }
            KeyKind::Rsa { modulus, exponent } => json!({
                "use": "sig", "kty": "RSA", "kid": self.id, "alg": "RS256",
                "n": number(modulus), "e": number(exponent),
            }),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public.id)
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({} {})", self.algorithm(), self.id)
    }
}

/// The document at `/openid/v1/jwks`.
pub fn key_set(keys: &[VerifyingKey]) -> Value {
    json!({"keys": keys.iter().map(VerifyingKey::to_jwk).collect::<Vec<_>>()})
}

/// The document at `/.well-known/openid-configuration`. `keys_url` is where the key set is served.
pub fn discovery_document(issuer: &str, keys_url: &str, keys: &[VerifyingKey]) -> Value {
    let mut algorithms: Vec<_> = keys.iter().map(VerifyingKey::algorithm).collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    json!({
        "issuer": issuer,
        "jwks_uri": keys_url,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": algorithms,
    })
}

fn pem_contents(pem: &[u8], label: &str) -> Result<Vec<u8>, BadKey> {
    let (_, block) = x509_parser::pem::parse_x509_pem(pem).map_err(|_| BadKey::NotPem)?;
    match block.label == label {
        true => Ok(block.contents),
        false => Err(BadKey::NotPem),
    }
}

fn without_zeros(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number[zeros..].to_vec()
}

/// What stands before the point in the SubjectPublicKeyInfo of a P-256 key with an uncompressed
/// point.
const P256_SPKI_PREFIX: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
