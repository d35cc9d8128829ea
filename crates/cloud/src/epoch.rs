//! When the history of the cluster is another one: its store was restored from a backup.
//!
//! A hub that was there sees versions go back. One that starts afterwards has only the nodes' word:
//! they were told of versions that the cluster does not know. One node may be wrong, or lie; that
//! most of those that came say so is believed.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use object::Resource;

use crate::sessions::NodeName;

/// Nodes whose word is kept. Beyond it further ones are not asked: that many agree or do not.
const WITNESSES_MAX: usize = 10_000;

/// So many nodes must have come before most of them are believed, if the cluster has so many.
const QUORUM: usize = 3;
/// Where fewer come, those are believed after this time.
const PATIENCE: Duration = Duration::from_secs(120);

/// What nodes say of the cluster's history.
#[derive(Debug, Default)]
pub struct Witnesses {
    /// Of each node that came: the resources of which it was told a version that there is not.
    all: HashMap<NodeName, BTreeSet<Resource>>,
    ahead: usize,
    /// Since when one says so.
    since: Option<Duration>,
}

/// What is known when a node comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Around {
    /// How many nodes the cluster has.
    pub nodes: usize,
    /// The time.
    pub now: Duration,
}

/// What to make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The history goes on.
    Same,
    /// It is another one: a new epoch begins.
    Another,
}

impl Witnesses {
    /// A node came. `ahead` says that it was told of a version of a resource above what a
    /// consistent read of the cluster gives. A calm word takes back what it said of the same
    /// resource alone.
    pub fn hear(
        &mut self,
        node: &NodeName,
        resource: &Resource,
        ahead: bool,
        around: Around,
    ) -> Verdict {
        if self.all.len() < WITNESSES_MAX || self.all.contains_key(node) {
            let own = self.all.entry(node.clone()).or_default();
            self.ahead -= usize::from(!own.is_empty());
            match ahead {
                true => own.insert(resource.clone()),
                false => own.remove(resource),
            };
            self.ahead += usize::from(!own.is_empty());
        }
        if !ahead {
            return Verdict::Same;
        }
        let since = *self.since.get_or_insert(around.now);
        let enough = self.all.len() >= QUORUM.min(around.nodes);
        let waited = around.now.saturating_sub(since) >= PATIENCE;
        match self.ahead * 2 > self.all.len() && (enough || waited) {
            true => Verdict::Another,
            false => Verdict::Same,
        }
    }

    /// A new epoch began: what was said before is of no use.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(witnesses: &mut Witnesses, node: &str, ahead: bool, at: u64) -> Verdict {
        let now = Duration::from_secs(at);
        let around = Around { nodes: 50, now };
        witnesses.hear(&node.into(), &pods(), ahead, around)
    }

    fn pods() -> Resource {
        Resource::new("", "pods")
    }

    #[test]
    fn a_calm_word_of_one_resource_takes_nothing_back_of_another() {
        let mut witnesses = Witnesses::default();
        for node in ["a", "b"] {
            assert_eq!(hear(&mut witnesses, node, true, 0), Verdict::Same);
            let now = Duration::ZERO;
            let around = Around { nodes: 50, now };
            let secrets = Resource::new("", "secrets");
            witnesses.hear(&node.into(), &secrets, false, around);
        }
        assert_eq!(hear(&mut witnesses, "c", true, 0), Verdict::Another);
    }

    #[test]
    fn one_node_among_many_changes_nothing_be_it_the_first_that_comes() {
        let mut witnesses = Witnesses::default();
        assert_eq!(hear(&mut witnesses, "liar", true, 0), Verdict::Same);
        for node in ["a", "b", "c"] {
            assert_eq!(hear(&mut witnesses, node, false, 1), Verdict::Same);
        }
        for at in 0..1_000 {
            assert_eq!(hear(&mut witnesses, "liar", true, at), Verdict::Same);
        }
    }

    #[test]
    fn most_of_them_are_believed() {
        let mut witnesses = Witnesses::default();
        assert_eq!(hear(&mut witnesses, "new", false, 0), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "a", true, 0), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "b", true, 0), Verdict::Another);
    }

    #[test]
    fn where_few_come_they_are_believed_after_a_while() {
        let mut witnesses = Witnesses::default();
        assert_eq!(hear(&mut witnesses, "a", true, 5), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "a", true, 124), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "a", true, 125), Verdict::Another);
    }

    #[test]
    fn the_only_node_is_believed_and_a_calm_word_takes_an_earlier_one_back() {
        let mut witnesses = Witnesses::default();
        let now = Duration::ZERO;
        let alone = Around { nodes: 1, now };
        let mut says = |ahead| witnesses.hear(&"a".into(), &pods(), ahead, alone);
        assert_eq!(says(true), Verdict::Another);
        assert_eq!(says(false), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "b", true, 500), Verdict::Same);
    }
}
