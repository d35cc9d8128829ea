//! One resource: its rows, the ring of its last changes, what finds them, and their digest.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use object::{Header, Object, ObjectName, Pairs, Range, Resource, Scope, Version};
use wire::digest::{Digest, Member};
use wire::ring::{Ring, Step};

use super::packed::{Common, Packed, Packer};
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
    header: Kept,
    pub(super) packed: Option<Packed>,
}

/// A header: shared with the ring and with sessions, or short where nobody else has it. Most
/// objects do not change for hours.
#[derive(Debug)]
enum Kept {
    Shared(Arc<Header>),
    /// Without what is known anyway: the name, and what it has in common with its model's.
    Short(Box<[u8]>),
}

/// The first byte of a short header: whether the rest is all there is, or the model has more.
const WHOLE: u8 = 0;
const ALIKE: u8 = 1;

impl Kept {
    fn short(header: &Header, packed: Option<&Packed>) -> Self {
        let mut header = header.clone();
        header.name = ObjectName::from_path("-");
        let mut short = vec![WHOLE];
        let common = packed.and_then(Packed::common);
        let alike = |common: &&Common| {
            common.labels == header.labels && common.lifecycle == header.lifecycle
        };
        if common.filter(alike).is_some() {
            short[0] = ALIKE;
            header.labels = Pairs::default();
            header.lifecycle = None;
        }
        header.encode(&mut short);
        Self::Short(short.into())
    }
}

impl Row {
    /// The header of the row of this name.
    pub(super) fn header(&self, name: &ObjectName) -> Arc<Header> {
        let short = match &self.header {
            Kept::Shared(header) => return header.clone(),
            Kept::Short(short) => short,
        };
        let header = Header::decode(&short[1..]);
        let mut header = header.expect("what was encoded here can be decoded");
        header.name = name.clone();
        if short[0] == ALIKE {
            let common = self.packed.as_ref().and_then(Packed::common);
            let common = common.expect("a row like its model has one");
            header.labels = common.labels.clone();
            header.lifecycle = common.lifecycle.clone();
        }
        Arc::new(header)
    }

    /// Takes up less room, if nobody else has the header.
    fn rest(&mut self) {
        if let Kept::Shared(header) = &self.header
            && Arc::strong_count(header) == 1
        {
            self.header = Kept::short(header, self.packed.as_ref());
        }
    }

    /// Replaces the bytes, or takes them away.
    fn repack(&mut self, name: &ObjectName, packed: Option<Packed>) {
        let header = self.header(name);
        self.header = Kept::short(&header, packed.as_ref());
        self.packed = packed;
    }
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
        let before = self.header(&header.name);
        let after = Some(header.clone());
        self.push(&header.name, &header.version, before, after)?;
        let packed = self.pack(&header, bytes);
        let row = Row {
            header: Kept::Shared(header.clone()),
            packed,
        };
        self.insert(&header, row);
        Ok(())
    }

    /// Removes the object of this name and uid. Gives what it was; nothing if it was not there.
    pub(super) fn delete(
        &mut self,
        name: &ObjectName,
        uid: &str,
        version: Version,
    ) -> Result<Option<Arc<Header>>, Misfit> {
        let before = self.header(name).filter(|header| &*header.uid == uid);
        match &before {
            Some(_) => {
                self.push(name, &version, before.clone(), None)?;
                self.remove(name);
            }
            None => self.ring_mut()?.advance(&version),
        }
        Ok(before)
    }

    pub(super) fn header(&self, name: &ObjectName) -> Option<Arc<Header>> {
        self.rows.get(name).map(|row| row.header(name))
    }

    pub(super) fn row(&self, name: &ObjectName) -> Option<&Row> {
        self.rows.get(name)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&ObjectName, &Row)> {
        self.rows.iter()
    }

    /// Whether the bytes of the object of this name are kept.
    pub(super) fn holds(&self, name: &ObjectName) -> bool {
        self.keep == Keep::All || self.wanted.contains_key(name)
    }

    /// A row for an object that is listed.
    pub(super) fn make_row(&mut self, object: &Object) -> Row {
        let packed = self.pack(&object.header, &object.bytes);
        let header = Kept::short(&object.header, packed.as_ref());
        Row { header, packed }
    }

    /// An object's bytes, packed, if they are kept.
    fn pack(&mut self, header: &Header, bytes: &Bytes) -> Option<Packed> {
        let holds = self.holds(&header.name);
        holds.then(|| self.packer.pack(header, bytes))
    }

    /// Puts a row with this header, whatever was there.
    pub(super) fn insert(&mut self, header: &Header, row: Row) {
        let name = header.name.clone();
        self.remove(&name);
        self.digest.add(Member::of(&self.resource, header));
        if let Some(node) = node(header) {
            let names = self.by_node.entry(node.into()).or_default();
            names.insert(name.clone());
        }
        self.rows.insert(name, row);
    }

    /// Takes a row away, if it is there.
    pub(super) fn remove(&mut self, name: &ObjectName) {
        let Some(row) = self.rows.remove(name) else {
            return;
        };
        let header = row.header(name);
        self.digest.remove(Member::of(&self.resource, &header));
        if let Some(node) = node(&header)
            && let Some(names) = self.by_node.get_mut(node)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_node.remove(node);
            }
        }
    }

    /// The first list is whole: from here on changes are noted.
    pub(super) fn start(&mut self, version: Version) {
        self.ring = Some(Ring::new(version, self.steps_max));
        // What came in order left every second place of the map free.
        self.rows = std::mem::take(&mut self.rows).into_iter().collect();
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
        let oldest = self.ring_mut()?.push(step)?;
        if let Some(name) = oldest.map(|oldest| oldest.name)
            && let Some(row) = self.rows.get_mut(&name)
        {
            row.rest();
        }
        Ok(())
    }

    fn ring_mut(&mut self) -> Result<&mut Ring, Misfit> {
        let not_listed = || Misfit::NotListed(self.resource.clone());
        self.ring.as_mut().ok_or_else(not_listed)
    }

    pub(super) fn want(&mut self, name: &ObjectName) -> Wanted {
        if self.keep == Keep::Wanted {
            *self.wanted.entry(name.clone()).or_default() += 1;
        }
        match self.row(name).map(|row| &row.packed) {
            Some(Some(_)) => Wanted::Here,
            Some(None) => Wanted::Lacking,
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
            row.repack(name, None);
        }
        true
    }

    pub(super) fn lacking(&self, scope: &Scope) -> Vec<ObjectName> {
        let rows = self.rows_of(scope, None);
        let lacking = rows.filter(|(header, row)| row.packed.is_none() && self.holds(&header.name));
        lacking.map(|(header, _)| header.name.clone()).collect()
    }

    pub(super) fn lacking_all(&self) -> Vec<ObjectName> {
        let lacks = |name: &&ObjectName| self.row(name).is_some_and(|row| row.packed.is_none());
        self.wanted.keys().filter(lacks).cloned().collect()
    }

    pub(super) fn supply(&mut self, object: &Object) -> bool {
        let name = &object.header.name;
        let lacks = |row: &Row| row.packed.is_none() && is_same(&row.header(name), &object.header);
        if !self.holds(name) || !self.row(name).is_some_and(lacks) {
            return false;
        }
        let packed = self.packer.pack(&object.header, &object.bytes);
        if let Some(row) = self.rows.get_mut(name) {
            row.repack(name, Some(packed));
        }
        true
    }

    /// The objects in any of these scopes, each once.
    pub(super) fn within<'t>(
        &'t self,
        scopes: &'t [Scope],
    ) -> impl Iterator<Item = Arc<Header>> + 't {
        scopes.iter().enumerate().flat_map(move |(index, scope)| {
            let headers = self.rows_of(scope, None).map(|(header, _)| header);
            headers.filter(move |header| {
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
            digest.0.add(Member::of(&self.resource, &header));
            digest.1 += 1;
        }
        digest
    }

    pub(super) fn page(&self, scope: &Scope, after: Option<&ObjectName>) -> Vec<Arc<Header>> {
        let mut page = Vec::new();
        let mut bytes = 0;
        for (header, row) in self.rows_of(scope, after).take(PAGE_OBJECTS_MAX) {
            bytes += row.packed.as_ref().map_or(0, Packed::length);
            if bytes > PAGE_BYTES_MAX && !page.is_empty() {
                break;
            }
            page.push(header);
        }
        page
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts {
            objects: self.rows.len(),
            packed_bytes: self.packer.bytes(),
            ..Counts::default()
        };
        for row in self.rows.values() {
            if let Kept::Short(short) = &row.header {
                counts.header_bytes += short.len();
            }
            if let Some(packed) = &row.packed {
                counts.bytes += packed.length();
                counts.packed_bytes += packed.packed_length();
            }
        }
        counts
    }

    /// The rows of a scope that come after a name, by name, with their headers.
    fn rows_of<'t>(
        &'t self,
        scope: &'t Scope,
        after: Option<&'t ObjectName>,
    ) -> impl Iterator<Item = (Arc<Header>, &'t Row)> + 't {
        let rows = self.rows_in(&scope.range, after);
        let rows = rows.map(|(name, row)| (row.header(name), row));
        rows.filter(|(header, _)| scope.selector.matches(header))
    }

    fn rows_in<'t>(
        &'t self,
        range: &'t Range,
        after: Option<&'t ObjectName>,
    ) -> Box<dyn Iterator<Item = (&'t ObjectName, &'t Row)> + 't> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = (start, Bound::Unbounded);
        match range {
            Range::All => Box::new(self.rows.range::<ObjectName, _>(rest)),
            Range::Namespace(namespace) => {
                let first = ObjectName::from_path(&format!("{namespace}/"));
                let start = match after {
                    Some(after) if *after >= first => Bound::Excluded(after.clone()),
                    _ => Bound::Included(first),
                };
                let range = self.rows.range((start, Bound::Unbounded));
                let within = move |name: &ObjectName| name.namespace() == &**namespace;
                Box::new(range.take_while(move |(name, _)| within(name)))
            }
            Range::Name(name) => {
                let later = after.is_none_or(|after| name > after);
                Box::new(self.rows.get_key_value(name).filter(|_| later).into_iter())
            }
            Range::Node(node) => {
                let names = self.by_node.get(&**node).into_iter();
                let names = names.flat_map(move |names| names.range::<ObjectName, _>(rest));
                Box::new(names.filter_map(|name| self.rows.get_key_value(name)))
            }
        }
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
