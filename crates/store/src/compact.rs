//! Compaction: everything that still counts goes into one base file in the background, and the
//! files before it go away.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use object::Version;

use crate::disk::File;
use crate::entry::{self, CommitEntry, FileMark, More, ReplaceEntry, ShelfEntry};
use crate::failpoint;
use crate::files::{self, Role, UNFINISHED, Unreadable};
use crate::reader::{Shared, Slot};
use crate::record::{self, Address, Kind};
use crate::row::{At, Event, Form, Row, What};
use crate::table::shelf::{Shelf, Shelving};
use crate::table::{Standing, TableName, pairs};

/// Bytes that are gathered before they are written.
const WRITE_BYTES: usize = 256 * 1024;

/// A compaction that runs.
pub(crate) struct Compaction {
    thread: JoinHandle<()>,
}

/// On which thread a compaction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// On one of its own, beside everything else.
    Yes,
    /// On the writer's, who waits for it.
    No,
}

/// A table at the moment at which the log moved on to a new file.
pub(crate) struct TablePicture {
    slot: Arc<Slot>,
    seq_next: u64,
    damaged: bool,
    floor: Option<Version>,
    rows: Vec<Arc<Row>>,
    history: Vec<Arc<Event>>,
    shelves: Vec<Shelf>,
    standing: Standing,
}

impl TablePicture {
    pub(crate) fn take(slot: Arc<Slot>, seq_next: u64) -> Self {
        let table = slot.table.read();
        let shelves = table.shelves().iter();
        Self {
            seq_next,
            damaged: slot.is_damaged(),
            floor: table.floor().cloned(),
            rows: table.base(),
            history: table.history().cloned().collect(),
            shelves: shelves.map(|(_, shelf)| shelf.clone()).collect(),
            standing: table.standing().clone(),
            slot: slot.clone(),
        }
    }
}

impl Compaction {
    pub(crate) fn start(
        shared: Arc<Shared>,
        mark: FileMark,
        pictures: Vec<TablePicture>,
    ) -> io::Result<Self> {
        let thread = std::thread::Builder::new()
            .name("compact".into())
            .spawn(move || attempt(&shared, &mark, &pictures))?;
        Ok(Self { thread })
    }

    pub(crate) fn finished(&self) -> bool {
        self.thread.is_finished()
    }

    pub(crate) fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("compaction panicked; the old files are kept");
        }
    }
}

/// Compacts, on the thread of whoever calls.
pub(crate) fn attempt(shared: &Shared, mark: &FileMark, pictures: &[TablePicture]) {
    let number = mark.number;
    match run(shared, mark, pictures) {
        Ok(bytes) => tracing::debug!(number, bytes, "compacted"),
        // The old files are all still there: nothing is lost, the next compaction tries again.
        Err(error) => tracing::warn!(number, %error, "compaction failed"),
    }
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the disk failed: {0}")]
    Disk(#[from] io::Error),
    #[error("{table}: {cause}")]
    Unreadable { table: TableName, cause: Unreadable },
}

fn run(shared: &Shared, mark: &FileMark, pictures: &[TablePicture]) -> Result<u64, Error> {
    let disk = &shared.files.disk;
    // One is left behind if an earlier compaction failed.
    let _ = disk.remove(UNFINISHED);
    let file = disk.create(UNFINISHED)?;
    let mut base = Base {
        shared,
        file: file.clone(),
        at: 0,
        index: 0,
        buffer: Vec::new(),
        moved: Vec::new(),
    };
    base.put(Kind::File, Address::default(), &mark.encode());
    for picture in pictures {
        let seq_next = if picture.damaged { picture.seq_next } else { 1 };
        let meta = entry::encode_table(&picture.slot.name, seq_next);
        base.put(
            Kind::Table,
            Address {
                table: picture.slot.number,
                ..Address::default()
            },
            &meta,
        );
    }
    for picture in pictures.iter().filter(|picture| !picture.damaged) {
        base.table(picture)?;
    }
    base.put(Kind::End, Address::default(), &mark.encode());
    base.flush()?;
    file.sync()?;
    failpoint::pass("compact.before_rename");
    disk.rename(UNFINISHED, &files::name(Role::Base, mark.number))?;
    disk.sync_names()?;
    failpoint::pass("compact.after_rename");
    let bytes = base.at;
    // First every row learns its new place, then the old places go.
    shared.files.add(mark.number, file);
    for (row, offset, form) in base.moved {
        let file = mark.number;
        row.move_to(At { file, offset, form });
    }
    shared.files.forget_below(mark.number);
    for name in disk.list()? {
        if files::parse_name(&name).is_some_and(|(_, number)| number < mark.number) {
            disk.remove(&name)?;
            failpoint::pass("compact.mid_remove");
        }
    }
    Ok(bytes)
}

/// A base file in the making.
struct Base<'a> {
    shared: &'a Shared,
    file: Arc<dyn File>,
    at: u64,
    /// The number of the next record.
    index: u16,
    buffer: Vec<u8>,
    moved: Vec<(Arc<Row>, u64, Form)>,
}

impl Base<'_> {
    fn table(&mut self, picture: &TablePicture) -> Result<(), Error> {
        let mut seq = 0;
        let mut next = || {
            seq += 1;
            Address {
                table: picture.slot.number,
                seq,
                index: 0,
            }
        };
        for row in &picture.rows {
            self.row(next(), row, &picture.slot.name)?;
        }
        self.put(
            Kind::Base,
            next(),
            &entry::encode_base(picture.floor.as_ref()),
        );
        for event in &picture.history {
            if let What::Replaced(replaced) = &event.what {
                let count = replaced.swaps.len();
                let (scope, version) = (&replaced.scope, &event.version);
                let meta = ReplaceEntry::encode(scope, replaced.fate, version, count);
                self.put(Kind::Replace, next(), &meta);
            }
            for (before, after) in pairs(&event.what) {
                match (before, after) {
                    (_, Some(row)) => self.row(next(), row, &picture.slot.name)?,
                    (Some(row), None) => {
                        let header = &row.header;
                        let meta = entry::encode_delete(&header.name, &header.uid, &event.version);
                        self.put(Kind::Delete, next(), &meta);
                    }
                    (None, None) => {}
                }
            }
        }
        for shelf in &picture.shelves {
            let entry = ShelfEntry {
                scope: shelf.scope.clone(),
                epoch: shelf.epoch,
                shelving: Shelving::Anew(shelf.over),
                count: shelf.len(),
            };
            self.put(Kind::Shelf, next(), &entry.encode());
            for (name, row) in shelf.entries() {
                match row {
                    Some(row) => self.row(next(), row, &picture.slot.name)?,
                    None => {
                        let meta = entry::encode_delete(name, "", &Version::FIRST);
                        self.put(Kind::Delete, next(), &meta);
                    }
                }
            }
        }
        let nothing = Standing::default();
        let seq_next = picture.seq_next;
        let meta = CommitEntry::between(&nothing, &picture.standing, More::No, seq_next);
        self.put(Kind::Commit, next(), &meta);
        failpoint::pass("compact.mid");
        Ok(())
    }

    fn row(&mut self, address: Address, row: &Arc<Row>, table: &TableName) -> Result<(), Error> {
        let files = &self.shared.files;
        let value = files.read(row).map_err(|cause| {
            if let Unreadable::Damaged { .. } = &cause {
                self.shared.damaged(table, &cause.to_string());
            }
            let table = table.clone();
            Error::Unreadable { table, cause }
        })?;
        let meta = entry::encode_put(&row.header);
        // Sealed again, whatever it was: with the key that seals now.
        let sealed = files.seals.seal(table, &row.header, &value)?;
        let (kind, form, value) = match &sealed {
            None => (Kind::Put, Form::Plain, &value[..]),
            Some(sealed) => (Kind::Sealed, Form::Sealed, &sealed[..]),
        };
        let offset = self.at + self.append(kind, address, &meta, value);
        self.moved.push((row.clone(), offset, form));
        if self.buffer.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn put(&mut self, kind: Kind, address: Address, meta: &[u8]) {
        self.append(kind, address, meta, b"");
    }

    /// Appends a record and returns where in the buffer its value starts.
    fn append(&mut self, kind: Kind, address: Address, meta: &[u8], value: &[u8]) -> u64 {
        let index = self.index;
        self.index = index.wrapping_add(1);
        let address = Address { index, ..address };
        let (value_at, _) = record::put(&mut self.buffer, kind, address, meta, value);
        value_at as u64
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.at)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// A number that no other store has.
pub(crate) fn random_id() -> [u8; 16] {
    use std::hash::{BuildHasher, RandomState};
    let mut id = [0; 16];
    // Each RandomState is keyed from the system's randomness; uniqueness is wanted here, not
    // secrecy.
    id[..8].copy_from_slice(&RandomState::new().hash_one(1_u8).to_le_bytes());
    id[8..].copy_from_slice(&RandomState::new().hash_one(2_u8).to_le_bytes());
    id
}
