//! What is to be written: of each record the newest word, and when its turn is.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use object::{ObjectName, Resource, Version};

use super::Summary;
use super::text::record_name;
use crate::view::NodeName;

/// Which record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    Object { node: NodeName, uid: Box<str> },
    Node { node: NodeName },
}

impl Key {
    pub(super) fn node(&self) -> &NodeName {
        match self {
            Self::Object { node, .. } | Self::Node { node } => node,
        }
    }

    /// The record's name, if there can be one.
    pub(super) fn record(&self) -> Option<String> {
        match self {
            Self::Object { node, uid } => record_name(node, uid),
            Self::Node { node } => Some(node.to_string()),
        }
    }
}

/// What a record is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// The node holds the object at this version.
    Holds {
        resource: Resource,
        name: ObjectName,
        version: Version,
    },
    /// How far the node is.
    Node(Box<Summary>),
    /// Nothing: there is to be no record. The name says where it would be.
    Nothing { name: ObjectName },
}

/// Whether a record is believed to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Believed {
    There,
    Missing,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) word: Word,
    /// Counts the words, so that one that was replaced while it was written is known.
    pub(super) turn: u64,
    pub(super) believed: Believed,
    /// Requests that it took so far.
    pub(super) tries: u32,
    /// Its place in the order; none while it is being written.
    place: Option<(Duration, u64)>,
}

/// Records that are to be written.
#[derive(Debug, Default)]
pub(super) struct Pending {
    entries: HashMap<Key, Entry>,
    order: BTreeMap<(Duration, u64), Key>,
    count: u64,
    /// How many entries are of nodes.
    nodes: usize,
}

impl Pending {
    /// How many records of objects are to be written.
    pub(super) fn objects(&self) -> usize {
        self.entries.len() - self.nodes
    }

    /// How many records of nodes are to be written.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Takes the newest word on a record. A record that waits keeps its turn.
    pub(super) fn say(&mut self, key: Key, word: Word, believed: Believed, due: Duration) {
        self.count += 1;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.word = word;
            entry.turn = self.count;
            return;
        }
        let place = (due, self.count);
        self.nodes += usize::from(matches!(key, Key::Node { .. }));
        self.order.insert(place, key.clone());
        let entry = Entry {
            word,
            turn: self.count,
            believed,
            tries: 0,
            place: Some(place),
        };
        self.entries.insert(key, entry);
    }

    /// When the first is due.
    pub(super) fn due(&self) -> Option<Duration> {
        self.order.keys().next().map(|(due, _)| *due)
    }

    /// Takes the first out of the order, to be written.
    pub(super) fn take(&mut self) -> Option<(Key, Entry)> {
        let (_, key) = self.order.pop_first()?;
        let entry = self.entries.get_mut(&key)?;
        entry.place = None;
        entry.tries += 1;
        Some((key, entry.clone()))
    }

    /// Puts one that was written back into the order.
    pub(super) fn again(&mut self, key: &Key, believed: Believed, due: Duration) {
        self.count += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.believed = believed;
            let place = *entry.place.get_or_insert((due, self.count));
            self.order.insert(place, key.clone());
        }
    }

    /// One that was replaced meanwhile counts its tries anew.
    pub(super) fn afresh(&mut self, key: &Key) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.tries = 0;
        }
    }

    pub(super) fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.nodes -= usize::from(matches!(key, Key::Node { .. }));
            if let Some(place) = entry.place {
                self.order.remove(&place);
            }
        }
    }

    /// Forgets what is to be said of the objects of a node.
    pub(super) fn forget(&mut self, node: &NodeName) {
        let of_node = |key: &&Key| matches!(key, Key::Object { .. }) && key.node() == node;
        let keys: Vec<Key> = self.entries.keys().filter(of_node).cloned().collect();
        for key in keys {
            self.remove(&key);
        }
    }
}
