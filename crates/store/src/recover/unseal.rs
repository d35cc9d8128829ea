//! Sealed values, as they are found: opened once, so that a missing key is seen before anything is
//! done, and so that their checksums are known.

use std::io;

use host::seal::{KeyId, NotOpened, id_of};

use super::{OpenError, Recovery};
use crate::disk::Disk;
use crate::entry;
use crate::files;
use crate::record::{Found, Kind, Record, Scan};
use crate::seals::may_be_sealed;
use crate::table::TableName;

impl Recovery {
    /// Opens a sealed value: what the record says of its value is said of what is in it from then
    /// on. What does not open is damaged.
    pub(super) fn unseal(
        &mut self,
        record: Record,
        scan: &mut Scan<'_>,
    ) -> Result<Found, OpenError> {
        let sealed = scan.value(&record)?;
        let damage = Found::Damage(Some(record.address));
        let Ok(header) = entry::decode_put(&record.meta) else {
            return Ok(damage);
        };
        let bytes = match self.seals.open(&header, sealed) {
            Ok(bytes) => bytes,
            Err(NotOpened::OtherKey(key)) => return Err(OpenError::OtherKey { key }),
            Err(NotOpened::Broken) => return Ok(damage),
        };
        self.found.unsealed |= !self.seals.are_newest(sealed);
        Ok(Found::Record(Record {
            value_bytes: bytes.len() as u32,
            value_sum: crc32fast::hash(&bytes),
            ..record
        }))
    }

    /// Notes what lies as it is and is to be sealed. Returns whether a row may lie in its table so.
    pub(super) fn is_sealed_right(&mut self, record: &Record) -> bool {
        let table = self.found.tables.get(&record.address.table);
        let name: Option<&TableName> = table.and_then(|table| table.name.as_ref());
        match record.kind {
            Kind::Sealed => name.is_none_or(may_be_sealed),
            Kind::Put => {
                self.found.unsealed |= name.is_some_and(|name| self.seals.concern(name));
                true
            }
            _ => true,
        }
    }
}

/// The key that anything in the store is sealed with; nothing if nothing is.
pub(crate) fn sealed_with(disk: &dyn Disk) -> io::Result<Option<KeyId>> {
    let names = disk.list()?;
    for name in names
        .iter()
        .filter(|name| files::parse_name(name).is_some())
    {
        let file = disk.open(name)?;
        let mut scan = Scan::new(&*file)?;
        loop {
            match scan.next()? {
                Found::Record(record) if record.kind == Kind::Sealed => {
                    if let Some(key) = id_of(scan.value(&record)?) {
                        return Ok(Some(key));
                    }
                }
                Found::Record(_) | Found::Damage(_) => {}
                Found::End => break,
            }
        }
    }
    Ok(None)
}
