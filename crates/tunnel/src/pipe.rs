//! One stream, as its task sees it: what came and is not read, and who waits.

use std::task::Waker;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::ReadBuf;
use wire::frame::End;

use crate::board::Caller;
use crate::closed::Closed;

/// What a board keeps of a stream beside its rules.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// Bytes that came and are not read: as many as the window allows.
    received: BytesMut,
    /// Whether more may come.
    inward: End,
    pub(crate) outward: Outward,
    /// Why it is over before its end.
    pub(crate) closed: Option<Closed>,
    pub(crate) held: Held,
    pub(crate) opener: Opener,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// How far what is written here has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outward {
    Open,
    /// Nothing more is written; something may be queued.
    Ending,
    /// The last byte was handed to the link.
    Sent,
}

/// Whether somebody has the tube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Yes,
    /// Nobody reads any more. What is queued still goes.
    No,
}

/// Who opened a stream, and what is awaited if it was us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opener {
    Peer,
    Us(Caller, Answered),
}

/// Whether something came since something was last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    Yes,
    No,
}

/// What there is to read.
pub(crate) enum Readable {
    Bytes(usize),
    End,
    Nothing,
    Closed(Closed),
}

impl Pipe {
    pub(crate) fn new(opener: Opener) -> Self {
        Self {
            received: BytesMut::new(),
            inward: End::More,
            outward: Outward::Open,
            closed: None,
            held: Held::Yes,
            opener,
            reader: None,
            writer: None,
        }
    }

    /// Bytes came. They are copied together: a peer that sends single bytes costs no more.
    pub(crate) fn receive(&mut self, bytes: &Bytes, end: End) {
        self.received.extend_from_slice(bytes);
        self.inward = end;
        if let Opener::Us(_, answered) = &mut self.opener {
            *answered = Answered::Yes;
        }
        wake(&mut self.reader);
    }

    /// The peer sends nothing more.
    pub(crate) fn ended(&mut self) {
        self.inward = End::Last;
    }

    /// It is over before its end. What came is kept only if it is all that there is.
    pub(crate) fn close(&mut self, closed: Closed) {
        if self.inward == End::More {
            self.received = BytesMut::new();
        }
        self.closed = Some(closed);
        wake(&mut self.reader);
        wake(&mut self.writer);
    }

    /// Gives what there is.
    pub(crate) fn read(&mut self, into: &mut ReadBuf<'_>) -> Readable {
        let bytes = self.received.len().min(into.remaining());
        if bytes > 0 {
            into.put_slice(&self.received[..bytes]);
            self.received.advance(bytes);
            if self.received.is_empty() {
                // A stream that rests holds no memory.
                self.received = BytesMut::new();
            }
            return Readable::Bytes(bytes);
        }
        match (&self.closed, self.inward) {
            (_, End::Last) => Readable::End,
            (Some(closed), End::More) => Readable::Closed(closed.clone()),
            (None, End::More) => Readable::Nothing,
        }
    }

    /// Something was written.
    pub(crate) fn wrote(&mut self) {
        if let Opener::Us(_, answered) = &mut self.opener {
            *answered = Answered::No;
        }
    }

    /// Bytes that nobody will read.
    pub(crate) fn drop_received(&mut self) -> usize {
        std::mem::take(&mut self.received).len()
    }

    /// Whether the peer said that nothing more comes.
    pub(crate) fn is_whole(&self) -> bool {
        self.inward == End::Last
    }

    /// Whether a caller waits for something that comes soon or not at all.
    pub(crate) fn is_awaited(&self) -> bool {
        let over = self.closed.is_some() || self.inward == End::Last;
        match self.opener {
            Opener::Us(Caller::Waits, _) => !over,
            Opener::Us(Caller::Listens, answered) => !over && answered == Answered::No,
            Opener::Peer => false,
        }
    }

    pub(crate) fn awaits_bytes(&mut self, waker: &Waker) {
        keep(&mut self.reader, waker);
    }

    pub(crate) fn awaits_room(&mut self, waker: &Waker) {
        keep(&mut self.writer, waker);
    }

    /// There is room again.
    pub(crate) fn has_room(&mut self) {
        wake(&mut self.writer);
    }
}

fn keep(place: &mut Option<Waker>, waker: &Waker) {
    match place {
        Some(kept) => kept.clone_from(waker),
        None => *place = Some(waker.clone()),
    }
}

fn wake(place: &mut Option<Waker>) {
    if let Some(waker) = place.take() {
        waker.wake();
    }
}
