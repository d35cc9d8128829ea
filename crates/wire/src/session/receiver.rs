//! The end that receives: the node. What is delivered is handed on to be stored, and acked when it
//! is.

use std::collections::VecDeque;
use std::time::Duration;

use object::{Header, ObjectName, Resource, Scope};

use super::Ended;
use super::pulse::{Beat, Patience, Pulse};
use super::{PROTOCOL_NEWEST, PROTOCOL_OLDEST};
use crate::difference::{Buckets, Entries, Entry};
use crate::digest::{Digest, Sum};
use crate::frame::{
    Asides, Ask, By, Fault, Frame, Hello, Report, Reported, Said, Tell, Told, Welcome,
};
use crate::inbox::{Action, Held, Inbox, Piece};

/// What the node keeps, and can tell of.
pub trait Kept: Held {
    /// The digest of everything that it holds.
    fn digest(&self) -> Digest;
    /// Looks at every object that it holds of a resource.
    fn each(&self, resource: &Resource, look: &mut dyn FnMut(&Header));
    /// Looks at everything that is staged for a scope. False if nothing is, or nothing that could
    /// be gone on with.
    fn each_staged(
        &self,
        resource: &Resource,
        scope: &Scope,
        look: &mut dyn FnMut(&Header),
    ) -> bool;
    /// Looks at the name and the bytes of every object that it holds of a resource. False from one
    /// that cannot tell.
    fn each_content(&self, _: &Resource, _: &mut dyn FnMut(&ObjectName, Sum)) -> bool {
        false
    }
}

/// A session with a hub.
#[derive(Debug)]
pub struct Receiver {
    inbox: Inbox,
    pulse: Pulse,
    welcome: Option<Welcome>,
    control: VecDeque<Frame>,
    /// What the hub was told is on disk.
    acked: u64,
    /// Whether it is to be told once more.
    again: bool,
}

/// Something that is to be done.
#[derive(Debug)]
pub enum Task {
    /// A piece of a cut is to be stored; then [`Receiver::stored`] is told its number.
    Store(Piece),
    /// A document is to be stored, or to go; then [`Receiver::stored`] is told the number.
    Document {
        /// The delivery's number.
        number: u64,
        /// The name.
        name: Box<str>,
        /// The bytes; nothing if it goes.
        bytes: Option<bytes::Bytes>,
    },
    /// The hub has these reports.
    Reported(Reported),
    /// Something about a stream.
    Stream {
        /// Which one.
        id: u64,
        /// What is said of it.
        said: Said,
    },
    /// The hub agreed.
    Welcome(Welcome),
}

/// Questions that wait for an answer, at most: a hub asks once for each resource.
const ASKS_MAX: usize = 2 * crate::frame::HOLDINGS_MAX;

impl Receiver {
    /// A session that begins with this hello.
    pub fn new(hello: Hello, now: Duration) -> Self {
        let mut pulse = Pulse::new(Patience::AGENT, now);
        pulse.await_answer(true, now);
        Self {
            inbox: Inbox::after(hello.aside.clone()),
            pulse,
            welcome: None,
            control: VecDeque::from([Frame::Hello(hello)]),
            acked: 0,
            again: false,
        }
    }

    /// Objects that could not be taken, in this session and before: the next hello has them.
    pub fn aside(&self) -> &Asides {
        self.inbox.aside()
    }

    /// What the hub agreed to.
    pub fn welcome(&self) -> Option<&Welcome> {
        self.welcome.as_ref()
    }

    /// Takes what the hub said.
    pub fn take(
        &mut self,
        frame: Frame,
        kept: &impl Kept,
        now: Duration,
    ) -> Result<Vec<Task>, Ended> {
        self.pulse.hear(now);
        if self.welcome.is_none() {
            return self.begin(frame, now);
        }
        match frame {
            Frame::Deliver { number, delivery } => {
                let actions = self.inbox.take(number, delivery, kept)?;
                Ok(self.carry_out(actions))
            }
            Frame::Void { number } => {
                let actions = self.inbox.void(number, kept)?;
                Ok(self.carry_out(actions))
            }
            Frame::Ping { number, .. } => {
                self.control.push_back(Frame::Pong {
                    number,
                    received: Some(self.inbox.received()),
                });
                // A hub asks while it waits for acks. It does not send again what was received: an
                // ack that got lost would be missed for ever.
                self.again = true;
                Ok(Vec::new())
            }
            Frame::Pong { number, .. } => {
                self.pulse.pong(number);
                Ok(Vec::new())
            }
            Frame::Ask(ask) if self.control.len() < ASKS_MAX => {
                self.control.push_back(Frame::Tell(tell(ask, kept)));
                Ok(Vec::new())
            }
            Frame::Reported(reported) => Ok(vec![Task::Reported(reported)]),
            Frame::Stream { id, said } => Ok(vec![Task::Stream { id, said }]),
            Frame::Bye(bye) => Err(Ended::Told(bye)),
            Frame::Ask(_) | Frame::Hello(_) | Frame::Welcome(_) | Frame::Tell(_) => {
                Err(Ended::out_of_place("what the hub said"))
            }
            Frame::Ack { .. } | Frame::Reject { .. } | Frame::Report(_) => {
                Err(Ended::out_of_place("what the hub said"))
            }
        }
    }

    /// Something of a message was heard that is not there yet, or nothing is read for a while.
    pub fn listen(&mut self, now: Duration) {
        match self.welcome {
            Some(_) => self.pulse.listen(now),
            // Nothing can be said yet.
            None => self.pulse.hear(now),
        }
    }

    /// Hands on what is there of the cut that is being received: for when nothing else is to be
    /// stored.
    pub fn flush(&mut self) -> Option<Task> {
        let action = self.inbox.flush()?;
        self.carry_out(vec![action]).pop()
    }

    /// What was handed on with this number is on disk.
    pub fn stored(&mut self, number: u64) {
        self.inbox.stored(number);
    }

    /// Whether something is awaited from the hub: reports are on their way, or a caller here waits
    /// for an answer. Then a dead link is noticed soon.
    pub fn awaits(&mut self, awaits: bool, now: Duration) {
        if self.welcome.is_some() {
            self.pulse.await_answer(awaits, now);
        }
    }

    /// The next that is to be said. `report` is asked when there is nothing else.
    pub fn next(
        &mut self,
        kept: &impl Kept,
        report: impl FnOnce() -> Option<Report>,
        now: Duration,
    ) -> Result<Option<Frame>, Ended> {
        let frame = self.speak(kept, report, now)?;
        if frame.is_some() {
            self.pulse.speak(now);
        }
        Ok(frame)
    }

    /// When to ask for the next though nothing happened.
    pub fn wakes_at(&self) -> Duration {
        self.pulse.wakes_at()
    }

    /// For while nothing can be said, since what was said before is not out yet: whether the hub is
    /// there all the same. Gives when to look again.
    pub fn wait(&self, now: Duration) -> Result<Duration, Ended> {
        self.pulse.wait(now)
    }

    fn speak(
        &mut self,
        kept: &impl Kept,
        report: impl FnOnce() -> Option<Report>,
        now: Duration,
    ) -> Result<Option<Frame>, Ended> {
        if let Some(frame) = self.control.pop_front() {
            return Ok(Some(frame));
        }
        let beat = self.pulse.beat(now);
        if let Beat::Gone(silence) = beat {
            return Err(Ended::silent(silence));
        }
        if self.welcome.is_none() {
            return Ok(None);
        }
        let acked = self.inbox.acked();
        if acked > self.acked || (std::mem::take(&mut self.again) && acked > 0) {
            self.acked = acked;
            // A ping that is due follows: it counts as sent.
            if let Beat::Ping(number) = beat {
                self.control.push_back(ping(number, kept));
            }
            return Ok(Some(Frame::Ack { number: acked }));
        }
        match beat {
            Beat::Ping(number) => Ok(Some(ping(number, kept))),
            _ => Ok(report().map(Frame::Report)),
        }
    }

    /// The hub's first words.
    fn begin(&mut self, frame: Frame, now: Duration) -> Result<Vec<Task>, Ended> {
        let welcome = match frame {
            Frame::Welcome(welcome) => welcome,
            Frame::Bye(bye) => return Err(Ended::Told(bye)),
            _ => return Err(Ended::out_of_place("what the hub said first")),
        };
        if !(PROTOCOL_OLDEST..=PROTOCOL_NEWEST).contains(&welcome.protocol) {
            return Err(Ended::out_of_place("a protocol that was not offered"));
        }
        // A ping that was due before is none: nothing is said before the welcome.
        self.pulse = Pulse::new(Patience::AGENT, now);
        let every = welcome
            .heartbeat_seconds
            .clamp(HEARTBEAT_MIN, HEARTBEAT_MAX);
        self.pulse.set_heartbeat(Duration::from_secs(every));
        self.welcome = Some(welcome.clone());
        Ok(vec![Task::Welcome(welcome)])
    }

    fn carry_out(&mut self, actions: Vec<Action>) -> Vec<Task> {
        let mut tasks = Vec::new();
        for action in actions {
            match action {
                Action::Store(piece) => tasks.push(Task::Store(piece)),
                Action::Document {
                    number,
                    name,
                    bytes,
                } => tasks.push(Task::Document {
                    number,
                    name,
                    bytes,
                }),
                Action::Reject { number, fault } => self.control.push_back(Frame::Reject {
                    number,
                    fault,
                    words: words(fault).into(),
                }),
                Action::AckAgain => self.again = true,
            }
        }
        tasks
    }
}

/// Seconds between heartbeats that a hub may ask for.
const HEARTBEAT_MIN: u64 = 5;
const HEARTBEAT_MAX: u64 = 30;

fn ping(number: u64, kept: &impl Kept) -> Frame {
    Frame::Ping {
        number,
        holds: Some(kept.digest()),
    }
}

/// What is told of what is held, or staged.
fn tell(ask: Ask, kept: &impl Kept) -> Tell {
    let told = match &ask.entries_of {
        None => buckets(&ask, kept).map(Told::Buckets),
        Some(which) => entries(&ask, which, kept).map(|all| Told::Entries(which.clone(), all)),
    };
    Tell {
        bits: ask.bits,
        told: told.unwrap_or(Told::TooMany),
        staged: ask.staged,
        by: ask.by,
        resource: ask.resource,
    }
}

fn buckets(ask: &Ask, kept: &impl Kept) -> Option<Vec<u64>> {
    let mut buckets = Buckets::new(&ask.resource, ask.bits);
    let there = match ask.by {
        By::Version => each(ask, kept, &mut |header| buckets.add(header)),
        By::Content => kept.each_content(&ask.resource, &mut |name, sum| {
            buckets.add_content(name, sum);
        }),
    };
    there.then(|| buckets.digests())
}

fn entries(ask: &Ask, which: &[usize], kept: &impl Kept) -> Option<Vec<Entry>> {
    let mut entries = Entries::new(&ask.resource, (ask.bits, which))?;
    let there = match ask.by {
        By::Version => each(ask, kept, &mut |header| entries.add(header)),
        By::Content => kept.each_content(&ask.resource, &mut |name, sum| {
            entries.add_content(name, sum);
        }),
    };
    entries.found().filter(|_| there)
}

/// Looks at everything that is asked about. False where there is nothing that could be.
fn each(ask: &Ask, kept: &impl Kept, look: &mut dyn FnMut(&Header)) -> bool {
    match &ask.staged {
        Some(scope) => kept.each_staged(&ask.resource, scope, look),
        None => {
            kept.each(&ask.resource, look);
            true
        }
    }
}

fn words(fault: Fault) -> &'static str {
    match fault {
        Fault::NoBase => "the base of the difference is not here",
        Fault::Different => "what came of it is not what was sent",
        Fault::NoObject => "it is no object, or another one than it says",
        Fault::TooLarge => "it is larger than this node takes",
        Fault::OutOfOrder => "it does not fit to what came before",
        Fault::NotStored => "the disk did not take it",
        Fault::Other(_) => "it cannot be stored",
    }
}
