//! Which files of a folder count: the newest base that says whose it is, and the logs after it.

use std::io;

use super::OpenError;
use crate::disk::{Disk, File};
use crate::files::{self, NUMBER_MAX, Role, UNFINISHED};
use crate::record::{Found, Kind, Record, Scan};

/// The files to read.
pub(super) struct Chosen {
    pub(super) base: Option<u32>,
    pub(super) logs: Vec<u32>,
    pub(super) number_next: u32,
    /// Files that are needless, and whether only a whole base makes them so.
    pub(super) obsolete: Vec<(String, bool)>,
    /// Bytes of all files of the store.
    pub(super) bytes: u64,
}

impl Chosen {
    /// The newest base that says whose it is, and the logs after it.
    pub(super) fn new(disk: &dyn Disk) -> Result<Self, OpenError> {
        let names = disk.list()?;
        let known = names.iter().filter_map(|name| files::parse_name(name));
        let mut known: Vec<(u32, Role)> = known.map(|(role, number)| (number, role)).collect();
        known.sort_unstable();
        let mut base = None;
        let mut bytes = 0_u64;
        for (number, role) in known.iter().rev() {
            let file = disk.open(&files::name(*role, *number))?;
            bytes = bytes.saturating_add(file.size()?);
            // A base that cannot say whose it is must not make others needless.
            if *role == Role::Base && base.is_none() && mark_of_base(&*file)?.is_some() {
                base = Some(*number);
            }
        }
        let number_next = known.last().map_or(1, |(number, _)| number + 1);
        if number_next > NUMBER_MAX {
            return Err(io::Error::other("file numbers are used up").into());
        }
        let (mut logs, mut obsolete) = (Vec::new(), Vec::new());
        for (number, role) in known {
            match role {
                Role::Log if base.is_none_or(|base| number > base) => logs.push(number),
                Role::Base | Role::Log if base.is_some_and(|base| number < base) => {
                    obsolete.push((files::name(role, number), true));
                }
                Role::Base | Role::Log => {}
            }
        }
        if names.iter().any(|name| name == UNFINISHED) {
            obsolete.push((UNFINISHED.to_owned(), false));
        }
        Ok(Self {
            base,
            logs,
            number_next,
            obsolete,
            bytes,
        })
    }
}

/// The record that says whose a base is: its first, or its last if that is damaged.
pub(super) fn mark_of_base(file: &dyn File) -> io::Result<Option<Record>> {
    let mut scan = Scan::new(file)?;
    loop {
        match scan.next()? {
            Found::Record(record) if matches!(record.kind, Kind::File | Kind::End) => {
                return Ok(Some(record));
            }
            Found::End => return Ok(None),
            Found::Record(_) | Found::Damage(_) => {}
        }
    }
}
