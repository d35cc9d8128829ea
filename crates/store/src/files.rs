//! The store's files: their names, and reading an object's bytes from wherever they lie now.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use crate::disk::{Disk, File};
use crate::row::{At, Form, Row};
use crate::seals::Seals;

/// The open files at one moment. Whoever holds it can read them, even after they were removed.
pub(crate) type FileSet = Arc<HashMap<u32, Arc<dyn File>>>;

/// All files that rows lie in.
pub(crate) struct Files {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) seals: Seals,
    open: RwLock<FileSet>,
}

/// Why an object's bytes could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The bytes are not those that were written. They are not served.
    #[error("the stored bytes of {name} do not match their checksum")]
    Damaged {
        /// The object.
        name: object::ObjectName,
    },
    /// History moved on while the reader waited. Read again.
    #[error("the stored bytes of {name} were compacted away while they were being read")]
    Gone {
        /// The object.
        name: object::ObjectName,
    },
    /// The disk failed.
    #[error("the disk failed")]
    Disk(#[source] io::Error),
}

impl Files {
    pub(crate) fn new(disk: Arc<dyn Disk>, seals: Seals) -> Self {
        Self {
            disk,
            seals,
            open: RwLock::default(),
        }
    }

    pub(crate) fn set(&self) -> FileSet {
        self.open.read().clone()
    }

    pub(crate) fn add(&self, number: u32, file: Arc<dyn File>) {
        Arc::make_mut(&mut self.open.write()).insert(number, file);
    }

    pub(crate) fn forget_below(&self, number: u32) {
        Arc::make_mut(&mut self.open.write()).retain(|candidate, _| *candidate >= number);
    }

    /// Where each of these rows lies, and files that hold all of those places.
    pub(crate) fn pin(&self, rows: &[Arc<Row>]) -> (Vec<At>, FileSet) {
        let take = || {
            let pinned = self.set();
            let places: Vec<At> = rows.iter().map(|row| row.at()).collect();
            (places, pinned)
        };
        let (places, pinned) = take();
        match places.iter().all(|at| pinned.contains_key(&at.file)) {
            true => (places, pinned),
            // A compaction that ended between the two moved a row on. No other can end so soon.
            false => take(),
        }
    }

    /// A row's bytes, verified, from where it lies now.
    pub(crate) fn read(&self, row: &Row) -> Result<Bytes, Unreadable> {
        let mut at = row.at();
        let file = loop {
            match self.set().get(&at.file) {
                Some(file) => break file.clone(),
                // Compaction moves a row first and removes its old file later: the new place is
                // known by now.
                None if row.at() != at => at = row.at(),
                None => {
                    return Err(Unreadable::Gone {
                        name: row.header.name.clone(),
                    });
                }
            }
        };
        self.verified(row, &*file, at)
    }

    /// A row's bytes, verified, from where it lay when the reader took `pinned`: no compaction
    /// since can take them away.
    pub(crate) fn read_pinned(
        &self,
        row: &Row,
        at: At,
        pinned: &FileSet,
    ) -> Result<Bytes, Unreadable> {
        match pinned.get(&at.file) {
            Some(file) => self.verified(row, &**file, at),
            None => self.read(row),
        }
    }

    fn verified(&self, row: &Row, file: &dyn File, at: At) -> Result<Bytes, Unreadable> {
        let mut buffer = vec![0; at.length(row.bytes_len()) as usize];
        match file.read_at(&mut buffer, at.offset) {
            Ok(()) => {}
            // Somebody cut the file: what is missing does not come back by trying again.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(damaged(row)),
            Err(error) => return Err(Unreadable::Disk(error)),
        }
        self.checked(row, at, buffer.into())
    }

    /// A row's bytes, if those that lie there are those that were written.
    pub(crate) fn checked(&self, row: &Row, at: At, stored: Bytes) -> Result<Bytes, Unreadable> {
        let bytes = match at.form {
            Form::Plain => stored,
            Form::Sealed => {
                let opened = self.seals.open(&row.header, &stored);
                opened.map_err(|_| damaged(row))?.into()
            }
        };
        match crc32fast::hash(&bytes) == row.sum() {
            true => Ok(bytes),
            false => Err(damaged(row)),
        }
    }
}

fn damaged(row: &Row) -> Unreadable {
    let name = row.header.name.clone();
    Unreadable::Damaged { name }
}

/// What a file of the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Everything up to a moment, in one file.
    Base,
    /// What came after.
    Log,
}

pub(crate) fn name(role: Role, number: u32) -> String {
    match role {
        Role::Base => format!("{number:08}.base"),
        Role::Log => format!("{number:08}.log"),
    }
}

/// The file that is being made; a crash leaves it behind, and the next start removes it.
pub(crate) const UNFINISHED: &str = "unfinished.tmp";

pub(crate) fn parse_name(name: &str) -> Option<(Role, u32)> {
    let (number, role) = match name.split_once('.')? {
        (number, "base") => (number, Role::Base),
        (number, "log") => (number, Role::Log),
        _ => return None,
    };
    if number.len() != 8 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = number.parse().ok()?;
    (number <= NUMBER_MAX).then_some((role, number))
}

/// The largest number of a file. One with a larger number is not ours.
pub(crate) const NUMBER_MAX: u32 = (1 << 24) - 8;
