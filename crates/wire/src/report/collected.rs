//! What a hub has of the reports of a node: what is new, and how far it is where it belongs.

use std::collections::BTreeSet;

use crate::frame::{Form, Queue, Report, Reported};

/// Reports of a queue that may be on their way. A node that sends more without an ack misbehaves.
pub const FLIGHT_MAX: usize = 256;

/// What a hub has taken from one node. It outlives the node's sessions.
///
/// The hub brings each new report to where it belongs, those of a queue of which every entry counts
/// and those of the same key one after the other, and says [`Collected::done`]. If it keeps
/// [`Collected::marks`] together with what it brought there, nothing comes twice; a hub that starts
/// with nothing takes again what was not acked, and what it brings there must bear that.
#[derive(Debug)]
pub struct Collected {
    /// In the order of [`Queue::ALL`].
    queues: [Mark; 4],
}

#[derive(Debug, Default)]
struct Mark {
    series: u64,
    /// The highest number that was taken.
    taken: u64,
    /// What was taken and is not done.
    undone: BTreeSet<u64>,
    /// The highest number that the node was told.
    told: u64,
    next: Next,
}

/// What may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Next {
    /// The first of a session. The node knows what it was acked, perhaps by another hub, and begins
    /// behind that.
    #[default]
    Any,
    /// Another one: the next.
    Following,
}

/// Whether a report is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is brought to where it belongs.
    New,
    /// It was taken before. Nothing is to be done.
    Before,
}

/// The node broke the rules. The session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misbehaved {
    /// It reports in a queue that it was not asked for.
    #[error("a report in queue {number}, which is not collected here")]
    NoQueue {
        /// Its number.
        number: u64,
    },
    /// It left something out.
    #[error("report {number} came while {next} is awaited")]
    Gap {
        /// The number of the report.
        number: u64,
        /// The next that can be taken.
        next: u64,
    },
    /// It began another series in the midst of a session.
    #[error("series {series} began within a session")]
    OtherSeries {
        /// The series.
        series: u64,
    },
    /// It did not wait for acks.
    #[error("report {number} came while {FLIGHT_MAX} are not done")]
    TooMany {
        /// The number of the report.
        number: u64,
    },
}

impl Collected {
    /// Nothing was taken from this node, as far as the hub knows.
    pub fn new() -> Self {
        Self {
            queues: Queue::ALL.map(|_| Mark::default()),
        }
    }

    /// What a hub kept.
    pub fn restore(marks: impl IntoIterator<Item = Reported>) -> Self {
        let mut collected = Self::new();
        for reported in marks {
            if let Some(mark) = collected.mark(reported.queue) {
                mark.series = reported.series;
                mark.taken = reported.number;
                mark.told = reported.number;
            }
        }
        collected
    }

    /// How far each queue is: kept by the hub if it can, and told to the node when a session
    /// begins.
    pub fn marks(&self) -> [Reported; 4] {
        let mut index = 0;
        Queue::ALL.map(|queue| {
            let mark = &self.queues[index];
            index += 1;
            mark.reported(queue)
        })
    }

    /// A session begins. Returns what the node is told after the welcome.
    ///
    /// What the hub was doing about reports of the session before is done by now or was broken
    /// off: what is not done comes again. So no more than a window of them is ever being done, and
    /// nothing old overtakes what this session brings.
    pub fn begin(&mut self) -> [Reported; 4] {
        for mark in &mut self.queues {
            mark.next = Next::Any;
            mark.taken = mark.done();
            mark.told = mark.taken;
            mark.undone.clear();
        }
        self.marks()
    }

    /// Takes a report.
    pub fn take(&mut self, report: &Report) -> Result<Taken, Misbehaved> {
        let no_queue = Misbehaved::NoQueue {
            number: report.queue.number(),
        };
        let form = report.queue.form().ok_or(no_queue)?;
        self.mark(report.queue).ok_or(no_queue)?.take(form, report)
    }

    /// A report is where it belongs, or never will be. Returns what the node is told, if that is
    /// news.
    pub fn done(&mut self, queue: Queue, series: u64, number: u64) -> Option<Reported> {
        let mark = self.mark(queue).filter(|mark| mark.series == series)?;
        mark.undone.remove(&number);
        let done = mark.done();
        if done <= mark.told {
            return None;
        }
        mark.told = done;
        Some(mark.reported(queue))
    }

    fn mark(&mut self, queue: Queue) -> Option<&mut Mark> {
        let index = Queue::ALL.iter().position(|known| *known == queue)?;
        self.queues.get_mut(index)
    }
}

impl Default for Collected {
    fn default() -> Self {
        Self::new()
    }
}

impl Mark {
    fn take(&mut self, form: Form, report: &Report) -> Result<Taken, Misbehaved> {
        let Report { series, number, .. } = *report;
        let first = self.next == Next::Any;
        if series != self.series {
            if !first {
                return Err(Misbehaved::OtherSeries { series });
            }
            *self = Self {
                series,
                ..Self::default()
            };
        }
        self.next = Next::Following;
        if number <= self.taken {
            return Ok(Taken::Before);
        }
        let next = self.taken.saturating_add(1);
        // Of a queue where the newest wins, the numbers of what was replaced never come.
        if number > next && !first && form == Form::AppendOnly {
            return Err(Misbehaved::Gap { number, next });
        }
        if self.undone.len() >= FLIGHT_MAX {
            return Err(Misbehaved::TooMany { number });
        }
        self.taken = number;
        self.undone.insert(number);
        Ok(Taken::New)
    }

    /// Everything up to this number is done.
    fn done(&self) -> u64 {
        let first = self.undone.first();
        first.map_or(self.taken, |first| first.saturating_sub(1))
    }

    fn reported(&self, queue: Queue) -> Reported {
        Reported {
            queue,
            series: self.series,
            number: self.done(),
        }
    }
}
