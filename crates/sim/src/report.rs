//! What goes up: statuses, of which the newest is enough, and events, of which every one counts.
//! The queues, and what a hub takes of them, are the real ones. The file that a node keeps them in
//! and the place where reports belong are a model.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use wire::frame::{Queue, Report, Reported};
use wire::report::{Forget, Limits, Persist, Refused, Reports};

use crate::agent::Died;
use crate::chance::Chance;

/// How much a node keeps, and what may be on its way.
const LIMITS: Limits = Limits {
    entries: 40,
    bytes: 8_000,
    flight: 6,
    flight_bytes: 1_000,
};
/// Things that a node says the state of.
const KEYS: [&str; 3] = ["node", "a/p0", "a/p1"];

/// The reports of a node.
pub(crate) struct Desk {
    reports: Reports,
    series: u64,
    /// The file, from its beginning.
    file: Vec<Line>,
    /// How much of it is on disk for certain.
    synced: usize,
    /// How much of it is being synced, and when that is done.
    syncing: Option<(usize, Duration)>,
    made: u64,
}

#[derive(Debug, Clone)]
enum Line {
    Put(Persist),
    Forget(Forget),
}

impl Desk {
    /// A node that never used this number before.
    pub(crate) fn new(series: u64) -> Self {
        Self {
            reports: Reports::new(series, LIMITS),
            series,
            file: Vec::new(),
            synced: 0,
            syncing: None,
            made: 0,
        }
    }

    /// The disk is another one: the node begins another series.
    pub(crate) fn replaced(&mut self) {
        // Those of the machines begin a hundred apart.
        *self = Self::new(self.series + 1);
    }

    /// Something is to be reported.
    pub(crate) fn push(&mut self, chance: &mut Chance) {
        let queue = chance.pick(&[Queue::Statuses, Queue::Events]);
        let key = chance.pick(&KEYS);
        self.made += 1;
        let filling = "x".repeat(chance.below(200));
        let bytes = Bytes::from(format!("{} {filling}", self.made));
        match self.reports.push(queue, key, bytes) {
            Ok(persist) => self.file.push(Line::Put(persist)),
            Err(Refused::Full) => {}
            Err(refused) => panic!("{refused}"),
        }
    }

    /// What was written is synced, which takes a while.
    pub(crate) fn sync(&mut self, now: Duration, delay: Duration) {
        if let Some((upto, _)) = self.syncing.take_if(|(_, at)| now >= *at) {
            self.synced = upto;
            let puts = self.file[..upto].iter().rev();
            let mut puts = puts.filter_map(|line| match line {
                Line::Put(persist) => Some(persist.write),
                Line::Forget(_) => None,
            });
            if let Some(write) = puts.next() {
                self.reports.stored(write);
            }
        }
        if self.syncing.is_none() && self.synced < self.file.len() {
            self.syncing = Some((self.file.len(), now + delay));
        }
    }

    /// The process is gone, or the whole machine: then what was not synced may be.
    pub(crate) fn die(&mut self, died: Died, chance: &mut Chance) {
        if died == Died::Machine {
            let unsure = self.file.len() - self.synced;
            self.file.truncate(self.synced + chance.below(unsure + 1));
        }
        let (mut forgotten, mut entries) = (Vec::new(), BTreeMap::new());
        for line in &self.file {
            match line {
                Line::Put(Persist {
                    report, instead_of, ..
                }) => {
                    if let Some(older) = instead_of {
                        entries.remove(&(report.queue, *older));
                    }
                    entries.insert((report.queue, report.number), report.clone());
                }
                Line::Forget(forget) => {
                    entries.retain(|(queue, number), _| {
                        *queue != forget.queue || *number > forget.upto
                    });
                    forgotten.push(*forget);
                }
            }
        }
        // Numbers of writes begin anew with the process: what is there is on disk.
        for line in &mut self.file {
            if let Line::Put(persist) = line {
                persist.write = 0;
            }
        }
        self.reports = Reports::restore(self.series, LIMITS, forgotten, entries.into_values());
        (self.synced, self.syncing) = (self.file.len(), None);
    }

    /// There is another link.
    pub(crate) fn lost(&mut self) {
        self.reports.lost();
    }

    /// The next report that goes out.
    pub(crate) fn send(&mut self) -> Option<Report> {
        let report = self.reports.send()?;
        let forgotten = self.file[..self.synced]
            .iter()
            .filter_map(|line| match line {
                Line::Forget(forget) if forget.queue == report.queue => Some(forget.upto),
                _ => None,
            });
        let forgotten = forgotten.max().unwrap_or(0);
        assert!(report.number > forgotten, "what was acked is sent again");
        let put = |line: &Line| matches!(line, Line::Put(persist) if persist.report == report);
        let durable = self.file[..self.synced].iter().any(put);
        assert!(durable, "what is not on disk is sent: {report:?}");
        Some(report)
    }

    /// The hub says what it has.
    pub(crate) fn told(&mut self, reported: Reported) {
        let forget = self.reports.reported(reported);
        let forget = forget.expect("a hub has nothing that it was not sent");
        self.file.extend(forget.map(Line::Forget));
    }

    /// What is not where it belongs, though nothing bad happens any more.
    pub(crate) fn lacks(&self, place: &Place) -> Option<String> {
        if !self.reports.is_empty() {
            return Some(format!("{} reports wait", self.reports.len()));
        }
        let puts = self.file.iter().filter_map(|line| match line {
            Line::Put(persist) => Some(&persist.report),
            Line::Forget(_) => None,
        });
        let (events, statuses): (Vec<&Report>, Vec<&Report>) =
            puts.partition(|report| report.queue == Queue::Events);
        let lost = events.iter().find(|event| !place.has(event));
        if let Some(lost) = lost {
            return Some(format!("{lost:?} is lost"));
        }
        let newest: BTreeMap<&str, &Bytes> = statuses
            .iter()
            .map(|status| (&*status.key, &status.bytes))
            .collect();
        let old = newest
            .iter()
            .find(|(key, bytes)| place.newest.get(**key) != Some(**bytes));
        old.map(|(key, bytes)| format!("of {key} {bytes:?} is the newest"))
    }
}

/// Where the reports of a node belong.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The newest series and session that brought something: what an older one brings is of no
    /// use.
    from: (u64, u64),
    all: BTreeMap<(u64, Queue, u64), (Box<str>, Bytes)>,
    newest: BTreeMap<Box<str>, Bytes>,
}

impl Place {
    /// A report of a session comes.
    pub(crate) fn take(&mut self, session: u64, report: &Report) {
        let Report { series, number, .. } = *report;
        let what = (report.key.clone(), report.bytes.clone());
        let before = self
            .all
            .insert((series, report.queue, number), what.clone());
        // What has a number keeps it.
        let same = before.is_none_or(|before| before == what);
        assert!(same, "{report:?} was another one before");
        if report.queue == Queue::Events {
            let first = number == 1;
            let next = first || self.all.contains_key(&(series, report.queue, number - 1));
            assert!(next, "{report:?} comes before its turn");
        }
        if (series, session) < self.from {
            return;
        }
        self.from = (series, session);
        if report.queue == Queue::Statuses {
            self.newest.insert(report.key.clone(), report.bytes.clone());
        }
    }

    fn has(&self, event: &Report) -> bool {
        let key = (event.series, event.queue, event.number);
        self.all.get(&key).is_some_and(|(_, it)| *it == event.bytes)
    }
}
