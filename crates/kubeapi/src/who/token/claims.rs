//! What a token says: the claims of a bound service-account token, in the order Kubernetes writes
//! them.

use serde::{Deserialize, Serialize};

use crate::who::user::service_account_name;

/// The shortest life that may be asked for.
pub const LIFETIME_SECONDS_MIN: i64 = 600;

/// The life that a kubelet asks for when it mounts a token into a pod. A token asked for with
/// exactly this lives a year instead and only warns after it: clients that never reread the file
/// keep working.
pub const LIFETIME_SECONDS_MOUNTED: i64 = 3607;

const YEAR_SECONDS: i64 = 365 * 24 * 60 * 60;

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who the token is meant for.
    pub aud: Audience,
    /// When it ends, in seconds since 1970.
    pub exp: i64,
    /// When it was made.
    pub iat: i64,
    /// Who made it.
    pub iss: String,
    /// Its own name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub jti: String,
    /// What it is bound to.
    #[serde(rename = "kubernetes.io")]
    pub bound: BoundTo,
    /// When it begins.
    pub nbf: i64,
    /// Whom it speaks for, as a user name.
    pub sub: String,
}

/// The objects that must exist for a token to be worth anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundTo {
    /// The namespace of the service account, the pod and the secret.
    pub namespace: String,
    /// The node that the pod runs on; or, without a pod, the node that the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    /// The pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    /// The secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    /// The service account.
    pub serviceaccount: Reference,
    /// From when on the token's use is worth a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

/// An object that is meant by name and uid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Its name.
    pub name: String,
    /// Its uid; empty only for the node of a pod, where the node is not registered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// Those a token is meant for. On the wire one may stand alone, without a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// A list, as we write it.
    Many(Vec<String>),
    /// A single string.
    One(String),
}

/// How long a token is to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// Seconds until it ends.
    pub seconds: i64,
    /// Seconds until its use is worth a warning.
    pub warn_after_seconds: Option<i64>,
}

impl Claims {
    /// The claims of a token for the service account in `bound`, made at `now`.
    ///
    /// Issuer and name are still missing: see [`Claims::issued`].
    pub fn new(bound: BoundTo, audiences: Vec<String>, life: Lifetime, now: i64) -> Self {
        let mut bound = bound;
        bound.warnafter = life
            .warn_after_seconds
            .map(|seconds| now.saturating_add(seconds));
        Self {
            aud: Audience::Many(audiences),
            exp: now.saturating_add(life.seconds),
            iat: now,
            iss: String::new(),
            jti: String::new(),
            sub: service_account_name(&bound.namespace, &bound.serviceaccount.name),
            bound,
            nbf: now,
        }
    }

    /// Made by this issuer, under a name of its own (a fresh uuid).
    pub fn issued(mut self, issuer: &str, jti: &str) -> Self {
        self.iss = issuer.to_owned();
        self.jti = jti.to_owned();
        self
    }
}

impl Audience {
    /// The audiences as a list.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::Many(many) => many,
            Self::One(one) => std::slice::from_ref(one),
        }
    }
}

/// How long a token lives that was asked for with `requested` seconds. `mounted` says that it is
/// bound to a pod and meant for this API.
pub fn lifetime(requested: i64, mounted: Mounted) -> Lifetime {
    match mounted {
        Mounted::Yes if requested == LIFETIME_SECONDS_MOUNTED => Lifetime {
            seconds: YEAR_SECONDS,
            warn_after_seconds: Some(requested),
        },
        Mounted::Yes | Mounted::No => Lifetime {
            seconds: requested,
            warn_after_seconds: None,
        },
    }
}

/// Whether a token is one that a kubelet mounts for clients of this API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounted {
    /// Bound to a pod and meant for this API.
    Yes,
    /// Anything else.
    No,
}
