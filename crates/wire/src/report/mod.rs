//! What goes up: queues on the node's disk that the hub acks, as the node acks deliveries.
//!
//! There are two forms. Of a status or a lease only the newest of each key matters, so a newer one
//! replaces it. Of events and messages every one counts, so nothing is replaced; where there is no
//! room for another, whoever brings it is told so and has to wait. Nothing is dropped here.
//!
//! An entry counts once it is on disk: [`Reports::push`] gives what is to be written,
//! [`Reports::stored`] takes the word that it was, and nothing is sent before. The caller writes in
//! the order in which it was given things, so that after a crash the disk has all of them up to
//! some point. The hub acks what is where it belongs; then it can be forgotten. After a break
//! everything that was not acked is sent again, and the hub ([`Collected`]) ignores what it has.

mod collected; // reports -> those that are new, and how far they are done
mod lane; // one queue
pub mod statement; // what a report says

use bytes::Bytes;

use crate::frame::{KEY_BYTES_MAX, Queue, REPORT_BYTES_MAX, Report, Reported};
pub use collected::{Collected, FLIGHT_MAX, Misbehaved, Taken};
use lane::Lane;
pub use statement::Statement;

/// How much a queue may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Entries. Beyond it only a newer entry of the same key is taken.
    pub entries: usize,
    /// Bytes. Beyond it only an entry is taken that replaces one that is no smaller.
    pub bytes: usize,
    /// Entries on their way, [`FLIGHT_MAX`] at most. Beyond it the rest waits for acks.
    pub flight: usize,
    /// Bytes on their way. A single entry may have more.
    pub flight_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 8192,
            bytes: 4 * 1024 * 1024,
            flight: FLIGHT_MAX,
            flight_bytes: 256 * 1024,
        }
    }
}

/// The queues of a node that go up.
#[derive(Debug)]
pub struct Reports {
    series: u64,
    /// In the order of [`Queue::ALL`].
    lanes: [Lane; 4],
    /// The last write that was given out.
    write: u64,
    /// The last write that is on disk.
    stored: u64,
    /// The queue that had its turn.
    turn: usize,
    counts: Counts,
}

/// What happened to entries since the program started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// They were taken.
    pub taken: u64,
    /// They were taken and replaced another one of the same key.
    pub replaced: u64,
    /// They were refused.
    pub refused: u64,
    /// They were sent for the first time.
    pub sent: u64,
    /// They were sent and may have been sent before.
    pub sent_again: u64,
}

/// What is to be written to disk. Only then the entry counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persist {
    /// Once it is on disk, and everything that was given before, [`Reports::stored`] is told this.
    pub write: u64,
    /// The entry, under its queue and number. It takes the place of another one there.
    pub report: Report,
    /// Goes in the same step: the number of the entry that it replaces.
    pub instead_of: Option<u64>,
}

/// What the disk needs not keep any more. That there was something must not be forgotten: the
/// number is kept, and in the order of the writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forget {
    /// The queue.
    pub queue: Queue,
    /// Everything up to this number.
    pub upto: u64,
}

/// Why an entry is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no room. Whoever brings it waits, and tries again when something was acked.
    #[error("the queue is full")]
    Full,
    /// It is larger than any may be. Trying again does not help.
    #[error("a key of {key} bytes and a report of {bytes}")]
    TooLarge {
        /// Bytes of the key.
        key: usize,
        /// Bytes of the report.
        bytes: usize,
    },
    /// There is no such queue here.
    #[error("there is no queue {number}")]
    NoQueue {
        /// Its number.
        number: u64,
    },
}

/// The hub has more than it was ever sent: it is wrong, or the node's disk is an old copy. The node
/// begins another series, so that nothing new passes for something that was sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hub has report {number}, and was sent {shown}")]
pub struct NotSent {
    /// The number that the hub has.
    pub number: u64,
    /// The highest that it can have.
    pub shown: u64,
}

impl Reports {
    /// Empty queues. The series is any number that the node never used before, and is on its disk.
    pub fn new(series: u64, limits: Limits) -> Self {
        let limits = Limits {
            flight: limits.flight.min(FLIGHT_MAX),
            ..limits
        };
        let lane = |queue: Queue| {
            let form = queue.form().expect("every queue of ours has a form");
            Lane::new(form, limits)
        };
        Self {
            series,
            lanes: Queue::ALL.map(lane),
            write: 0,
            stored: 0,
            turn: 0,
            counts: Counts::default(),
        }
    }

    /// The queues as they are on disk: what was forgotten last of each, and the entries. All of
    /// them are taken, whatever the limits.
    pub fn restore(
        series: u64,
        limits: Limits,
        forgotten: impl IntoIterator<Item = Forget>,
        entries: impl IntoIterator<Item = Report>,
    ) -> Self {
        let mut reports = Self::new(series, limits);
        for Forget { queue, upto } in forgotten {
            if let Some(lane) = reports.lane(queue) {
                lane.restore_acked(upto);
            }
        }
        for report in entries {
            if let Some(lane) = reports.lane(report.queue) {
                lane.restore(report.number, &report.key, report.bytes);
            }
        }
        reports
    }

    /// Goes on in the midst of a session: `before` are the same queues, before something could not
    /// be written and they were restored. What the hub has and what is on its way to it stays so.
    pub fn go_on_from(&mut self, before: &Self) {
        for (lane, before) in self.lanes.iter_mut().zip(&before.lanes) {
            lane.go_on_from(before);
        }
        self.counts = before.counts;
    }

    /// Takes an entry. It counts when what is returned is on disk.
    pub fn push(&mut self, queue: Queue, key: &str, bytes: Bytes) -> Result<Persist, Refused> {
        let pushed = self.place(queue, key, bytes);
        if pushed.is_err() {
            self.counts.refused += 1;
        }
        pushed
    }

    /// This write is on disk, and all before it.
    pub fn stored(&mut self, write: u64) {
        self.stored = self.stored.max(write.min(self.write));
        let stored = self.stored;
        self.lanes.iter_mut().for_each(|lane| lane.tidy(stored));
    }

    /// Takes the word of the hub on what it has. Its first one in a session opens the queue: a hub
    /// that says nothing of a queue does not collect it, and is sent nothing of it.
    pub fn reported(&mut self, reported: Reported) -> Result<Option<Forget>, NotSent> {
        let Reported {
            queue,
            series,
            number,
        } = reported;
        let known = series == self.series;
        let Some(lane) = self.lane(queue) else {
            return Ok(None);
        };
        match known {
            true => {
                let upto = number;
                let news = lane.ack(number)?;
                Ok(news.then_some(Forget { queue, upto }))
            }
            false => {
                lane.open();
                Ok(None)
            }
        }
    }

    /// The link is gone. What was on its way is sent again on the next.
    pub fn lost(&mut self) {
        let stored = self.stored;
        self.lanes.iter_mut().for_each(|lane| lane.lost(stored));
    }

    /// Gives the next report that goes out now: a queue after the other, and of each what is on
    /// disk and has room in its window.
    pub fn send(&mut self) -> Option<Report> {
        let count = self.lanes.len();
        let mut turns = (1..=count).map(|step| (self.turn + step) % count);
        let stored = self.stored;
        let (turn, sent) = turns.find_map(|turn| Some((turn, self.lanes[turn].next(stored)?)))?;
        self.turn = turn;
        match sent.again {
            true => self.counts.sent_again += 1,
            false => self.counts.sent += 1,
        }
        Some(Report {
            queue: Queue::ALL[turn],
            series: self.series,
            number: sent.number,
            key: (*sent.key).into(),
            bytes: sent.bytes,
        })
    }

    /// Entries of a queue that no newer one replaced.
    pub fn count(&self, queue: Queue) -> usize {
        let index = Queue::ALL.iter().position(|known| *known == queue);
        index.map_or(0, |index| self.lanes[index].len())
    }

    /// Whether something is to go up of this key.
    pub fn waits(&self, queue: Queue, key: &str) -> bool {
        let index = Queue::ALL.iter().position(|known| *known == queue);
        index.is_some_and(|index| self.lanes[index].has(key))
    }

    /// The keys of statuses of which something is to go up.
    pub fn status_keys(&self) -> Vec<String> {
        let index = Queue::ALL.iter().position(|it| *it == Queue::Statuses);
        let lane = index.map(|index| &self.lanes[index]);
        lane.into_iter().flat_map(Lane::keys).collect()
    }

    /// What happened to entries.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Entries that no newer one replaced, in all queues.
    pub fn len(&self) -> usize {
        self.lanes.iter().map(Lane::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their bytes.
    pub fn bytes(&self) -> usize {
        self.lanes.iter().map(Lane::bytes).sum()
    }

    /// Entries in memory: also those that were replaced while they are on their way.
    pub fn held(&self) -> usize {
        self.lanes.iter().map(Lane::held).sum()
    }

    fn place(&mut self, queue: Queue, key: &str, bytes: Bytes) -> Result<Persist, Refused> {
        if key.len() > KEY_BYTES_MAX || bytes.len() > REPORT_BYTES_MAX {
            let (key, bytes) = (key.len(), bytes.len());
            return Err(Refused::TooLarge { key, bytes });
        }
        let write = self.write + 1;
        let number = queue.number();
        let lane = self.lane(queue).ok_or(Refused::NoQueue { number })?;
        let placed = lane.push(key, bytes.clone(), write)?;
        self.write = write;
        self.counts.taken += 1;
        self.counts.replaced += u64::from(placed.replaced);
        Ok(Persist {
            write,
            report: Report {
                queue,
                series: self.series,
                number: placed.number,
                key: key.into(),
                bytes,
            },
            instead_of: placed.instead_of,
        })
    }

    fn lane(&mut self, queue: Queue) -> Option<&mut Lane> {
        let index = Queue::ALL.iter().position(|known| *known == queue)?;
        self.lanes.get_mut(index)
    }
}

#[cfg(test)]
mod tests;
