//! Which certificates are void: those of a revoked node that were issued before its revocation.
//!
//! The list is one ConfigMap that every hub watches. A hub that has not seen it yet lets nobody in,
//! and an entry that cannot be read voids everything of its node: what is damaged must not open a
//! door.

mod follow; // the list as it changes
mod list; // the list in the cluster: revoke, unrevoke
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use wire::join::NodeName;

use super::record::{Record, Resource};
use super::signer::{LIFE_MAX, Peer};

pub use follow::follow;
pub use list::{ChangeFailed, fetch, revoke, unrevoke};

/// The record that the list is.
pub const RECORD: &str = "holdfast-revoked-nodes";

/// Bytes of the list. The cluster takes a million; a revocation has about two hundred.
pub const LIST_BYTES_MAX: usize = 900_000;

/// Characters of a reason that are kept.
const REASON_CHARS_MAX: usize = 200;

/// How long a revocation is kept: until nothing that it voids can be valid.
const KEPT: SignedDuration = SignedDuration::from_hours(LIFE_MAX.as_hours() + 35 * 24);

/// Which nodes are revoked, and since when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revoked(BTreeMap<NodeName, Revocation>);

/// A revocation of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    /// When. Certificates that begin later are good.
    pub at: Timestamp,
    /// Why, for people.
    #[serde(default)]
    pub reason: String,
}

impl Revoked {
    /// Whether a certificate of this node that begins then is void.
    pub fn refuses(&self, node: &NodeName, not_before: Timestamp) -> bool {
        self.0
            .get(node)
            .is_some_and(|revocation| not_before <= revocation.at)
    }

    /// When a node was revoked, if it was.
    pub fn since(&self, node: &NodeName) -> Option<Timestamp> {
        self.0.get(node).map(|revocation| revocation.at)
    }

    /// Every revocation, by node.
    pub fn iter(&self) -> impl Iterator<Item = (&NodeName, &Revocation)> {
        self.0.iter()
    }

    /// Revokes a node now. An earlier revocation is replaced, a later one stays: nothing that is
    /// void becomes good again.
    pub fn revoke(&mut self, node: NodeName, reason: &str, now: Timestamp) {
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        let fresh = Revocation { at: now, reason };
        let held = self.0.entry(node).or_insert_with(|| fresh.clone());
        if held.at <= now {
            *held = fresh;
        }
    }

    /// Takes a revocation back. Says whether there was one.
    pub fn unrevoke(&mut self, node: &NodeName) -> bool {
        self.0.remove(node).is_some()
    }

    /// Forgets revocations so old that whatever they void has expired by itself.
    pub fn forget_old(&mut self, now: Timestamp) {
        self.0.retain(|_, revocation| {
            let end = revocation.at.checked_add(KEPT);
            end.is_ok_and(|end| end > now) || revocation.at > now
        });
    }

    /// Reads the list. An entry that makes no sense voids everything of its node.
    pub fn read(record: &Record) -> Self {
        let entries = record.texts.iter().filter_map(|(name, text)| {
            // A name that no node can have harms nobody.
            let node = name.parse().ok()?;
            let read = serde_json::from_str(text);
            Some((node, read.unwrap_or_else(|_| unreadable())))
        });
        Self(entries.collect())
    }

    /// The list, as a record of this version.
    pub fn record(&self, version: Option<String>) -> Record {
        let mut record = Record::new(Resource::ConfigMaps, RECORD, "revoked-nodes");
        record.version = version;
        for (node, revocation) in &self.0 {
            let text = serde_json::json!(revocation).to_string();
            record.texts.insert(node.as_str().to_owned(), text);
        }
        record
    }
}

fn unreadable() -> Revocation {
    Revocation {
        at: Timestamp::MAX,
        reason: "the entry cannot be read".to_owned(),
    }
}

/// The list as a hub knows it. Clones share it.
#[derive(Clone, Debug)]
pub struct Revocations(Arc<watch::Sender<Option<Arc<Revoked>>>>);

impl Default for Revocations {
    /// A list that has not been seen yet: it refuses everybody.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Revocations {
    /// Takes the list as it is in the cluster now; `None` if there is none, so that nobody is
    /// revoked. Gives the nodes whose sessions must be cut: those whose revocation is new.
    ///
    /// This is where the hub's watch of [`RECORD`] ends. An error of the watch is no reason to call
    /// it: what was revoked stays so.
    pub fn handle_record(&self, record: Option<&Record>) -> Vec<NodeName> {
        let next = Arc::new(record.map(Revoked::read).unwrap_or_default());
        let before = self.0.send_replace(Some(next.clone())).unwrap_or_default();
        let is_new = |(node, revocation): &(&NodeName, &Revocation)| {
            before.since(node).is_none_or(|at| at < revocation.at)
        };
        let fresh = next.iter().filter(is_new);
        fresh.map(|(node, _)| node.clone()).collect()
    }

    /// Whether a node must not be let in, or be cut if it is in. Asked at every handshake, at every
    /// hello, and for every session when the list changes.
    pub fn refuses(&self, peer: &Peer) -> bool {
        let known = self.0.borrow().clone();
        known.is_none_or(|revoked| revoked.refuses(&peer.node, peer.validity.not_before))
    }

    /// The list, once it has been seen.
    pub fn known(&self) -> Option<Arc<Revoked>> {
        self.0.borrow().clone()
    }

    /// Returns when a node is to be cut. A session waits for this beside everything else.
    pub async fn until_refused(&self, peer: &Peer) {
        let mut changes = self.0.subscribe();
        while !self.refuses(peer) {
            changes.changed().await.expect("the sender lives in self");
        }
    }
}
