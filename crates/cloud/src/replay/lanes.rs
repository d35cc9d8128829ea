//! What waits in each lane, and whose turn it is. A node has a lane for each of its queues: what is
//! in one does not wait for what is in another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

/// Bytes that wait in one lane. An agent never has so much on its way: one that does misbehaves.
pub(super) const BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long a lane rests until its first is tried again, first and at most.
pub(super) const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60);

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
    items: VecDeque<(T, usize)>,
    bytes: usize,
    turn: Turn,
    /// How long it is to rest the next time.
    pause: Duration,
}

/// Where a lane is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It waits for a writer, or has nothing.
    Waits,
    /// Somebody writes. It is one at a time, also over the end of a session: nothing old comes
    /// after something new.
    Writes,
    /// Its first could not be written yet.
    Rests,
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
    pub(super) fn push(
        &mut self,
        key: &K,
        session: u64,
        (item, bytes): (T, usize),
    ) -> Result<(), Full> {
        let lane = self.lanes.entry(key.clone()).or_insert(Lane {
            session,
            items: VecDeque::new(),
            bytes: 0,
            turn: Turn::Waits,
            pause: AGAIN_MIN,
        });
        if lane.session < session {
            lane.session = session;
            lane.items.clear();
            lane.bytes = 0;
        }
        if lane.session > session {
            return Ok(());
        }
        if lane.bytes + bytes > BYTES_MAX {
            return Err(Full);
        }
        lane.bytes += bytes;
        lane.items.push_back((item, bytes));
        if lane.turn == Turn::Waits && lane.items.len() == 1 {
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
            lane.items.clear();
            lane.bytes = 0;
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
                && lane.turn == Turn::Rests
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

    /// What is to be written next in a lane, and in which session it was said. With nothing left,
    /// whoever writes is done.
    pub(super) fn first<S>(&mut self, key: &K, look: impl FnOnce(&T) -> S) -> Option<(S, u64)> {
        let lane = self.lanes.get_mut(key)?;
        match lane.items.front() {
            Some((item, _)) => Some((look(item), lane.session)),
            None => {
                lane.turn = Turn::Waits;
                self.tidy(key);
                None
            }
        }
    }

    /// The first of a session is written. Nothing, if the session is over.
    pub(super) fn pop(&mut self, key: &K, session: u64) -> Option<T> {
        let lane = self.lanes.get_mut(key)?;
        lane.pause = AGAIN_MIN;
        let item = match lane.session == session {
            true => lane.items.pop_front(),
            false => None,
        };
        let (item, bytes) = item?;
        lane.bytes -= bytes;
        Some(item)
    }

    /// The first could not be written, and may be later: after this time, if somebody knows, or
    /// each time after a longer one. Whoever writes is done.
    pub(super) fn rest(&mut self, key: &K, after: Option<Duration>, now: Instant) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        let pause = after.unwrap_or(lane.pause).clamp(AGAIN_MIN, AGAIN_MAX);
        lane.pause = (lane.pause * 2).min(AGAIN_MAX);
        lane.turn = Turn::Rests;
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
