//! Opening a store: the files are read in order, what is whole counts, what a crash tore is cut off, what is damaged is named.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use object::Resource;

use crate::disk::{Disk, File};
use crate::entry::{self, FORMAT, FileMark, More};
use crate::files::{self, Role, UNFINISHED};
use crate::record::{Found, Kind, Record, Scan};
use crate::row::{At, Row};
use crate::table::{Staged, Standing, Table};

/// Why a store could not be opened. Nothing on disk was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the store is in use by another process")]
    InUse,
    /// It was written by a newer program.
    #[error(
        "the store has format {found}, this program reads up to {FORMAT}: use the newer program"
    )]
    Newer {
        /// The format on disk.
        found: u64,
    },
    /// It belongs to somebody else.
    #[error("the store belongs to {found:?}, not to {wanted:?}")]
    Foreign {
        /// Whose it is.
        found: String,
        /// Who we are.
        wanted: String,
    },
    /// Its files are of two stores.
    #[error("the file {file} is of another store")]
    Mixed {
        /// The file that does not belong.
        file: String,
    },
    /// The disk failed.
    #[error("the disk failed")]
    Disk(#[from] io::Error),
}

/// A table as it was found.
#[derive(Debug, Default)]
pub(crate) struct Rebuilt {
    pub(crate) resource: Option<Resource>,
    pub(crate) table: Table,
    /// The number that its next record has.
    pub(crate) seq_next: u64,
    /// What is wrong with it.
    pub(crate) damage: Option<String>,
    staged: Vec<Staged>,
    /// Something unreadable was met since its last record: its own next number will tell whether it was one of its records.
    suspect: bool,
    committed: bool,
}

/// What was found on disk.
pub(crate) struct Recovered {
    pub(crate) tables: BTreeMap<u32, Rebuilt>,
    pub(crate) mark: Option<FileMark>,
    /// The file to go on in, and where.
    pub(crate) tail: Option<(u32, Arc<dyn File>, u64)>,
    pub(crate) number_next: u32,
    pub(crate) files: BTreeMap<u32, Arc<dyn File>>,
    /// Bytes of logs that are not in a base.
    pub(crate) since_base: u64,
    /// Bytes that a crash had torn and that were cut off.
    pub(crate) torn_bytes: u64,
    /// Files that a base made needless.
    obsolete: Vec<String>,
}

/// Reads everything on `disk`. Changes nothing but for cutting off a torn tail and removing what is certainly needless.
pub(crate) fn recover(disk: &dyn Disk, owner: &str, now: Instant) -> Result<Recovered, OpenError> {
    let mut recovery = Recovery::new(owner, now);
    let (base, logs) = recovery.choose(disk)?;
    if let Some(number) = base {
        let name = files::name(Role::Base, number);
        recovery.read_file(number, &name, disk.open(&name)?, Sealed::Yes)?;
        recovery.close_base();
    }
    let last = logs.last().copied();
    for number in logs {
        let name = files::name(Role::Log, number);
        let sealed = if Some(number) == last {
            Sealed::No
        } else {
            Sealed::Yes
        };
        recovery.read_file(number, &name, disk.open(&name)?, sealed)?;
    }
    let recovered = recovery.finish()?;
    for name in &recovered.obsolete {
        disk.remove(name)?;
    }
    Ok(recovered)
}

/// Whether a later file shows that all of this one was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sealed {
    Yes,
    No,
}

struct Recovery {
    found: Recovered,
    owner: String,
    now: Instant,
    /// Commits of a transaction over several tables, until its last.
    open: Vec<(u32, Standing)>,
    /// The current file.
    file: u32,
    /// Where the last whole transaction of the current file ends.
    whole_to: u64,
    /// Records behind damage in an unsealed file: they count only if a later group shows that this one was synced.
    limbo: Vec<Pending>,
}

enum Pending {
    Damage { table: Option<u32> },
    Record(Record),
}

impl Recovery {
    fn new(owner: &str, now: Instant) -> Self {
        let found = Recovered {
            tables: BTreeMap::new(),
            mark: None,
            tail: None,
            number_next: 1,
            files: BTreeMap::new(),
            since_base: 0,
            torn_bytes: 0,
            obsolete: Vec::new(),
        };
        let owner = owner.to_owned();
        Self {
            found,
            owner,
            now,
            open: vec![],
            file: 0,
            whole_to: 0,
            limbo: vec![],
        }
    }

    /// The newest base and the logs after it.
    fn choose(&mut self, disk: &dyn Disk) -> Result<(Option<u32>, Vec<u32>), OpenError> {
        let names = disk.list()?;
        let mut known: Vec<(u32, Role)> = names
            .iter()
            .filter_map(|name| files::parse_name(name))
            .map(|(r, n)| (n, r))
            .collect();
        known.sort_unstable();
        self.found.number_next = known.last().map_or(1, |(number, _)| number + 1);
        let bases = known.iter().rev().filter(|(_, role)| *role == Role::Base);
        let base = bases.map(|(number, _)| *number).next();
        let mut logs = Vec::new();
        for (number, role) in known {
            match role {
                Role::Base if Some(number) == base => {}
                Role::Log if base.is_none_or(|base| number > base) => logs.push(number),
                Role::Base | Role::Log => self.found.obsolete.push(files::name(role, number)),
            }
        }
        if names.iter().any(|name| name == UNFINISHED) {
            self.found.obsolete.push(UNFINISHED.to_owned());
        }
        Ok((base, logs))
    }

    fn read_file(
        &mut self,
        number: u32,
        name: &str,
        file: Arc<dyn File>,
        sealed: Sealed,
    ) -> Result<(), OpenError> {
        self.file = number;
        self.whole_to = 0;
        let mut scan = Scan::new(&*file)?;
        loop {
            match scan.next()? {
                Found::End => break,
                Found::Damage { table } => match sealed {
                    Sealed::Yes => self.damage(table),
                    Sealed::No => self.limbo.push(Pending::Damage { table }),
                },
                Found::Record(record) if record.kind == Kind::File => {
                    self.resolve_limbo();
                    self.check_mark(number, name, &record)?;
                    self.whole_to = record.end;
                }
                Found::Record(record) => {
                    if record.first {
                        self.resolve_limbo();
                    }
                    match self.limbo.is_empty() {
                        true => self.record(record),
                        false => self.limbo.push(Pending::Record(record)),
                    }
                }
            }
        }
        let size = file.size()?;
        if files::parse_name(name).is_some_and(|(role, _)| role == Role::Log) {
            self.found.since_base += size;
            self.found.tail = Some((number, file.clone(), self.whole_to));
            self.found.torn_bytes = size - self.whole_to.min(size);
        }
        self.found.files.insert(number, file);
        Ok(())
    }

    /// A later group was begun, so what is in limbo had been synced: damage in it is real, records in it count.
    fn resolve_limbo(&mut self) {
        for pending in std::mem::take(&mut self.limbo) {
            match pending {
                Pending::Damage { table } => self.damage(table),
                Pending::Record(record) => self.record(record),
            }
        }
    }

    fn check_mark(&mut self, number: u32, name: &str, record: &Record) -> Result<(), OpenError> {
        let mixed = || OpenError::Mixed {
            file: name.to_owned(),
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
        if mark.number != number
            || self
                .found
                .mark
                .as_ref()
                .is_some_and(|known| known.id != mark.id)
        {
            return Err(mixed());
        }
        self.found.mark = Some(mark);
        Ok(())
    }

    fn damage(&mut self, table: Option<u32>) {
        match table.filter(|table| *table != 0) {
            Some(table) => {
                let file = self.file;
                self.found
                    .tables
                    .entry(table)
                    .or_default()
                    .hurt(file, "a record is damaged");
            }
            None => self
                .found
                .tables
                .values_mut()
                .for_each(|table| table.suspect = true),
        }
    }

    fn record(&mut self, record: Record) {
        let (file, end, number) = (self.file, record.end, record.address.table);
        let table = self.found.tables.entry(number).or_default();
        match record.kind {
            Kind::File | Kind::End => return,
            Kind::Table => table.announce(file, &record),
            Kind::Drop => table.start_afresh(record.address.seq),
            Kind::Commit => return self.commit(&record),
            Kind::Put | Kind::Delete | Kind::Replace | Kind::Base => {
                if table.count(file, record.address.seq) {
                    table.stage(file, &record);
                }
                return;
            }
        }
        // What stands for itself is whole at once; what is staged waits for its commit.
        if self.open.is_empty() {
            self.whole_to = end;
        }
    }

    fn commit(&mut self, record: &Record) {
        let (file, number) = (self.file, record.address.table);
        let table = self.found.tables.entry(number).or_default();
        let Ok((standing, more, seq_next)) = entry::decode_commit(&record.meta) else {
            return table.hurt(file, "a commit cannot be read");
        };
        if table.count(file, record.address.seq) {
            table.seq_next = seq_next;
            self.open.push((number, standing));
        }
        if more == More::No {
            self.close_transaction();
            self.whole_to = record.end;
        }
    }

    /// A transaction is whole: all its tables take it in.
    fn close_transaction(&mut self) {
        for (number, standing) in std::mem::take(&mut self.open) {
            let table = self.found.tables.entry(number).or_default();
            let staged = std::mem::take(&mut table.staged);
            match table.table.commit(staged, standing, self.now) {
                Ok(_) => table.committed = true,
                Err(misfit) => table.hurt(self.file, misfit.0),
            }
        }
    }

    /// After a base every table that it announced must be whole.
    fn close_base(&mut self) {
        let file = self.file;
        for table in self.found.tables.values_mut() {
            if !table.committed {
                table.hurt(file, "its part of the base is missing");
            }
            table.settle(file);
        }
    }

    fn finish(mut self) -> Result<Recovered, OpenError> {
        self.limbo.clear();
        let file = self.file;
        for table in self.found.tables.values_mut() {
            table.staged.clear();
            table.settle(file);
        }
        // A table that was announced and never committed was being made when the crash came.
        self.found
            .tables
            .retain(|_, table| table.committed || table.damage.is_some());
        if let Some((_, file, whole_to)) = &self.found.tail {
            if self.found.torn_bytes > 0 {
                file.truncate(*whole_to)?;
                file.sync()?;
            }
        }
        Ok(self.found)
    }
}

impl Rebuilt {
    fn announce(&mut self, file: u32, record: &Record) {
        let Ok((resource, seq_next)) = entry::decode_table(&record.meta) else {
            return self.hurt(file, "its name cannot be read");
        };
        if self.resource.is_none() {
            self.resource = Some(resource);
            self.seq_next = self.seq_next.max(1);
        }
        if self.seq_next == seq_next {
            self.suspect = false;
        } else {
            self.hurt(file, "records are missing before it");
            self.seq_next = self.seq_next.max(seq_next);
        }
    }

    /// Counts a record of this table. Returns whether it can be used.
    fn count(&mut self, file: u32, seq: u64) -> bool {
        if self.damage.is_none() && seq != self.seq_next {
            self.hurt(file, "records are missing");
        }
        self.suspect = false;
        self.seq_next = self.seq_next.max(seq.saturating_add(1));
        self.damage.is_none()
    }

    fn stage(&mut self, file: u32, record: &Record) {
        let staged = match record.kind {
            Kind::Put => entry::decode_put(&record.meta).map(|header| {
                let at = At {
                    file,
                    offset: record.value_at,
                };
                Staged::Put(Arc::new(Row::new(
                    header,
                    at,
                    record.value_bytes,
                    record.value_sum,
                )))
            }),
            Kind::Delete => entry::decode_delete(&record.meta)
                .map(|(name, uid, version)| Staged::Delete { name, uid, version }),
            Kind::Replace => {
                entry::decode_replace(&record.meta).map(|(scope, version, count)| Staged::Replace {
                    scope,
                    version,
                    count,
                })
            }
            Kind::Base => return self.set_base(file, record),
            Kind::File | Kind::Table | Kind::Commit | Kind::Drop | Kind::End => {
                unreachable!("only rows are staged")
            }
        };
        match staged {
            Ok(staged) => self.staged.push(staged),
            Err(_) => self.hurt(file, "a row cannot be read"),
        }
    }

    fn set_base(&mut self, file: u32, record: &Record) {
        let staged = std::mem::take(&mut self.staged);
        let taken = entry::decode_base(&record.meta)
            .map_err(|_| "its base cannot be read")
            .and_then(|floor| {
                self.table
                    .set_base(staged, floor)
                    .map_err(|misfit| misfit.0)
            });
        if let Err(reason) = taken {
            self.hurt(file, reason);
        }
    }

    fn start_afresh(&mut self, seq: u64) {
        self.table = Table::default();
        self.staged.clear();
        self.damage = None;
        self.suspect = false;
        self.committed = false;
        self.seq_next = seq + 1;
    }

    fn hurt(&mut self, file: u32, reason: &str) {
        self.damage
            .get_or_insert_with(|| format!("{reason} (file {file})"));
        self.staged.clear();
        self.table = Table::default();
    }

    /// No record of its own cleared the suspicion.
    fn settle(&mut self, file: u32) {
        if std::mem::take(&mut self.suspect) {
            self.hurt(file, "an unreadable record may have been its own");
        }
    }
}
