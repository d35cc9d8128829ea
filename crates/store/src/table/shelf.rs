//! Shelves: content that is on disk and shown to nobody. What is staged for a scope lies on one,
//! until a reset takes it; documents lie on one of their own. A shelf has no history.

use std::collections::BTreeMap;
use std::sync::Arc;

use object::digest::{Digest, Member};
use object::scope::Scope;
use object::{ObjectName, Resource};

use crate::row::Row;

/// What the content of a shelf is laid over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// Nothing: the scope has what lies here.
    Nothing,
    /// What is held when the reset comes: what is not named here stays.
    Held,
}

/// What happens to a shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shelving {
    /// It is made, or emptied and filled again.
    Anew(Over),
    /// Something is added to it.
    More,
    /// It goes.
    Gone,
}

/// The content of one scope.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    pub(crate) scope: Scope,
    pub(crate) epoch: u64,
    pub(crate) over: Over,
    /// Nothing for what does not stay of what this is laid over.
    rows: BTreeMap<ObjectName, Option<Arc<Row>>>,
}

impl Shelf {
    pub(crate) fn new(scope: Scope, epoch: u64, over: Over) -> Self {
        Self {
            scope,
            epoch,
            over,
            rows: BTreeMap::new(),
        }
    }

    /// Everything that lies here or does not stay, by name.
    pub(crate) fn entries(
        &self,
    ) -> impl ExactSizeIterator<Item = (&ObjectName, Option<&Arc<Row>>)> {
        self.rows.iter().map(|(name, row)| (name, row.as_ref()))
    }

    /// What lies here.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.rows.values().flatten()
    }

    pub(crate) fn row(&self, name: &str) -> Option<&Arc<Row>> {
        self.rows.get(name)?.as_ref()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Lays something here, or says that something does not stay. Gives what lay in its place.
    pub(crate) fn set(&mut self, name: ObjectName, row: Option<Arc<Row>>) -> Option<Arc<Row>> {
        match (row, self.over) {
            (None, Over::Nothing) => self.rows.remove(&name)?,
            (row, _) => self.rows.insert(name, row)?,
        }
    }

    fn bytes(&self) -> u64 {
        self.rows().map(bytes_of).sum()
    }
}

fn bytes_of(row: &Arc<Row>) -> u64 {
    u64::from(row.bytes_len())
}

/// The digest of rows, by which a reset knows that it takes what was meant.
pub(crate) fn digest_of<'r>(
    resource: &Resource,
    rows: impl IntoIterator<Item = &'r Arc<Row>>,
) -> Digest {
    let mut digest = Digest::default();
    for row in rows {
        digest.add(Member::of(resource, &row.header));
    }
    digest
}

/// All shelves of a table.
#[derive(Debug, Default)]
pub(crate) struct Shelves {
    shelves: BTreeMap<Vec<u8>, Shelf>,
    bytes: u64,
}

/// By what a shelf is found.
pub(crate) fn key(scope: &Scope) -> Vec<u8> {
    let mut key = Vec::new();
    scope.encode(&mut key);
    key
}

impl Shelves {
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Shelf> {
        self.shelves.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &Shelf)> {
        self.shelves.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.shelves.len()
    }

    /// Bytes of everything that lies here.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The shelf to lay something on; nothing if there is none.
    pub(super) fn shelve(
        &mut self,
        scope: &Scope,
        epoch: u64,
        shelving: Shelving,
    ) -> Option<Laying<'_>> {
        let key = key(scope);
        if shelving != Shelving::More
            && let Some(gone) = self.shelves.remove(&key)
        {
            self.bytes -= gone.bytes();
        }
        let shelf = match shelving {
            Shelving::Anew(over) => {
                let shelf = Shelf::new(scope.clone(), epoch, over);
                self.shelves.entry(key).or_insert(shelf)
            }
            Shelving::More => self.shelves.get_mut(&key)?,
            Shelving::Gone => return None,
        };
        let bytes = &mut self.bytes;
        Some(Laying { shelf, bytes })
    }
}

/// A shelf while something is laid on it.
pub(super) struct Laying<'s> {
    shelf: &'s mut Shelf,
    bytes: &'s mut u64,
}

impl Laying<'_> {
    pub(super) fn set(&mut self, name: ObjectName, row: Option<Arc<Row>>) {
        *self.bytes += row.as_ref().map_or(0, bytes_of);
        let before = self.shelf.set(name, row);
        *self.bytes -= before.as_ref().map_or(0, bytes_of);
    }
}
