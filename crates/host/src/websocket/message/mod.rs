//! Bytes -> messages, pings and a close: frames put together, without I/O.
//!
//! Between two frames this holds no memory at all. Within one it holds what has arrived and little
//! more: a length that is only claimed reserves nothing. A message leaves with exactly its bytes.

#[cfg(test)]
mod tests;

use bytes::buf::Limit;
use bytes::{Buf, BufMut, Bytes};

use super::frame::{
    CONTROL_BYTES_MAX, Close, Decoded, HEAD_BYTES_MAX, Head, Opcode, Part, Role, Violation,
};

/// Something that a peer said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A binary message, whole.
    Message(Bytes),
    /// It wants to know whether we are there, and waits for these bytes in a pong.
    Ping(Bytes),
    /// Nothing follows. It waits for our close, if we did not send one yet.
    Closed(Close),
}

/// What a peer is saying, as far as it has arrived.
#[derive(Debug)]
pub struct Incoming {
    from: Role,
    head: [u8; HEAD_BYTES_MAX],
    head_filled: usize,
    head_wanted: usize,
    /// The frame whose content is arriving.
    frame: Option<Open>,
    /// The message that was begun.
    message: Option<Vec<u8>>,
    /// The content of a ping, pong or close, which may come within a message.
    control: Vec<u8>,
    end: Option<Result<Close, Violation>>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    head: Head,
    /// Bytes of its content that are still to come.
    rest: usize,
    /// The most that what it belongs to may have, as it was when the frame began.
    bytes_max: usize,
}

/// Where the next bytes go. Never empty, and never beyond the end of the frame: whatever follows it
/// stays with whoever has it.
#[derive(Debug)]
pub enum Space<'i> {
    /// The head of a frame.
    Head(&'i mut [u8]),
    /// The content of a frame.
    Content(Limit<&'i mut Vec<u8>>),
}

impl Incoming {
    /// Nothing was said yet. `from` is the one that speaks.
    pub fn new(from: Role) -> Self {
        Self {
            from,
            head: [0; HEAD_BYTES_MAX],
            head_filled: 0,
            head_wanted: HEAD_BYTES_MIN,
            frame: None,
            message: None,
            control: Vec::new(),
            end: None,
        }
    }

    /// How it ended, if it did. What arrives after that is of no interest.
    pub fn end(&self) -> Option<Result<Received, Violation>> {
        let end = self.end.clone()?;
        Some(end.map(Received::Closed))
    }

    /// Where the next bytes go.
    pub fn space(&mut self) -> Space<'_> {
        let Some(frame) = self.frame else {
            return Space::Head(&mut self.head[self.head_filled..self.head_wanted]);
        };
        let content = self.content(frame.head.opcode);
        if content.len() == content.capacity() {
            content.reserve_exact(frame.growth(content.len()));
        }
        let free = content.capacity() - content.len();
        Space::Content(content.limit(free.min(frame.rest)))
    }

    /// Notes that `count` bytes were put into the space. No message may have more than `bytes_max`
    /// bytes; the limit counts when a frame begins.
    pub fn filled(
        &mut self,
        count: usize,
        bytes_max: usize,
    ) -> Result<Option<Received>, Violation> {
        let received = match self.frame {
            None => self.head_filled(count, bytes_max),
            Some(frame) => self.content_filled(frame, count),
        };
        match &received {
            Ok(Some(Received::Closed(close))) => self.over(Ok(close.clone())),
            Err(violation) => self.over(Err(*violation)),
            Ok(_) => {}
        }
        received
    }

    /// Takes bytes until something was said or they are used up.
    pub fn take(
        &mut self,
        bytes: &mut impl Buf,
        bytes_max: usize,
    ) -> Result<Option<Received>, Violation> {
        if let Some(end) = self.end() {
            return end.map(Some);
        }
        while bytes.has_remaining() {
            let count = match self.space() {
                Space::Head(free) => {
                    let count = free.len().min(bytes.remaining());
                    bytes.copy_to_slice(&mut free[..count]);
                    count
                }
                Space::Content(mut free) => {
                    let count = free.remaining_mut().min(bytes.remaining());
                    free.put((&mut *bytes).take(count));
                    count
                }
            };
            if let Some(received) = self.filled(count, bytes_max)? {
                return Ok(Some(received));
            }
        }
        Ok(None)
    }

    /// Bytes of memory that are held for what has arrived.
    pub fn held_bytes(&self) -> usize {
        self.message.as_ref().map_or(0, Vec::capacity) + self.control.capacity()
    }

    /// Bytes that have arrived of what was not handed out yet.
    pub fn arrived_bytes(&self) -> usize {
        self.message.as_ref().map_or(0, Vec::len) + self.control.len()
    }

    fn content(&mut self, opcode: Opcode) -> &mut Vec<u8> {
        match opcode {
            Opcode::Close | Opcode::Ping | Opcode::Pong => &mut self.control,
            Opcode::Binary | Opcode::Continuation => self.message.get_or_insert_default(),
        }
    }

    fn head_filled(
        &mut self,
        count: usize,
        bytes_max: usize,
    ) -> Result<Option<Received>, Violation> {
        self.head_filled += count;
        assert!(
            self.head_filled <= self.head_wanted,
            "no more than there was space for"
        );
        match Head::decode(&self.head[..self.head_filled], self.from)? {
            Decoded::Needs(bytes) => self.head_wanted = bytes,
            Decoded::Head { head, .. } => {
                self.head_filled = 0;
                self.head_wanted = HEAD_BYTES_MIN;
                let frame = self.begin(head, bytes_max)?;
                if frame.rest == 0 {
                    return self.finish(head);
                }
                self.frame = Some(frame);
            }
        }
        Ok(None)
    }

    /// Whether a frame may come now, and as long as it says.
    fn begin(&mut self, head: Head, bytes_max: usize) -> Result<Open, Violation> {
        let (held, bytes_max) = match (head.opcode, &self.message) {
            (Opcode::Binary, None) => (0, bytes_max),
            (Opcode::Continuation, Some(begun)) => (begun.len(), bytes_max),
            (Opcode::Binary, Some(_)) => return Err(Violation::NotEnded),
            (Opcode::Continuation, None) => return Err(Violation::NothingToContinue),
            (Opcode::Close | Opcode::Ping | Opcode::Pong, _) => (0, CONTROL_BYTES_MAX),
        };
        let too_long = Violation::TooLong { bytes_max };
        let rest = usize::try_from(head.length).map_err(|_| too_long)?;
        let whole = held.checked_add(rest).ok_or(too_long)?;
        if whole > bytes_max {
            return Err(too_long);
        }
        if !head.opcode.is_control() {
            self.message.get_or_insert_default();
        }
        Ok(Open {
            head,
            rest,
            bytes_max,
        })
    }

    fn content_filled(
        &mut self,
        mut frame: Open,
        count: usize,
    ) -> Result<Option<Received>, Violation> {
        assert!(count <= frame.rest, "no more than there was space for");
        let content = self.content(frame.head.opcode);
        let arrived = content.len() - count;
        if let Some(mask) = frame.head.mask {
            mask.apply(frame.arrived(), &mut content[arrived..]);
        }
        frame.rest -= count;
        if frame.rest > 0 {
            self.frame = Some(frame);
            return Ok(None);
        }
        self.frame = None;
        self.finish(frame.head)
    }

    fn finish(&mut self, head: Head) -> Result<Option<Received>, Violation> {
        Ok(match (head.opcode, head.part) {
            (Opcode::Binary | Opcode::Continuation, Part::More) => None,
            (Opcode::Binary | Opcode::Continuation, Part::Last) => {
                let message = self.message.take().unwrap_or_default();
                // A message in parts may have been given more than it needed.
                Some(Received::Message(message.into_boxed_slice().into()))
            }
            (Opcode::Ping, _) => Some(Received::Ping(std::mem::take(&mut self.control).into())),
            // We ask nothing by ping, so there is nothing to learn from a pong.
            (Opcode::Pong, _) => {
                self.control = Vec::new();
                None
            }
            (Opcode::Close, _) => {
                let content = std::mem::take(&mut self.control);
                Some(Received::Closed(Close::decode(&content)?))
            }
        })
    }

    fn over(&mut self, end: Result<Close, Violation>) {
        *self = Self {
            end: Some(end),
            ..Self::new(self.from)
        };
    }
}

impl Open {
    /// Bytes of its content that have arrived.
    fn arrived(&self) -> usize {
        // Both fit: the length was compared with a limit when the frame began.
        self.head.length as usize - self.rest
    }

    /// By how much to grow a buffer of `held` bytes that is full: as much again as there is, so
    /// that a peer pays for what it makes us reserve, and a message in tiny parts is not copied for
    /// each.
    fn growth(&self, held: usize) -> usize {
        let most = match self.head.part {
            Part::Last => self.rest,
            Part::More => self.bytes_max - held,
        };
        held.max(GROWTH_BYTES_MIN).min(most)
    }
}

const HEAD_BYTES_MIN: usize = 2;
/// What a frame is given when its content begins to arrive.
const GROWTH_BYTES_MIN: usize = 4 * 1024;
