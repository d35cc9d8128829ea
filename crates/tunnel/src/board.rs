//! All streams of a session: shared by its loop and by the tasks that use them.
//!
//! The loop owns the [`Board`]: it hands on what came, asks what is to be sent, and ends everything
//! when it is dropped. Tasks open streams with an [`Opener`] and use them as [`Tube`]s.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use wire::frame::{Cause, End, Frame, Said};
use wire::stream::{self, Event, Limits, Misbehaved, STREAMS_MAX, Side, Streams};

use crate::closed::Closed;
use crate::pipe::{Answered, Held, Opener as Opened, Outward, Pipe};
use crate::tube::Tube;

/// Streams that somebody holds, whether they are open or not. One that is closed can have bytes
/// that were not read; beyond this what the peer opens is turned away.
const PIPES_MAX: usize = 2 * STREAMS_MAX;

/// All streams of a session, for its loop. When it is dropped the session is over, and whoever uses
/// a stream is told.
pub struct Board {
    shared: Arc<Shared>,
}

/// Opens streams of a session. Cloning is cheap; it does not keep the session alive.
#[derive(Clone)]
pub struct Opener {
    shared: Weak<Shared>,
}

/// A stream that the peer opened.
pub struct Arrived {
    /// What it is for.
    pub purpose: Box<str>,
    /// The stream.
    pub tube: Tube,
}

/// What whoever opens a stream does with it, for those who watch over the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// It waits until everything came.
    Waits,
    /// It waits for the first bytes after what it wrote, and listens from then on.
    Listens,
}

/// Why no stream is opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// The session is over.
    #[error("the link is over")]
    Over,
    /// The rules do not allow another now.
    #[error(transparent)]
    Streams(#[from] stream::NotOpened),
}

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Tells the loop that it is to ask what is to be sent.
    wake: Box<dyn Fn() + Send + Sync>,
}

pub(crate) struct State {
    pub(crate) streams: Streams,
    pub(crate) pipes: BTreeMap<u64, Pipe>,
    over: bool,
}

impl Board {
    /// A session without streams. `wake` is called when its loop has to ask for the next frame; it
    /// must not call back.
    pub fn new(side: Side, limits: Limits, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let state = State {
            streams: Streams::new(side, limits),
            pipes: BTreeMap::new(),
            over: false,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                wake: Box::new(wake),
            }),
        }
    }

    /// For tasks that open streams.
    pub fn opener(&self) -> Opener {
        Opener {
            shared: Arc::downgrade(&self.shared),
        }
    }

    /// Takes what the peer said of a stream. Gives the stream if it opened one.
    pub fn take(&self, id: u64, said: Said) -> Result<Option<Arrived>, Misbehaved> {
        let mut state = self.shared.state.lock();
        if state.over {
            return Ok(None);
        }
        match state.streams.take(id, said)? {
            None => Ok(None),
            Some(Event::Opened { id, purpose }) => {
                if state.pipes.len() >= PIPES_MAX {
                    let words = "too many streams are not read";
                    state.streams.close(id, Cause::Busy, words);
                    return Ok(None);
                }
                state.pipes.insert(id, Pipe::new(Opened::Peer));
                state.streams.accept(id);
                drop(state);
                let tube = Tube::new(Arc::clone(&self.shared), id);
                Ok(Some(Arrived { purpose, tube }))
            }
            Some(Event::Received { id, bytes, end }) => {
                state.receive(id, &bytes, end);
                Ok(None)
            }
            Some(Event::Closed { id, cause, words }) => {
                state.closed(id, Closed::by_peer(cause, &words));
                Ok(None)
            }
        }
    }

    /// What is sent next, with at most so many bytes of a stream. The loop asks this when it has
    /// nothing else to send.
    pub fn next(&self, bytes_max: usize) -> Option<Frame> {
        let mut state = self.shared.state.lock();
        if state.over {
            return None;
        }
        let frame = state.streams.next(bytes_max)?;
        if let Frame::Stream {
            id,
            said: Said::Data { end, .. },
        } = &frame
        {
            state.sent(*id, *end);
        }
        Some(frame)
    }

    /// Whether [`Board::next`] would give something.
    pub fn has_next(&self) -> bool {
        let state = self.shared.state.lock();
        !state.over && state.streams.has_next()
    }

    /// Whether a caller here waits for something that comes soon, or not at all.
    pub fn is_awaited(&self) -> bool {
        let state = self.shared.state.lock();
        !state.over && state.pipes.values().any(Pipe::is_awaited)
    }

    /// Streams that somebody holds, or of which something is still to be sent.
    pub fn len(&self) -> usize {
        self.shared.state.lock().pipes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that are held now: queued here, or received and not read.
    pub fn bytes(&self) -> usize {
        self.shared.state.lock().streams.bytes()
    }

    /// The session is over, for this reason: every stream fails, and none is opened.
    pub fn end(&self, why: &str) {
        let mut state = self.shared.state.lock();
        if std::mem::replace(&mut state.over, true) {
            return;
        }
        state.pipes.retain(|_, pipe| pipe.held == Held::Yes);
        for pipe in state.pipes.values_mut() {
            if pipe.closed.is_none() {
                pipe.close(Closed::by_link(why));
            }
        }
        // What was queued goes with it.
        state.streams = Streams::new(Side::Agent, Limits::default());
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.end("");
    }
}

impl Opener {
    /// Opens a stream.
    pub fn open(&self, purpose: &str, caller: Caller) -> Result<Tube, NotOpened> {
        let shared = self.shared.upgrade().ok_or(NotOpened::Over)?;
        let mut state = shared.state.lock();
        if state.over {
            return Err(NotOpened::Over);
        }
        if state.pipes.len() >= PIPES_MAX {
            return Err(stream::NotOpened::TooMany.into());
        }
        let id = state.streams.open(purpose)?;
        let opener = Opened::Us(caller, Answered::No);
        state.pipes.insert(id, Pipe::new(opener));
        drop(state);
        (shared.wake)();
        Ok(Tube::new(shared, id))
    }

    /// Whether the session is over.
    pub fn is_over(&self) -> bool {
        let shared = self.shared.upgrade();
        shared.is_none_or(|shared| shared.state.lock().over)
    }
}

impl Shared {
    /// Does something with the streams, and wakes the loop if there is something to send by that.
    /// If there was before, the loop knows and asks as soon as it can.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let had = state.streams.has_next();
        let done = act(&mut state);
        let wakes = !had && !state.over && state.streams.has_next();
        drop(state);
        if wakes {
            (self.wake)();
        }
        done
    }
}

impl State {
    fn receive(&mut self, id: u64, bytes: &bytes::Bytes, end: End) {
        match self.pipes.get_mut(&id) {
            Some(pipe) if pipe.held == Held::Yes => pipe.receive(bytes, end),
            Some(pipe) => {
                // Nobody reads it.
                if end == End::Last {
                    pipe.ended();
                }
                self.streams.consumed(id, bytes.len());
                self.settle(id);
            }
            None => self.streams.consumed(id, bytes.len()),
        }
    }

    fn closed(&mut self, id: u64, closed: Closed) {
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return;
        };
        match pipe.held {
            Held::Yes => pipe.close(closed),
            Held::No => drop(self.pipes.remove(&id)),
        }
    }

    fn sent(&mut self, id: u64, end: End) {
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return;
        };
        pipe.has_room();
        if end == End::Last {
            pipe.outward = Outward::Sent;
            self.settle(id);
        }
    }

    /// Nobody holds the tube any more.
    pub(crate) fn release(&mut self, id: u64) {
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return;
        };
        pipe.held = Held::No;
        if self.over || pipe.closed.is_some() {
            self.pipes.remove(&id);
            return;
        }
        match pipe.opener {
            // Whoever asked does not want the answer, so what was not sent yet is not to be done.
            Opened::Us(..) if !pipe.is_whole() || pipe.outward == Outward::Open => {
                return self.close(id, Cause::Cancelled, "not needed any more");
            }
            Opened::Peer if pipe.outward == Outward::Open => {
                return self.close(id, Cause::Broken, "cut off");
            }
            Opened::Us(..) | Opened::Peer => {}
        }
        let unread = pipe.drop_received();
        self.streams.consumed(id, unread);
        self.settle(id);
    }

    /// Closes a stream for a reason. What is queued is dropped.
    pub(crate) fn close(&mut self, id: u64, cause: Cause, words: &str) {
        self.pipes.remove(&id);
        self.streams.close(id, cause, words);
    }

    /// Once everything of a stream that nobody holds is sent, the peer needs not send more either.
    fn settle(&mut self, id: u64) {
        let Some(pipe) = self.pipes.get(&id) else {
            return;
        };
        if pipe.held == Held::No && pipe.outward == Outward::Sent {
            // One that is over in both directions is not spoken of again.
            self.close(id, Cause::Cancelled, "not needed any more");
        }
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Board({} streams)", self.len())
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener")
    }
}
