//! One copy of each object of the cluster, however many nodes hold it.
//!
//! A resource has its rows, by name; the ring of its last changes; and for what changed lately a
//! chain of differences that leads back to older versions, so that each of them can be the base of
//! what a node is sent. Bytes are kept packed, next to objects that they are like: headers are what
//! most questions are about.
//!
//! No clock and no I/O: what the cluster said is put in, and sessions read.

mod packed; // bytes -> few bytes, by what they are like
mod past; // older versions, as differences that lead back
mod recent; // what was asked for lately, unpacked
mod made; // what was packed lately, to be sent
mod table; // one resource: rows, ring, indexes, digest
mod relist; // a list that is being read, beside what is there

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use object::{Change, Header, Object, ObjectName, Resource, Scope, Version};
use parking_lot::Mutex;
use wire::content::Content;
use wire::digest::Digest;
use wire::outbox::{self, Source};
use wire::ring::Ring;
use wire::session::Compared;

use made::{Key, Made};
use past::Past;
use recent::Recent;
pub use relist::Relisted;
use table::Table;
pub use table::{Keep, Wanted};

/// How much a cache keeps.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Changes of a resource that are remembered. A node that lags behind further is asked what it
    /// holds.
    pub steps_max: usize,
    /// Bytes of older versions, of all objects together. The oldest go first, and what was to be a
    /// difference from them is sent whole.
    pub past_bytes_max: usize,
    /// Bytes of objects that are kept unpacked because they were asked for lately.
    pub recent_bytes_max: usize,
    /// Bytes of what was packed lately to be sent. What is not here any more is packed again.
    pub made_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps_max: 4096,
            past_bytes_max: 64 * 1024 * 1024,
            recent_bytes_max: 4 * 1024 * 1024,
            made_bytes_max: 4 * 1024 * 1024,
        }
    }
}

/// How far a resource is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// No list of this epoch is whole yet. Nothing can be said of it.
    Unlisted,
    /// It is known, and followed.
    Complete,
    /// It is known as it was, and not followed for now. It is never emptied for that.
    Frozen(Trouble),
}

/// Why a resource is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Since when.
    pub since: Instant,
    /// Why, for people: the newest of it.
    pub why: Arc<str>,
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// What the object was; nothing if it was not there.
    pub before: Option<Arc<Header>>,
    /// What it is; nothing if it went.
    pub after: Option<Arc<Header>>,
}

impl Applied {
    /// Whether anything is different now.
    pub fn is_change(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }
}

/// Why a change was not taken. Whoever follows the cluster must list anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Nothing is known yet that could change.
    #[error("{0} was not listed yet")]
    NotListed(Resource),
    /// It came at a version that was passed already.
    #[error(transparent)]
    OutOfOrder(#[from] wire::ring::OutOfOrder),
}

/// How much a cache holds of a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects.
    pub objects: usize,
    /// Their bytes, unpacked, of those that are kept.
    pub bytes: usize,
    /// The same, packed, with what they are packed by.
    pub packed_bytes: usize,
    /// The bytes of headers that are kept in short.
    pub header_bytes: usize,
}

/// The objects of a cluster.
pub struct Cache {
    epoch: u64,
    limits: Limits,
    tables: BTreeMap<Resource, Table>,
    past: Past,
    recent: Mutex<Recent>,
    made: Mutex<Made>,
}

impl Cache {
    /// An empty cache for this history of the cluster.
    pub fn new(epoch: u64, limits: Limits) -> Self {
        Self {
            epoch,
            tables: BTreeMap::new(),
            past: Past::new(limits.past_bytes_max),
            recent: Mutex::new(Recent::new(limits.recent_bytes_max)),
            made: Mutex::new(Made::new(limits.made_bytes_max)),
            limits,
        }
    }

    /// Makes a place for a resource. One that is there stays as it is.
    pub fn open(&mut self, resource: &Resource, keep: Keep) {
        let table = || Table::new(resource.clone(), keep, self.limits.steps_max);
        self.tables.entry(resource.clone()).or_insert_with(table);
    }

    /// Another history of the cluster begins: everything is forgotten, and must be listed anew.
    /// Which resources there are, and what is wanted of them, stays.
    pub fn begin(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.past = Past::new(self.limits.past_bytes_max);
        *self.recent.lock() = Recent::new(self.limits.recent_bytes_max);
        *self.made.lock() = Made::new(self.limits.made_bytes_max);
        self.tables.values_mut().for_each(Table::clear);
    }

    /// The resources that there is a place for.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.tables.keys()
    }

    /// How far a resource is known.
    pub fn state(&self, resource: &Resource) -> State {
        match (self.ring(resource), self.trouble(resource)) {
            (None, _) => State::Unlisted,
            (Some(_), None) => State::Complete,
            (Some(_), Some(trouble)) => State::Frozen(trouble.clone()),
        }
    }

    /// Why a resource is not followed for now, if that is so; also before its first list.
    pub fn trouble(&self, resource: &Resource) -> Option<&Trouble> {
        self.tables.get(resource)?.trouble.as_ref()
    }

    /// The version up to which a resource is known; nothing before its first list.
    pub fn version(&self, resource: &Resource) -> Option<&Version> {
        self.ring(resource).map(Ring::now)
    }

    /// Takes in what the cluster said.
    pub fn apply(&mut self, resource: &Resource, change: Change) -> Result<Applied, Misfit> {
        match change {
            Change::Put(object) => self.put(resource, object),
            Change::Delete { name, uid, version } => {
                let table = self.tables.get_mut(resource);
                let table = table.ok_or_else(|| Misfit::NotListed(resource.clone()))?;
                let before = table.delete(&name, &uid, version)?;
                if before.is_some() {
                    self.forget(resource, &name);
                }
                let after = None;
                Ok(Applied { before, after })
            }
        }
    }

    fn put(&mut self, resource: &Resource, object: Object) -> Result<Applied, Misfit> {
        let Object { header, bytes } = object;
        let header = Arc::new(header);
        let before = self.header(resource, &header.name);
        let old = before
            .as_ref()
            .and_then(|before| self.bytes(resource, before));
        let table = self.tables.get_mut(resource);
        let table = table.ok_or_else(|| Misfit::NotListed(resource.clone()))?;
        table.put(header.clone(), &bytes)?;
        let holds = table.holds(&header.name);
        let old = before.as_deref().zip(old);
        self.past.note(resource, old, (&header, &bytes));
        if holds {
            self.recent.get_mut().put(resource, &header, bytes);
        }
        let after = Some(header);
        Ok(Applied { before, after })
    }

    /// Forgets the bytes of an object that went, or that nobody needs.
    fn forget(&mut self, resource: &Resource, name: &ObjectName) {
        if let Some(table) = self.tables.remove(resource) {
            self.forget_in(&table, name);
            self.tables.insert(resource.clone(), table);
        }
    }

    fn forget_in(&mut self, table: &Table, name: &ObjectName) {
        self.past.forget(&table.resource, name);
        // What is kept only for those who need it must not stay a moment longer.
        if table.keep == Keep::Wanted {
            self.recent.get_mut().forget(&table.resource, name);
            self.made.get_mut().forget(&table.resource, name);
        }
    }

    /// Nothing else happened to a resource up to this version.
    pub fn advance(&mut self, resource: &Resource, to: &Version) {
        if let Some(ring) = self
            .table_mut(resource)
            .and_then(|table| table.ring.as_mut())
        {
            ring.advance(to);
        }
    }

    /// A resource is followed (again).
    pub fn thaw(&mut self, resource: &Resource) {
        if let Some(table) = self.table_mut(resource) {
            table.trouble = None;
        }
    }

    /// A resource cannot be followed for now. What is known of it stays. Since when is that of the
    /// first time.
    pub fn freeze(&mut self, resource: &Resource, now: Instant, why: &str) {
        if let Some(table) = self.table_mut(resource) {
            let since = table.trouble.as_ref().map_or(now, |trouble| trouble.since);
            let why = why.into();
            table.trouble = Some(Trouble { since, why });
        }
    }

    /// The objects of a resource in any of these scopes, by scope and then by name, each once.
    pub fn headers(&self, resource: &Resource, scopes: &[Scope]) -> Vec<Arc<Header>> {
        let table = self.known(resource);
        table.map_or_else(Vec::new, |table| table.within(scopes).collect())
    }

    /// The digest of the objects in any of these scopes, and how many there are.
    pub fn digest(&self, resource: &Resource, scopes: &[Scope]) -> (Digest, u64) {
        let table = self.known(resource);
        table.map_or_else(Default::default, |table| table.digest_of(scopes))
    }

    /// An object as it is now.
    pub fn header(&self, resource: &Resource, name: &ObjectName) -> Option<Arc<Header>> {
        self.known(resource)?.header(name)
    }

    /// An object's bytes as they are now, if they are kept. Who looks at many does not push aside
    /// what nodes ask for.
    pub fn object(&self, resource: &Resource, name: &ObjectName) -> Option<(Arc<Header>, Bytes)> {
        let header = self.header(resource, name)?;
        let recent = self.recent.lock().take(resource, &header);
        let bytes = recent.or_else(|| self.unpack(self.known(resource)?, &header))?;
        Some((header, bytes))
    }

    /// Whether there is an object of this name.
    pub fn has(&self, resource: &Resource, name: &ObjectName) -> bool {
        let table = self.known(resource);
        table.is_some_and(|table| table.row(name).is_some())
    }

    /// Somebody needs an object's bytes from now on. Who asks twice must release twice.
    pub fn want(&mut self, resource: &Resource, name: &ObjectName) -> Wanted {
        let table = self.table_mut(resource);
        table.map_or(Wanted::Unknown, |table| table.want(name))
    }

    /// Somebody needs an object's bytes no more. With the last one they go, where they are kept
    /// only for those who need them.
    pub fn release(&mut self, resource: &Resource, name: &ObjectName) {
        if let Some(table) = self.table_mut(resource)
            && table.release(name)
        {
            self.forget(resource, name);
        }
    }

    /// The objects in a scope whose bytes are wanted and not there yet: each must be fetched and
    /// [supplied](Cache::supply) before the scope is sent to anybody.
    pub fn lacking(&self, resource: &Resource, scope: &Scope) -> Vec<ObjectName> {
        let table = self.known(resource);
        table.map_or_else(Vec::new, |table| table.lacking(scope))
    }

    /// All objects of a resource whose bytes are wanted and not there yet.
    pub fn lacking_all(&self, resource: &Resource) -> Vec<ObjectName> {
        let table = self.known(resource);
        table.map_or_else(Vec::new, Table::lacking_all)
    }

    /// Takes in the bytes of an object that were fetched. They count only if they are of the
    /// version that is known: a newer one comes with its own change, an older one is of no use.
    /// Says whether they were taken.
    pub fn supply(&mut self, resource: &Resource, object: &Object) -> bool {
        self.table_mut(resource)
            .is_some_and(|table| table.supply(object))
    }

    /// How much is held of a resource.
    pub fn counts(&self, resource: &Resource) -> Counts {
        let table = self.tables.get(resource);
        table.map_or_else(Counts::default, Table::counts)
    }

    /// Bytes of older versions that are held, of all resources.
    pub fn past_bytes(&self) -> usize {
        self.past.bytes()
    }

    /// A resource of which there is a whole list.
    fn known(&self, resource: &Resource) -> Option<&Table> {
        let table = self.tables.get(resource);
        table.filter(|table| table.ring.is_some())
    }

    fn table_mut(&mut self, resource: &Resource) -> Option<&mut Table> {
        self.tables.get_mut(resource)
    }

    /// The bytes of any version that is still known. They may be asked for again soon.
    fn unpacked(&self, table: &Table, header: &Header) -> Option<Bytes> {
        let resource = &table.resource;
        if let Some(bytes) = self.recent.lock().take(resource, header) {
            return Some(bytes);
        }
        let bytes = self.unpack(table, header)?;
        self.recent.lock().put(resource, header, bytes.clone());
        Some(bytes)
    }

    fn unpack(&self, table: &Table, header: &Header) -> Option<Bytes> {
        let row = table.row(&header.name)?;
        let newest = row.header(&header.name);
        if newest.uid != header.uid {
            return None;
        }
        let bytes = row.packed.as_ref()?.open()?;
        match newest.version == header.version {
            true => Some(bytes),
            false => self.past.open(&table.resource, header, bytes),
        }
    }
}

impl Compared for Cache {
    fn digest(&self, resource: &Resource, scopes: &[Scope]) -> Digest {
        Self::digest(self, resource, scopes).0
    }

    fn headers(&self, resource: &Resource, scopes: &[Scope]) -> Vec<Arc<Header>> {
        Self::headers(self, resource, scopes)
    }
}

impl Source for Cache {
    fn ring(&self, resource: &Resource) -> Option<&Ring> {
        self.tables.get(resource)?.ring.as_ref()
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn bytes(&self, resource: &Resource, header: &Header) -> Option<Bytes> {
        self.unpacked(self.known(resource)?, header)
    }

    fn content(
        &self,
        resource: &Resource,
        header: &Header,
        base: Option<&Header>,
    ) -> Option<Content> {
        // What went is not sent, however lately it was.
        let row = self.known(resource)?.row(&header.name)?;
        if row.header(&header.name).uid != header.uid {
            return None;
        }
        let key = Key::new(resource, header, base);
        if let Some(content) = self.made.lock().find(&key) {
            return Some(content);
        }
        let content = outbox::content(self, resource, header, base)?;
        self.made.lock().put(key, &content);
        Some(content)
    }

    fn page(
        &self,
        resource: &Resource,
        scope: &Scope,
        after: Option<&ObjectName>,
    ) -> Vec<Arc<Header>> {
        let table = self.known(resource);
        table.map_or_else(Vec::new, |table| table.page(scope, after))
    }
}
