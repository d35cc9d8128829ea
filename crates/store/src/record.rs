//! One record on disk: what it is, whom it concerns, and checksums that show any damage to it.
//!
//! A record is a fixed head, a small `meta` part that is read at every start, and a `value` (an
//! object's bytes) that is read when somebody asks. Each part has its own checksum, so that a value
//! can be verified alone. A record that is the first of its group says so: a group is written after
//! the group before it was synced, so damage before such a record is real damage, and damage after
//! the last one is a write that a crash tore.

use std::io;

use host::seal::SEAL_BYTES;

use crate::disk::File;
use crate::entry::SEQ_MAX;

/// Bytes of a record's head.
pub(crate) const HEAD_BYTES: usize = 40;
/// Bytes of meta that a record may have. The largest is a list of scopes.
pub(crate) const META_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of value that a record may have: the largest object that Kubernetes stores, and room.
pub(crate) const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes that such a value may take in a file.
const STORED_BYTES_MAX: usize = VALUE_BYTES_MAX + SEAL_BYTES;

const MAGIC: [u8; 4] = *b"HFr1";
const FIRST_OF_GROUP: u8 = 1;
/// Bytes read from a file at once while it is scanned.
const WINDOW_BYTES: usize = 256 * 1024;

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first record of every file: whose file it is.
    File = 1,
    /// A table has this number and this name.
    Table = 2,
    /// A row as it is from now on.
    Put = 3,
    /// A row goes, at a version.
    Delete = 4,
    /// The rows that follow, up to a count, replace those of a scope.
    Replace = 5,
    /// What was staged for the table counts from here on.
    Commit = 6,
    /// What was staged for the table is its state at its floor. Only in base files.
    Base = 7,
    /// The table is emptied and starts afresh.
    Drop = 8,
    /// A base ends here and is whole; it says once more whose it is. In a log: everything up to
    /// here was synced.
    End = 9,
    /// The rows that follow, up to a count, are laid on a shelf: nobody is shown them.
    Shelf = 10,
    /// Within a replacement: all that lies on the scope's shelf comes, without its bytes.
    Adopt = 11,
    /// A row as it is from now on, with a value that is sealed.
    Sealed = 12,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        let kinds = [
            Self::File,
            Self::Table,
            Self::Put,
            Self::Delete,
            Self::Replace,
            Self::Commit,
            Self::Base,
            Self::Drop,
            Self::End,
            Self::Shelf,
            Self::Adopt,
            Self::Sealed,
        ];
        kinds.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Which table a record belongs to, and its place among that table's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Address {
    /// 0: no table.
    pub(crate) table: u32,
    /// Counts the table's records without a gap; a gap shows that one was lost.
    pub(crate) seq: u64,
    /// Counts the file's records and wraps. It tells how many were lost where heads cannot be read,
    /// so that tables which miss none of theirs are not suspected.
    pub(crate) index: u16,
}

/// Appends a record and returns where in `out` its value starts, and the value's checksum.
pub(crate) fn put(
    out: &mut Vec<u8>,
    kind: Kind,
    address: Address,
    meta: &[u8],
    value: &[u8],
) -> (usize, u32) {
    assert!(
        meta.len() <= META_BYTES_MAX,
        "callers bound what they stage"
    );
    assert!(
        value.len() <= STORED_BYTES_MAX,
        "callers bound what they stage"
    );
    let value_sum = crc32fast::hash(value);
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&(meta.len() as u32).to_le_bytes());
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(&address.table.to_le_bytes());
    out.extend_from_slice(&[kind as u8, 0]);
    out.extend_from_slice(&address.index.to_le_bytes());
    out.extend_from_slice(&address.seq.to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(meta).to_le_bytes());
    out.extend_from_slice(&value_sum.to_le_bytes());
    let head_sum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&head_sum.to_le_bytes());
    out.extend_from_slice(meta);
    let value_at = out.len();
    out.extend_from_slice(value);
    (value_at, value_sum)
}

/// Marks the record at the start of `group` as the first of its group.
pub(crate) fn mark_first(group: &mut [u8]) {
    assert!(group.len() >= HEAD_BYTES, "a group has at least one record");
    group[17] |= FIRST_OF_GROUP;
    let head_sum = crc32fast::hash(&group[..HEAD_BYTES - 4]);
    group[HEAD_BYTES - 4..HEAD_BYTES].copy_from_slice(&head_sum.to_le_bytes());
}

/// A record's head.
#[derive(Debug, Clone, Copy)]
struct Head {
    kind: Kind,
    first: bool,
    address: Address,
    meta_bytes: usize,
    value_bytes: usize,
    meta_sum: u32,
    value_sum: u32,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if bytes[..4] != MAGIC || word(HEAD_BYTES - 4) != crc32fast::hash(&bytes[..HEAD_BYTES - 4])
        {
            return None;
        }
        let (meta_bytes, value_bytes) = (word(4) as usize, word(8) as usize);
        if meta_bytes > META_BYTES_MAX || value_bytes > STORED_BYTES_MAX {
            return None;
        }
        let seq = u64::from(word(20)) | u64::from(word(24)) << 32;
        if seq > SEQ_MAX {
            return None;
        }
        Some(Self {
            kind: Kind::from_byte(bytes[16])?,
            first: bytes[17] & FIRST_OF_GROUP != 0,
            address: Address {
                table: word(12),
                seq,
                index: u16::from_le_bytes([bytes[18], bytes[19]]),
            },
            meta_bytes,
            value_bytes,
            meta_sum: word(28),
            value_sum: word(32),
        })
    }
}

/// A record as a scan finds it.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    pub(crate) first: bool,
    pub(crate) address: Address,
    pub(crate) meta: Vec<u8>,
    pub(crate) value_at: u64,
    pub(crate) value_bytes: u32,
    pub(crate) value_sum: u32,
    /// Where the record after this one starts.
    pub(crate) end: u64,
}

/// What a scan meets.
#[derive(Debug)]
pub(crate) enum Found {
    /// A whole record.
    Record(Record),
    /// Bytes from here on that are no whole record. Where the head was still readable, it says
    /// whose record it was.
    Damage(Option<Address>),
    /// The end of the file.
    End,
}

/// Reads a file record by record, and finds its footing again behind damage.
pub(crate) struct Scan<'a> {
    file: &'a dyn File,
    size: u64,
    at: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(file: &'a dyn File) -> io::Result<Self> {
        Ok(Self {
            file,
            size: file.size()?,
            at: 0,
            window: Vec::new(),
            window_at: 0,
        })
    }

    /// The next record, or what stands in its place.
    pub(crate) fn next(&mut self) -> io::Result<Found> {
        if self.at >= self.size {
            return Ok(Found::End);
        }
        let at = self.at;
        let Some(head) = self.head_at(at)? else {
            self.at = self.next_head(at + 1)?;
            return Ok(Found::Damage(None));
        };
        let meta_at = at + HEAD_BYTES as u64;
        let value_at = meta_at + head.meta_bytes as u64;
        let end = value_at + head.value_bytes as u64;
        let lost = Found::Damage(Some(head.address));
        if end > self.size {
            self.at = self.next_head(at + 1)?;
            return Ok(lost);
        }
        let body = self.bytes(meta_at, head.meta_bytes + head.value_bytes)?;
        let (meta, value) = body.split_at(head.meta_bytes);
        let whole =
            crc32fast::hash(meta) == head.meta_sum && crc32fast::hash(value) == head.value_sum;
        let meta = meta.to_vec();
        if !whole {
            // The head's own checksum holds, so its lengths can be trusted to step over the record.
            self.at = end;
            return Ok(lost);
        }
        self.at = end;
        Ok(Found::Record(Record {
            kind: head.kind,
            first: head.first,
            address: head.address,
            meta,
            value_at,
            value_bytes: head.value_bytes as u32,
            value_sum: head.value_sum,
            end,
        }))
    }

    /// The value of the record that was found last.
    pub(crate) fn value(&mut self, record: &Record) -> io::Result<&[u8]> {
        self.bytes(record.value_at, record.value_bytes as usize)
    }

    fn head_at(&mut self, at: u64) -> io::Result<Option<Head>> {
        if at + HEAD_BYTES as u64 > self.size {
            return Ok(None);
        }
        Ok(Head::parse(self.bytes(at, HEAD_BYTES)?))
    }

    /// Where the next whole head stands at or after `from`; the end of the file if there is none.
    /// It cannot be found inside an object: a head has bytes of zero, and JSON has none. What is
    /// sealed looks like chance, which makes no checksums. Inside a document it could, if somebody
    /// who may store documents made it up.
    fn next_head(&mut self, from: u64) -> io::Result<u64> {
        let mut at = from;
        while at + HEAD_BYTES as u64 <= self.size {
            self.bytes(at, HEAD_BYTES)?;
            let start = usize::try_from(at - self.window_at).expect("a window fits in memory");
            let window = &self.window[start..];
            let candidates = window.windows(HEAD_BYTES).enumerate();
            for (offset, candidate) in candidates {
                if candidate[..4] == MAGIC && Head::parse(candidate).is_some() {
                    return Ok(at + offset as u64);
                }
            }
            at += (window.len() - HEAD_BYTES + 1) as u64;
        }
        Ok(self.size)
    }

    /// Bytes of the file, through a window that is as large as the largest record asked for.
    fn bytes(&mut self, at: u64, length: usize) -> io::Result<&[u8]> {
        let inside =
            at >= self.window_at && at + length as u64 <= self.window_at + self.window.len() as u64;
        if !inside {
            let available = usize::try_from(self.size - at).unwrap_or(usize::MAX);
            let wanted = length.max(WINDOW_BYTES.min(available));
            self.window.resize(wanted, 0);
            self.file.read_at(&mut self.window, at)?;
            self.window_at = at;
        }
        let start = usize::try_from(at - self.window_at).expect("a window fits in memory");
        Ok(&self.window[start..start + length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::disk::memory::MemoryDisk;

    fn file(bytes: &[u8]) -> std::sync::Arc<dyn File> {
        let file = MemoryDisk::default().create("x").unwrap();
        file.write_at(bytes, 0).unwrap();
        file
    }

    fn three_records() -> Vec<u8> {
        let mut out = Vec::new();
        for seq in 1..=3 {
            put(
                &mut out,
                Kind::Put,
                Address {
                    table: 7,
                    seq,
                    index: seq as u16,
                },
                b"meta",
                &[seq as u8; 100],
            );
        }
        mark_first(&mut out);
        out
    }

    fn seqs(bytes: &[u8]) -> (Vec<u64>, usize) {
        let file = file(bytes);
        let mut scan = Scan::new(&*file).unwrap();
        let (mut found, mut damaged) = (Vec::new(), 0);
        loop {
            match scan.next().unwrap() {
                Found::Record(record) => found.push(record.address.seq),
                Found::Damage(_) => damaged += 1,
                Found::End => return (found, damaged),
            }
        }
    }

    #[test]
    fn a_scan_gives_back_what_was_put() {
        let bytes = three_records();
        assert_eq!(seqs(&bytes), (vec![1, 2, 3], 0));
        let file = file(&bytes);
        let mut scan = Scan::new(&*file).unwrap();
        let Found::Record(record) = scan.next().unwrap() else {
            panic!("a record")
        };
        assert!(record.first);
        assert_eq!(record.meta, b"meta");
        assert_eq!(record.value_at, (HEAD_BYTES + 4) as u64);
        assert_eq!(record.value_bytes, 100);
    }

    #[test]
    fn every_flipped_bit_is_seen_and_costs_one_record_only() {
        let bytes = three_records();
        for position in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[position] ^= 1 << bit;
                let (found, damages) = seqs(&damaged);
                assert_eq!(found.len(), 2, "byte {position}, bit {bit}");
                assert!(damages >= 1);
            }
        }
    }

    #[test]
    fn a_cut_file_keeps_its_whole_records() {
        let bytes = three_records();
        let one = bytes.len() / 3;
        for size in 0..bytes.len() {
            let (found, damages) = seqs(&bytes[..size]);
            assert_eq!(found.len(), size / one);
            assert_eq!(damages > 0, size % one != 0, "at {size}");
        }
    }
}
