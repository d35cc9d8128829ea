//! One resource: its rows, the ring of its last changes, what finds them, and their digest.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use object::{Header, Object, ObjectName, Range, Resource, Scope, Version};
use wire::digest::{Digest, Member};
use wire::ring::{Ring, Step};

use super::packed::{Packed, Packer};
use super::relist::Staged;
use super::{Counts, Misfit, Trouble};

/// Objects and bytes of a page.
pub(super) const PAGE_OBJECTS_MAX: usize = 64;
pub(super) const PAGE_BYTES_MAX: usize = 256 * 1024;

/// Whose bytes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Those of all objects.
    All,
    /// Those that somebody [wants](super::Cache::want): for secrets and the like, of which a hub
    /// should hold no more than it needs.
    Wanted,
}

/// Whether bytes that are wanted are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// They are.
    Here,
    /// They are not: they must be fetched.
    Lacking,
    /// There is no such object, as far as is known. If it comes, its bytes will be kept.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) resource: Resource,
    /// Why it is not followed for now.
    pub(super) trouble: Option<Trouble>,
    /// The last changes; nothing before the first list.
    pub(super) ring: Option<Ring>,
    /// A list that is being read.
    pub(super) staged: Option<Staged>,
    pub(super) packer: Packer,
    rows: BTreeMap<ObjectName, Row>,
    /// Objects that are bound to a node, by it.
    by_node: HashMap<Box<str>, BTreeSet<ObjectName>>,
    digest: Digest,
    pub(super) keep: Keep,
    wanted: BTreeMap<ObjectName, u32>,
    steps_max: usize,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) header: Arc<Header>,
    pub(super) packed: Option<Packed>,
}

impl Table {
    pub(super) fn new(resource: Resource, keep: Keep, steps_max: usize) -> Self {
        Self {
            resource,
            trouble: None,
            ring: None,
            staged: None,
            packer: Packer::default(),
            rows: BTreeMap::new(),
            by_node: HashMap::new(),
            digest: Digest::default(),
            keep,
            wanted: BTreeMap::new(),
            steps_max,
        }
    }

    /// Forgets everything but what is wanted.
    pub(super) fn clear(&mut self) {
        let wanted = std::mem::take(&mut self.wanted);
        *self = Self {
            wanted,
            ..Self::new(self.resource.clone(), self.keep, self.steps_max)
        };
    }

    /// Puts an object.
    pub(super) fn put(&mut self, header: Arc<Header>, bytes: &Bytes) -> Result<(), Misfit> {
        let before = self.header(&header.name).cloned();
        let after = Some(header.clone());
        self.push(&header.name, &header.version, before, after)?;
        let row = self.make_row(header, bytes);
        self.insert(row);
        Ok(())
    }

    /// Removes the object of this name and uid. Gives what it was; nothing if it was not there.
    pub(super) fn delete(
        &mut self,
        name: &ObjectName,
        uid: &str,
        version: Version,
    ) -> Result<Option<Arc<Header>>, Misfit> {
        let before = self
            .header(name)
            .filter(|header| &*header.uid == uid)
            .cloned();
        match &before {
            Some(_) => {
                self.push(name, &version, before.clone(), None)?;
                self.remove(name);
            }
            None => self.ring_mut()?.advance(&version),
        }
        Ok(before)
    }

    pub(super) fn header(&self, name: &ObjectName) -> Option<&Arc<Header>> {
        self.rows.get(name).map(|row| &row.header)
    }

    pub(super) fn row(&self, name: &ObjectName) -> Option<(&Header, Option<&Packed>)> {
        let row = self.rows.get(name)?;
        Some((&row.header, row.packed.as_ref()))
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// Whether the bytes of the object of this name are kept.
    pub(super) fn holds(&self, name: &ObjectName) -> bool {
        self.keep == Keep::All || self.wanted.contains_key(name)
    }

    /// A row for an object, packed if its bytes are kept.
    pub(super) fn make_row(&mut self, header: Arc<Header>, bytes: &Bytes) -> Row {
        let holds = self.holds(&header.name);
        let packed = holds.then(|| self.packer.pack(&header, bytes));
        Row { header, packed }
    }

    /// Puts a row, whatever was there.
    pub(super) fn insert(&mut self, row: Row) {
        let name = row.header.name.clone();
        self.remove(&name);
        self.digest.add(Member::of(&self.resource, &row.header));
        if let Some(node) = node(&row.header) {
            self.by_node
                .entry(node.into())
                .or_default()
                .insert(name.clone());
        }
        self.rows.insert(name, row);
    }

    /// Takes a row away, if it is there.
    pub(super) fn remove(&mut self, name: &ObjectName) {
        let Some(row) = self.rows.remove(name) else {
            return;
        };
        self.digest.remove(Member::of(&self.resource, &row.header));
        if let Some(node) = node(&row.header)
            && let Some(names) = self.by_node.get_mut(node)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_node.remove(node);
            }
        }
    }

    pub(super) fn start(&mut self, version: Version) {
        self.ring = Some(Ring::new(version, self.steps_max));
    }

    /// Notes what became of an object.
    pub(super) fn push(
        &mut self,
        name: &ObjectName,
        version: &Version,
        before: Option<Arc<Header>>,
        after: Option<Arc<Header>>,
    ) -> Result<(), Misfit> {
        let step = Step {
            version: version.clone(),
            name: name.clone(),
            before,
            after,
        };
        Ok(self.ring_mut()?.push(step)?)
    }

    fn ring_mut(&mut self) -> Result<&mut Ring, Misfit> {
        let not_listed = || Misfit::NotListed(self.resource.clone());
        self.ring.as_mut().ok_or_else(not_listed)
    }

    pub(super) fn want(&mut self, name: &ObjectName) -> Wanted {
        if self.keep == Keep::Wanted {
            *self.wanted.entry(name.clone()).or_default() += 1;
        }
        match self.row(name) {
            Some((_, Some(_))) => Wanted::Here,
            Some((_, None)) => Wanted::Lacking,
            None => Wanted::Unknown,
        }
    }

    /// Says whether the bytes of the object went.
    pub(super) fn release(&mut self, name: &ObjectName) -> bool {
        let Some(count) = self.wanted.get_mut(name) else {
            return false;
        };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        self.wanted.remove(name);
        if let Some(row) = self.rows.get_mut(name) {
            row.packed = None;
        }
        true
    }

    pub(super) fn lacking(&self, scope: &Scope) -> Vec<ObjectName> {
        let rows = self.rows_of(scope, None);
        let lacking = rows.filter(|row| row.packed.is_none() && self.holds(&row.header.name));
        lacking.map(|row| row.header.name.clone()).collect()
    }

    pub(super) fn lacking_all(&self) -> Vec<ObjectName> {
        let lacks = |name: &&ObjectName| matches!(self.row(name), Some((_, None)));
        self.wanted.keys().filter(lacks).cloned().collect()
    }

    pub(super) fn supply(&mut self, object: &Object) -> bool {
        let name = &object.header.name;
        let fits = |row: &&mut Row| row.packed.is_none() && is_same(&row.header, &object.header);
        if !self.holds(name) {
            return false;
        }
        let packed = self.packer.pack(&object.header, &object.bytes);
        match self.rows.get_mut(name).filter(fits) {
            Some(row) => {
                row.packed = Some(packed);
                true
            }
            None => false,
        }
    }

    /// The objects in any of these scopes, each once.
    pub(super) fn within<'t>(
        &'t self,
        scopes: &'t [Scope],
    ) -> impl Iterator<Item = &'t Arc<Header>> {
        scopes.iter().enumerate().flat_map(move |(index, scope)| {
            let rows = self.rows_of(scope, None).map(|row| &row.header);
            rows.filter(move |header| {
                let earlier = &scopes[..index];
                !earlier.iter().any(|scope| scope.contains(header))
            })
        })
    }

    pub(super) fn digest_of(&self, scopes: &[Scope]) -> (Digest, u64) {
        let everything = |scope: &Scope| *scope == Scope::all();
        if scopes.iter().any(everything) {
            return (self.digest, self.rows.len() as u64);
        }
        let mut digest = (Digest::default(), 0);
        for header in self.within(scopes) {
            digest.0.add(Member::of(&self.resource, header));
            digest.1 += 1;
        }
        digest
    }

    pub(super) fn page(&self, scope: &Scope, after: Option<&ObjectName>) -> Vec<Arc<Header>> {
        let mut page = Vec::new();
        let mut bytes = 0;
        for row in self.rows_of(scope, after).take(PAGE_OBJECTS_MAX) {
            bytes += row.packed.as_ref().map_or(0, Packed::length);
            if bytes > PAGE_BYTES_MAX && !page.is_empty() {
                break;
            }
            page.push(row.header.clone());
        }
        page
    }

    pub(super) fn counts(&self) -> Counts {
        let packed = self.rows.values().filter_map(|row| row.packed.as_ref());
        let mut counts = Counts {
            objects: self.rows.len(),
            bytes: 0,
            packed_bytes: self.packer.bytes(),
        };
        for packed in packed {
            counts.bytes += packed.length();
            counts.packed_bytes += packed.packed_length();
        }
        counts
    }

    /// The rows of a scope that come after a name, by name.
    fn rows_of<'t>(
        &'t self,
        scope: &'t Scope,
        after: Option<&'t ObjectName>,
    ) -> Box<dyn Iterator<Item = &'t Row> + 't> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows: Box<dyn Iterator<Item = &'t Row> + 't> = match &scope.range {
            Range::All => {
                let range = self.rows.range::<ObjectName, _>((start, Bound::Unbounded));
                Box::new(range.map(|(_, row)| row))
            }
            Range::Namespace(namespace) => {
                let first = ObjectName::from_path(&format!("{namespace}/"));
                let start = match after {
                    Some(after) if *after >= first => Bound::Excluded(after.clone()),
                    _ => Bound::Included(first),
                };
                let range = self.rows.range((start, Bound::Unbounded));
                let within = move |name: &ObjectName| name.namespace() == &**namespace;
                let range = range.take_while(move |(name, _)| within(name));
                Box::new(range.map(|(_, row)| row))
            }
            Range::Name(name) => {
                let later = after.is_none_or(|after| name > after);
                Box::new(self.rows.get(name).filter(|_| later).into_iter())
            }
            Range::Node(node) => {
                let names = self.by_node.get(&**node).into_iter();
                let end = Bound::Unbounded;
                let names = names.flat_map(move |names| names.range::<ObjectName, _>((start, end)));
                Box::new(names.filter_map(|name| self.rows.get(name)))
            }
        };
        Box::new(rows.filter(|row| scope.contains(&row.header)))
    }
}

/// Whether two headers are of the same version of the same object.
pub(super) fn is_same(one: &Header, other: &Header) -> bool {
    one.uid == other.uid && one.version == other.version
}

/// The node that an object is bound to.
pub(super) fn node(header: &Header) -> Option<&str> {
    header
        .fields
        .get("spec.nodeName")
        .filter(|node| !node.is_empty())
}
