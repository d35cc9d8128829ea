//! What happened at least once. A run in which something never happened shows nothing of it.

use std::collections::BTreeMap;

/// What happened, and how often.
#[derive(Debug, Default, Clone)]
pub struct Seen(BTreeMap<&'static str, u64>);

impl Seen {
    pub(crate) fn note(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// Adds what another run saw.
    pub fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    /// What was expected and never happened.
    pub fn missing(&self) -> Vec<&'static str> {
        let places = store::failpoint::PLACES.iter();
        let all = places.chain(EXPECTED).copied();
        all.filter(|what| !self.0.contains_key(what)).collect()
    }

    /// Everything, and how often it happened.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(what, count)| (*what, *count))
    }
}

/// Every fault, and everything that must come of one now and then. The named places of the store
/// are expected as well.
const EXPECTED: &[&str] = &[
    // faults
    "agent killed",
    "power cut",
    "agent paused",
    "hub killed",
    "hub drained",
    "hub paused",
    "link broken",
    "link silent",
    "one way",
    "slow link",
    "partition",
    "disk full",
    "short write",
    "sync fails",
    "slow disk",
    "old disk",
    "wall jumps",
    "server down",
    "server busy",
    "forbidden",
    "gone (410)",
    "list broken",
    "list stale",
    "watch cut",
    "watch ended",
    "compacted",
    "restored",
    "restored above",
    "records away",
    "clone",
    "revoked",
    "hub of an older release",
    "agent of an older release",
    "documents change",
    "message lost",
    "message twice",
    "message out of order",
    // what comes of them
    "asked",
    "epoch",
    "epoch looked up",
    "even",
    "fetched",
    "not stored",
    "reached",
    "rejected",
    "relist",
    "relisted in order",
    "relisted anew",
    "rewound",
    "resumed watch",
    "silent",
    "superseded",
    "sent again",
    "refreshed",
    "document",
    "document gone",
    "reported",
];
