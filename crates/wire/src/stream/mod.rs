//! Streams of bytes beside the deliveries: requests of a node through the hub, logs and terminals
//! the other way.
//!
//! Either end opens them, both ends write. Nobody sends more than the other has granted, so a
//! reader that stands still stops its own stream and no other. What waits to be sent is given out
//! in turn, a chunk of each stream; and a session asks for it only when it has nothing else to
//! send: first what is said about the session itself (pings, acks), then deliveries, then streams.
//! So no stream starves another, and none delays a change by more than the chunk that was on its
//! way.
//!
//! Streams live as long as their session. What was on its way when the link broke is lost, and
//! whoever used the stream is told that it broke; that is how it is with any connection.

mod flow; // one stream: queued and granted, received and consumed

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use crate::frame::{Cause, End, Frame, PURPOSE_BYTES_MAX, Said, cut};
use flow::{Breach, Flow};

/// Streams that an end may have opened at once. Who opens more misbehaves.
pub const STREAMS_MAX: usize = 128;
/// Bytes that may be sent on a stream before the other end has accepted it: a small request needs
/// no round trip for its stream, and one that is turned away has cost no more than this.
pub const UNASKED_BYTES: u64 = CHUNK_BYTES_MAX as u64;
/// Bytes that are sent at once, before the next stream has its turn.
pub const CHUNK_BYTES_MAX: usize = 16 * 1024;
/// Bytes that any stream may have been granted. Who grants more misbehaves.
pub const WINDOW_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Which end of the link this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that opened the link. Its streams are odd.
    Agent,
    /// The one that took it. Its streams are even.
    Hub,
}

/// How much there may be of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Streams that are opened by an end at once, [`STREAMS_MAX`] at most. Beyond it nothing is
    /// opened here, and what the peer opens is turned away.
    pub streams: usize,
    /// Bytes of a stream that the peer may have sent and nobody has consumed, [`UNASKED_BYTES`] at
    /// least. Beyond it the peer misbehaves.
    pub window: u64,
    /// Bytes of a stream that wait to be sent. Beyond it nothing is taken, and the writer waits.
    pub queue: usize,
    /// Bytes that all streams together may come to hold in both directions. Each stream has its
    /// window and its queue set apart when it opens, so none ever waits for another's; beyond it
    /// nothing is opened here, and what the peer opens is turned away.
    pub session: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams: STREAMS_MAX,
            window: 64 * 1024,
            queue: 64 * 1024,
            session: 16 * 1024 * 1024,
        }
    }
}

/// All streams of a session, at one end of it.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    limits: Limits,
    streams: BTreeMap<u64, Flow>,
    /// The number of the next stream that is opened here.
    next: u64,
    /// The last of ours that the peer was told of.
    announced: u64,
    /// The last that the peer opened.
    last: u64,
    /// What is sent before any bytes: opens, windows and closes, in the order in which they came
    /// up. A stream has at most one open or close and two windows in it.
    first: VecDeque<(u64, Said)>,
    /// Streams whose close is in there, and all of whose bytes went before: one is over for the
    /// peer as soon as it has sent its own last.
    said_all: BTreeSet<u64>,
    /// The stream that had its turn.
    turn: u64,
}

/// What came of something that the peer said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The peer opened a stream. It is accepted or closed.
    Opened {
        /// The stream.
        id: u64,
        /// What it is for.
        purpose: Box<str>,
    },
    /// Bytes came. Once they are not held any more, [`Streams::consumed`] is told.
    Received {
        /// The stream.
        id: u64,
        /// The bytes.
        bytes: Bytes,
        /// Whether the peer sends more.
        end: End,
    },
    /// The peer closed a stream. What was not read or not sent is to be dropped.
    Closed {
        /// The stream.
        id: u64,
        /// Why.
        cause: Cause,
        /// The same for people.
        words: Box<str>,
    },
}

/// Why no stream is opened here. Whoever wanted one tries again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// As many are open as may be.
    #[error("as many streams are open as may be")]
    TooMany,
    /// What is open may come to hold all the bytes that there may be.
    #[error("the open streams have all the memory that a session may use")]
    NoMemory,
    /// It cannot be said what it is for. Trying again does not help.
    #[error("a purpose of {bytes} bytes")]
    Purpose {
        /// How many.
        bytes: usize,
    },
}

/// Why nothing can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    /// The stream is over, or there was none.
    #[error("stream {id} is not open")]
    Closed {
        /// The stream.
        id: u64,
    },
    /// Whoever writes said that nothing more follows.
    #[error("stream {id} was ended here")]
    Ended {
        /// The stream.
        id: u64,
    },
}

/// The peer broke the rules. The session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misbehaved {
    /// It opened a stream with a number of ours.
    #[error("the peer opened stream {id}, which is not its to open")]
    NotItsOwn {
        /// The stream.
        id: u64,
    },
    /// It opened a stream that was open before, or one before that.
    #[error("the peer opened stream {id} after {last}")]
    WentBack {
        /// The stream.
        id: u64,
        /// The last that it had opened.
        last: u64,
    },
    /// It speaks of a stream that nobody opened.
    #[error("the peer speaks of stream {id}, which was never open")]
    NeverOpen {
        /// The stream.
        id: u64,
    },
    /// It opened more than anybody may.
    #[error("the peer opened stream {id} beside {STREAMS_MAX} others")]
    TooMany {
        /// The stream.
        id: u64,
    },
    /// It sent more than it was granted.
    #[error("the peer sent {bytes} bytes on stream {id}, and {granted} were granted")]
    BeyondWindow {
        /// The stream.
        id: u64,
        /// How many it sent.
        bytes: usize,
        /// How many it might have sent.
        granted: u64,
    },
    /// It sent bytes after the last.
    #[error("the peer sent more on stream {id} after its end")]
    AfterEnd {
        /// The stream.
        id: u64,
    },
    /// It granted more than anybody may.
    #[error("the peer granted {bytes} bytes on stream {id}")]
    WindowTooLarge {
        /// The stream.
        id: u64,
        /// How many.
        bytes: u64,
    },
}

impl Streams {
    /// No streams.
    pub fn new(side: Side, limits: Limits) -> Self {
        Self {
            side,
            limits: Limits {
                streams: limits.streams.min(STREAMS_MAX),
                window: limits.window.clamp(UNASKED_BYTES, WINDOW_BYTES_MAX),
                ..limits
            },
            streams: BTreeMap::new(),
            next: match side {
                Side::Agent => 1,
                Side::Hub => 2,
            },
            announced: 0,
            last: 0,
            first: VecDeque::new(),
            said_all: BTreeSet::new(),
            turn: 0,
        }
    }

    /// Opens a stream. Something can be written at once. Returns its number.
    pub fn open(&mut self, purpose: &str) -> Result<u64, NotOpened> {
        let bytes = purpose.len();
        if bytes > PURPOSE_BYTES_MAX {
            return Err(NotOpened::Purpose { bytes });
        }
        let id = self.next;
        if self.open_like(id) >= self.limits.streams {
            return Err(NotOpened::TooMany);
        }
        if !self.has_memory() {
            return Err(NotOpened::NoMemory);
        }
        self.next = id.checked_add(2).ok_or(NotOpened::TooMany)?;
        let window = self.limits.window;
        self.streams.insert(id, Flow::ours(window, UNASKED_BYTES));
        let purpose = purpose.into();
        self.first.push_back((id, Said::Open { purpose, window }));
        Ok(id)
    }

    /// Takes on a stream that the peer opened: it may send as much as the window allows.
    pub fn accept(&mut self, id: u64) {
        if let Some(bytes) = self.streams.get_mut(&id).and_then(Flow::accept) {
            self.first.push_back((id, Said::Window { bytes }));
        }
    }

    /// Queues bytes. Returns how many were taken: fewer than given if the queue is full, and then
    /// there is room again after [`Streams::next`] has given bytes of this stream.
    pub fn write(&mut self, id: u64, bytes: &[u8]) -> Result<usize, NotWritten> {
        let flow = self.streams.get_mut(&id).filter(|flow| !flow.is_over());
        let flow = flow.ok_or(NotWritten::Closed { id })?;
        let taken = flow.write(bytes, self.limits.queue);
        taken.ok_or(NotWritten::Ended { id })
    }

    /// How many bytes [`Streams::write`] would take now.
    pub fn room(&self, id: u64) -> usize {
        let flow = self.streams.get(&id);
        flow.map_or(0, |flow| flow.room(self.limits.queue))
    }

    /// Nothing more is written here. What is queued still goes, and the peer may go on.
    pub fn end(&mut self, id: u64) {
        if let Some(flow) = self.streams.get_mut(&id) {
            flow.end();
        }
    }

    /// Bytes that were received are not held any more; more than were received count as all.
    pub fn consumed(&mut self, id: u64, bytes: usize) {
        let Some(flow) = self.streams.get_mut(&id) else {
            return;
        };
        if let Some(bytes) = flow.consume(bytes as u64) {
            self.first.push_back((id, Said::Window { bytes }));
        }
        if flow.is_gone() {
            self.streams.remove(&id);
        }
    }

    /// Closes a stream in both directions. What is queued is dropped, and so must be what was
    /// received. Nothing happens to one that is closed.
    pub fn close(&mut self, id: u64, cause: Cause, words: &str) {
        let Some(flow) = self.streams.remove(&id) else {
            return;
        };
        self.first.retain(|(other, _)| *other != id);
        // Who was never told of a stream needs not be told of its end.
        let known = !self.is_ours(id) || id <= self.announced;
        if known && !flow.is_over() {
            self.say_close(id, cause, words);
            if flow.said_all() {
                self.said_all.insert(id);
            }
        }
    }

    /// Takes what the peer said of a stream. Whatever it says of one that is closed was said before
    /// it knew, and has no effect.
    pub fn take(&mut self, id: u64, said: Said) -> Result<Option<Event>, Misbehaved> {
        let said = match said {
            Said::Open { purpose, window } => return self.take_open(id, purpose, window),
            said => said,
        };
        let latest = match self.is_ours(id) {
            true => self.announced,
            false => self.last,
        };
        if id > latest || id == 0 {
            return Err(Misbehaved::NeverOpen { id });
        }
        let flow = self.streams.get_mut(&id).filter(|flow| !flow.is_over());
        let Some(flow) = flow else {
            self.take_of_closed(id, &said);
            return Ok(None);
        };
        match said {
            Said::Open { .. } => Ok(None),
            Said::Data { bytes, end } => self.take_bytes(id, bytes, end),
            Said::Window { bytes } => {
                let granted = flow.more_credit(bytes);
                granted.ok_or(Misbehaved::WindowTooLarge { id, bytes })?;
                Ok(None)
            }
            Said::Close { cause, words } => {
                self.streams.remove(&id);
                self.first.retain(|(other, _)| *other != id);
                Ok(Some(Event::Closed { id, cause, words }))
            }
        }
    }

    /// What is sent next: whatever opens, grants and closes, then a chunk of at most `bytes_max`
    /// bytes of the next stream that has some and may send them.
    ///
    /// A session asks this only when it has neither anything to say about itself nor a delivery
    /// that may go now.
    pub fn next(&mut self, bytes_max: usize) -> Option<Frame> {
        if let Some((id, said)) = self.first.pop_front() {
            match said {
                Said::Open { .. } => self.announced = id,
                Said::Close { .. } => drop(self.said_all.remove(&id)),
                Said::Data { .. } | Said::Window { .. } => {}
            }
            return Some(Frame::Stream { id, said });
        }
        let ready = |(_, flow): &(&u64, &Flow)| flow.is_ready(bytes_max);
        let behind = self.turn.saturating_add(1);
        let found = self.streams.range(behind..).find(ready);
        let found = found.or_else(|| self.streams.range(..behind).find(ready));
        let id = *found?.0;
        self.turn = id;
        let flow = self.streams.get_mut(&id)?;
        let said = flow.chunk(bytes_max);
        if flow.is_gone() {
            self.streams.remove(&id);
        }
        Some(Frame::Stream { id, said })
    }

    /// Whether [`Streams::next`] would give something, if it may have any bytes.
    pub fn has_next(&self) -> bool {
        let mut flows = self.streams.values();
        !self.first.is_empty() || flows.any(|flow| flow.is_ready(1))
    }

    /// How many streams are open.
    pub fn len(&self) -> usize {
        self.streams.values().filter(|flow| !flow.is_over()).count()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are held now: queued here, or received and not consumed.
    pub fn bytes(&self) -> usize {
        let held = |flow: &Flow| usize::try_from(flow.held()).unwrap_or(usize::MAX);
        let bytes = |flow: &Flow| flow.queued().saturating_add(held(flow));
        self.streams.values().map(bytes).sum()
    }

    fn take_open(
        &mut self,
        id: u64,
        purpose: Box<str>,
        window: u64,
    ) -> Result<Option<Event>, Misbehaved> {
        let last = self.last;
        if self.is_ours(id) || id == 0 {
            return Err(Misbehaved::NotItsOwn { id });
        }
        if id <= last {
            return Err(Misbehaved::WentBack { id, last });
        }
        if window > WINDOW_BYTES_MAX {
            let bytes = window;
            return Err(Misbehaved::WindowTooLarge { id, bytes });
        }
        // The peer counts a stream until it knows that it is closed; one whose close was not sent
        // yet is open to it. So it can never be right with more than these.
        let open = self.open_like(id);
        if open + self.closes_like(id) >= STREAMS_MAX {
            return Err(Misbehaved::TooMany { id });
        }
        self.last = id;
        if open >= self.limits.streams || !self.has_memory() {
            self.say_close(id, Cause::Busy, "no room for another stream");
            return Ok(None);
        }
        let flow = Flow::theirs(self.limits.window, UNASKED_BYTES, window);
        self.streams.insert(id, flow);
        Ok(Some(Event::Opened { id, purpose }))
    }

    /// The peer spoke of a stream that is closed here. If it does not count that one any more, it
    /// needs not hear of the close, and may open another.
    fn take_of_closed(&mut self, id: u64, said: &Said) {
        let done = match said {
            Said::Close { .. } => true,
            Said::Data { end, .. } => *end == End::Last && self.said_all.contains(&id),
            Said::Open { .. } | Said::Window { .. } => false,
        };
        if done {
            self.first.retain(|(other, _)| *other != id);
            self.said_all.remove(&id);
        }
    }

    fn take_bytes(&mut self, id: u64, bytes: Bytes, end: End) -> Result<Option<Event>, Misbehaved> {
        let Some(flow) = self.streams.get_mut(&id) else {
            return Ok(None);
        };
        flow.receive(&bytes, end).map_err(|breach| match breach {
            Breach::Ended => Misbehaved::AfterEnd { id },
            Breach::Window { granted } => Misbehaved::BeyondWindow {
                id,
                bytes: bytes.len(),
                granted,
            },
        })?;
        if flow.is_gone() {
            self.streams.remove(&id);
        }
        let nothing = bytes.is_empty() && end == End::More;
        Ok((!nothing).then_some(Event::Received { id, bytes, end }))
    }

    fn say_close(&mut self, id: u64, cause: Cause, words: &str) {
        let words = cut(words).into();
        self.first.push_back((id, Said::Close { cause, words }));
    }

    fn is_ours(&self, id: u64) -> bool {
        let odd = id % 2 == 1;
        odd == (self.side == Side::Agent)
    }

    /// How many streams are open that were opened by the end that this number belongs to.
    fn open_like(&self, id: u64) -> usize {
        let like = |(other, flow): &(&u64, &Flow)| **other % 2 == id % 2 && !flow.is_over();
        self.streams.iter().filter(like).count()
    }

    /// How many closes of such streams wait to be sent.
    fn closes_like(&self, id: u64) -> usize {
        let close = |(other, said): &&(u64, Said)| {
            *other % 2 == id % 2 && matches!(said, Said::Close { .. })
        };
        self.first.iter().filter(close).count()
    }

    /// Whether another stream can have its window and its queue set apart.
    fn has_memory(&self) -> bool {
        let window = usize::try_from(self.limits.window).unwrap_or(usize::MAX);
        let each = window.saturating_add(self.limits.queue);
        (self.streams.len() + 1).saturating_mul(each) <= self.limits.session
    }
}

#[cfg(test)]
mod tests;
