//! The log: the one writer. What is staged becomes a group; a group is written, synced, and only
//! then shown to readers.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use host::Clock;
use host::seal::Keys;
use object::{Object, ObjectName, Resource, Version};

use crate::compact::{self, Beside, Compaction};
use crate::disk::{Disk, File};
use crate::entry::{self, FORMAT, FileMark};
use crate::failpoint;
use crate::files::{self, Files, Role};
use crate::reader::{Shared, Slot};
use crate::record::{self, Address, Kind};
use crate::recover::{OpenError, Rebuilt, recover};
use crate::row::{Event, Fate, Row};
use crate::seals::Seals;
use crate::table::{Holds, Retention, TableName};
use object::scope::Scope;

mod rotate; // going on in a new file
mod shelve; // what is shown to nobody -> the same
mod stage; // inputs -> the bytes and rows of a group

pub(crate) use shelve::Laying;
use stage::Group;

/// Bytes of objects that are kept in memory beside fresh events, for all tables together. Past this
/// a watcher that lags reads from disk.
const FRESH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Fresh events that are remembered at most, whatever their size: deletes have no bytes and still
/// take memory.
const FRESH_EVENTS_MAX: usize = 16 * 1024;
/// The largest group buffer that is kept between groups.
const GROUP_BUFFER_KEPT: usize = 1024 * 1024;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whom it belongs to: another owner's store is refused.
    pub owner: String,
    /// How much history is kept.
    pub retention: Retention,
    /// A log is folded into a base when it is larger than this, and larger than what it holds.
    pub compact_bytes_min: u64,
    /// With what Secrets are sealed. Without keys they lie on the disk as they are.
    pub keys: Option<Arc<Keys>>,
}

impl Options {
    /// The usual settings for a store of this owner.
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            retention: Retention::default(),
            compact_bytes_min: 32 * 1024 * 1024,
            keys: None,
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
    /// A sync failed, so nobody knows what is on disk. The store takes no more writes until it is
    /// opened anew.
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
        fate: Fate,
        version: Version,
        count: usize,
    },
    /// Within a replacement: what lies on the scope's shelf, in the table of this number, which are
    /// these rows.
    Adopt {
        from: u32,
        rows: Vec<Arc<Row>>,
    },
}

/// The writer's side of a store.
pub(crate) struct Log {
    pub(crate) shared: Arc<Shared>,
    clock: Clock,
    options: Options,
    mark: FileMark,
    file: Arc<dyn File>,
    /// Where the next group goes in the file.
    end: u64,
    /// The number of the file's next record.
    index_next: u16,
    number_next: u32,
    since_base: u64,
    tables: BTreeMap<TableName, Own>,
    group: Group,
    fresh: VecDeque<(Arc<Event>, usize)>,
    fresh_bytes: usize,
    /// Whether something was written since the last seal.
    unsealed: bool,
    unsafe_since: Option<String>,
    compaction: Option<Compaction>,
    beside: Beside,
    _lock: Box<dyn Send + Sync>,
}

/// What the writer keeps of a table.
struct Own {
    slot: Arc<Slot>,
    seq_next: u64,
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
        let seals = Seals::new(options.keys.clone());
        let found = recover(&*disk, &options.owner, counting, (clock.now(), &seals))?;
        if found.torn_bytes > 0 {
            let bytes = found.torn_bytes;
            tracing::warn!(bytes, "cut off an unfinished write at the log's end");
        }
        let mut mark = found.mark.unwrap_or_else(|| FileMark {
            format: FORMAT,
            id: compact::random_id(),
            owner: options.owner.clone(),
            number: 1,
            shared_versions: counting == Counting::Shared,
            version: None,
        });
        let files = Files::new(disk.clone(), seals);
        for (number, file) in &found.files {
            files.add(*number, file.clone());
        }
        let shared = Arc::new(Shared::new(files, counting));
        let tables = adopt(&shared, found.tables);
        shared.raise(found.newest);
        let (file, end, index_next) = match found.tail {
            Some(tail) => {
                mark.number = tail.number;
                (tail.file, tail.end, tail.index_next)
            }
            None => {
                mark.number = found.number_next;
                (disk.create(&files::name(Role::Log, mark.number))?, 0, 0)
            }
        };
        let mut log = Self {
            shared,
            clock,
            options,
            number_next: found.number_next.max(mark.number + 1),
            mark,
            file,
            end,
            index_next,
            since_base: found.since_base,
            tables,
            group: Group::default(),
            fresh: VecDeque::new(),
            fresh_bytes: 0,
            unsealed: true,
            unsafe_since: None,
            compaction: None,
            beside: Beside::Yes,
            _lock: lock,
        };
        match end {
            0 => log.begin_file()?,
            _ => log.trim(), // of history, files may have more than is kept
        }
        if found.unsealed {
            log.seal_anew();
        }
        Ok(log)
    }

    /// A table, if it is there.
    pub(crate) fn known(&self, name: &TableName) -> Option<Arc<Slot>> {
        self.tables.get(name).map(|own| own.slot.clone())
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
            // After a failed sync the kernel may have dropped the pages: what is on disk is
            // unknown, and a second sync would lie.
            return Err(self.now_unsafe(&error));
        }
        failpoint::pass("store.after_fsync_before_ack");
        self.end += self.group.bytes.len() as u64;
        self.since_base += self.group.bytes.len() as u64;
        self.index_next = self.index_next.wrapping_add(self.group.records);
        self.unsealed = true;
        self.publish();
        self.compact_if_due();
        Ok(Durable(()))
    }

    fn write_failed(&mut self, error: &io::Error) -> Failed {
        // Part of the group may have arrived. It must not stand before or behind what is written
        // next, nor come back after a crash when the caller was told that nothing was stored.
        let reason = error.to_string();
        let cut = self.file.truncate(self.end).and_then(|()| self.file.sync());
        match cut {
            Ok(()) => {
                self.roll_back();
                Failed::NotStored(reason)
            }
            Err(error) => self.now_unsafe(&error),
        }
    }

    fn now_unsafe(&mut self, error: &io::Error) -> Failed {
        let reason = error.to_string();
        tracing::error!(
            reason,
            "the disk cannot be trusted: no more writes are taken"
        );
        self.unsafe_since = Some(reason.clone());
        self.shared.distrust();
        self.roll_back();
        Failed::Unsafe(reason)
    }

    /// Forgets what is staged.
    fn roll_back(&mut self) {
        let group = std::mem::take(&mut self.group);
        for (name, seq) in group.seqs {
            if let Some(own) = self.tables.get_mut(&name) {
                own.seq_next = seq;
            }
        }
        for name in group.made {
            self.tables.remove(&name);
        }
    }

    fn publish(&mut self) {
        failpoint::pass("watch.before_fanout");
        let now = self.clock.now();
        let mut group = std::mem::take(&mut self.group);
        for name in group.made {
            let own = self.tables.get(&name).expect("made in this group");
            self.shared.add_slot(own.slot.clone());
        }
        let mut newest = None;
        let mut changed = Vec::with_capacity(group.commits.len());
        for staging in group.commits.drain(..) {
            newest = newest.max(staging.standing.version.clone());
            let mut table = staging.slot.table.write();
            // Emptied and filled under one lock: nobody sees it in between.
            if staging.afresh {
                table.start_afresh();
            }
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
            if staging.afresh {
                staging.slot.heal();
            }
            changed.push(staging.slot);
        }
        self.shared.advance(newest);
        // Watchers wake when the shared counter is raised, so that their progress counts this
        // group.
        changed.sort_by_key(|slot| slot.number);
        changed.dedup_by_key(|slot| slot.number);
        changed.iter().for_each(|slot| slot.wake());
        self.forget_fresh(FRESH_BYTES_MAX, FRESH_EVENTS_MAX);
        // The group's buffer is kept for the next one, unless a large group made it large.
        group.bytes.clear();
        if group.bytes.capacity() <= GROUP_BUFFER_KEPT {
            self.group.bytes = group.bytes;
        }
    }

    fn forget_fresh(&mut self, bytes_max: usize, events_max: usize) {
        while self.fresh_bytes > bytes_max || self.fresh.len() > events_max {
            let Some((event, size)) = self.fresh.pop_front() else {
                break;
            };
            event.forget();
            self.fresh_bytes -= size;
        }
    }

    /// How long changes are kept where there are neither few nor many.
    pub(crate) fn history_age_max(&self) -> std::time::Duration {
        self.options.retention.age_max
    }

    /// Drops old history of all tables; called now and then, since a quiet table is not written.
    pub(crate) fn trim(&mut self) {
        let now = self.clock.now();
        for own in self.tables.values() {
            own.slot.table.write().trim(&self.options.retention, now);
        }
        self.renew_format();
    }

    /// The store has been quiet for a while: it needs less memory, and its last group a seal.
    pub(crate) fn rest(&mut self) {
        self.forget_fresh(0, 0);
        self.seal();
    }

    /// Writes a group that stores nothing. It shows that the group before it was synced, so that
    /// damage there is not taken for a torn write and cut off, and how many records each table has,
    /// so that damage is known to be a table's own.
    fn seal(&mut self) {
        if !self.unsealed || self.unsafe_since.is_some() {
            return;
        }
        let tables = self.tables.values();
        let meta = entry::encode_seal(tables.map(|own| (own.slot.number, own.seq_next)));
        self.put(Kind::End, Address::default(), &meta, b"");
        // Without a seal nothing is lost but this protection.
        if self.sync().is_ok() {
            self.unsealed = false;
        }
    }

    /// Waits for a running compaction. For a clean end.
    pub(crate) fn close(&mut self) {
        self.seal();
        if let Some(compaction) = self.compaction.take() {
            compaction.join();
        }
    }
}

/// Takes over the tables that were found.
fn adopt(shared: &Shared, found: BTreeMap<u32, Rebuilt>) -> BTreeMap<TableName, Own> {
    let mut tables = BTreeMap::new();
    for (number, rebuilt) in found {
        let name = rebuilt.name.unwrap_or_else(|| unnamed(number));
        if let Some(reason) = &rebuilt.damage {
            let table = name.to_string();
            match name.holds {
                Holds::Staged => tracing::warn!(table, reason, "what was staged is lost"),
                Holds::Objects | Holds::Documents => {
                    tracing::error!(table, reason, "what is stored is damaged and not served");
                }
            }
        }
        let slot = Slot::new(name.clone(), number, rebuilt.table, rebuilt.damage);
        let slot = shared.add(slot);
        let seq_next = rebuilt.seq_next;
        tables.insert(name, Own { slot, seq_next });
    }
    tables
}

/// A table whose name was lost. It is damaged and answers nothing, but it must not be forgotten
/// silently.
fn unnamed(number: u32) -> TableName {
    TableName::objects(&Resource::new(
        "unnamed.invalid",
        &format!("table-{number}"),
    ))
}
