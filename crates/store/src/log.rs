//! The log: the one writer. What is staged becomes a group; a group is written, synced, and only then shown to readers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use host::Clock;
use object::{Object, ObjectName, Resource, Version};

use crate::compact::{self, Compaction, TablePicture};
use crate::disk::{Disk, File};
use crate::entry::{self, FORMAT, FileMark, More};
use crate::failpoint;
use crate::files::{self, Files, Role};
use crate::reader::{Shared, Slot};
use crate::record::{self, Address, Kind};
use crate::recover::{OpenError, recover};
use crate::row::{At, Event, Row};
use crate::scope::Scope;
use crate::table::{Retention, Staged, Standing};

/// Bytes of objects that are kept in memory beside fresh events, for all tables together. Past this a watcher that lags reads
/// from disk.
const FRESH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whom it belongs to: another owner's store is refused.
    pub owner: String,
    /// How much history is kept.
    pub retention: Retention,
    /// A log is folded into a base when it is larger than this, and larger than what it holds.
    pub compact_bytes_min: u64,
}

impl Options {
    /// The usual settings for a store of this owner.
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            retention: Retention::default(),
            compact_bytes_min: 32 * 1024 * 1024,
        }
    }
}

/// Whether all tables share one version counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// One counter for all: an authority mints it.
    Shared,
    /// Each table follows its own.
    PerTable,
}

/// The proof that something is on disk. Only the log makes one, and only a sync makes it do so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durable(());

/// Why something was not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// No room, or another passing fault. Nothing of it was stored; later writes may succeed.
    #[error("not stored: {0}")]
    NotStored(String),
    /// A sync failed, so nobody knows what is on disk. The store takes no more writes until it is opened anew.
    #[error("the disk failed to make data durable; restart to recover: {0}")]
    Unsafe(String),
    /// The store is being closed.
    #[error("the store is closed")]
    Closed,
}

/// A change to a table, as it is staged.
#[derive(Debug)]
pub(crate) enum Input {
    Put(Object),
    Delete {
        name: ObjectName,
        uid: Box<str>,
        version: Version,
    },
    /// This many inputs after this one replace rows of the scope.
    Replace {
        scope: Scope,
        version: Version,
        count: usize,
    },
}

/// The writer's side of a store.
pub(crate) struct Log {
    pub(crate) shared: Arc<Shared>,
    clock: Clock,
    options: Options,
    mark: FileMark,
    file: Arc<dyn File>,
    end: u64,
    number_next: u32,
    since_base: u64,
    tables: BTreeMap<Resource, Own>,
    group: Group,
    fresh: VecDeque<(Arc<Event>, usize)>,
    fresh_bytes: usize,
    unsafe_since: Option<String>,
    compaction: Option<Compaction>,
    _lock: Box<dyn Send + Sync>,
}

/// What the writer keeps of a table.
struct Own {
    slot: Arc<Slot>,
    seq_next: u64,
}

/// What is staged and not yet synced.
#[derive(Default)]
struct Group {
    bytes: Vec<u8>,
    commits: Vec<Staging>,
    /// Rows as the group leaves them.
    overlay: HashMap<(u32, ObjectName), Option<Arc<Row>>>,
    standings: HashMap<u32, Standing>,
    /// Table numbers before the group, to go back to if it fails.
    seqs: Vec<(Resource, u64)>,
    made: Vec<Resource>,
    dropped: Vec<u32>,
}

struct Staging {
    slot: Arc<Slot>,
    staged: Vec<Staged>,
    /// The object's bytes for each event that the commit will make.
    fresh: Vec<Option<Bytes>>,
    standing: Standing,
}

impl Log {
    /// Opens the store, or makes it where there is none.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        counting: Counting,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let lock = disk.lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => OpenError::InUse,
            _ => OpenError::Disk(error),
        })?;
        let found = recover(&*disk, &options.owner, clock.now())?;
        let mark = found.mark.clone().unwrap_or_else(|| FileMark {
            format: FORMAT,
            id: compact::random_id(),
            owner: options.owner.clone(),
            number: 1,
            shared_versions: counting == Counting::Shared,
        });
        if found.torn_bytes > 0 {
            tracing::warn!(
                bytes = found.torn_bytes,
                "cut off an unfinished write at the log's end"
            );
        }
        let files = Files::new(disk.clone());
        for (number, file) in &found.files {
            files.add(*number, file.clone());
        }
        let shared = Arc::new(Shared::new(files, counting));
        let mut tables = BTreeMap::new();
        for (number, rebuilt) in found.tables {
            let resource = rebuilt.resource.unwrap_or_else(|| unnamed(number));
            if let Some(reason) = &rebuilt.damage {
                tracing::error!(%resource, reason, "stored objects are damaged and not served");
            }
            let slot = Slot::new(resource.clone(), number, rebuilt.table, rebuilt.damage);
            let slot = shared.add(slot);
            tables.insert(
                resource,
                Own {
                    slot,
                    seq_next: rebuilt.seq_next,
                },
            );
        }
        let (number, file, end) = match found.tail {
            Some(tail) => tail,
            None => {
                let file = disk.create(&files::name(Role::Log, found.number_next))?;
                (found.number_next, file, 0)
            }
        };
        let mut log = Self {
            shared,
            clock,
            options,
            mark,
            file,
            end,
            number_next: found.number_next.max(number + 1),
            since_base: found.since_base,
            tables,
            group: Group::default(),
            fresh: VecDeque::new(),
            fresh_bytes: 0,
            unsafe_since: None,
            compaction: None,
            _lock: lock,
        };
        log.mark.number = number;
        if end == 0 {
            log.begin_file()?;
        }
        Ok(log)
    }

    /// Writes and syncs the head of the current, empty file.
    fn begin_file(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        record::put(
            &mut bytes,
            Kind::File,
            Address::default(),
            &self.mark.encode(),
            b"",
        );
        for (resource, own) in &self.tables {
            let address = Address {
                table: own.slot.number,
                seq: 0,
            };
            let meta = entry::encode_table(resource, own.seq_next);
            record::put(&mut bytes, Kind::Table, address, &meta, b"");
        }
        record::mark_first(&mut bytes);
        self.file.write_at(&bytes, 0)?;
        self.file.sync()?;
        self.shared.files.disk.sync_names()?;
        self.end = bytes.len() as u64;
        self.shared.files.add(self.mark.number, self.file.clone());
        Ok(())
    }

    /// The table of a resource; made, if it is not there.
    pub(crate) fn slot(&mut self, resource: &Resource) -> Arc<Slot> {
        if let Some(own) = self.tables.get(resource) {
            return own.slot.clone();
        }
        let number = self
            .tables
            .values()
            .map(|own| own.slot.number)
            .max()
            .unwrap_or(0)
            + 1;
        let slot = Arc::new(Slot::new(
            resource.clone(),
            number,
            Default::default(),
            None,
        ));
        let meta = entry::encode_table(resource, 1);
        let address = Address {
            table: number,
            seq: 0,
        };
        record::put(&mut self.group.bytes, Kind::Table, address, &meta, b"");
        self.tables.insert(
            resource.clone(),
            Own {
                slot: slot.clone(),
                seq_next: 1,
            },
        );
        self.group.made.push(resource.clone());
        slot
    }

    /// The table of a resource, if it is there.
    pub(crate) fn known(&self, resource: &Resource) -> Option<Arc<Slot>> {
        self.tables.get(resource).map(|own| own.slot.clone())
    }

    /// A row as the group leaves it.
    pub(crate) fn row(&self, slot: &Slot, name: &ObjectName) -> Option<Arc<Row>> {
        match self.group.overlay.get(&(slot.number, name.clone())) {
            Some(row) => row.clone(),
            None if self.group.dropped.contains(&slot.number) => None,
            None => slot.table.read().row(name.as_str()).cloned(),
        }
    }

    /// Where a table stands as the group leaves it.
    pub(crate) fn standing(&self, slot: &Slot) -> Standing {
        match self.group.standings.get(&slot.number) {
            Some(standing) => standing.clone(),
            None => slot.table.read().standing().clone(),
        }
    }

    /// All rows of a table as the group leaves it.
    pub(crate) fn rows(&self, slot: &Slot) -> BTreeMap<ObjectName, Arc<Row>> {
        let table = slot.table.read();
        let mut rows: BTreeMap<_, _> = table
            .rows()
            .map(|row| (row.header.name.clone(), row.clone()))
            .collect();
        for ((number, name), row) in &self.group.overlay {
            if *number == slot.number {
                match row {
                    Some(row) => drop(rows.insert(name.clone(), row.clone())),
                    None => drop(rows.remove(name)),
                }
            }
        }
        rows
    }

    /// How many bytes wait for the next sync.
    pub(crate) fn staged_bytes(&self) -> usize {
        self.group.bytes.len()
    }

    fn address(&mut self, slot: &Slot) -> Address {
        let own = self
            .tables
            .get_mut(&slot.resource)
            .expect("a slot is a table's");
        let seq = own.seq_next;
        if !self
            .group
            .seqs
            .iter()
            .any(|(resource, _)| *resource == slot.resource)
        {
            self.group.seqs.push((slot.resource.clone(), seq));
        }
        own.seq_next += 1;
        Address {
            table: slot.number,
            seq,
        }
    }

    /// Stages one table's part of a transaction. The caller has checked that it fits.
    pub(crate) fn stage(
        &mut self,
        slot: &Arc<Slot>,
        inputs: Vec<Input>,
        standing: Standing,
        more: More,
    ) {
        let mut staged = Vec::with_capacity(inputs.len());
        let mut fresh = Vec::with_capacity(inputs.len());
        let mut replacing = 0_usize;
        for input in inputs {
            let address = self.address(slot);
            let in_replacement = replacing > 0;
            replacing = replacing.saturating_sub(1);
            match input {
                Input::Put(object) => {
                    let row = self.stage_put(slot, address, &object);
                    staged.push(Staged::Put(row));
                    if !in_replacement {
                        fresh.push(Some(object.bytes));
                    }
                }
                Input::Delete { name, uid, version } => {
                    let meta = entry::encode_delete(&name, &uid, &version);
                    record::put(&mut self.group.bytes, Kind::Delete, address, &meta, b"");
                    self.group.overlay.insert((slot.number, name.clone()), None);
                    staged.push(Staged::Delete { name, uid, version });
                    if !in_replacement {
                        fresh.push(None);
                    }
                }
                Input::Replace {
                    scope,
                    version,
                    count,
                } => {
                    let meta = entry::encode_replace(&scope, &version, count);
                    record::put(&mut self.group.bytes, Kind::Replace, address, &meta, b"");
                    staged.push(Staged::Replace {
                        scope,
                        version,
                        count,
                    });
                    fresh.push(None);
                    replacing = count;
                }
            }
        }
        let address = self.address(slot);
        let meta = entry::encode_commit(&standing, more, address.seq + 1);
        record::put(&mut self.group.bytes, Kind::Commit, address, &meta, b"");
        self.group.standings.insert(slot.number, standing.clone());
        self.group.commits.push(Staging {
            slot: slot.clone(),
            staged,
            fresh,
            standing,
        });
    }

    fn stage_put(&mut self, slot: &Slot, address: Address, object: &Object) -> Arc<Row> {
        let meta = entry::encode_put(&object.header);
        let bytes = &mut self.group.bytes;
        let (value_at, sum) = record::put(bytes, Kind::Put, address, &meta, &object.bytes);
        let at = At {
            file: self.mark.number,
            offset: self.end + value_at as u64,
        };
        let row = Row::new(object.header.clone(), at, object.bytes.len() as u32, sum);
        let row = Arc::new(row);
        let name = object.header.name.clone();
        self.group
            .overlay
            .insert((slot.number, name), Some(row.clone()));
        row
    }

    /// Stages that a table is emptied and forgets its damage. A commit must follow in the same transaction.
    pub(crate) fn stage_drop(&mut self, slot: &Slot) {
        let address = self.address(slot);
        record::put(&mut self.group.bytes, Kind::Drop, address, b"", b"");
        self.group
            .overlay
            .retain(|(number, _), _| *number != slot.number);
        self.group
            .standings
            .insert(slot.number, Standing::default());
        self.group.dropped.push(slot.number);
    }

    /// Writes and syncs what is staged, then shows it to readers.
    pub(crate) fn sync(&mut self) -> Result<Durable, Failed> {
        if let Some(reason) = &self.unsafe_since {
            let failed = Failed::Unsafe(reason.clone());
            self.roll_back();
            return Err(failed);
        }
        if self.group.bytes.is_empty() {
            return Ok(Durable(()));
        }
        failpoint::pass("store.before_txn");
        record::mark_first(&mut self.group.bytes);
        if let Err(error) = self.file.write_at(&self.group.bytes, self.end) {
            return Err(self.write_failed(&error));
        }
        failpoint::pass("store.after_write_before_fsync");
        if let Err(error) = self.file.sync() {
            // After a failed sync the kernel may have dropped the pages: what is on disk is unknown, and a second sync would lie.
            self.unsafe_since = Some(error.to_string());
            self.roll_back();
            return Err(Failed::Unsafe(error.to_string()));
        }
        failpoint::pass("store.after_fsync_before_ack");
        self.end += self.group.bytes.len() as u64;
        self.since_base += self.group.bytes.len() as u64;
        self.publish();
        self.compact_if_due();
        Ok(Durable(()))
    }

    fn write_failed(&mut self, error: &io::Error) -> Failed {
        // Part of the group may have arrived. It must not stand before what is written next.
        let reason = error.to_string();
        let cut = self.file.truncate(self.end);
        self.roll_back();
        match cut {
            Ok(()) => Failed::NotStored(reason),
            Err(_) => {
                self.unsafe_since = Some(reason.clone());
                Failed::Unsafe(reason)
            }
        }
    }

    /// Forgets what is staged.
    fn roll_back(&mut self) {
        let group = std::mem::take(&mut self.group);
        for (resource, seq) in group.seqs {
            if let Some(own) = self.tables.get_mut(&resource) {
                own.seq_next = seq;
            }
        }
        for resource in group.made {
            self.tables.remove(&resource);
        }
    }

    fn publish(&mut self) {
        failpoint::pass("watch.before_fanout");
        let now = self.clock.now();
        let mut group = std::mem::take(&mut self.group);
        for resource in group.made {
            let own = self.tables.get(&resource).expect("made in this group");
            self.shared.add_slot(own.slot.clone());
        }
        for number in group.dropped {
            let own = self.tables.values().find(|own| own.slot.number == number);
            own.expect("only tables are dropped").slot.start_afresh();
        }
        let mut newest = None;
        let mut changed = Vec::with_capacity(group.commits.len());
        for staging in group.commits.drain(..) {
            newest = newest.max(staging.standing.version.clone());
            let mut table = staging.slot.table.write();
            let events = table
                .commit(staging.staged, staging.standing, now)
                .expect("a feeder stages only what fits");
            table.trim(&self.options.retention, now);
            for (event, bytes) in events.iter().zip(staging.fresh) {
                let size = bytes.as_ref().map_or(0, Bytes::len);
                event.remember(bytes);
                self.fresh_bytes += size;
                self.fresh.push_back((event.clone(), size));
            }
            drop(table);
            changed.push(staging.slot);
        }
        self.shared.advance(newest);
        // Watchers wake when the shared counter is raised, so that their progress counts this group.
        changed.sort_by_key(|slot| slot.number);
        changed.dedup_by_key(|slot| slot.number);
        changed.iter().for_each(|slot| slot.wake());
        while self.fresh_bytes > FRESH_BYTES_MAX || self.fresh.len() > FRESH_EVENTS_MAX {
            let Some((event, size)) = self.fresh.pop_front() else {
                break;
            };
            event.forget();
            self.fresh_bytes -= size;
        }
        // The group's buffer is kept for the next one, unless a large group made it large.
        group.bytes.clear();
        if group.bytes.capacity() <= GROUP_BUFFER_KEPT {
            self.group.bytes = group.bytes;
        }
    }

    /// Drops old history of all tables; called now and then, since a quiet table is not written.
    pub(crate) fn trim(&mut self) {
        let now = self.clock.now();
        for own in self.tables.values() {
            own.slot.table.write().trim(&self.options.retention, now);
        }
    }

    fn compact_if_due(&mut self) {
        if let Some(compaction) = &self.compaction {
            if !compaction.finished() {
                return;
            }
        }
        if let Some(compaction) = self.compaction.take() {
            compaction.join();
        }
        let held: u64 = self
            .tables
            .values()
            .map(|own| own.slot.table.read())
            .map(|table| table.live_bytes() + table.history_bytes())
            .sum();
        if self.since_base < self.options.compact_bytes_min.max(held) {
            return;
        }
        if let Err(error) = self.compact() {
            tracing::warn!(%error, "compaction could not start; the log grows on");
        }
    }

    /// Goes on in a new file, and folds all before it into a base in the background.
    fn compact(&mut self) -> io::Result<()> {
        let base = self.number_next;
        let log = base + 1;
        // All that was written counts; what a failed write left behind was cut off and must stay so.
        self.file.sync()?;
        let disk = self.shared.files.disk.clone();
        let file = disk.create(&files::name(Role::Log, log))?;
        self.number_next = log + 1;
        let (old_file, old_end, old_number) = (self.file.clone(), self.end, self.mark.number);
        self.file = file;
        self.mark.number = log;
        failpoint::pass("store.rotate_mid");
        if let Err(error) = self.begin_file() {
            // An empty or half-made file after ours would seal ours; it goes before anything else is written.
            (self.file, self.end, self.mark.number) = (old_file, old_end, old_number);
            if let Err(error) = disk.remove(&files::name(Role::Log, log)) {
                self.unsafe_since = Some(error.to_string());
            }
            return Err(error);
        }
        self.since_base = self.end;
        let mark = FileMark {
            number: base,
            ..self.mark.clone()
        };
        let tables = self
            .tables
            .values()
            .map(|own| TablePicture::take(&own.slot, own.seq_next));
        let pictures = tables.collect();
        self.compaction = Some(Compaction::start(self.shared.clone(), mark, pictures)?);
        Ok(())
    }

    /// Waits for a running compaction. For a clean end.
    pub(crate) fn close(&mut self) {
        if let Some(compaction) = self.compaction.take() {
            compaction.join();
        }
    }
}

/// Fresh events that are remembered at most, whatever their size: deletes have no bytes and still take memory.
const FRESH_EVENTS_MAX: usize = 16 * 1024;
/// The largest group buffer that is kept between groups.
const GROUP_BUFFER_KEPT: usize = 1024 * 1024;

/// A table whose name was lost. It is damaged and answers nothing, but it must not be forgotten silently.
fn unnamed(number: u32) -> Resource {
    Resource::new("unnamed.invalid", &format!("table-{number}"))
}
