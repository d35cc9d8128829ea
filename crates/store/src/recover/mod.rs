//! Opening a store: the files are read in order, what is whole counts, what a crash tore is cut
//! off, what is damaged is named.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use object::Version;

use crate::disk::{Disk, File};
use crate::entry::{self, CommitEntry, FORMAT, FileMark, More};
use crate::files::{self, Role};
use crate::log::Counting;
use crate::record::{Address, Found, Kind, Record, Scan};
use crate::row::FILE_BYTES_MAX;
use crate::seals::Seals;

mod choose; // which files count
mod losses; // what cannot be read -> which tables miss it
mod open_error; // why not
mod rebuilt; // one table, record by record
mod unseal; // sealed values -> what is known of them

use choose::{Chosen, mark_of_base};
use losses::Losses;
pub use open_error::OpenError;
pub(crate) use rebuilt::Rebuilt;
use rebuilt::Taken;
pub(crate) use unseal::sealed_with;

/// What was found on disk.
pub(crate) struct Recovered {
    pub(crate) tables: BTreeMap<u32, Rebuilt>,
    pub(crate) mark: Option<FileMark>,
    /// The file to go on in.
    pub(crate) tail: Option<Tail>,
    pub(crate) number_next: u32,
    pub(crate) files: BTreeMap<u32, Arc<dyn File>>,
    /// Bytes of logs that are not in a base.
    pub(crate) since_base: u64,
    /// Bytes that a crash had torn and that were cut off.
    pub(crate) torn_bytes: u64,
    /// The highest version that any record showed, also of tables that are damaged: it must not be
    /// given out again.
    pub(crate) newest: Option<Version>,
    /// Whether something lies here as it is, or sealed with an older key, and is to be sealed.
    pub(crate) unsealed: bool,
}

/// The end of the last log.
pub(crate) struct Tail {
    pub(crate) number: u32,
    pub(crate) file: Arc<dyn File>,
    /// Where its last whole transaction ends.
    pub(crate) end: u64,
    /// The number of its next record.
    pub(crate) index_next: u16,
}

/// Reads everything on `disk`. Changes nothing but for cutting off a torn tail and removing what
/// is certainly needless.
pub(crate) fn recover(
    disk: &dyn Disk,
    owner: &str,
    counting: Counting,
    (now, seals): (Instant, &Seals),
) -> Result<Recovered, OpenError> {
    let chosen = Chosen::new(disk)?;
    let mut recovery = Recovery::new(owner, counting, now, seals.clone());
    recovery.found.number_next = chosen.number_next;
    if let Some(number) = chosen.base {
        let name = files::name(Role::Base, number);
        let file = disk.open(&name)?;
        (recovery.file, recovery.role) = (number, Role::Base);
        if let Some(mark) = mark_of_base(&*file)? {
            recovery.check_mark(&mark)?;
        }
        recovery.read_file(number, Role::Base, file, Sealed::Yes)?;
        recovery.close_base();
        if chosen.logs.is_empty() {
            recovery.miss_log();
        }
    }
    let last = chosen.logs.last().copied();
    for number in chosen.logs {
        let name = files::name(Role::Log, number);
        let sealed = if Some(number) == last {
            Sealed::No
        } else {
            Sealed::Yes
        };
        recovery.read_file(number, Role::Log, disk.open(&name)?, sealed)?;
    }
    let nothing = recovery.found.mark.is_none() && recovery.found.tables.is_empty();
    if nothing && chosen.bytes > TORN_START_BYTES_MAX {
        return Err(OpenError::Destroyed);
    }
    let base_is_whole = recovery.base_is_whole;
    let recovered = recovery.finish()?;
    // What was found may be in the system's cache only, if a process and not the machine died. It
    // is shown from now on, so it must be durable, names before the removal of what they replace.
    disk.sync_names()?;
    for (name, needs_base) in &chosen.obsolete {
        if base_is_whole || !needs_base {
            disk.remove(name)?;
        }
    }
    Ok(recovered)
}

/// A first file that a crash tore when it was made is not larger than this. A larger one in which
/// nothing can be read was something once.
const TORN_START_BYTES_MAX: u64 = 4096;

/// Whether a later file shows that all of this one was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sealed {
    Yes,
    No,
}

struct Recovery {
    found: Recovered,
    owner: String,
    counting: Counting,
    now: Instant,
    seals: Seals,
    /// Commits of a transaction over several tables, until its last.
    open: Vec<(u32, CommitEntry, Taken)>,
    /// The current file.
    file: u32,
    role: Role,
    /// Where the last whole transaction of the current file ends, and the record number after it.
    whole_to: (u64, u16),
    /// Tables that had records since then. If those are cut off, their numbers are used again.
    counted: BTreeSet<u32>,
    /// Records behind damage in an unsealed file: they count only if a later group shows that this
    /// one was synced.
    limbo: Vec<Pending>,
    /// The number that the current file's next record should have.
    index_next: u16,
    base_is_whole: bool,
    losses: Losses,
}

enum Pending {
    Damage(Option<Address>),
    Record(Record),
}

impl Recovery {
    fn new(owner: &str, counting: Counting, now: Instant, seals: Seals) -> Self {
        let found = Recovered {
            tables: BTreeMap::new(),
            mark: None,
            tail: None,
            number_next: 1,
            files: BTreeMap::new(),
            since_base: 0,
            torn_bytes: 0,
            newest: None,
            unsealed: false,
        };
        Self {
            found,
            owner: owner.to_owned(),
            counting,
            now,
            seals,
            open: vec![],
            file: 0,
            role: Role::Base,
            whole_to: (0, 0),
            counted: BTreeSet::new(),
            limbo: vec![],
            index_next: 0,
            base_is_whole: false,
            losses: Losses::default(),
        }
    }

    fn read_file(
        &mut self,
        number: u32,
        role: Role,
        file: Arc<dyn File>,
        sealed: Sealed,
    ) -> Result<(), OpenError> {
        (self.file, self.role) = (number, role);
        (self.whole_to, self.index_next) = ((0, 0), 0);
        let size = file.size()?;
        if size > FILE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a file is too large").into());
        }
        let known: Vec<u32> = self.found.tables.keys().copied().collect();
        let mut scan = Scan::new(&*file)?;
        loop {
            let found = match scan.next()? {
                Found::Record(record) if record.kind == Kind::Sealed => {
                    self.unseal(record, &mut scan)?
                }
                other => other,
            };
            match found {
                Found::End => break,
                Found::Damage(address) => match sealed {
                    Sealed::Yes => self.damage(address),
                    Sealed::No => self.limbo.push(Pending::Damage(address)),
                },
                Found::Record(record) => {
                    if record.kind == Kind::File {
                        self.check_mark(&record)?;
                    }
                    if record.first {
                        self.begin_group();
                    }
                    match self.limbo.is_empty() {
                        true => self.record(record),
                        false => self.limbo.push(Pending::Record(record)),
                    }
                }
            }
        }
        self.losses.unknown |= std::mem::take(&mut self.losses.uncounted);
        if role == Role::Log {
            self.miss_announcements(&known);
            self.found.since_base += size;
            let (end, index_next) = self.whole_to;
            self.found.torn_bytes = size - end.min(size);
            self.found.tail = Some(Tail {
                number,
                file: file.clone(),
                end,
                index_next,
            });
        }
        self.found.files.insert(number, file);
        Ok(())
    }

    /// A group begins, so the one before it had been synced: damage in it is real, records in it
    /// count, and a transaction that it left open had an end.
    fn begin_group(&mut self) {
        for pending in std::mem::take(&mut self.limbo) {
            match pending {
                Pending::Damage(address) => self.damage(address),
                Pending::Record(record) => self.record(record),
            }
        }
        self.close_transaction();
        self.keep_counts();
    }

    fn check_mark(&mut self, record: &Record) -> Result<(), OpenError> {
        let mixed = || OpenError::Mixed {
            file: files::name(self.role, self.file),
        };
        let mark = FileMark::decode(&record.meta).map_err(|_| mixed())?;
        if mark.format > FORMAT {
            return Err(OpenError::Newer { found: mark.format });
        }
        if mark.owner != self.owner {
            return Err(OpenError::Foreign {
                found: mark.owner,
                wanted: self.owner.clone(),
            });
        }
        if mark.shared_versions != (self.counting == Counting::Shared) {
            return Err(OpenError::OtherFeeder);
        }
        let known = self.found.mark.as_ref();
        if mark.number != self.file || known.is_some_and(|known| known.id != mark.id) {
            return Err(mixed());
        }
        self.saw_version(mark.version.as_ref());
        self.found.mark = Some(mark);
        Ok(())
    }

    fn saw_version(&mut self, version: Option<&Version>) {
        if self.found.newest.as_ref() < version {
            self.found.newest = version.cloned();
        }
    }

    fn record(&mut self, record: Record) {
        self.follow(record.address);
        let (file, end, number) = (self.file, record.end, record.address.table);
        if matches!(record.kind, Kind::File | Kind::End) {
            match (self.role, record.kind) {
                (Role::Base, Kind::End) => self.base_is_whole = true,
                (Role::Log, Kind::End) => self.seal(&record),
                _ => {}
            }
            return self.is_whole_to(end);
        }
        if number == 0 {
            // No table has this number, so we did not write it.
            return;
        }
        let unmarked = self.found.mark.is_none();
        let sealed_right = self.is_sealed_right(&record);
        let table = self.found.tables.entry(number).or_default();
        if unmarked {
            table.hurt(file, "no file says whose it is");
        }
        if !sealed_right {
            table.hurt(file, "a sealed value lies where none belongs");
        }
        match record.kind {
            Kind::Table => {
                self.losses.missed += table.announce(file, &record);
                // It stands for itself; what is staged waits for its commit.
                if self.open.is_empty() && self.counted.is_empty() {
                    self.is_whole_to(end);
                }
            }
            Kind::Commit => self.commit(&record),
            Kind::Base if self.role == Role::Log => table.hurt(file, "a log holds no base"),
            _ => {
                let counted = table.count(file, record.address.seq);
                self.losses.missed += counted.missed;
                table.stage(file, &record, counted);
                self.counted.insert(number);
            }
        }
    }

    /// Every table must have had as many records as the seal says.
    fn seal(&mut self, record: &Record) {
        for (number, seq_next) in entry::decode_seal(&record.meta).unwrap_or_default() {
            let table = self.found.tables.entry(number).or_default();
            self.losses.missed += table.expect_next(self.file, seq_next);
        }
    }

    fn commit(&mut self, record: &Record) {
        let (file, number) = (self.file, record.address.table);
        let table = self.found.tables.entry(number).or_default();
        let counted = table.count(file, record.address.seq);
        self.losses.missed += counted.missed;
        self.counted.insert(number);
        let Ok(commit) = CommitEntry::decode(&record.meta) else {
            return table.hurt(file, "a commit cannot be read");
        };
        table.seq_next = match self.role {
            // A base numbers its records from one, and says at its end where the log goes on.
            Role::Base => commit.seq_next,
            Role::Log => table.seq_next.max(commit.seq_next),
        };
        let more = commit.more;
        let taken = table.take_staged();
        self.saw_version(commit.version.as_ref());
        if counted.usable {
            self.open.push((number, commit, taken));
        }
        if more == More::No {
            self.close_transaction();
            self.is_whole_to(record.end);
        }
    }

    /// Everything in the current file up to here counts.
    fn is_whole_to(&mut self, end: u64) {
        self.whole_to = (end, self.index_next);
        self.keep_counts();
    }

    fn keep_counts(&mut self) {
        for number in std::mem::take(&mut self.counted) {
            self.found.tables.entry(number).or_default().keep_count();
        }
    }

    /// A transaction is whole: all its tables take it in.
    fn close_transaction(&mut self) {
        let open = std::mem::take(&mut self.open);
        let numbers: Vec<u32> = open.iter().map(|(number, ..)| *number).collect();
        for (number, commit, mut taken) in open {
            let whole = taken.adopt(&self.found.tables);
            let table = self.found.tables.entry(number).or_default();
            match whole {
                true => table.commit(self.file, commit, taken, self.now),
                false => table.hurt(self.file, "staged content that it took over is missing"),
            }
        }
        for number in numbers {
            self.found
                .tables
                .entry(number)
                .or_default()
                .end_transaction();
        }
    }

    /// After a base every table that it announced must be whole.
    fn close_base(&mut self) {
        self.close_transaction();
        let file = self.file;
        for table in self.found.tables.values_mut() {
            if !table.committed {
                table.hurt(file, "its part of the base is missing");
            }
        }
        self.settle();
        self.losses = Losses::default();
    }

    fn finish(mut self) -> Result<Recovered, OpenError> {
        // A file that holds something and does not say whose is left alone: what comes next goes
        // into one that does, or it could not be told apart either.
        let kept = |tail: &Tail| tail.end > 0;
        if self.found.mark.is_none() && self.found.tail.as_ref().is_some_and(kept) {
            self.begin_group();
            self.found.tail = None;
            self.found.torn_bytes = 0;
        }
        // What is still in limbo or open was never synced as a whole, and is cut off.
        self.limbo.clear();
        self.open.clear();
        for number in std::mem::take(&mut self.counted) {
            self.found.tables.entry(number).or_default().go_back();
        }
        self.settle();
        for table in self.found.tables.values_mut() {
            table.give_up_staged();
        }
        let tables = &mut self.found.tables;
        tables.retain(|_, table| table.name.is_some() || table.damage.is_some());
        if let Some(tail) = &self.found.tail {
            if self.found.torn_bytes > 0 {
                tail.file.truncate(tail.end)?;
            }
            tail.file.sync()?;
        }
        Ok(self.found)
    }
}
