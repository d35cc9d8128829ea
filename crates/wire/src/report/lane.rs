//! One queue that goes up: its entries, which of them may be sent, and which the hub has.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::{Limits, NotSent, Refused};
use crate::frame::Form;

/// The entries of a queue, by number.
#[derive(Debug)]
pub(super) struct Lane {
    form: Form,
    limits: Limits,
    entries: BTreeMap<u64, Entry>,
    /// Of each key that only needs its newest entry, the number of that one.
    newest: HashMap<Arc<str>, u64>,
    /// Entries that no newer one replaced, and their bytes.
    live: usize,
    bytes: usize,
    /// The highest number that was given.
    highest: u64,
    /// The hub, this one or another, has everything up to here.
    acked: u64,
    /// Numbers up to here may have been seen by a hub: what they stand for does not change.
    shown: u64,
    /// Numbers up to here were sent on this link.
    sent: u64,
    flight: usize,
    flight_bytes: usize,
    link: Link,
}

#[derive(Debug)]
struct Entry {
    key: Arc<str>,
    bytes: Bytes,
    /// The write that brings it to disk.
    write: u64,
    /// The write that brings the entry to disk that replaced it.
    replaced: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// The hub has not said what it has, or there is none.
    Away,
    /// What it lacks is sent.
    Open,
}

/// Where an entry was put.
pub(super) struct Placed {
    pub(super) number: u64,
    /// The number of the entry that it replaced, where that is another.
    pub(super) instead_of: Option<u64>,
    pub(super) replaced: bool,
}

/// What goes out.
pub(super) struct Sent {
    pub(super) number: u64,
    pub(super) key: Arc<str>,
    pub(super) bytes: Bytes,
    pub(super) again: bool,
}

impl Lane {
    pub(super) fn new(form: Form, limits: Limits) -> Self {
        Self {
            form,
            limits,
            entries: BTreeMap::new(),
            newest: HashMap::new(),
            live: 0,
            bytes: 0,
            highest: 0,
            acked: 0,
            shown: 0,
            sent: 0,
            flight: 0,
            flight_bytes: 0,
            link: Link::Away,
        }
    }

    /// Notes that the hub has everything up to this number.
    pub(super) fn restore_acked(&mut self, number: u64) {
        self.acked = self.acked.max(number);
        self.highest = self.highest.max(self.acked);
        self.shown = self.highest;
        self.drop_upto(self.acked);
    }

    /// Takes an entry from disk. It may have been sent before the program stopped.
    pub(super) fn restore(&mut self, number: u64, key: &str, bytes: Bytes) {
        self.highest = self.highest.max(number);
        self.shown = self.highest;
        if number <= self.acked || self.entries.contains_key(&number) {
            return;
        }
        let newest = self.newest.get(key).copied();
        if newest.is_some_and(|newest| newest > number) {
            return;
        }
        if let Some(older) = newest {
            self.remove(older);
        }
        self.insert(number, key.into(), bytes, 0);
    }

    /// Goes on where the same lane was before it was restored, on the same link.
    pub(super) fn go_on_from(&mut self, before: &Self) {
        // The disk may not know yet what the hub has.
        self.restore_acked(before.acked);
        self.highest = self.highest.max(before.shown);
        self.shown = self.highest;
        (self.link, self.sent) = (before.link, before.sent);
        for (&number, entry) in before.entries.range(..=before.sent) {
            // On its way, and replaced on disk by now: it has its place in the window.
            self.entries.entry(number).or_insert_with(|| Entry {
                key: entry.key.clone(),
                bytes: entry.bytes.clone(),
                write: 0,
                replaced: Some(0),
            });
        }
        let flight = self.entries.range(..=self.sent);
        (self.flight, self.flight_bytes) = flight.fold((0, 0), |(count, bytes), (_, entry)| {
            (count + 1, bytes + entry.bytes.len())
        });
    }

    /// Takes an entry that is brought to disk by this write.
    pub(super) fn push(&mut self, key: &str, bytes: Bytes, write: u64) -> Result<Placed, Refused> {
        let older = self.newest.get(key).copied();
        self.refuse_beyond_bounds(older, bytes.len())?;
        let number = match older {
            Some(older) if self.can_change(older) => {
                self.remove(older);
                older
            }
            _ => self.highest.checked_add(1).ok_or(Refused::Full)?,
        };
        let instead_of = older.filter(|older| *older != number);
        if let Some(entry) = instead_of.and_then(|older| self.entries.get_mut(&older)) {
            entry.replaced = Some(write);
            self.live -= 1;
            self.bytes -= entry.bytes.len();
        }
        self.highest = self.highest.max(number);
        self.insert(number, key.into(), bytes, write);
        Ok(Placed {
            number,
            instead_of,
            replaced: older.is_some(),
        })
    }

    /// Takes the word of a hub on what it has. Returns whether there is something to forget.
    pub(super) fn ack(&mut self, number: u64) -> Result<bool, NotSent> {
        if number > self.shown {
            let shown = self.shown;
            return Err(NotSent { number, shown });
        }
        self.link = Link::Open;
        if number <= self.acked {
            return Ok(false);
        }
        self.acked = number;
        self.drop_upto(number);
        self.sent = self.sent.max(number);
        Ok(true)
    }

    /// The hub knows another numbering, or nothing of this node: everything that is here is sent.
    pub(super) fn open(&mut self) {
        self.link = Link::Open;
    }

    /// The next entry that may be sent: it is on disk, and there is room in the window.
    pub(super) fn next(&mut self, stored: u64) -> Option<Sent> {
        let full =
            self.flight >= self.limits.flight || self.flight_bytes >= self.limits.flight_bytes;
        if self.link == Link::Away || full {
            return None;
        }
        let (&number, entry) = self.entries.range(self.sent.checked_add(1)?..).next()?;
        if entry.write > stored {
            return None;
        }
        let sent = Sent {
            number,
            key: entry.key.clone(),
            bytes: entry.bytes.clone(),
            again: number <= self.shown,
        };
        self.flight += 1;
        self.flight_bytes += sent.bytes.len();
        self.sent = number;
        self.shown = self.shown.max(number);
        Some(sent)
    }

    /// The link is gone: what was on its way is sent again, unless there is something newer.
    pub(super) fn lost(&mut self, stored: u64) {
        self.link = Link::Away;
        (self.flight, self.flight_bytes) = (0, 0);
        self.sent = self.acked;
        self.tidy(stored);
    }

    /// Forgets what was replaced by something that is on disk, as long as nobody counts on it.
    pub(super) fn tidy(&mut self, stored: u64) {
        if self.link == Link::Away {
            let kept = |entry: &Entry| entry.replaced.is_none_or(|write| write > stored);
            self.entries.retain(|_, entry| kept(entry));
        }
    }

    /// Whether there is an entry of a key of which the newest is enough.
    pub(super) fn has(&self, key: &str) -> bool {
        self.newest.contains_key(key)
    }

    /// The keys of which the newest entry is enough.
    pub(super) fn keys(&self) -> impl Iterator<Item = String> {
        self.newest.keys().map(|key| key.to_string())
    }

    /// Entries that no newer one replaced.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Their bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Entries in memory, replaced ones that are on their way among them.
    pub(super) fn held(&self) -> usize {
        self.entries.len()
    }

    fn refuse_beyond_bounds(&self, older: Option<u64>, bytes: usize) -> Result<(), Refused> {
        let older = older.and_then(|older| self.entries.get(&older));
        let entries = self.live - usize::from(older.is_some());
        let held = self.bytes - older.map_or(0, |entry| entry.bytes.len());
        match entries < self.limits.entries && held.saturating_add(bytes) <= self.limits.bytes {
            true => Ok(()),
            false => Err(Refused::Full),
        }
    }

    /// Whether an entry may become another under the same number: no hub has seen it, and it is not
    /// the next to go. That one stays as it is, for it waits until it is on disk: if it could
    /// change meanwhile, a key that changes faster than the disk writes would never be sent.
    fn can_change(&self, number: u64) -> bool {
        let next = || self.entries.range(self.sent.saturating_add(1)..).next();
        let is_next = || next().is_some_and(|(next, _)| *next == number);
        number > self.shown && !(self.link == Link::Open && is_next())
    }

    fn insert(&mut self, number: u64, key: Arc<str>, bytes: Bytes, write: u64) {
        if self.form == Form::NewestWins {
            self.newest.insert(key.clone(), number);
        }
        self.live += 1;
        self.bytes += bytes.len();
        let entry = Entry {
            key,
            bytes,
            write,
            replaced: None,
        };
        self.entries.insert(number, entry);
    }

    fn remove(&mut self, number: u64) {
        let Some(entry) = self.entries.remove(&number) else {
            return;
        };
        if number <= self.sent {
            self.flight = self.flight.saturating_sub(1);
            self.flight_bytes = self.flight_bytes.saturating_sub(entry.bytes.len());
        }
        if entry.replaced.is_none() {
            self.live -= 1;
            self.bytes -= entry.bytes.len();
            self.newest.remove(&entry.key);
        }
    }

    fn drop_upto(&mut self, number: u64) {
        while let Some((&first, _)) = self.entries.first_key_value()
            && first <= number
        {
            self.remove(first);
        }
    }
}
