//! One stream: what is queued and how much of it may go, what came and how much more may come.

use bytes::{Bytes, BytesMut};

use super::{CHUNK_BYTES_MAX, WINDOW_BYTES_MAX};
use crate::frame::{End, Said};

/// Both directions of a stream.
#[derive(Debug)]
pub(super) struct Flow {
    queue: BytesMut,
    /// Bytes that the peer takes now.
    credit: u64,
    outward: Half,
    inward: Half,
    /// Bytes that the peer may still send.
    granted: u64,
    /// Bytes that came and are not consumed.
    held: u64,
    /// Bytes of the window that the peer can be given: they were consumed, or not granted yet.
    free: u64,
    window: u64,
    accepted: Accepted,
}

/// How far a direction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Open,
    /// The end stands behind what is queued.
    Ending,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accepted {
    Yes,
    NotYet,
}

/// What the peer may not do with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breach {
    Window { granted: u64 },
    Ended,
}

impl Flow {
    /// A stream that is opened here: the peer is told the window, and takes `credit` bytes unasked.
    pub(super) fn ours(window: u64, credit: u64) -> Self {
        Self {
            queue: BytesMut::new(),
            credit,
            outward: Half::Open,
            inward: Half::Open,
            granted: window,
            held: 0,
            free: 0,
            window,
            accepted: Accepted::Yes,
        }
    }

    /// A stream that the peer opened: it may send `unasked` bytes until it is accepted.
    pub(super) fn theirs(window: u64, unasked: u64, credit: u64) -> Self {
        Self {
            granted: unasked,
            free: window.saturating_sub(unasked),
            accepted: Accepted::NotYet,
            ..Self::ours(window, credit)
        }
    }

    /// Grants the rest of the window. Returns how much that is, if the peer is to be told.
    pub(super) fn accept(&mut self) -> Option<u64> {
        match std::mem::replace(&mut self.accepted, Accepted::Yes) {
            Accepted::NotYet => self.grant(),
            Accepted::Yes => None,
        }
    }

    /// Queues what fits. Nothing if this direction ended.
    pub(super) fn write(&mut self, bytes: &[u8], queue_max: usize) -> Option<usize> {
        if self.outward != Half::Open {
            return None;
        }
        let taken = bytes.len().min(self.room(queue_max));
        self.queue.extend_from_slice(&bytes[..taken]);
        Some(taken)
    }

    /// How many bytes would be queued now.
    pub(super) fn room(&self, queue_max: usize) -> usize {
        match self.outward {
            Half::Open => queue_max.saturating_sub(self.queue.len()),
            Half::Ending | Half::Ended => 0,
        }
    }

    /// Nothing more is written here.
    pub(super) fn end(&mut self) {
        if self.outward == Half::Open {
            self.outward = Half::Ending;
        }
    }

    /// Whether there is something that may be sent now.
    pub(super) fn is_ready(&self, bytes_max: usize) -> bool {
        match self.queue.is_empty() {
            true => self.outward == Half::Ending,
            false => self.credit > 0 && bytes_max > 0,
        }
    }

    /// The next bytes, and the end if it stands right behind them.
    pub(super) fn chunk(&mut self, bytes_max: usize) -> Said {
        let credit = usize::try_from(self.credit).unwrap_or(usize::MAX);
        let length = self.queue.len().min(credit);
        let length = length.min(bytes_max).min(CHUNK_BYTES_MAX);
        let bytes = self.queue.split_to(length).freeze();
        self.credit -= length as u64;
        let mut end = End::More;
        if self.queue.is_empty() {
            // What was split off holds the memory; an idle stream holds none.
            self.queue = BytesMut::new();
            if self.outward == Half::Ending {
                self.outward = Half::Ended;
                end = End::Last;
            }
        }
        Said::Data { bytes, end }
    }

    /// The peer takes more. Nothing if that is more than any stream may be granted.
    pub(super) fn more_credit(&mut self, bytes: u64) -> Option<()> {
        let credit = self.credit.checked_add(bytes)?;
        if credit > WINDOW_BYTES_MAX {
            return None;
        }
        self.credit = credit;
        Some(())
    }

    /// Bytes came.
    pub(super) fn receive(&mut self, bytes: &Bytes, end: End) -> Result<(), Breach> {
        if self.inward != Half::Open {
            return Err(Breach::Ended);
        }
        let length = bytes.len() as u64;
        let Some(granted) = self.granted.checked_sub(length) else {
            let granted = self.granted;
            return Err(Breach::Window { granted });
        };
        self.granted = granted;
        self.held += length;
        if end == End::Last {
            self.inward = Half::Ended;
        }
        Ok(())
    }

    /// Bytes that came are not needed any more. Returns how many the peer is to be granted: small
    /// amounts are collected until they are half of the window.
    pub(super) fn consume(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.min(self.held);
        self.held -= bytes;
        self.free += bytes;
        match self.free >= self.window.div_ceil(2) {
            true => self.grant(),
            false => None,
        }
    }

    /// Whether the last of our bytes went.
    pub(super) fn said_all(&self) -> bool {
        self.outward == Half::Ended
    }

    /// Whether both directions ended.
    pub(super) fn is_over(&self) -> bool {
        self.outward == Half::Ended && self.inward == Half::Ended
    }

    /// Whether nothing of it is held here either.
    pub(super) fn is_gone(&self) -> bool {
        self.is_over() && self.held == 0
    }

    /// Bytes that wait to be sent.
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Bytes that came and are not consumed.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    fn grant(&mut self) -> Option<u64> {
        let wanted = self.accepted == Accepted::Yes && self.inward == Half::Open;
        if !wanted || self.free == 0 {
            return None;
        }
        self.granted += self.free;
        Some(std::mem::take(&mut self.free))
    }
}
