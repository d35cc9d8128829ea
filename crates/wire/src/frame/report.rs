//! What goes up: an entry of a queue, and how far the hub has it.

use bytes::Bytes;
use object::codec::{Malformed, Taker, put_bytes, put_number, put_text};

/// Bytes of what a report is about.
pub const KEY_BYTES_MAX: usize = 1024;
/// Bytes of a report.
pub const REPORT_BYTES_MAX: usize = 1024 * 1024;

/// An entry of a queue that goes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The queue.
    pub queue: Queue,
    /// Which numbering the number belongs to. A node that lost its disk counts from the beginning,
    /// and must not be taken for one that says the same again.
    pub series: u64,
    /// Its number in the queue, from 1.
    pub number: u64,
    /// What it is about.
    pub key: Box<str>,
    /// What is said of that.
    pub bytes: Bytes,
}

/// How far the hub has a queue. It says so after its Welcome, and whenever it has more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported {
    /// The queue.
    pub queue: Queue,
    /// Which numbering it knows; nothing of the node if it is another one.
    pub series: u64,
    /// Everything up to this number is where it belongs.
    pub number: u64,
}

/// What is reported together, in one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// That the node lives.
    Leases,
    /// The state of nodes and pods.
    Statuses,
    /// Events of the cluster's API.
    Events,
    /// Messages of applications.
    Messages,
    /// Something that this release does not know.
    Other(u64),
}

/// What becomes of an entry when there is a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The newest entry of a key is enough.
    NewestWins,
    /// Every entry counts.
    AppendOnly,
}

impl Queue {
    /// Every queue that is known here.
    pub const ALL: [Self; 4] = [Self::Leases, Self::Statuses, Self::Events, Self::Messages];

    /// What becomes of an entry when there is a newer one; nothing for a queue that is not known.
    pub fn form(self) -> Option<Form> {
        match self {
            Self::Leases | Self::Statuses => Some(Form::NewestWins),
            Self::Events | Self::Messages => Some(Form::AppendOnly),
            Self::Other(_) => None,
        }
    }

    /// Its number on the wire and on disk.
    pub fn number(self) -> u64 {
        match self {
            Self::Leases => 1,
            Self::Statuses => 2,
            Self::Events => 3,
            Self::Messages => 4,
            Self::Other(number) => number,
        }
    }

    /// The queue of this number.
    pub fn from_number(number: u64) -> Self {
        match number {
            1 => Self::Leases,
            2 => Self::Statuses,
            3 => Self::Events,
            4 => Self::Messages,
            number => Self::Other(number),
        }
    }
}

impl Report {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.queue.number(), self.series, self.number] {
            put_number(out, number);
        }
        put_text(out, &self.key);
        put_bytes(out, &self.bytes);
    }

    pub(super) fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        let queue = Queue::from_number(taker.number()?);
        let (series, number) = (taker.number()?, taker.number()?);
        let (key, bytes) = (taker.text()?, taker.bytes()?);
        if key.len() > KEY_BYTES_MAX || bytes.len() > REPORT_BYTES_MAX {
            return Err(Malformed);
        }
        Ok(Self {
            queue,
            series,
            number,
            key: key.into(),
            bytes: Bytes::copy_from_slice(bytes),
        })
    }
}

impl Reported {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        for number in [self.queue.number(), self.series, self.number] {
            put_number(out, number);
        }
    }

    pub(super) fn decode(taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            queue: Queue::from_number(taker.number()?),
            series: taker.number()?,
            number: taker.number()?,
        })
    }
}
