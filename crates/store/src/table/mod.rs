//! The state of one resource: its rows, its history above a floor, and the scopes that are
//! complete. Pure: no disk, no clock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use object::digest::{Digest, Member};
use object::{ObjectName, Resource, Version};

use crate::row::{Event, Row, What};
use object::scope::{Extent, Range, Scope, Want};
use object::standing::Parts;

mod commit; // what is staged -> rows, history and shelves
mod name; // which table
mod scan; // rows as they are, and as they were
pub(crate) mod shelf; // content that is shown to nobody

pub(crate) use commit::Staged;
pub(crate) use name::{Holds, TableName};
use shelf::Shelves;

/// Where a table stands after a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Standing {
    /// The version that lists show: everything up to here is in the rows and the history.
    pub(crate) version: Option<Version>,
    /// The version up to which the source said "complete"; a replica resumes here.
    pub(crate) progress: Option<Version>,
    /// What came since then of cuts whose end did not: a source can tell from it what is here.
    pub(crate) parts: Parts,
    /// Which history of the cluster the versions belong to.
    pub(crate) epoch: u64,
    /// What is complete. Shared, because every commit carries it and few change it.
    pub(crate) scopes: Arc<[Held]>,
}

/// A scope that is complete, and since when its history is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The scope.
    pub scope: Scope,
    /// A watch of this scope may start here or later.
    pub floor: Version,
}

/// Why a read was not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Nothing complete here answers the question.
    #[error("nothing held here covers the request")]
    NotCovered,
    /// The history that is asked for is gone.
    #[error("version {asked} is too old, history starts at {floor}")]
    TooOld {
        /// What was asked for.
        asked: Version,
        /// The oldest version that could be served.
        floor: Version,
    },
    /// The version that is asked for has not come yet.
    #[error("version {asked} is in the future, this is {current}")]
    Future {
        /// What was asked for.
        asked: Version,
        /// Where we are.
        current: Version,
    },
    /// Nobody was ever shown this version here: the source left out what was made and went while it
    /// passed it.
    #[error("version {asked} was passed over here")]
    PassedOver {
        /// What was asked for.
        asked: Version,
    },
    /// What is on disk cannot be trusted.
    #[error("the stored {resource} are damaged: {reason}")]
    Damaged {
        /// The resource.
        resource: Resource,
        /// What was found.
        reason: String,
    },
}

/// The state of one resource.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: BTreeMap<ObjectName, Arc<Row>>,
    history: VecDeque<Step>,
    /// The number of the oldest step that is kept; steps are numbered from the table's beginning.
    history_from: u64,
    /// Where the numbering was when the table last started afresh: who stands before it watched
    /// something that is no more.
    afresh_from: u64,
    /// History is whole above this version. It may hold steps at the version itself, for those who
    /// watch; the rows at the floor have them. Nothing while there was no commit.
    floor: Option<Version>,
    floor_rest: Rest,
    standing: Standing,
    /// Whether what is committed next is history that a base file gives.
    from_base: bool,
    /// Bytes of rows that only history holds.
    history_bytes: u64,
    live_bytes: u64,
    shelves: Shelves,
    /// Whose objects these are; nothing while nobody wants to know their digest.
    resource: Option<Resource>,
    digest: Digest,
}

#[derive(Debug)]
struct Step {
    event: Arc<Event>,
    at: Instant,
    rest: Rest,
}

/// Whether a source was complete after a step, or at the floor.
#[derive(Debug, Default)]
enum Rest {
    /// It was not: more of the same cut came, or is to come.
    Within,
    /// It was, from the step up to this version.
    Until(Version),
    /// A base file does not say.
    #[default]
    Unknown,
}

/// How much history a table keeps.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// Steps above this count go, however young they are.
    pub events_max: usize,
    /// Steps below this count stay, however old they are.
    pub events_min: usize,
    /// Bytes of old rows above this go.
    pub bytes_max: u64,
    /// Between the two counts, steps older than this go.
    pub age_max: std::time::Duration,
}

impl Default for Retention {
    /// A client that comes back within ten minutes, or within the last thousand changes, need not
    /// list again.
    fn default() -> Self {
        Self {
            events_max: 100_000,
            events_min: 1_000,
            bytes_max: 64 * 1024 * 1024,
            age_max: std::time::Duration::from_secs(600),
        }
    }
}

impl Table {
    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(crate) fn floor(&self) -> Option<&Version> {
        self.floor.as_ref()
    }

    pub(crate) fn row(&self, name: &str) -> Option<&Arc<Row>> {
        self.rows.get(name)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.rows.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of what is there now, shown or not.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes + self.shelves.bytes()
    }

    /// What is shown to nobody.
    pub(crate) fn shelves(&self) -> &Shelves {
        &self.shelves
    }

    /// The digest of the rows.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    /// Keeps a digest of the rows from now on. They are those of this resource.
    pub(crate) fn keep_digest(&mut self, resource: &Resource) {
        self.digest = shelf::digest_of(resource, self.rows.values());
        self.resource = Some(resource.clone());
    }

    pub(crate) fn history_bytes(&self) -> u64 {
        self.history_bytes
    }

    /// The steps that lead from the rows at the floor to the rows of now.
    pub(crate) fn history(&self) -> impl Iterator<Item = &Arc<Event>> {
        let steps = self.history.iter().map(|step| &step.event);
        steps.filter(|event| {
            self.floor
                .as_ref()
                .is_none_or(|floor| event.version > *floor)
        })
    }

    /// Forgets everything. Step numbers are not used again, so that nobody who watches takes new
    /// history for the continuation of the old.
    pub(crate) fn start_afresh(&mut self) {
        let from = self.history_from + self.history.len() as u64 + 1;
        *self = Self {
            history_from: from,
            afresh_from: from,
            resource: self.resource.take(),
            ..Self::default()
        };
    }

    /// Whether the table started afresh after step `number` was given out.
    pub(crate) fn was_afresh_since(&self, number: u64) -> bool {
        number < self.afresh_from
    }

    fn insert(&mut self, row: &Arc<Row>) -> Option<Arc<Row>> {
        self.live_bytes += u64::from(row.bytes_len());
        let before = self.rows.insert(row.header.name.clone(), row.clone());
        self.live_bytes -= before.as_ref().map_or(0, |row| u64::from(row.bytes_len()));
        if let Some(resource) = &self.resource {
            self.digest.add(Member::of(resource, &row.header));
        }
        self.uncount(before.as_ref());
        before
    }

    fn remove(&mut self, name: &ObjectName) -> Option<Arc<Row>> {
        let before = self.rows.remove(name)?;
        self.live_bytes -= u64::from(before.bytes_len());
        self.uncount(Some(&before));
        Some(before)
    }

    /// The digest counts a row no more.
    fn uncount(&mut self, row: Option<&Arc<Row>>) {
        if let (Some(resource), Some(row)) = (&self.resource, row) {
            self.digest.remove(Member::of(resource, &row.header));
        }
    }

    fn last_version(&self) -> Option<&Version> {
        self.history
            .back()
            .map(|step| &step.event.version)
            .or(self.floor.as_ref())
    }

    fn push(&mut self, event: Arc<Event>, at: Instant) {
        self.history_bytes += held_bytes(&event);
        let rest = match self.from_base {
            true => Rest::Unknown,
            false => Rest::Within,
        };
        self.history.push_back(Step { event, at, rest });
    }

    /// Notes up to where the source is complete after the last step.
    fn come_to_rest(&mut self) {
        let Standing {
            version, progress, ..
        } = &self.standing;
        let last = self.history.back_mut().map(|step| &mut step.rest);
        if let Some(progress) = progress.as_ref().filter(|at| version.as_ref() <= Some(at)) {
            *last.unwrap_or(&mut self.floor_rest) = Rest::Until(progress.clone());
        }
    }

    /// Whether somebody can have been shown what there is here up to exactly this version: it is
    /// that of a step, or the source was complete then. What a source left out of a cut, since it
    /// was made and went within it, is known to those who stood in between elsewhere, and they
    /// would never be told that it went.
    pub(crate) fn stood_at(&self, version: &Version) -> bool {
        let up_to = self
            .history
            .partition_point(|step| step.event.version <= *version);
        let last = up_to.checked_sub(1).map(|last| &self.history[last]);
        let (at, rest) = match last {
            Some(step) => (Some(&step.event.version), &step.rest),
            None => (self.floor.as_ref(), &self.floor_rest),
        };
        match rest {
            _ if at == Some(version) => true,
            Rest::Within => false,
            Rest::Until(rest) => version <= rest,
            Rest::Unknown => true,
        }
    }

    /// Drops history that the retention does not keep. Returns whether anything went.
    pub(crate) fn trim(&mut self, retention: &Retention, now: Instant) -> bool {
        let before = self.history_from;
        while let Some(oldest) = self.history.front() {
            let count = self.history.len();
            let old = now.saturating_duration_since(oldest.at) > retention.age_max;
            let over = count > retention.events_max
                || self.history_bytes > retention.bytes_max
                || (old && count > retention.events_min);
            if !over {
                break;
            }
            self.history_bytes -= held_bytes(&oldest.event);
            self.floor = Some(oldest.event.version.clone());
            let oldest = self.history.pop_front();
            self.floor_rest = oldest.map(|step| step.rest).unwrap_or_default();
            self.history_from += 1;
        }
        self.history_from != before
    }

    /// The number of the first step after `version`.
    pub(crate) fn step_after(&self, version: &Version) -> u64 {
        let kept = self
            .history
            .partition_point(|step| step.event.version <= *version);
        self.history_from + kept as u64
    }

    /// Up to `count` steps from number `from`; nothing if the oldest of them is gone.
    pub(crate) fn steps(&self, from: u64, count: usize) -> Option<Vec<Arc<Event>>> {
        let skip = usize::try_from(from.checked_sub(self.history_from)?).ok()?;
        let skip = skip.min(self.history.len());
        let steps = self.history.range(skip..).take(count);
        Some(steps.map(|step| step.event.clone()).collect())
    }

    /// How many steps stand at `from` and later.
    pub(crate) fn steps_left(&self, from: u64) -> u64 {
        (self.history_from + self.history.len() as u64).saturating_sub(from)
    }

    /// Since when a scope that covers the question is held. Of several the oldest counts; where all
    /// that is held is wanted, the newest: before that it was another part.
    pub(crate) fn held_since(&self, want: &Want) -> Option<&Version> {
        let scopes = self.standing.scopes.iter();
        match want.extent {
            Extent::Whole => {
                let held = scopes.filter(|held| held.scope.covers(want));
                held.map(|held| &held.floor).min()
            }
            Extent::Held => {
                let held = scopes.filter(|held| held.scope.may_meet(&want.range));
                held.map(|held| &held.floor).max()
            }
        }
    }

    /// The floor of a question: since when its history is whole.
    pub(crate) fn floor_of(&self, want: &Want) -> Result<Version, Refused> {
        let scope_floor = self.held_since(want).ok_or(Refused::NotCovered)?;
        let floor = self.floor.as_ref().ok_or(Refused::NotCovered)?;
        Ok(scope_floor.max(floor).clone())
    }

    /// The rows at the floor: where history starts.
    pub(crate) fn base(&self) -> Vec<Arc<Row>> {
        match &self.floor {
            Some(floor) => self.scan(&Range::All, None, Some(floor)).cloned().collect(),
            None => Vec::new(),
        }
    }
}

/// Whether two rows are the same object at the same version.
pub(crate) fn is_same(one: &Row, other: &Row) -> bool {
    let same = one.header.uid == other.header.uid && one.header.version == other.header.version;
    same && one.content() == other.content()
}

/// Before and after of every row that a step touched.
pub(crate) fn pairs(
    what: &What,
) -> impl DoubleEndedIterator<Item = (Option<&Arc<Row>>, Option<&Arc<Row>>)> {
    let (one, many) = match what {
        What::Changed { before, after } => (Some((before.as_ref(), after.as_ref())), &[][..]),
        What::Replaced(replaced) => (None, &replaced.swaps[..]),
    };
    let many = many
        .iter()
        .map(|swap| (swap.before.as_ref(), swap.after.as_ref()));
    one.into_iter().chain(many)
}

/// Bytes on disk that a step keeps from being thrown away.
fn held_bytes(event: &Event) -> u64 {
    pairs(&event.what)
        .filter_map(|(before, _)| before)
        .map(|row| u64::from(row.bytes_len()))
        .sum()
}
