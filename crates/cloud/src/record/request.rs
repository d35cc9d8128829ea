//! A word on a record, as a request.

use std::collections::BTreeMap;

use bytes::Bytes;
use object::{ObjectName, Resource};

use super::pending::{Believed, Entry, Key, Word};
use super::text::{self, Described, RecordKind};

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// What kind of request.
    pub verb: Verb,
    /// Where to.
    pub path: String,
    /// What it says.
    pub body: Bytes,
    pub(super) key: Key,
    pub(super) turn: u64,
}

/// Kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Creates a record.
    Create,
    /// Merges into a record's status.
    Patch,
    /// Deletes a record.
    Delete,
}

impl Write {
    /// The request that the newest word on a record needs now.
    pub(super) fn new(key: Key, entry: &Entry, kinds: &BTreeMap<Resource, Described>) -> Self {
        let (kind, name) = place(&key, &entry.word);
        let served = kind.served();
        let own_path = || served.object_path(&name);
        let status_path = || format!("{}/status", own_path());
        let (verb, path, body) = match (&entry.word, entry.believed) {
            (Word::Nothing { .. }, _) => (Verb::Delete, own_path(), Bytes::new()),
            (word, Believed::Missing) => {
                let collection = match name.namespace() {
                    "" => served.path(),
                    namespace => served.namespace_path(namespace),
                };
                (
                    Verb::Create,
                    collection,
                    body(&key, name.name(), word, kinds),
                )
            }
            (Word::Holds { version, .. }, Believed::There) => {
                (Verb::Patch, status_path(), text::object_status(version))
            }
            (Word::Node(summary), Believed::There) => {
                (Verb::Patch, status_path(), text::node_status(summary))
            }
        };
        let turn = entry.turn;
        Self {
            verb,
            path,
            body,
            key,
            turn,
        }
    }
}

/// Which kind of record it is, and its own name.
fn place(key: &Key, word: &Word) -> (RecordKind, ObjectName) {
    match (key, word) {
        (Key::Object { node, uid }, Word::Holds { name, .. } | Word::Nothing { name }) => {
            let record = ObjectName::new(name.namespace(), &format!("{node}.{uid}"));
            (RecordKind::of(name), record)
        }
        (Key::Object { node, .. } | Key::Node { node }, _) => {
            (RecordKind::NodeSync, ObjectName::new("", node))
        }
    }
}

fn body(key: &Key, record: &str, word: &Word, kinds: &BTreeMap<Resource, Described>) -> Bytes {
    match word {
        Word::Holds { resource, name, .. } => {
            text::object_record(key.node(), record, name, &kinds[resource])
        }
        Word::Node(_) | Word::Nothing { .. } => text::node_record(key.node()),
    }
}
