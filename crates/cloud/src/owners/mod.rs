//! Which hub has which node: each hub publishes its sessions in a few records that it alone writes.
//!
//! The highest session number has the node. A hub that sees a higher one elsewhere ends its own
//! session. Records of a hub that is gone say nothing: a node whose disk was restored from an old
//! copy counts on from a lower number, and must not be held up by them.

mod peers; // who else is there, by what their leases say
mod publish; // both, in the cluster

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sessions::NodeName;

pub use peers::{Peer, Peers, Waits};
pub use publish::{Heard, Publisher};

/// Into how many records a hub divides its sessions. One that changes is written whole: with 20,000
/// sessions a record has some 75 KB.
pub const SHARDS: usize = 8;
/// Sessions that are read of one record. What another hub may have is no reason to run out of
/// memory; the rest is not seen.
const SESSIONS_MAX: usize = 100_000;

/// The sessions of this hub and of the others.
#[derive(Debug)]
pub struct Owners {
    own: [Shard; SHARDS],
    others: BTreeMap<Arc<str>, Hub>,
}

#[derive(Debug, Default)]
struct Shard {
    sessions: BTreeMap<NodeName, u64>,
    written: Written,
}

/// Whether a record is what it should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Written {
    /// Nothing was written, and nothing needs be.
    #[default]
    Never,
    Yes,
    No,
}

#[derive(Debug, Default)]
struct Hub {
    alive: bool,
    shards: [BTreeMap<NodeName, u64>; SHARDS],
}

/// A session of a node that another hub has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The node.
    pub node: NodeName,
    /// The number of its session there.
    pub number: u64,
}

impl Default for Owners {
    fn default() -> Self {
        Self {
            own: std::array::from_fn(|_| Shard::default()),
            others: BTreeMap::new(),
        }
    }
}

impl Owners {
    /// A session began here.
    pub fn began(&mut self, node: &NodeName, number: u64) {
        let shard = &mut self.own[shard_of(node)];
        shard.sessions.insert(Arc::clone(node), number);
        shard.written = Written::No;
    }

    /// A session here is over.
    pub fn ended(&mut self, node: &NodeName, number: u64) {
        let shard = &mut self.own[shard_of(node)];
        if shard.sessions.get(node) == Some(&number) {
            shard.sessions.remove(node);
            shard.written = Written::No;
        }
    }

    /// A record that is to be written: its shard and what it says. It counts as written; if that
    /// fails, [`Owners::not_written`] is told.
    pub fn due(&mut self) -> Option<(usize, String)> {
        let index = self
            .own
            .iter()
            .position(|shard| shard.written == Written::No)?;
        let shard = &mut self.own[index];
        shard.written = Written::Yes;
        Some((index, said(&shard.sessions)))
    }

    /// A record of this hub says this in the cluster. One of an earlier life is due anew.
    pub fn found(&mut self, shard: usize, text: &str) {
        let shard = &mut self.own[shard % SHARDS];
        if text != said(&shard.sessions) {
            shard.written = Written::No;
        }
    }

    /// A record could not be written: it is due again.
    pub fn not_written(&mut self, shard: usize) {
        self.own[shard % SHARDS].written = Written::No;
    }

    /// Another hub says this in one of its records, or nothing any more. Returns what it has now.
    pub fn told(&mut self, hub: &str, shard: usize, text: Option<&str>) -> Vec<Elsewhere> {
        let sessions = text.map(sessions).unwrap_or_default();
        let hub = self.others.entry(hub.into()).or_default();
        let Some(place) = hub.shards.get_mut(shard) else {
            return Vec::new();
        };
        *place = sessions;
        match hub.alive {
            true => elsewhere(place).collect(),
            false => Vec::new(),
        }
    }

    /// Whether another hub is there. Returns what it has, if it is.
    pub fn alive(&mut self, hub: &str, alive: bool) -> Vec<Elsewhere> {
        let hub = self.others.entry(hub.into()).or_default();
        let news = alive && !hub.alive;
        hub.alive = alive;
        match news {
            true => hub.shards.iter().flat_map(elsewhere).collect(),
            false => Vec::new(),
        }
    }

    /// Another hub is gone for good, with its records.
    pub fn gone(&mut self, hub: &str) {
        self.others.remove(hub);
    }

    /// The hub that has a node, if it is another one.
    pub fn hub_of(&self, node: &str) -> Option<(&str, u64)> {
        let shard = shard_of(node);
        let alive = self.others.iter().filter(|(_, hub)| hub.alive);
        let has = alive.filter_map(|(name, hub)| Some((&**name, *hub.shards[shard].get(node)?)));
        has.max_by_key(|(_, number)| *number)
    }
}

fn elsewhere(sessions: &BTreeMap<NodeName, u64>) -> impl Iterator<Item = Elsewhere> {
    sessions.iter().map(|(node, number)| Elsewhere {
        node: Arc::clone(node),
        number: *number,
    })
}

fn said(sessions: &BTreeMap<NodeName, u64>) -> String {
    serde_json::to_string(sessions).expect("names and numbers")
}

/// What a record says. One that cannot be read says nothing.
fn sessions(text: &str) -> BTreeMap<NodeName, u64> {
    let read: Result<BTreeMap<NodeName, u64>, _> = serde_json::from_str(text);
    read.map(|all| all.into_iter().take(SESSIONS_MAX).collect())
        .unwrap_or_default()
}

/// The record that a node is in: the same in every release, so that hubs of two releases agree.
fn shard_of(node: &str) -> usize {
    let sum = node.bytes().fold(0_u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    sum as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeName {
        name.into()
    }

    #[test]
    fn what_one_hub_writes_the_other_reads() {
        let (mut one, mut other) = (Owners::default(), Owners::default());
        assert_eq!(one.due(), None);
        one.began(&node("a"), 7);
        one.began(&node("b"), 3);
        assert_eq!(other.alive("one", true), []);
        let mut told = Vec::new();
        while let Some((shard, text)) = one.due() {
            told.extend(other.told("one", shard, Some(&text)));
        }
        told.sort_by(|one, other| one.node.cmp(&other.node));
        let names: Vec<_> = told.iter().map(|it| (&*it.node, it.number)).collect();
        assert_eq!(names, [("a", 7), ("b", 3)]);
        assert_eq!(other.hub_of("a"), Some(("one", 7)));
        one.ended(&node("a"), 7);
        let (shard, text) = one.due().unwrap();
        other.told("one", shard, Some(&text));
        assert_eq!(other.hub_of("a"), None);
    }

    #[test]
    fn the_end_of_an_older_session_is_no_news() {
        let mut owners = Owners::default();
        owners.began(&node("a"), 2);
        while owners.due().is_some() {}
        owners.ended(&node("a"), 1);
        assert_eq!(owners.due(), None);
    }

    #[test]
    fn what_could_not_be_written_is_due_again() {
        let mut owners = Owners::default();
        owners.began(&node("a"), 2);
        let (shard, _) = owners.due().unwrap();
        assert_eq!(owners.due(), None);
        owners.not_written(shard);
        assert_eq!(owners.due().unwrap().0, shard);
    }

    #[test]
    fn what_an_earlier_life_of_the_hub_wrote_is_written_anew() {
        let mut owners = Owners::default();
        owners.found(3, "{}");
        assert_eq!(owners.due(), None);
        owners.found(3, r#"{"a":9}"#);
        assert_eq!(owners.due(), Some((3, "{}".to_owned())));
        assert_eq!(owners.due(), None);
    }

    #[test]
    fn a_hub_that_is_gone_has_nothing() {
        let mut owners = Owners::default();
        let shard = shard_of("a");
        assert_eq!(owners.told("one", shard, Some(r#"{"a":9}"#)), []);
        assert_eq!(owners.hub_of("a"), None);
        assert_eq!(owners.alive("one", true).len(), 1);
        assert_eq!(owners.hub_of("a"), Some(("one", 9)));
        owners.alive("one", false);
        assert_eq!(owners.hub_of("a"), None);
    }

    #[test]
    fn a_record_that_makes_no_sense_says_nothing() {
        let mut owners = Owners::default();
        owners.alive("one", true);
        for text in ["", "[]", r#"{"a":-1}"#, r#"{"a":"x"}"#] {
            assert_eq!(owners.told("one", 0, Some(text)), []);
        }
        assert_eq!(owners.told("one", 99, Some(r#"{"a":1}"#)), []);
    }
}
