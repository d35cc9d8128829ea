//! When the history of the cluster is another one: its store was restored from a backup.
//!
//! A hub that was there sees versions go back. One that starts afterwards has only the nodes' word:
//! they were told of versions that the cluster does not know. One node may be wrong, or lie; that
//! most of those that came say so is believed.

use std::collections::HashMap;

use crate::sessions::NodeName;

/// Nodes whose word is kept. Beyond it further ones are not asked: that many agree or do not.
const WITNESSES_MAX: usize = 10_000;

/// What nodes say of the cluster's history.
#[derive(Debug, Default)]
pub struct Witnesses {
    /// Of each node that came: whether it was told of a version that there is not.
    all: HashMap<NodeName, bool>,
    ahead: usize,
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
    /// A node came. `ahead` says that it was told of a version above what a consistent read of the
    /// cluster gives.
    pub fn hear(&mut self, node: &NodeName, ahead: bool) -> Verdict {
        if self.all.len() < WITNESSES_MAX || self.all.contains_key(node) {
            let before = self.all.insert(node.clone(), ahead).unwrap_or(false);
            self.ahead -= usize::from(before);
            self.ahead += usize::from(ahead);
        }
        match ahead && self.ahead * 2 > self.all.len() {
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

    fn hear(witnesses: &mut Witnesses, node: &str, ahead: bool) -> Verdict {
        witnesses.hear(&node.into(), ahead)
    }

    #[test]
    fn one_node_among_many_changes_nothing() {
        let mut witnesses = Witnesses::default();
        for node in ["a", "b", "c"] {
            assert_eq!(hear(&mut witnesses, node, false), Verdict::Same);
        }
        for _ in 0..10 {
            assert_eq!(hear(&mut witnesses, "liar", true), Verdict::Same);
        }
    }

    #[test]
    fn most_of_them_are_believed() {
        let mut witnesses = Witnesses::default();
        assert_eq!(hear(&mut witnesses, "new", false), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "a", true), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "b", true), Verdict::Another);
    }

    #[test]
    fn the_only_node_is_believed_and_a_calm_word_takes_an_earlier_one_back() {
        let mut witnesses = Witnesses::default();
        assert_eq!(hear(&mut witnesses, "a", true), Verdict::Another);
        assert_eq!(hear(&mut witnesses, "a", false), Verdict::Same);
        assert_eq!(hear(&mut witnesses, "b", true), Verdict::Same);
    }
}
