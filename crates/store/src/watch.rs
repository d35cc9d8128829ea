//! Following a table from a version on: every step of its history once, in order, or an honest end.
//!
//! A watch pulls. It holds its place in the history and nothing else, so a watcher that does not
//! read costs no memory; if history is trimmed past its place, it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object::{Resource, Version};
use tokio::sync::watch::Receiver;

use crate::log::Counting;
use crate::reader::{Reader, Shared, Slot};
use crate::row::{Event, Fate, Replaced, What};
use crate::table::{Refused, Table, TableName, pairs};
use object::scope::{Extent, Want};

/// Steps that are taken out of the history at once.
const STEPS_MAX: usize = 256;

/// A place in a table's history.
pub struct Watch {
    reader: Reader,
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    want: Want,
    next: Arc<AtomicU64>,
    /// Where it started; it may lie ahead of the table.
    from: Version,
    /// Whether it does, and it is not known yet whether the table will stand there.
    ahead: bool,
    changed: Receiver<u64>,
    /// Why there is nothing after what was given last.
    ended: Option<Ended>,
}

/// What a watch meets next.
#[derive(Debug)]
pub enum Step {
    /// Changes to objects in the wanted range, in order. Selectors are not applied: entering and
    /// leaving is the reader's to say.
    Events(Vec<Arc<Event>>),
    /// Nothing is left: everything up to this version has been given.
    Progress(Version),
}

/// Why a watch ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// It lagged so far behind that its next step is gone.
    #[error("history was trimmed past the watcher")]
    Lagged,
    /// What it watches was replaced in one step, or is not held any more.
    #[error("what was watched was replaced in one step")]
    Replaced,
    /// It started ahead of the table, which then passed over that version.
    #[error("the version that was started from was passed over")]
    PassedOver,
    /// What is on disk cannot be trusted.
    #[error("what was watched is damaged")]
    Damaged,
}

/// How far a watch lags.
#[derive(Clone)]
pub struct Gauge {
    slot: Arc<Slot>,
    next: Arc<AtomicU64>,
}

impl Gauge {
    /// How many steps were taken so far, counted from the table's beginning.
    pub fn taken(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// How many steps of history wait to be taken.
    pub fn behind(&self) -> u64 {
        self.slot.table.read().steps_left(self.taken())
    }
}

impl Reader {
    /// Whether somebody can stand at a version because of what he was shown here, or will be. Who
    /// cannot has it from elsewhere, and is not told here all that he missed.
    pub fn may_have_shown(&self, resource: &Resource, version: &Version) -> bool {
        let Some(slot) = self.shared.table(&TableName::objects(resource)) else {
            return false;
        };
        let table = slot.table.read();
        let ahead = table.standing().version.as_ref() < Some(version);
        ahead || has_stood(&self.shared, &table, version)
    }
}

/// Whether a version is one that a table can have shown. Versions that are counted for all tables
/// pass over nothing.
fn has_stood(shared: &Shared, table: &Table, at: &Version) -> bool {
    shared.counting == Counting::Shared || table.stood_at(at)
}

impl Watch {
    pub(crate) fn start(
        reader: Reader,
        shared: Arc<Shared>,
        slot: Arc<Slot>,
        want: &Want,
        from: &Version,
    ) -> Result<Self, Refused> {
        let changed = slot.subscribe();
        let table = slot.table.read();
        let floor = table.floor_of(want)?;
        if *from < floor {
            return Err(Refused::TooOld {
                asked: from.clone(),
                floor,
            });
        }
        let ahead = table.standing().version.as_ref() < Some(from);
        if !ahead && !has_stood(&shared, &table, from) {
            let asked = from.clone();
            return Err(Refused::PassedOver { asked });
        }
        let next = Arc::new(AtomicU64::new(table.step_after(from)));
        drop(table);
        let (want, from) = (want.clone(), from.clone());
        Ok(Self {
            reader,
            shared,
            slot,
            want,
            next,
            from,
            ahead,
            changed,
            ended: None,
        })
    }

    /// The reader that the watch came from.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The resource that is watched.
    pub fn resource(&self) -> &Resource {
        &self.slot.name.resource
    }

    /// Tells from outside how far the watch lags, also while nobody pulls.
    pub fn gauge(&self) -> Gauge {
        Gauge {
            slot: self.slot.clone(),
            next: self.next.clone(),
        }
    }

    /// What comes next, without waiting.
    pub fn step(&mut self) -> Result<Step, Ended> {
        loop {
            if let Some(ended) = &self.ended {
                return Err(ended.clone());
            }
            if self.slot.is_damaged() {
                return Err(Ended::Damaged);
            }
            // The shared counter is read first: what it counts is in the table by then.
            let shared = self.shared.version();
            let table = self.slot.table.read();
            if self.ahead && table.standing().version.as_ref() >= Some(&self.from) {
                self.ahead = false;
                if !has_stood(&self.shared, &table, &self.from) {
                    self.ended = Some(Ended::PassedOver);
                    continue;
                }
            }
            let next = self.next.load(Ordering::Relaxed);
            let Some(steps) = table.steps(next, STEPS_MAX) else {
                if table.was_afresh_since(next) {
                    return Err(Ended::Replaced);
                }
                // A watch that starts ahead of the table does not miss what is gone before that.
                if table.floor().is_none_or(|floor| *floor > self.from) {
                    return Err(Ended::Lagged);
                }
                let next = table.step_after(&self.from);
                self.next.store(next, Ordering::Relaxed);
                continue;
            };
            if steps.is_empty() {
                let version = self.shared.version_of(shared, &table);
                // Where the watcher started may still lie ahead: nothing above it has happened yet.
                return Ok(Step::Progress(
                    version.unwrap_or(self.from.clone()).max(self.from.clone()),
                ));
            }
            drop(table);
            self.next.fetch_add(steps.len() as u64, Ordering::Relaxed);
            let events = self.wanted(steps);
            if !events.is_empty() {
                return Ok(Step::Events(events));
            }
        }
    }

    /// Waits until the log moved on.
    pub async fn changed(&mut self) {
        if self.changed.changed().await.is_err() {
            // The writer is gone; what it wrote stays readable, and no more will come.
            std::future::pending::<()>().await;
        }
    }

    /// The events that are for this watcher, up to one that ends it.
    fn wanted(&mut self, steps: Vec<Arc<Event>>) -> Vec<Arc<Event>> {
        let mut events = Vec::with_capacity(steps.len());
        for event in steps {
            // A watch may start above the newest version; what comes up to its start is not for it.
            let ahead = event.version > self.from;
            match &event.what {
                What::Changed { .. } if ahead && self.touched(&event) => events.push(event),
                What::Changed { .. } => {}
                What::Replaced(replaced) => {
                    if self.is_over(&event, replaced) {
                        self.ended = Some(Ended::Replaced);
                        break;
                    }
                }
            }
        }
        events
    }

    fn touched(&self, event: &Event) -> bool {
        pairs(&event.what).any(|(before, after)| {
            let mut rows = [before, after].into_iter().flatten();
            rows.any(|row| self.want.range.contains(&row.header))
        })
    }

    /// Whether a replacement leaves the watcher without a next step.
    fn is_over(&self, event: &Event, replaced: &Replaced) -> bool {
        // A scope may start or end at a version that was shown already. Who watches all that is
        // held meets that here; in what he listed it was not.
        let later = match self.want.extent {
            Extent::Whole => event.version > self.from,
            Extent::Held => event.version >= self.from,
        };
        match replaced.fate {
            // One that changed nothing of what is watched is none to this watcher.
            Fate::Reset => later && self.touched(event),
            // What is watched must have been held all the time, perhaps by another scope: one that
            // started again later has not seen what happened in between.
            Fate::Ended if self.want.extent == Extent::Held => {
                later && replaced.scope.may_meet(&self.want.range)
            }
            Fate::Ended => {
                let table = self.slot.table.read();
                let since = table.held_since(&self.want);
                replaced.scope.covers(&self.want)
                    && since.is_none_or(|since| *since > event.version)
            }
        }
    }
}
