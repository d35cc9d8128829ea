//! Tokens: who may join, once.
//!
//! A token is kept as a Secret that has no secret in it: only a hash. It is used up by an update of
//! that Secret at the version that was read, so that of two hubs one is told to look again. Who
//! used it may use it again with the same key until it expires: the answer may have been lost.

mod shelf; // tokens in the cluster: create, list, revoke, sweep
#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use wire::join::{NodeName, Token};

use super::Why;
use super::record::{Record, Resource};
use host::secret;

pub use shelf::{create, list, revoke, sweep};

/// The type of the Secret that a token is kept in.
pub const SECRET_TYPE: &str = "holdfast.dev/join-token";
/// The kind of record that a token is.
pub const KIND: &str = "join-token";

/// How long a token is good if nobody says otherwise.
pub const TTL: SignedDuration = SignedDuration::from_hours(1);
/// The longest that it may be: a token lies around in files and chats.
pub const TTL_MAX: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The shortest that is of any use.
pub const TTL_MIN: SignedDuration = SignedDuration::from_mins(1);

/// Whom a token is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// One node, which may have joined before: the token is for joining anew as well.
    Node(NodeName),
    /// A new node of this pool, of any name that nobody has.
    Pool(String),
}

/// A token as the cluster knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The public half of the token.
    pub id: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
    /// Whom it is for.
    pub bound: Bound,
    /// Who used it.
    pub used: Option<Used>,
    hash: [u8; 32],
    version: Option<String>,
}

/// Who used a token, with which key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// The node.
    pub node: NodeName,
    /// When.
    pub at: Timestamp,
    key: [u8; 32],
}

/// Somebody who wants to join.
#[derive(Clone, Debug)]
pub struct Attempt<'a> {
    /// The token that was sent.
    pub token: &'a Token,
    /// The name that is asked for.
    pub node: &'a NodeName,
    /// The hash of the public key.
    pub key: [u8; 32],
    /// When the node of this name was revoked, if it was.
    pub revoked: Option<Timestamp>,
    /// Now.
    pub now: Timestamp,
}

/// How good a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was not used yet.
    Fresh,
    /// The same node used it with the same key: its answer was lost.
    Repeated,
}

impl Kept {
    /// A token as it is kept, made now.
    pub fn new(token: &Token, bound: Bound, ttl: SignedDuration, now: Timestamp) -> Self {
        Self {
            id: token.id().to_owned(),
            created: now,
            expires: now.checked_add(ttl).unwrap_or(Timestamp::MAX),
            bound,
            used: None,
            hash: hash(token),
            version: None,
        }
    }

    /// Whether somebody may join with a token. The secret comes first: who does not have it learns
    /// nothing about the token.
    pub fn judge(&self, attempt: &Attempt<'_>) -> Result<Verdict, Why> {
        if self.id != attempt.token.id() || !secret::same(&self.hash, &hash(attempt.token)) {
            return Err(Why::WrongSecret);
        }
        if attempt.now >= self.expires {
            return Err(Why::TokenExpired);
        }
        if matches!(&self.bound, Bound::Node(node) if node != attempt.node) {
            return Err(Why::OtherNode);
        }
        // Otherwise who stole the node would use its token once more.
        if attempt.revoked.is_some_and(|at| self.created <= at) {
            return Err(Why::TokenBeforeRevocation);
        }
        match &self.used {
            None => Ok(Verdict::Fresh),
            Some(used) if used.node == *attempt.node && used.key == attempt.key => {
                Ok(Verdict::Repeated)
            }
            Some(_) => Err(Why::TokenReused),
        }
    }

    /// The token after this attempt, which was judged fresh.
    pub fn used_by(mut self, attempt: &Attempt<'_>) -> Self {
        self.used = Some(Used {
            node: attempt.node.clone(),
            at: attempt.now,
            key: attempt.key,
        });
        self
    }

    /// What a joining node gets besides its certificate: a place in this pool.
    pub fn pool(&self) -> Option<&str> {
        match &self.bound {
            Bound::Pool(pool) => Some(pool),
            Bound::Node(_) => None,
        }
    }

    /// The name of the record of a token.
    pub fn record_name(id: &str) -> String {
        format!("{KIND}-{id}")
    }

    /// The record of it.
    pub fn record(&self) -> Record {
        let mut record = Record::new(Resource::Secrets, &Self::record_name(&self.id), KIND)
            .with("id", &self.id)
            .with("hash", secret::hex(&self.hash))
            .with("created", self.created.to_string())
            .with("expires", self.expires.to_string());
        record.secret_type = SECRET_TYPE.to_owned();
        record.version = self.version.clone();
        record = match &self.bound {
            Bound::Node(node) => record.with("node", node.as_str()),
            Bound::Pool(pool) => record.with("pool", pool),
        };
        match &self.used {
            None => record,
            Some(used) => record
                .with("usedBy", used.node.as_str())
                .with("usedAt", used.at.to_string())
                .with("usedKey", secret::hex(&used.key)),
        }
    }

    /// Reads a record. One that is damaged or of another type is no token.
    pub fn read(record: &Record) -> Option<Self> {
        let text = |key: &str| record.text(key);
        let time = |key: &str| text(key)?.parse::<Timestamp>().ok();
        let id = text("id")?;
        if record.secret_type != SECRET_TYPE || record.name != Self::record_name(id) {
            return None;
        }
        let bound = match (text("node"), text("pool")) {
            (Some(node), None) => Bound::Node(node.parse().ok()?),
            (None, Some(pool)) => Bound::Pool(pool.to_owned()),
            (None, None) | (Some(_), Some(_)) => return None,
        };
        // Half of a use is a use by nobody knows whom: such a token is good for nobody.
        let used = match (text("usedBy"), text("usedAt"), text("usedKey")) {
            (None, None, None) => None,
            (Some(node), Some(at), Some(key)) => Some(Used {
                node: node.parse().ok()?,
                at: at.parse().ok()?,
                key: secret::from_hex(key)?,
            }),
            _ => return None,
        };
        Some(Self {
            id: id.to_owned(),
            created: time("created")?,
            expires: time("expires")?,
            bound,
            used,
            hash: secret::from_hex(text("hash")?)?,
            version: record.version.clone(),
        })
    }
}

/// What is done for a token that is not there, so that its absence takes as long as a wrong secret.
pub fn judge_nothing(token: &Token) -> Why {
    std::hint::black_box(secret::same(&[0; 32], &hash(token)));
    Why::NoSuchToken
}

/// The hash of the secret, with the id as its salt.
fn hash(token: &Token) -> [u8; 32] {
    secret::hash(&[token.id().as_bytes(), token.secret().as_bytes()])
}
