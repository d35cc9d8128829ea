//! The rows of a table while scopes of it are replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use object::{Header, Object, ObjectName, Version};

use crate::log::Input;
use crate::row::Row;
use crate::table::Held;
use object::scope::{Range, Scope};

/// Headers of all rows, as the replacements so far leave them.
pub(super) struct Content {
    rows: BTreeMap<ObjectName, Entry>,
    /// Rows as they were shown, for those that a replacement touched.
    shown: BTreeMap<ObjectName, Entry>,
}

/// A row that is stored, or one that the cut brings. Neither is copied to be asked about.
enum Entry {
    Stored(Arc<Row>),
    New(Box<Header>),
}

impl Entry {
    fn header(&self) -> &Header {
        match self {
            Self::Stored(row) => &row.header,
            Self::New(header) => header,
        }
    }
}

impl Content {
    /// The stored rows, and above them what the cut changed.
    pub(super) fn new(
        rows: BTreeMap<ObjectName, Arc<Row>>,
        later: &BTreeMap<ObjectName, Option<Header>>,
    ) -> Self {
        let mut rows: BTreeMap<_, _> = rows
            .into_iter()
            .map(|(name, row)| (name, Entry::Stored(row)))
            .collect();
        for (name, header) in later {
            match header {
                Some(header) => {
                    let entry = Entry::New(Box::new(header.clone()));
                    rows.insert(name.clone(), entry);
                }
                None => drop(rows.remove(name)),
            }
        }
        Self {
            rows,
            shown: BTreeMap::new(),
        }
    }

    /// The version at which the same object is here already, if that is above the header's.
    pub(super) fn newer_than(&self, header: &Header) -> Option<&Version> {
        let here = self.rows.get(&header.name)?.header();
        let newer = here.uid == header.uid && here.version > header.version;
        newer.then_some(&here.version)
    }

    /// Takes an object in. Returns whether that changes anything.
    pub(super) fn put(&mut self, object: &Object) -> bool {
        let header = &object.header;
        let here = self.rows.get(&header.name).map(Entry::header);
        if here.is_some_and(|here| here.uid == header.uid && here.version == header.version) {
            return false;
        }
        let entry = Entry::New(Box::new(header.clone()));
        if let Some(before) = self.rows.insert(header.name.clone(), entry) {
            self.shown.insert(header.name.clone(), before);
        }
        true
    }

    /// Takes an object out.
    pub(super) fn remove(&mut self, name: ObjectName, uid: Box<str>, at: &Version) -> Input {
        if let Some(before) = self.rows.remove(&name) {
            self.shown.insert(name.clone(), before);
        }
        let version = at.clone();
        Input::Delete { name, uid, version }
    }

    /// What is in the scope and not wanted there.
    pub(super) fn strangers(
        &self,
        scope: &Scope,
        wanted: &BTreeSet<ObjectName>,
    ) -> Vec<(ObjectName, Box<str>)> {
        self.found(scope, |header| !wanted.contains(&header.name))
    }

    /// What is in the scope and in none of the others.
    pub(super) fn only_in(&self, scope: &Scope, held: &[Held]) -> Vec<(ObjectName, Box<str>)> {
        self.found(scope, |header| {
            !held.iter().any(|held| held.scope.contains(header))
        })
    }

    /// What is in the scope and meets the condition. A scope of one object looks at one only: a
    /// node may start thousands of those at once.
    fn found(
        &self,
        scope: &Scope,
        wanted: impl Fn(&Header) -> bool,
    ) -> Vec<(ObjectName, Box<str>)> {
        let (one, all) = match &scope.range {
            Range::Name(name) => (self.rows.get(name), None),
            Range::All | Range::Namespace(_) | Range::Node(_) => (None, Some(self.rows.values())),
        };
        let headers = one.into_iter().chain(all.into_iter().flatten());
        let headers = headers.map(Entry::header);
        headers
            .filter(|header| scope.contains(header) && wanted(header))
            .map(|header| (header.name.clone(), header.uid.clone()))
            .collect()
    }

    /// Whether a swap touches what one of these scopes had shown.
    pub(super) fn alters(&self, swaps: &[Input], before: &[Held]) -> bool {
        swaps.iter().any(|swap| {
            let (name, after) = match swap {
                Input::Put(object) => (&object.header.name, Some(&object.header)),
                Input::Delete { name, .. } => (name, None),
                Input::Replace { .. } => return false,
            };
            let shown = self.shown.get(name).map(Entry::header);
            let mut touched = shown.into_iter().chain(after);
            touched.any(|header| before.iter().any(|held| held.scope.contains(header)))
        })
    }
}
