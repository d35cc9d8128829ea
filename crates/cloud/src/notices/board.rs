//! Which event is written, and when: the same one again is one with a count.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::json;

use super::Notice;
use super::notice::Key;

/// Events that are remembered, to be written or so that the next of the kind is counted. Beyond it,
/// one that was written is forgotten; if all wait to be written, the new one is dropped.
pub(super) const NOTICES_MAX: usize = 1024;
/// Of these, events that strangers bring about.
pub(super) const STRANGERS_MAX: usize = 256;
/// How long after an event the next of its kind is the same one.
const SAME_WITHIN: Duration = Duration::from_secs(600);
/// How often an event is written that happens again and again.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// The time between two requests, on average, and how many may follow each other at once.
const REQUEST_EVERY: Duration = Duration::from_millis(200);
const REQUESTS_AT_ONCE: u32 = 10;
/// How long to wait after a failure, and how often an event is tried.
const PAUSE: Duration = Duration::from_secs(5);
const TRIES_MAX: u32 = 10;

/// What is to be told.
#[derive(Debug)]
pub struct Board {
    /// Tells events of this run of the hub from those of others.
    origin: Box<str>,
    entries: HashMap<Key, Entry>,
    order: BTreeMap<(Duration, u64), Key>,
    count: u64,
    strangers: usize,
    spent: Duration,
    counts: Counts,
}

#[derive(Debug)]
struct Entry {
    notice: Notice,
    /// The event's name, of which its number is a part.
    name: String,
    times: u64,
    first: Timestamp,
    last: Timestamp,
    /// When it last happened.
    at: Duration,
    /// When it was written, if it was.
    written: Option<Duration>,
    state: State,
    tries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Everything is written.
    Rests,
    Waits(Duration, u64),
    /// This many were told when it was given out.
    Out(u64),
}

/// How often what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that were written.
    pub written: u64,
    /// Events that were dropped because there were too many, or because the cluster took none.
    pub dropped: u64,
}

/// An event that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    key: Key,
    /// Its name.
    pub name: String,
    /// Whether it is new, or happened again.
    pub fresh: bool,
    /// The event, or what of it changed.
    pub body: Bytes,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This is written.
    Write(Write),
    /// Nothing before this moment; ever, if there is none.
    Wait(Option<Duration>),
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// The event is not there any more: events end after an hour.
    Missing,
    /// The cluster does not take it.
    Refused,
    /// It may work later.
    Failed,
}

impl Board {
    /// Nothing happened yet. The origin is part of every event's name.
    pub fn new(origin: &str) -> Self {
        Self {
            origin: origin.into(),
            entries: HashMap::new(),
            order: BTreeMap::new(),
            count: 0,
            strangers: 0,
            spent: Duration::ZERO,
            counts: Counts::default(),
        }
    }

    /// Something happened.
    pub fn tell(&mut self, notice: Notice, now: Duration, wall: Timestamp) {
        let key = notice.key();
        if let Some(entry) = self.entries.get_mut(&key)
            && now.saturating_sub(entry.at) < SAME_WITHIN
        {
            entry.notice = notice;
            entry.times += 1;
            (entry.last, entry.at) = (wall, now);
            let due = entry.written.map_or(now, |at| at + AGAIN_AFTER).max(now);
            if entry.state == State::Rests {
                self.wait(&key, due);
            }
            return;
        }
        self.forget(&key);
        let strange = notice.is_of_strangers();
        if !self.has_room(strange) {
            self.counts.dropped += 1;
            return;
        }
        self.count += 1;
        self.strangers += usize::from(strange);
        let entry = Entry {
            name: format!("{}.{}{:x}", notice.prefix(), self.origin, self.count),
            notice,
            times: 1,
            first: wall,
            last: wall,
            at: now,
            written: None,
            state: State::Rests,
            tries: 0,
        };
        self.entries.insert(key.clone(), entry);
        self.wait(&key, now);
    }

    /// What is to be done now.
    pub fn next(&mut self, now: Duration) -> Next {
        let Some((&(due, _), _)) = self.order.first_key_value() else {
            return Next::Wait(None);
        };
        let ahead = REQUEST_EVERY * (REQUESTS_AT_ONCE - 1);
        let due = due.max(self.spent.saturating_sub(ahead));
        if due > now {
            return Next::Wait(Some(due));
        }
        let next = self.order.pop_first().and_then(|(_, key)| {
            let entry = self.entries.get_mut(&key)?;
            entry.state = State::Out(entry.times);
            entry.tries += 1;
            Some(Write {
                name: entry.name.clone(),
                fresh: entry.written.is_none(),
                body: entry.body(),
                key,
            })
        });
        self.spent = self.spent.max(now) + REQUEST_EVERY;
        next.map_or(Next::Wait(Some(now)), Next::Write)
    }

    /// What became of an event that [`Board::next`] gave.
    pub fn done(&mut self, write: &Write, outcome: Outcome, now: Duration) {
        let Some(entry) = self.entries.get_mut(&write.key) else {
            return;
        };
        let State::Out(told) = entry.state else {
            return;
        };
        let more = entry.times > told;
        entry.state = State::Rests;
        match outcome {
            Outcome::Done => {
                self.counts.written += 1;
                (entry.written, entry.tries) = (Some(now), 0);
                if more {
                    self.wait(&write.key, now + AGAIN_AFTER);
                }
            }
            Outcome::Missing if entry.written.is_some() => {
                entry.written = None;
                self.wait(&write.key, now);
            }
            Outcome::Failed if entry.tries < TRIES_MAX => self.wait(&write.key, now + PAUSE),
            Outcome::Missing | Outcome::Failed | Outcome::Refused => {
                self.counts.dropped += 1;
                self.forget(&write.key);
            }
        }
        if outcome == Outcome::Failed {
            self.spent = now + PAUSE;
        }
    }

    /// How often what happened.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn has_room(&mut self, strange: bool) -> bool {
        let full = |board: &Self| {
            board.entries.len() >= NOTICES_MAX || (strange && board.strangers >= STRANGERS_MAX)
        };
        if full(self) {
            let entries = self.entries.iter();
            let rests = entries.filter(|(_, entry)| {
                let fits = !strange || entry.notice.is_of_strangers();
                entry.state == State::Rests && fits
            });
            let oldest = rests.min_by_key(|(_, entry)| entry.at);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.forget(&key);
            }
        }
        !full(self)
    }

    fn wait(&mut self, key: &Key, due: Duration) {
        self.count += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.state = State::Waits(due, self.count);
            self.order.insert((due, self.count), key.clone());
        }
    }

    fn forget(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.strangers -= usize::from(entry.notice.is_of_strangers());
            if let State::Waits(due, number) = entry.state {
                self.order.remove(&(due, number));
            }
        }
    }
}

impl Entry {
    /// The event; or what of it changed, if it is there.
    fn body(&self) -> Bytes {
        let stamp = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let message = self.notice.message();
        let body = match self.written {
            Some(_) => json!({
                "count": self.times,
                "lastTimestamp": stamp(self.last),
                "message": message,
            }),
            None => json!({
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": self.name, "namespace": "default"},
                "involvedObject": self.notice.involved(),
                "type": self.notice.kind(),
                "reason": self.notice.reason(),
                "message": message,
                "source": {"component": "holdfast"},
                "firstTimestamp": stamp(self.first),
                "lastTimestamp": stamp(self.last),
                "count": self.times,
            }),
        };
        body.to_string().into()
    }
}
