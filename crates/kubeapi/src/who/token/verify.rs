//! A bearer token as a user, or a refusal: strict in form, closed in every doubt.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::RwLock;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::claims::{Claims, Reference};
use super::key::VerifyingKey;
use crate::Status;
use crate::who::User;
use crate::who::user::{
    CREDENTIAL_ID, NODE_NAME, NODE_UID, POD_NAME, POD_UID, service_account_name,
};

/// Bytes of a token that are read. A bound token has about a thousand.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// How far the clocks of two machines may be apart, in seconds.
const LEEWAY_SECONDS: i64 = 60;

/// What tokens are held against: keys, issuers, and the audiences that this API answers to.
///
/// Several keys and issuers are for rotation: the new ones sign, the old ones still verify.
///
/// The default one knows no token.
#[derive(Debug, Clone, Default)]
pub struct Verifier {
    /// The keys that a token may be signed with.
    pub keys: Vec<VerifyingKey>,
    /// Those that a token may come from.
    pub issuers: Vec<String>,
    /// Those that a token may be meant for, where the caller does not say otherwise.
    pub audiences: Vec<String>,
    /// What a token must be bound to.
    pub bound: Bound,
}

/// What tokens are held against at this moment: keys may be others later.
#[derive(Debug, Default)]
pub struct Verifying(RwLock<Arc<Verifier>>);

impl Verifying {
    /// Against this, until it is replaced.
    pub fn new(verifier: Verifier) -> Self {
        Self(RwLock::new(Arc::new(verifier)))
    }

    /// What it is now.
    pub fn now(&self) -> Arc<Verifier> {
        Arc::clone(&self.0.read())
    }

    /// From now on against this.
    pub fn replace(&self, verifier: Verifier) {
        *self.0.write() = Arc::new(verifier);
    }
}

/// What a token must be bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Bound {
    /// To anything that exists, or to nothing.
    #[default]
    Any,
    /// To a pod that runs on this node.
    PodOn(Box<str>),
}

/// A good token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Whom it speaks for.
    pub user: User,
    /// Which of the wanted audiences it is meant for.
    pub audiences: Vec<String>,
    /// The pod it is bound to. A node that serves its own pods must see that this one is among
    /// them.
    pub pod: Option<Reference>,
    /// Seconds by which it is past the time when it should have been replaced.
    pub stale_seconds: Option<i64>,
}

/// An object that a token stands and falls with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Referent<'a> {
    /// A service account of a namespace.
    ServiceAccount {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// A pod of a namespace.
    Pod {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// A secret of a namespace.
    Secret {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// A node.
    Node {
        /// Its name.
        name: &'a str,
    },
}

/// What is known of such an object, if it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its uid.
    pub uid: String,
    /// When its deletion began, in seconds since 1970.
    pub deleted_at: Option<i64>,
    /// The node that it runs on, of a pod.
    pub node: Box<str>,
}

/// Why a token is worth nothing. To the caller it is a 401 like any other; the words are for
/// logs and for token reviews.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Longer than any token is.
    #[error("the token is too long")]
    TooLong,
    /// Not a JWT, or one that leaves room for interpretation.
    #[error("invalid bearer token")]
    Malformed,
    /// It names an algorithm that we do not verify, or `none`.
    #[error("the token's algorithm is not accepted")]
    Algorithm,
    /// No key fits.
    #[error("invalid signature, no keys found")]
    UnknownKey,
    /// A key fits, the signature does not.
    #[error("invalid signature")]
    Signature,
    /// It comes from someone else.
    #[error("token issuer {0:?} is invalid")]
    Issuer(String),
    /// It is meant for someone else.
    #[error("token audiences {token:?} is invalid for the target audiences {wanted:?}")]
    Audience {
        /// Those it is meant for.
        token: Vec<String>,
        /// Those it should be meant for.
        wanted: Vec<String>,
    },
    /// It has ended.
    #[error("service account token has expired")]
    Expired,
    /// It has not begun.
    #[error("service account token is not valid yet")]
    NotYet,
    /// It was made in the future.
    #[error("service account token is issued in the future")]
    FromTheFuture,
    /// Its claims do not agree with each other.
    #[error("service account token claims do not agree")]
    Inconsistent,
    /// The service account is gone, or is another one of the same name.
    #[error("service account {namespace}/{name} has been deleted")]
    AccountGone {
        /// The service account's namespace.
        namespace: String,
        /// The service account's name.
        name: String,
    },
    /// It is bound to nothing that this API answers to.
    #[error("service account token is not bound to a pod of this node")]
    NotHere,
    /// What it is bound to is gone, or is another object of the same name.
    #[error("service account token has been invalidated")]
    Invalidated,
}

impl Refused {
    /// The answer to a request with such a token. It never says more than 401.
    pub fn status(&self) -> Status {
        Status::unauthorized()
    }

    /// What one who reviews the token is told. Each way to read a token has its say: the first
    /// knows only those that are nobody's.
    pub fn to_reviewer(&self) -> String {
        match self {
            Self::TooLong | Self::Malformed | Self::Issuer(_) => Self::Malformed.to_string(),
            why => format!("[{}, {why}]", Self::Malformed),
        }
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    /// Extensions that the sender wants understood. We understand none.
    #[serde(default)]
    crit: Option<Value>,
}

impl Verifier {
    /// Whom the token speaks for. `now` is in seconds since 1970; `exists` knows the objects.
    pub fn verify(
        &self,
        token: &str,
        now: i64,
        exists: &dyn Fn(Referent<'_>) -> Option<Record>,
    ) -> Result<Verified, Refused> {
        self.verify_for(&self.audiences, token, now, exists)
    }

    /// As [`Verifier::verify`], for a token that must be meant for one of `wanted`.
    pub fn verify_for(
        &self,
        wanted: &[String],
        token: &str,
        now: i64,
        exists: &dyn Fn(Referent<'_>) -> Option<Record>,
    ) -> Result<Verified, Refused> {
        let claims = self.signed_claims(token)?;
        let audiences = self.check_parties(&claims, wanted)?;
        check_times(&claims, now)?;
        check_agreement(&claims)?;
        check_referents(&claims, now, exists)?;
        self.check_place(&claims, exists)?;
        Ok(Verified {
            user: user(&claims),
            audiences,
            stale_seconds: claims
                .bound
                .warnafter
                .and_then(|warn| now.checked_sub(warn))
                .filter(|late| *late > 0),
            pod: claims.bound.pod,
        })
    }

    /// The claims, once the signature over them has been verified. Nothing of them is looked at
    /// before.
    fn signed_claims(&self, token: &str) -> Result<Claims, Refused> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Refused::TooLong);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(body), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Refused::Malformed);
        };
        let signed = &token[..header.len() + 1 + body.len()];
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Refused::Malformed);
        let header: Header = read(&decode(header)?, &[])?;
        if header.crit.is_some() {
            return Err(Refused::Malformed);
        }
        self.check_signature(&header, signed.as_bytes(), &decode(signature)?)?;
        read(&decode(body)?, BOUND_FIELDS)
    }

    /// The key is chosen by its name, and must be one for the algorithm that the token names: a
    /// public key can never be taken for a shared secret.
    fn check_signature(
        &self,
        header: &Header,
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), Refused> {
        if !matches!(header.alg.as_str(), "ES256" | "RS256") {
            return Err(Refused::Algorithm);
        }
        let mut fitting = self
            .keys
            .iter()
            .filter(|key| key.algorithm() == header.alg)
            .filter(|key| match header.kid.as_deref() {
                None | Some("") => true,
                Some(id) => key.id() == id,
            })
            .peekable();
        if fitting.peek().is_none() {
            return Err(Refused::UnknownKey);
        }
        match fitting.any(|key| key.verifies(signed, signature)) {
            true => Ok(()),
            false => Err(Refused::Signature),
        }
    }

    /// Whether a token is of a pod on the node that this API is for, where it is for one.
    fn check_place(
        &self,
        claims: &Claims,
        exists: &dyn Fn(Referent<'_>) -> Option<Record>,
    ) -> Result<(), Refused> {
        let Bound::PodOn(node) = &self.bound else {
            return Ok(());
        };
        let (namespace, pod) = (claims.bound.namespace.as_str(), claims.bound.pod.as_ref());
        let runs = pod.and_then(|pod| {
            let name = &pod.name;
            exists(Referent::Pod { namespace, name })
        });
        match runs.is_some_and(|record| record.node == *node) {
            true => Ok(()),
            false => Err(Refused::NotHere),
        }
    }

    fn check_parties(&self, claims: &Claims, wanted: &[String]) -> Result<Vec<String>, Refused> {
        if !self.issuers.contains(&claims.iss) {
            return Err(Refused::Issuer(claims.iss.clone()));
        }
        let meant = claims.aud.as_slice();
        let common: Vec<String> = meant
            .iter()
            .filter(|audience| wanted.contains(audience))
            .cloned()
            .collect();
        match common.is_empty() {
            true => Err(Refused::Audience {
                token: meant.to_vec(),
                wanted: wanted.to_vec(),
            }),
            false => Ok(common),
        }
    }
}

/// Reads an object. A field that stands twice is an error: two readers could take two different
/// ones. So is a list where `objects` (JSON pointers) must be objects: the decoder would take its
/// entries for fields.
fn read<T: DeserializeOwned>(bytes: &[u8], objects: &[&str]) -> Result<T, Refused> {
    let shape: Value = serde_json::from_slice(bytes).map_err(|_| Refused::Malformed)?;
    let list = |pointer: &&str| shape.pointer(pointer).is_some_and(Value::is_array);
    if !shape.is_object() || objects.iter().any(list) {
        return Err(Refused::Malformed);
    }
    serde_json::from_slice(bytes).map_err(|_| Refused::Malformed)
}

const BOUND_FIELDS: &[&str] = &[
    "/kubernetes.io",
    "/kubernetes.io/serviceaccount",
    "/kubernetes.io/pod",
    "/kubernetes.io/secret",
    "/kubernetes.io/node",
];

fn check_times(claims: &Claims, now: i64) -> Result<(), Refused> {
    if now.saturating_sub(LEEWAY_SECONDS) > claims.exp {
        return Err(Refused::Expired);
    }
    if now.saturating_add(LEEWAY_SECONDS) < claims.nbf {
        return Err(Refused::NotYet);
    }
    if now.saturating_add(LEEWAY_SECONDS) < claims.iat {
        return Err(Refused::FromTheFuture);
    }
    Ok(())
}

/// Name and binding must speak of one account, and a token is bound to one thing only.
fn check_agreement(claims: &Claims) -> Result<(), Refused> {
    let bound = &claims.bound;
    let (namespace, account) = (&bound.namespace, &bound.serviceaccount);
    let complete = !namespace.is_empty() && !account.name.is_empty() && !account.uid.is_empty();
    let twice_bound = bound.secret.is_some() && (bound.pod.is_some() || bound.node.is_some());
    if !complete || twice_bound || claims.sub != service_account_name(namespace, &account.name) {
        return Err(Refused::Inconsistent);
    }
    Ok(())
}

fn check_referents(
    claims: &Claims,
    now: i64,
    exists: &dyn Fn(Referent<'_>) -> Option<Record>,
) -> Result<(), Refused> {
    let bound = &claims.bound;
    let namespace = bound.namespace.as_str();
    // An object whose deletion began a while ago is gone, even if a finalizer still holds it.
    let alive = |referent: Referent<'_>, uid: &str| {
        exists(referent).is_some_and(|record| {
            let ending = record
                .deleted_at
                .is_some_and(|at| at < now.saturating_sub(LEEWAY_SECONDS));
            record.uid == uid && !ending
        })
    };
    let account = &bound.serviceaccount;
    let referent = Referent::ServiceAccount {
        namespace,
        name: &account.name,
    };
    if !alive(referent, &account.uid) {
        return Err(Refused::AccountGone {
            namespace: bound.namespace.clone(),
            name: account.name.clone(),
        });
    }
    let bound_alive = match (&bound.pod, &bound.secret, &bound.node) {
        (Some(pod), _, _) => {
            let name = &pod.name;
            alive(Referent::Pod { namespace, name }, &pod.uid)
        }
        (None, Some(secret), _) => {
            let name = &secret.name;
            alive(Referent::Secret { namespace, name }, &secret.uid)
        }
        (None, None, Some(node)) => alive(Referent::Node { name: &node.name }, &node.uid),
        (None, None, None) => true,
    };
    match bound_alive {
        true => Ok(()),
        false => Err(Refused::Invalidated),
    }
}

fn user(claims: &Claims) -> User {
    let bound = &claims.bound;
    let mut user = User::service_account(&bound.namespace, &bound.serviceaccount.name);
    user.uid.clone_from(&bound.serviceaccount.uid);
    let mut say = |key: &str, value: &str| {
        if !value.is_empty() {
            user.extra.insert(key.to_owned(), vec![value.to_owned()]);
        }
    };
    if !claims.jti.is_empty() {
        say(CREDENTIAL_ID, &format!("JTI={}", claims.jti));
    }
    if let Some(pod) = &bound.pod {
        say(POD_NAME, &pod.name);
        say(POD_UID, &pod.uid);
    }
    if let Some(node) = &bound.node {
        say(NODE_NAME, &node.name);
        say(NODE_UID, &node.uid);
    }
    user.authenticated()
}
