//! A survey: the records are listed and compared with what nodes hold.
//!
//! It asks about one record at a time and remembers of each only that it is there, by eight bytes
//! of a hash; so a survey of a million records takes some megabytes, and only while it lasts.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use object::{ObjectName, Resource, Version};

use crate::view::NodeName;

/// How long after a survey the next one may begin, when there is reason for one.
const SURVEY_AFTER: Duration = Duration::from_secs(10 * 60);
/// How long after a survey the next one begins without a reason.
const SURVEY_EVERY: Duration = Duration::from_secs(6 * 60 * 60);
/// How long after its start a hub begins its first: nodes are to connect before.
const SURVEY_FIRST: Duration = Duration::from_secs(30);
/// Records that a survey remembers. With more of them it mends and collects, but does not make
/// those that are missing.
const FOUND_MAX: usize = 2_000_000;

/// A record that was found, as a question: does the node hold this?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The node.
    pub node: NodeName,
    /// The object's resource.
    pub resource: Resource,
    /// The object's name.
    pub name: ObjectName,
    /// The object's uid.
    pub uid: Box<str>,
    /// The version that the record tells, if it tells one.
    pub told: Option<Version>,
}

/// Where the survey is.
#[derive(Debug)]
pub(super) struct Survey {
    state: State,
    began: Option<Duration>,
    reason: Reason,
    found: HashSet<u64>,
    beyond: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Resting,
    Listing,
    /// The records are listed; what is missing is made, node by node.
    Filling {
        after: Option<NodeName>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    None,
    Some,
}

impl Default for Survey {
    fn default() -> Self {
        Self {
            state: State::Resting,
            began: None,
            reason: Reason::None,
            found: HashSet::new(),
            beyond: false,
        }
    }
}

impl Survey {
    /// There is reason for a survey.
    pub(super) fn want(&mut self) {
        self.reason = Reason::Some;
    }

    /// When the next one begins; never while one goes on.
    pub(super) fn due(&self) -> Option<Duration> {
        match (&self.state, self.began, self.reason) {
            (State::Listing | State::Filling { .. }, ..) => None,
            (State::Resting, None, _) => Some(SURVEY_FIRST),
            (State::Resting, Some(began), Reason::Some) => Some(began + SURVEY_AFTER),
            (State::Resting, Some(began), Reason::None) => Some(began + SURVEY_EVERY),
        }
    }

    pub(super) fn begin(&mut self, now: Duration) {
        self.state = State::Listing;
        self.began = Some(now);
        self.reason = Reason::None;
        self.forget();
    }

    /// The record of this name is there.
    pub(super) fn note(&mut self, record: &str) {
        match self.found.len() < FOUND_MAX {
            true => drop(self.found.insert(hash(record))),
            false => self.beyond = true,
        }
    }

    pub(super) fn is_found(&self, record: &str) -> bool {
        self.found.contains(&hash(record))
    }

    /// The records are listed.
    pub(super) fn listed(&mut self) {
        self.state = match self.beyond {
            true => State::Resting,
            false => State::Filling { after: None },
        };
        if self.beyond {
            self.forget();
        }
    }

    /// The records could not be listed.
    pub(super) fn failed(&mut self) {
        self.state = State::Resting;
        self.reason = Reason::Some;
        self.forget();
    }

    /// After which node the filling goes on; nothing if there is none to do.
    pub(super) fn filling(&self) -> Option<Option<&NodeName>> {
        match &self.state {
            State::Filling { after } => Some(after.as_ref()),
            State::Resting | State::Listing => None,
        }
    }

    /// A node is done; without one, all are.
    pub(super) fn filled(&mut self, node: Option<NodeName>) {
        match node {
            Some(node) => self.state = State::Filling { after: Some(node) },
            None => {
                self.state = State::Resting;
                self.forget();
            }
        }
    }

    fn forget(&mut self) {
        self.found = HashSet::new();
        self.beyond = false;
    }
}

fn hash(record: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    record.hash(&mut hasher);
    hasher.finish()
}
