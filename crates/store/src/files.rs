//! The store's files: their names, and reading an object's bytes from wherever they lie now.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use crate::disk::{Disk, File};
use crate::row::Row;

/// The open files at one moment. Whoever holds it can read them, even after they were removed.
pub(crate) type FileSet = Arc<HashMap<u32, Arc<dyn File>>>;

/// All files that rows lie in.
pub(crate) struct Files {
    pub(crate) disk: Arc<dyn Disk>,
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
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self {
            disk,
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

    /// A row's bytes, verified. `pinned` is the set that the reader took with the row.
    pub(crate) fn read(&self, row: &Row, pinned: &FileSet) -> Result<Bytes, Unreadable> {
        let mut at = row.at();
        let file = loop {
            let found = pinned
                .get(&at.file)
                .cloned()
                .or_else(|| self.set().get(&at.file).cloned());
            match found {
                Some(file) => break file,
                // Compaction moves a row first and removes its old file later: the new place is known by now.
                None if row.at() != at => at = row.at(),
                None => {
                    return Err(Unreadable::Gone {
                        name: row.header.name.clone(),
                    });
                }
            }
        };
        let mut buffer = vec![0; row.bytes_len() as usize];
        file.read_at(&mut buffer, at.offset)
            .map_err(Unreadable::Disk)?;
        if crc32fast::hash(&buffer) != row.sum() {
            return Err(Unreadable::Damaged {
                name: row.header.name.clone(),
            });
        }
        Ok(buffer.into())
    }
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
    if number.len() != 8 {
        return None;
    }
    Some((role, number.parse().ok()?))
}
