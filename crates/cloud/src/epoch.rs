//! When the history of the cluster is another one: its store was restored from a backup.
//!
//! A hub that was there sees versions go back. One that starts afterwards has only the nodes' word:
//! they were told of versions that the cluster does not know. One node may be wrong, or lie; that
//! most of those that came say so is believed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use object::Resource;

use crate::sessions::NodeName;

/// Nodes whose word is kept. Beyond it further ones are not asked: that many agree or do not.
const WITNESSES_MAX: usize = 10_000;

/// So many nodes must have come before most of them are believed, if the cluster has so many.
const QUORUM: usize = 3;
/// Where fewer come, those are believed after this time.
pub const PATIENCE: Duration = Duration::from_secs(120);

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
        match self.ahead {
            0 => self.since = None,
            _ => drop(self.since.get_or_insert(around.now)),
        }
        self.verdict(around)
    }

    /// What to make of all that was said. Where few come, nobody may say anything more: it is to be
    /// asked now and then.
    pub fn verdict(&self, around: Around) -> Verdict {
        let waited = |since| around.now.saturating_sub(since) >= PATIENCE;
        let enough = self.all.len() >= QUORUM.min(around.nodes);
        let enough = enough || self.since.is_some_and(waited);
        match enough && self.most_say_so() {
            true => Verdict::Another,
            false => Verdict::Same,
        }
    }

    /// Whether most of those that came were told of a version that there is not.
    pub fn most_say_so(&self) -> bool {
        self.ahead * 2 > self.all.len()
    }

    /// A new epoch began: what was said before is of no use.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Epochs that are remembered though they are not this hub's; of more, the lowest are forgotten,
/// and looked up again.
const STRANGERS_MAX: usize = 64;

/// Epochs that nodes name and that are not this hub's. Most are of the past. But a node may have
/// come from a hub that knows better: this one would take it back to what it knew before the
/// cluster was restored. So it is looked what the hubs agreed on, before such a node has a session.
#[derive(Debug, Default)]
pub struct Strangers {
    /// When each was named first.
    named: BTreeMap<u64, Duration>,
    /// When the last look began that found this hub's own epoch.
    looked: Duration,
    asked: bool,
}

impl Strangers {
    /// Whether a node that names this epoch must wait for a look.
    pub fn must_wait(&mut self, epoch: u64, now: Duration) -> bool {
        if self.named.len() >= STRANGERS_MAX && !self.named.contains_key(&epoch) {
            self.named.pop_first();
        }
        let named = *self.named.entry(epoch).or_insert(now);
        let waits = self.looked < named;
        self.asked |= waits;
        waits
    }

    /// Whether a look is wanted; this is told once.
    pub fn asks(&mut self) -> bool {
        std::mem::take(&mut self.asked)
    }

    /// A look that began then found that the epoch is still this hub's.
    pub fn looked(&mut self, began: Duration) {
        self.looked = began;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_an_epoch_that_nobody_looked_for_waits() {
        let seconds = Duration::from_secs;
        let mut strangers = Strangers::default();
        strangers.looked(seconds(5));
        assert!(!strangers.asks());
        assert!(strangers.must_wait(7, seconds(10)));
        assert!(strangers.asks() && !strangers.asks());
        // One that had begun before says nothing.
        strangers.looked(seconds(9));
        assert!(strangers.must_wait(7, seconds(11)));
        strangers.looked(seconds(11));
        assert!(!strangers.must_wait(7, seconds(12)));
        assert!(strangers.must_wait(8, seconds(12)));
        assert!(!strangers.must_wait(7, seconds(12)));
    }

    #[test]
    fn any_number_of_epochs_takes_little() {
        let mut strangers = Strangers::default();
        for epoch in 0..10_000 {
            assert!(strangers.must_wait(epoch, Duration::from_secs(1)));
        }
        assert_eq!(strangers.named.len(), STRANGERS_MAX);
    }

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
    fn where_few_come_they_need_not_say_it_again() {
        let mut witnesses = Witnesses::default();
        let at = |seconds| Around {
            nodes: 50,
            now: Duration::from_secs(seconds),
        };
        assert_eq!(witnesses.verdict(at(500)), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "a", true, 500), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "a", false, 600), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "a", true, 610), Verdict::Same);
        assert_eq!(witnesses.verdict(at(729)), Verdict::Same);
        assert_eq!(witnesses.verdict(at(730)), Verdict::Another);
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
