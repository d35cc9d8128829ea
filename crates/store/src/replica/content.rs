//! The rows of a table while scopes of it are replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use object::digest::Sum;
use object::{Header, Object, ObjectName, Version};

use crate::log::Input;
use crate::row::Row;
use crate::table::Held;
use object::scope::{Range, Scope};

/// Headers of all rows, as the replacements so far leave them.
pub(super) struct Content {
    rows: BTreeMap<ObjectName, Entry>,
    /// Rows as they were shown, for those that a replacement touched; nothing for new ones.
    shown: BTreeMap<ObjectName, Option<Entry>>,
    /// What the last replacement touched.
    touched: Vec<ObjectName>,
}

/// A row that is stored, or one that the cut brings. Neither is copied to be asked about.
enum Entry {
    Stored(Arc<Row>),
    New(Box<Header>),
}

/// What becomes of a row whose version is the same and whose bytes are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    /// It gets the new ones.
    Renewed,
    /// It keeps those that it has: it was shown with them at this version.
    Kept,
}

/// How much an object is like another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likeness {
    /// It is another one, or another version of it.
    None,
    /// It is the same version, with other bytes.
    Version,
    /// It is the same.
    Whole,
}

impl Likeness {
    /// Whether what is here stays.
    fn is_kept(self, bytes: Bytes) -> bool {
        match self {
            Self::None => false,
            Self::Version => bytes == Bytes::Kept,
            Self::Whole => true,
        }
    }
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
            touched: Vec::new(),
        }
    }

    /// The version at which the same object is here already, if that is above the header's.
    pub(super) fn newer_than(&self, header: &Header) -> Option<&Version> {
        let here = self.rows.get(&header.name)?.header();
        let newer = here.uid == header.uid && here.version > header.version;
        newer.then_some(&here.version)
    }

    /// Takes an object in. Returns whether that changes anything.
    pub(super) fn put(&mut self, object: &Object, bytes: Bytes) -> bool {
        let header = &object.header;
        let there = self.likeness(header, || Sum::of(&object.bytes));
        !there.is_kept(bytes) && self.swap(header, || Entry::New(Box::new(header.clone())))
    }

    /// Takes a row in that was staged. Returns whether that changes anything.
    pub(super) fn adopt(&mut self, row: &Arc<Row>, bytes: Bytes) -> bool {
        let there = self.likeness(&row.header, || row.content());
        !there.is_kept(bytes) && self.swap(&row.header, || Entry::Stored(row.clone()))
    }

    /// Whether a row that was staged is left where it is, since the same version is here with other
    /// bytes and must stay.
    pub(super) fn is_left(&self, row: &Row, bytes: Bytes) -> bool {
        let there = self.likeness(&row.header, || row.content());
        there == Likeness::Version && there.is_kept(bytes)
    }

    /// How much an object is like the one that is here.
    fn likeness(&self, header: &Header, sum: impl FnOnce() -> Sum) -> Likeness {
        let here = self.rows.get(&header.name);
        let same = |here: &Header| here.uid == header.uid && here.version == header.version;
        match here.filter(|here| same(here.header())) {
            None => Likeness::None,
            Some(Entry::Stored(row)) if row.content() != sum() => Likeness::Version,
            // What one cut brings twice, it brings with the same bytes.
            Some(Entry::Stored(_) | Entry::New(_)) => Likeness::Whole,
        }
    }

    fn swap(&mut self, header: &Header, entry: impl FnOnce() -> Entry) -> bool {
        let before = self.rows.insert(header.name.clone(), entry());
        self.touch(header.name.clone(), before);
        true
    }

    /// Takes an object out.
    pub(super) fn remove(&mut self, name: ObjectName, uid: Box<str>, at: &Version) -> Input {
        let before = self.rows.remove(&name);
        self.touch(name.clone(), before);
        let version = at.clone();
        Input::Delete { name, uid, version }
    }

    fn touch(&mut self, name: ObjectName, before: Option<Entry>) {
        self.touched.push(name.clone());
        // What one replacement brought, nobody was shown when the next one touches it.
        self.shown.entry(name).or_insert(before);
    }

    /// The names of what is in the scope.
    pub(super) fn names(&self, scope: &Scope) -> BTreeSet<ObjectName> {
        let found = self.found(scope, |_| true);
        found.into_iter().map(|(name, _)| name).collect()
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

    /// Whether the last replacement touched what one of these scopes had shown. Another begins.
    pub(super) fn altered(&mut self, before: &[Held]) -> bool {
        let touched = std::mem::take(&mut self.touched);
        touched.iter().any(|name| {
            let shown = self.shown.get(name).and_then(Option::as_ref);
            let entries = shown.into_iter().chain(self.rows.get(name));
            let mut headers = entries.map(Entry::header);
            headers.any(|header| before.iter().any(|held| held.scope.contains(header)))
        })
    }
}
