//! The one interface through which everybody reads: version, floor, covers, snapshot, watch. It
//! does not know who feeds the log.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use object::{Object, ObjectName, Resource, Version};
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::ahead::{Ahead, run_length};
use crate::files::{FileSet, Files, Unreadable};
use crate::log::Counting;
use crate::row::{self, Event, Row};
use crate::table::{Held, Holds, Refused, Table, TableName};
use crate::watch::Watch;
use object::scope::{Range, Want};

/// What the writer and all readers share.
pub(crate) struct Shared {
    pub(crate) files: Files,
    pub(crate) counting: Counting,
    slots: RwLock<HashMap<TableName, Arc<Slot>>>,
    /// The shared version counter, where there is one. It is raised only after the tables took
    /// their changes in.
    version: RwLock<Option<Version>>,
    /// Ticks after every group.
    changed: watch::Sender<u64>,
    /// Set when a sync failed: what is on disk is unknown until the store is opened anew.
    distrusted: AtomicBool,
}

/// A table's place.
pub(crate) struct Slot {
    pub(crate) name: TableName,
    pub(crate) number: u32,
    pub(crate) table: RwLock<Table>,
    damage: RwLock<Option<String>>,
    /// Ticks when this table changed: its watchers sleep through what happens to others.
    changed: watch::Sender<u64>,
}

impl Slot {
    pub(crate) fn new(
        name: TableName,
        number: u32,
        mut table: Table,
        damage: Option<String>,
    ) -> Self {
        if name.holds == Holds::Objects {
            table.keep_digest(&name.resource);
        }
        Self {
            name,
            number,
            table: RwLock::new(table),
            damage: RwLock::new(damage),
            changed: watch::channel(0).0,
        }
    }

    /// Wakes the table's watchers.
    pub(crate) fn wake(&self) {
        tick(&self.changed);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.damage.read().is_some()
    }

    /// What was damaged is gone.
    pub(crate) fn heal(&self) {
        *self.damage.write() = None;
    }

    pub(crate) fn whole(&self) -> Result<(), Refused> {
        match &*self.damage.read() {
            None => Ok(()),
            Some(reason) => Err(Refused::Damaged {
                resource: self.name.resource.clone(),
                reason: reason.clone(),
            }),
        }
    }
}

impl Shared {
    pub(crate) fn new(files: Files, counting: Counting) -> Self {
        Self {
            files,
            counting,
            slots: RwLock::default(),
            version: RwLock::default(),
            changed: watch::channel(0).0,
            distrusted: AtomicBool::new(false),
        }
    }

    /// The disk can no longer be trusted with writes.
    pub(crate) fn distrust(&self) {
        self.distrusted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, slot: Slot) -> Arc<Slot> {
        let slot = Arc::new(slot);
        let standing = slot.table.read().standing().version.clone();
        self.add_slot(slot.clone());
        self.raise(standing);
        slot
    }

    pub(crate) fn add_slot(&self, slot: Arc<Slot>) {
        self.slots.write().insert(slot.name.clone(), slot);
    }

    /// Tells everybody that the tables moved on.
    pub(crate) fn advance(&self, newest: Option<Version>) {
        self.raise(newest);
        self.changed
            .send_modify(|tick| *tick = tick.wrapping_add(1));
    }

    pub(crate) fn raise(&self, newest: Option<Version>) {
        if self.counting == Counting::Shared && newest > *self.version.read() {
            *self.version.write() = newest;
        }
    }

    pub(crate) fn version(&self) -> Option<Version> {
        self.version.read().clone()
    }

    /// Marks a table as not to be trusted.
    pub(crate) fn damaged(&self, name: &TableName, reason: &str) {
        if let Some(slot) = self.slots.read().get(name) {
            slot.damage.write().get_or_insert_with(|| reason.to_owned());
            slot.wake();
            tracing::error!(table = %name, reason, "what is stored is damaged and not served");
        }
    }

    pub(crate) fn slot(&self, resource: &Resource) -> Option<Arc<Slot>> {
        self.table(&TableName::objects(resource))
    }

    pub(crate) fn table(&self, name: &TableName) -> Option<Arc<Slot>> {
        self.slots.read().get(name).cloned()
    }

    /// The tables that hold this, by name.
    pub(crate) fn tables(&self, holds: Holds) -> Vec<Arc<Slot>> {
        let slots = self.slots.read();
        let held = slots.values().filter(|slot| slot.name.holds == holds);
        let mut held: Vec<Arc<Slot>> = held.cloned().collect();
        held.sort_by(|one, other| one.name.cmp(&other.name));
        held
    }

    /// Up to which version a table is whole: its own, or the shared counter's if that is further.
    pub(crate) fn version_of(&self, shared: Option<Version>, table: &Table) -> Option<Version> {
        shared.max(table.standing().version.clone())
    }
}

fn tick(sender: &watch::Sender<u64>) {
    sender.send_modify(|tick| *tick = tick.wrapping_add(1));
}

/// Reads a store. Cheap to clone; any number may read beside the writer.
#[derive(Clone)]
pub struct Reader {
    pub(crate) shared: Arc<Shared>,
}

/// At which version to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// The newest that is held.
    Now,
    /// Exactly this one.
    Exactly(Version),
}

/// Which part of a list.
#[derive(Debug, Clone, Default)]
pub struct Part<'a> {
    /// Names below this one were given before. `"{name}\0"` is the first that can follow `name`.
    pub from: Option<&'a str>,
    /// No more than this many; nothing means all.
    pub limit: Option<usize>,
}

/// A list, or a part of one, at one version.
pub struct Page {
    /// The rows, by name.
    pub rows: Vec<Arc<Row>>,
    /// The version of the whole list.
    pub version: Version,
    /// How many rows come after this page. Known only without a selector; an estimate is never
    /// given.
    pub remaining: Option<u64>,
    /// Whether more comes after this page.
    pub more: bool,
    reader: Reader,
    /// Where each row lay when the list was made, and the files that were open then: however long
    /// the reader takes and whatever is compacted meanwhile, the bytes stay readable.
    places: Vec<row::At>,
    pinned: FileSet,
}

impl Page {
    /// A row's bytes.
    pub fn bytes(&self, row: &Row) -> Result<Bytes, Unreadable> {
        let files = &self.reader.shared.files;
        let found = self
            .rows
            .binary_search_by(|candidate| candidate.header.name.cmp(&row.header.name));
        match found {
            Ok(index) if std::ptr::eq(&*self.rows[index], row) => {
                files.read_pinned(row, self.places[index], &self.pinned)
            }
            _ => files.read(row),
        }
    }

    /// The bytes of the row with this number, for who reads one row after the other: what lies
    /// side by side is read together, and waits in `ahead`.
    pub fn read(&self, number: usize, ahead: &mut Ahead) -> Result<Bytes, Unreadable> {
        let (row, at) = (&*self.rows[number], self.places[number]);
        let files = &self.reader.shared.files;
        if let Some(bytes) = ahead.cut(row, at) {
            return files.checked(row, at, bytes);
        }
        let rest = self.places[number..]
            .iter()
            .copied()
            .zip(&self.rows[number..]);
        let length = run_length(rest.map(|(at, row)| (at, &**row)));
        if let Some(file) = self
            .pinned
            .get(&at.file)
            .filter(|_| length > at.length(row.bytes_len()))
        {
            ahead.read(&**file, at, length);
            if let Some(bytes) = ahead.cut(row, at) {
                return files.checked(row, at, bytes);
            }
        }
        files.read_pinned(row, at, &self.pinned)
    }
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The version that a list of this resource has now. Nothing if none was ever complete.
    pub fn version(&self, resource: &Resource) -> Option<Version> {
        // The shared counter is read first: what it counts is in the table by then.
        let shared = self.shared.version();
        let slot = self.shared.slot(resource)?;
        self.shared.version_of(shared, &slot.table.read())
    }

    /// Since when the history of what is wanted is whole.
    pub fn floor(&self, want: &Want) -> Result<Version, Refused> {
        let slot = self
            .shared
            .slot(&want.resource)
            .ok_or(Refused::NotCovered)?;
        slot.whole()?;
        slot.table.read().floor_of(want)
    }

    /// Whether what is held here answers the question completely.
    pub fn covers(&self, want: &Want) -> bool {
        self.floor(want).is_ok()
    }

    /// What is complete of a resource.
    pub fn scopes(&self, resource: &Resource) -> Vec<Held> {
        let Some(slot) = self.shared.slot(resource) else {
            return Vec::new();
        };
        slot.table.read().standing().scopes.to_vec()
    }

    /// How far a resource is: where a source can go on. Nothing before the first progress.
    pub fn standing(&self, resource: &Resource) -> Option<(u64, object::Standing)> {
        let slot = self.shared.slot(resource)?;
        let table = slot.table.read();
        let standing = table.standing();
        let reached = object::Standing {
            progress: standing.progress.clone()?,
            parts: standing.parts.clone(),
        };
        Some((standing.epoch, reached))
    }

    /// All resources that have a table.
    pub fn resources(&self) -> Vec<Resource> {
        let tables = self.shared.tables(Holds::Objects).into_iter();
        tables.map(|slot| slot.name.resource.clone()).collect()
    }

    /// Whether writes can be taken: false from a failed sync until the store is opened anew.
    pub fn is_writable(&self) -> bool {
        !self.shared.distrusted.load(Ordering::Relaxed)
    }

    /// The resources whose stored objects are damaged and not served.
    pub fn damaged(&self) -> Vec<Resource> {
        let tables = self.shared.tables(Holds::Objects).into_iter();
        let damaged = tables.filter(|slot| slot.is_damaged());
        damaged.map(|slot| slot.name.resource.clone()).collect()
    }

    /// Whether the stored objects of a resource are damaged and not served.
    pub fn is_damaged(&self, resource: &Resource) -> bool {
        let slot = self.shared.slot(resource);
        slot.is_some_and(|slot| slot.is_damaged())
    }

    /// How many objects of a resource are held.
    pub fn count(&self, resource: &Resource) -> usize {
        self.shared
            .slot(resource)
            .map_or(0, |slot| slot.table.read().len())
    }

    /// One object as it is now. Does not ask whether a scope covers it: the caller does, before it
    /// says "not found".
    pub fn object(
        &self,
        resource: &Resource,
        name: &ObjectName,
    ) -> Result<Option<Object>, ReadFailed> {
        let Some(slot) = self.shared.slot(resource) else {
            return Ok(None);
        };
        slot.whole()?;
        let files = &self.shared.files;
        let table = slot.table.read();
        let Some(row) = table.row(name.as_str()).cloned() else {
            return Ok(None);
        };
        // Under the table's lock, so that the row still counts and compaction must move it.
        let (places, pinned) = files.pin(std::slice::from_ref(&row));
        drop(table);
        let bytes = files.read_pinned(&row, places[0], &pinned);
        let bytes = self.noting_damage(resource, bytes)?;
        Ok(Some(Object {
            header: row.header.clone(),
            bytes,
        }))
    }

    /// A row without its bytes.
    pub fn row(&self, resource: &Resource, name: &ObjectName) -> Option<Arc<Row>> {
        self.shared
            .slot(resource)?
            .table
            .read()
            .row(name.as_str())
            .cloned()
    }

    /// A list, or a part of one.
    pub fn page(&self, want: &Want, at: &At, part: &Part<'_>) -> Result<Page, Refused> {
        let shared = self.shared.version();
        let slot = self
            .shared
            .slot(&want.resource)
            .ok_or(Refused::NotCovered)?;
        slot.whole()?;
        let table = slot.table.read();
        let floor = table.floor_of(want)?;
        let current = self
            .shared
            .version_of(shared, &table)
            .ok_or(Refused::NotCovered)?;
        let version = match at {
            At::Now => current,
            At::Exactly(asked) if *asked < floor => {
                return Err(Refused::TooOld {
                    asked: asked.clone(),
                    floor,
                });
            }
            At::Exactly(asked) if *asked > current => {
                return Err(Refused::Future {
                    asked: asked.clone(),
                    current,
                });
            }
            At::Exactly(asked) => asked.clone(),
        };
        let then = matches!(at, At::Exactly(_)).then_some(&version);
        let mut found = table
            .scan(&want.range, part.from, then)
            // The scan keeps to names; which node a pod is bound to only its header tells.
            .filter(|row| !matches!(want.range, Range::Node(_)) || want.range.contains(&row.header))
            .filter(|row| want.selector.matches(&row.header));
        let limit = part.limit.unwrap_or(usize::MAX);
        let rows: Vec<Arc<Row>> = found.by_ref().take(limit).cloned().collect();
        let next = if rows.len() < limit {
            None
        } else {
            found.next()
        };
        let more = next.is_some();
        let countable = more && want.selector.is_everything();
        let remaining = countable.then(|| 1 + found.count() as u64);
        // Under the table's lock, so that every row still counts and compaction must move it.
        let (places, pinned) = self.shared.files.pin(&rows);
        Ok(Page {
            rows,
            version,
            remaining,
            more,
            reader: self.clone(),
            places,
            pinned,
        })
    }

    /// Watches from a version: everything above it, in order.
    pub fn watch(&self, want: &Want, from: &Version) -> Result<Watch, Refused> {
        let slot = self
            .shared
            .slot(&want.resource)
            .ok_or(Refused::NotCovered)?;
        slot.whole()?;
        Watch::start(self.clone(), self.shared.clone(), slot, want, from)
    }

    /// The bytes of an event's row.
    pub fn event_bytes(
        &self,
        resource: &Resource,
        event: &Event,
        row: &Arc<Row>,
    ) -> Result<Bytes, ReadFailed> {
        let is_after = matches!(&event.what,
            row::What::Changed { after: Some(after), .. } if Arc::ptr_eq(after, row));
        if let Some(bytes) = event.fresh_bytes().filter(|_| is_after) {
            return Ok(bytes);
        }
        self.noting_damage(resource, self.shared.files.read(row))
    }

    /// Ticks after everything that is stored, whatever table it is in.
    pub fn ticks(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Damage that a read shows is remembered, so that nobody is served from that table any more.
    fn noting_damage<T>(
        &self,
        resource: &Resource,
        read: Result<T, Unreadable>,
    ) -> Result<T, ReadFailed> {
        if let Err(damage @ Unreadable::Damaged { .. }) = &read {
            let name = TableName::objects(resource);
            self.shared.damaged(&name, &damage.to_string());
        }
        Ok(read?)
    }
}

/// Why an object was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadFailed {
    /// The store will not answer this.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The bytes could not be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}
