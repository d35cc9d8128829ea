//! A row: what is indexed of an object, and where its bytes lie.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use host::seal::SEAL_BYTES;
use object::digest::Sum;
use object::{Header, ObjectName, Version};
use parking_lot::Mutex;
use std::sync::Arc;

use object::scope::Scope;

/// An object as the store knows it. Its bytes are read when somebody asks.
#[derive(Debug)]
pub struct Row {
    /// What is indexed.
    pub header: Header,
    place: Place,
}

/// Where a row's bytes lie. Compaction moves them, so the place is looked up at each read.
#[derive(Debug)]
struct Place {
    packed: AtomicU64,
    /// Of the object itself, whatever form it lies there in.
    bytes: u32,
    sum: u32,
}

/// A place, read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) file: u32,
    pub(crate) offset: u64,
    /// Whether what lies there is plain, or sealed: then it takes more room than the object.
    pub(crate) form: Form,
}

/// How bytes lie in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Plain,
    /// Sealed.
    Sealed,
}

/// The offset has 39 bits of the packed place, its form one and the file's number the rest: 512 GiB
/// a file, 16 million files.
const OFFSET_BITS: u32 = 39;
const FORM_BITS: u32 = 1;

/// Bytes that a file may have.
pub(crate) const FILE_BYTES_MAX: u64 = (1 << OFFSET_BITS) - 1;

impl At {
    fn pack(self) -> u64 {
        assert!(
            self.offset >> OFFSET_BITS == 0,
            "a file stays below 512 GiB"
        );
        assert!(self.file >> 24 == 0, "file numbers stay below 2^24");
        let form = match self.form {
            Form::Plain => 0,
            Form::Sealed => 1 << OFFSET_BITS,
        };
        u64::from(self.file) << (OFFSET_BITS + FORM_BITS) | form | self.offset
    }

    fn unpack(packed: u64) -> Self {
        Self {
            file: (packed >> (OFFSET_BITS + FORM_BITS)) as u32,
            offset: packed & FILE_BYTES_MAX,
            form: match packed >> OFFSET_BITS & 1 {
                0 => Form::Plain,
                _ => Form::Sealed,
            },
        }
    }

    /// How many bytes an object of this size takes there.
    pub(crate) fn length(self, bytes: u32) -> u64 {
        match self.form {
            Form::Plain => u64::from(bytes),
            Form::Sealed => u64::from(bytes) + SEAL_BYTES as u64,
        }
    }
}

impl Row {
    pub(crate) fn new(header: Header, at: At, bytes: u32, sum: u32) -> Self {
        let place = Place {
            packed: AtomicU64::new(at.pack()),
            bytes,
            sum,
        };
        Self { header, place }
    }

    /// How many bytes the object has.
    pub fn bytes_len(&self) -> u32 {
        self.place.bytes
    }

    /// The checksum of the object's bytes.
    pub(crate) fn sum(&self) -> u32 {
        self.place.sum
    }

    /// What the object's bytes come to.
    pub(crate) fn content(&self) -> Sum {
        Sum::new(self.place.bytes, self.place.sum)
    }

    pub(crate) fn at(&self) -> At {
        At::unpack(self.place.packed.load(Ordering::Acquire))
    }

    pub(crate) fn move_to(&self, at: At) {
        self.place.packed.store(at.pack(), Ordering::Release);
    }
}

/// A step of a table's history: what watchers are fed with.
#[derive(Debug)]
pub struct Event {
    /// The version at which it happened.
    pub version: Version,
    /// What happened.
    pub what: What,
    /// Present only while the event is fresh, so that old history costs little.
    memo: Mutex<Option<Box<Memo>>>,
}

/// What happened to a table.
#[derive(Debug)]
pub enum What {
    /// One object came, changed or went. At least one of the two rows is there.
    Changed {
        /// The object before.
        before: Option<Arc<Row>>,
        /// The object after.
        after: Option<Arc<Row>>,
    },
    /// A scope's content was replaced in one step, or the scope ended. Its watchers cannot be told
    /// how.
    Replaced(Box<Replaced>),
}

/// A scope whose content was replaced in one step.
#[derive(Debug)]
pub struct Replaced {
    /// The scope.
    pub scope: Scope,
    /// Whether it is still held.
    pub fate: Fate,
    /// The rows that differ.
    pub swaps: Vec<Swapped>,
}

/// What became of a scope that was replaced in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is held, with the content that it has now.
    Reset,
    /// It is not held any more: what was only in it went.
    Ended,
}

/// One row of a replaced scope.
#[derive(Debug)]
pub struct Swapped {
    /// The row before.
    pub before: Option<Arc<Row>>,
    /// The row after.
    pub after: Option<Arc<Row>>,
}

/// Bytes that are kept beside a fresh event, so that many watchers share one encoding.
#[derive(Debug, Default)]
struct Memo {
    /// The object's bytes after the event.
    after: Option<Bytes>,
    /// What readers made of the event, by their own numbering.
    encoded: [Option<Bytes>; ENCODINGS],
}

/// How many encodings of one event are kept.
pub const ENCODINGS: usize = 3;

impl Event {
    pub(crate) fn new(version: Version, what: What) -> Self {
        Self {
            version,
            what,
            memo: Mutex::default(),
        }
    }

    /// The object that changed; nothing for a replaced scope.
    pub fn name(&self) -> Option<&ObjectName> {
        match &self.what {
            What::Changed { before, after } => after
                .as_ref()
                .or(before.as_ref())
                .map(|row| &row.header.name),
            What::Replaced(_) => None,
        }
    }

    /// The bytes that `make` returns. While the event is fresh they are kept, so that of a thousand
    /// watchers about one works.
    pub fn encoded<E>(
        &self,
        number: usize,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        if let Some(bytes) = self
            .memo
            .lock()
            .as_ref()
            .and_then(|memo| memo.encoded[number].clone())
        {
            return Ok(bytes);
        }
        // Made outside the lock: it may read the disk. Two watchers may both make it; the first
        // result stays.
        let bytes = make()?;
        match &mut *self.memo.lock() {
            Some(memo) => Ok(memo.encoded[number].get_or_insert(bytes).clone()),
            None => Ok(bytes),
        }
    }

    /// The object's bytes after the event, while it is fresh.
    pub(crate) fn fresh_bytes(&self) -> Option<Bytes> {
        self.memo
            .lock()
            .as_ref()
            .and_then(|memo| memo.after.clone())
    }

    pub(crate) fn remember(&self, after: Option<Bytes>) {
        *self.memo.lock() = Some(Box::new(Memo {
            after,
            ..Memo::default()
        }));
    }

    pub(crate) fn forget(&self) {
        *self.memo.lock() = None;
    }
}
