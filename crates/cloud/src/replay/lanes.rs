//! What waits in each lane, and whose turn it is. A node has a lane for each of its queues: what is
//! in one does not wait for what is in another. Within a lane what has the same name is written one
//! after the other; what could not be written is set aside, and others go on.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::{Duration, Instant};

/// Bytes that wait in one lane. An agent never has so much on its way: one that does misbehaves.
pub(super) const BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long a lane rests, or something is set aside, until it is tried again, first and at most.
pub(super) const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60);

/// Times that the cluster fails at something before it is given up: with the pauses between them
/// that is about ten minutes, longer than most webhooks are away for. Without an end one report
/// would hold up all that follow it.
pub(super) const FAILURES_MAX: u32 = 16;
/// The same where the node may not: about two minutes. Roles are not known at once when a control
/// plane is started anew, and are gone for a moment when somebody replaces them.
pub(super) const FORBIDDEN_MAX: u32 = 8;

/// What waits, by lane.
#[derive(Debug)]
pub(super) struct Lanes<K, T> {
    lanes: BTreeMap<K, Lane<T>>,
    /// Lanes in which something waits and nobody writes.
    ready: VecDeque<K>,
    /// Lanes that rest, and until when.
    resting: BTreeSet<(Instant, K)>,
}

#[derive(Debug)]
struct Lane<T> {
    session: u64,
    items: VecDeque<Waiting<T>>,
    /// The number that the last of them got.
    last: u64,
    bytes: usize,
    turn: Turn,
    /// How long it is to rest the next time.
    pause: Duration,
    /// Whether something was given up because the node may not, and nothing was done since: what
    /// is forbidden then is not waited for again.
    forbidden: bool,
    /// What the cluster failed at last, and what it had done by then.
    stuck: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Waiting<T> {
    load: Load<T>,
    number: u64,
    /// Until when it is set aside.
    until: Option<Instant>,
    /// How long it is to be the next time.
    pause: Duration,
    failed: u32,
    forbidden: u32,
    /// What the cluster had done when it last failed at this.
    works: u64,
}

/// Something that is to wait.
#[derive(Debug)]
pub(super) struct Load<T> {
    pub(super) item: T,
    /// What has the same name is written one after the other.
    pub(super) name: String,
    pub(super) bytes: usize,
}

/// What is being written: of which session, and which of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) session: u64,
    number: u64,
}

/// Why the cluster did not take something that it may take later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// It failed at it.
    Failed,
    /// The node may not.
    Forbidden,
}

/// What becomes of something that was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left<T> {
    /// It is set aside, and others go on.
    Aside,
    /// The cluster failed at something else just before: all of the lane is to rest.
    Resting,
    /// It was tried often enough.
    GivenUp(T),
    /// Its session is over.
    Gone,
}

/// When something was not taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Instant,
    /// How often the cluster did something for this hub so far.
    pub(super) works: u64,
}

/// Where a lane is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It waits for a writer, or has nothing.
    Waits,
    /// Somebody writes. It is one at a time, also over the end of a session: nothing old comes
    /// after something new.
    Writes,
    /// The cluster could not be asked: all of it rests until then.
    Rests(Instant),
    /// All that it has is set aside, until then at least.
    SetAside(Instant),
}

/// A node has more on its way than an agent ever does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {BYTES_MAX} bytes of reports are on their way")]
pub struct Full;

impl<K, T> Default for Lanes<K, T> {
    fn default() -> Self {
        Self {
            lanes: BTreeMap::new(),
            ready: VecDeque::new(),
            resting: BTreeSet::new(),
        }
    }
}

impl<K: Clone + Ord, T> Lanes<K, T> {
    /// Adds what a session said. What an older session said comes again.
    pub(super) fn push(&mut self, key: &K, session: u64, load: Load<T>) -> Result<(), Full> {
        let lane = self.lanes.entry(key.clone()).or_insert(Lane {
            session,
            items: VecDeque::new(),
            last: 0,
            bytes: 0,
            turn: Turn::Waits,
            pause: AGAIN_MIN,
            forbidden: false,
            stuck: None,
        });
        if lane.session < session {
            lane.session = session;
            lane.clear();
        }
        if lane.session > session {
            return Ok(());
        }
        if lane.bytes + load.bytes > BYTES_MAX {
            return Err(Full);
        }
        lane.bytes += load.bytes;
        lane.last += 1;
        lane.items.push_back(Waiting {
            load,
            number: lane.last,
            until: None,
            pause: AGAIN_MIN,
            failed: 0,
            forbidden: 0,
            works: 0,
        });
        let first = lane.turn == Turn::Waits && lane.items.len() == 1;
        if first || matches!(lane.turn, Turn::SetAside(_)) {
            lane.turn = Turn::Waits;
            self.ready.push_back(key.clone());
        }
        Ok(())
    }

    /// A session is over.
    pub(super) fn ended(&mut self, key: &K, session: u64) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        if lane.session == session {
            lane.clear();
        }
        self.tidy(key);
    }

    /// The next lane in which somebody is to write.
    pub(super) fn begin(&mut self, now: Instant) -> Option<K> {
        while let Some((until, key)) = self.resting.pop_first() {
            if until > now {
                self.resting.insert((until, key));
                break;
            }
            if let Some(lane) = self.lanes.get_mut(&key)
                && let Turn::Rests(until) | Turn::SetAside(until) = lane.turn
                && until <= now
            {
                lane.turn = Turn::Waits;
                self.ready.push_back(key);
            }
        }
        loop {
            let key = self.ready.pop_front()?;
            let lane = self.lanes.get_mut(&key);
            let begins = |lane: &&mut Lane<T>| lane.turn == Turn::Waits && !lane.items.is_empty();
            if let Some(lane) = lane.filter(begins) {
                lane.turn = Turn::Writes;
                return Some(key);
            }
            self.tidy(&key);
        }
    }

    /// When the next lane has rested.
    pub(super) fn rested(&self) -> Option<Instant> {
        self.resting.first().map(|(until, _)| *until)
    }

    /// What is to be written next in a lane. With nothing left, or all of it set aside, whoever
    /// writes is done.
    pub(super) fn first<S>(
        &mut self,
        key: &K,
        now: Instant,
        look: impl FnOnce(&T) -> S,
    ) -> Option<(S, Ticket)> {
        let lane = self.lanes.get_mut(key)?;
        if let Some(waiting) = lane.first(now) {
            let (session, number) = (lane.session, waiting.number);
            return Some((look(&waiting.load.item), Ticket { session, number }));
        }
        match lane.items.iter().filter_map(|it| it.until).min() {
            Some(until) => {
                lane.turn = Turn::SetAside(until);
                self.resting.insert((until, key.clone()));
            }
            None => {
                lane.turn = Turn::Waits;
                self.tidy(key);
            }
        }
        None
    }

    /// Something is written, or never will be. Nothing, if the session is over.
    pub(super) fn pop(&mut self, key: &K, ticket: Ticket) -> Option<T> {
        let lane = self.lanes.get_mut(key)?;
        lane.pause = AGAIN_MIN;
        lane.forbidden = false;
        lane.take(ticket)
    }

    /// The cluster did not take something, and may later: after this time, if it says so, and each
    /// time after a longer one.
    ///
    /// A cluster that fails at everything says nothing about any of it: a failure counts if it did
    /// something else since the last, and it is not asked for one thing after the other.
    pub(super) fn set_aside(
        &mut self,
        key: &K,
        ticket: Ticket,
        (doubt, after): (Doubt, Option<Duration>),
        at: Moment,
    ) -> Left<T> {
        let Some(lane) = self.lanes.get_mut(key) else {
            return Left::Gone;
        };
        let (given_up_before, stuck) = (lane.forbidden, lane.stuck);
        let Some(waiting) = lane.find(ticket) else {
            return Left::Gone;
        };
        let spent = match doubt {
            Doubt::Failed => {
                waiting.failed += u32::from(waiting.works != at.works);
                waiting.works = at.works;
                waiting.failed >= FAILURES_MAX
            }
            Doubt::Forbidden => {
                waiting.forbidden += 1;
                given_up_before || waiting.forbidden >= FORBIDDEN_MAX
            }
        };
        if spent {
            lane.forbidden = doubt == Doubt::Forbidden;
            return lane.take(ticket).map_or(Left::Gone, Left::GivenUp);
        }
        let pause = after.unwrap_or_default().max(waiting.pause);
        waiting.until = Some(at.now + pause.min(AGAIN_MAX));
        waiting.pause = (waiting.pause * 2).min(AGAIN_MAX);
        if doubt == Doubt::Forbidden {
            return Left::Aside;
        }
        lane.stuck = Some((ticket.number, at.works));
        match stuck {
            Some((other, works)) if other != ticket.number && works == at.works => {
                self.rest(key, after, at.now);
                Left::Resting
            }
            _ => Left::Aside,
        }
    }

    /// The cluster could not be asked, and may be later: after this time, if somebody knows, or
    /// each time after a longer one. Whoever writes is done.
    pub(super) fn rest(&mut self, key: &K, after: Option<Duration>, now: Instant) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        let pause = after.unwrap_or(lane.pause).clamp(AGAIN_MIN, AGAIN_MAX);
        if after.is_none() {
            lane.pause = (lane.pause * 2).min(AGAIN_MAX);
        }
        lane.turn = Turn::Rests(now + pause);
        self.resting.insert((now + pause, key.clone()));
        self.tidy(key);
    }

    fn tidy(&mut self, key: &K) {
        let lane = self.lanes.get(key);
        if lane.is_some_and(|lane| lane.turn != Turn::Writes && lane.items.is_empty()) {
            self.lanes.remove(key);
        }
    }
}

impl<T> Lane<T> {
    fn clear(&mut self) {
        self.items.clear();
        self.bytes = 0;
    }

    /// The first that is not set aside, nor behind something of its name that waits. What was not
    /// tried yet comes before what was: that cannot hold it up.
    fn first(&self, now: Instant) -> Option<&Waiting<T>> {
        let mut names = HashSet::new();
        let heads = self.items.iter();
        let heads = heads.filter(|it| names.insert(&*it.load.name));
        let due = heads.filter(|it| it.until.is_none_or(|until| until <= now));
        due.min_by_key(|it| (it.until.is_some(), it.number))
    }

    fn find(&mut self, ticket: Ticket) -> Option<&mut Waiting<T>> {
        let Ticket { session, number } = ticket;
        let here = self.session == session;
        let found = self.items.iter_mut().find(|it| it.number == number);
        found.filter(|_| here)
    }

    fn take(&mut self, ticket: Ticket) -> Option<T> {
        self.find(ticket)?;
        let number = ticket.number;
        let place = self.items.iter().position(|it| it.number == number)?;
        let Load { item, bytes, .. } = self.items.remove(place)?.load;
        self.bytes -= bytes;
        Some(item)
    }
}
