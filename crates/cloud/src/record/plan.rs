//! From facts to writes: which request is next, and what its outcome means.

use std::collections::BTreeMap;
use std::time::Duration;

use object::{ObjectName, Resource};

use super::pace::Pace;
use super::pending::{Believed, Key, Pending, Word};
use super::request::{Verb, Write};
use super::survey::{Question, Survey};
use super::text::{Described, Found};
use super::{Holding, Known, Mode, Presence, Summary};
use crate::view::{NodeName, Policy};

/// Records of objects that wait to be written. Past it, words on further records are forgotten, and
/// the next survey finds what they would have said.
pub const OBJECTS_MAX: usize = 16 * 1024;
/// Records of nodes that wait to be written. Past it, summaries of further nodes are forgotten; the
/// next summary of such a node says it all again.
pub const NODES_MAX: usize = 16 * 1024;
/// How long a word waits for a newer one on the same object.
const OBJECT_DELAY: Duration = Duration::from_secs(5);
/// How long a summary waits for a newer one.
const NODE_DELAY: Duration = Duration::from_secs(10);
/// Requests that one word may take. It needs at most three: update, create, update.
const TRIES_MAX: u32 = 8;

/// What is to be written to the cluster about nodes and what they hold.
#[derive(Debug)]
pub struct Records {
    mode: Mode,
    policy: Policy,
    described: BTreeMap<Resource, Described>,
    pending: Pending,
    survey: Survey,
    pace: Pace,
    counts: Counts,
}

/// How often what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that did what they were to do.
    pub written: u64,
    /// Requests that failed and are made again.
    pub failed: u64,
    /// Words that the cluster refused.
    pub refused: u64,
    /// Words that were forgotten because too many waited.
    pub forgotten: u64,
    /// Words on objects that have no record: of an unknown kind, or with a uid that makes no name.
    pub unnamed: u64,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This request.
    Write(Write),
    /// The records are to be listed.
    Survey,
    /// What nodes hold is to be handed to [`Records::fill`], from the one after this.
    Fill(Option<NodeName>),
    /// Nothing before this moment, unless something is said; ever, if there is none.
    Wait(Option<Duration>),
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// There is no such record, or nowhere to put it.
    Missing,
    /// The record is there already.
    Exists,
    /// The cluster will never take it.
    Refused,
    /// The cluster does not let us. Somebody may change that.
    Forbidden,
    /// It may work later; not before so long, if the cluster said so.
    Failed(Option<Duration>),
}

impl Records {
    /// Nothing is known of the records.
    pub fn new(mode: Mode, policy: Policy) -> Self {
        Self {
            mode,
            policy,
            described: BTreeMap::new(),
            pending: Pending::default(),
            survey: Survey::default(),
            pace: Pace::default(),
            counts: Counts::default(),
        }
    }

    /// How the objects of a resource are called in records. Without it they have none.
    pub fn describe(&mut self, resource: Resource, api_version: &str, kind: &str) {
        let described = Described {
            api_version: api_version.into(),
            kind: kind.into(),
        };
        self.described.insert(resource, described);
    }

    /// A node has an object on its disk. Only an ack makes this true.
    pub fn holds(&mut self, node: &NodeName, holding: &Holding, now: Duration) {
        if self.has_records(&holding.resource) {
            self.hold(node, holding, Believed::There, now);
        }
    }

    /// A node has acked that it dropped an object.
    pub fn dropped(&mut self, node: &NodeName, holding: &Holding, now: Duration) {
        if self.has_records(&holding.resource) {
            let name = holding.name.clone();
            self.say_object(node, &holding.uid, Word::Nothing { name }, now);
        }
    }

    /// Nothing that was said of a node's objects counts any more: its disk was lost, or it is known
    /// only now what it holds. A survey finds out.
    pub fn doubt(&mut self, node: &NodeName) {
        if self.mode != Mode::Off {
            self.pending.forget(node);
            self.survey.want();
        }
    }

    /// There is reason for a survey: more may be wrong than is known.
    pub fn want_survey(&mut self) {
        self.survey.want();
    }

    /// A node is deleted: its records are collected.
    pub fn node_gone(&mut self, node: &NodeName, now: Duration) {
        if self.mode != Mode::Off {
            self.doubt(node);
            let name = ObjectName::new("", node);
            self.say_node(node, Word::Nothing { name }, now);
        }
    }

    /// How far a node is. It is worth saying when it connects or disconnects, when something is set
    /// aside, and when it comes into sync or falls out of it; numbers alone once in some minutes.
    pub fn summary(&mut self, node: &NodeName, summary: Summary, now: Duration) {
        if self.mode != Mode::Off {
            self.say_node(node, Word::Node(Box::new(summary)), now);
        }
    }

    /// What is to be done now.
    pub fn next(&mut self, now: Duration) -> Next {
        if self.mode == Mode::Off {
            return Next::Wait(None);
        }
        let survey = self
            .survey
            .due()
            .map(|due| due.max(self.pace.quiet_until()));
        if survey.is_some_and(|due| due <= now) {
            return Next::Survey;
        }
        if let Some(after) = self.survey.filling()
            && self.pending.objects() <= OBJECTS_MAX / 2
        {
            return Next::Fill(after.cloned());
        }
        let write = self.pending.due().map(|due| due.max(self.pace.free()));
        if write.is_none_or(|due| due > now) {
            return Next::Wait(write.into_iter().chain(survey).min());
        }
        match self.pending.take() {
            Some((key, entry)) => {
                self.pace.spend(now);
                Next::Write(Write::new(key, &entry, &self.described))
            }
            None => Next::Wait(survey),
        }
    }

    /// What became of the request that [`Records::next`] gave last.
    pub fn done(&mut self, write: &Write, outcome: Outcome, now: Duration) {
        let key = &write.key;
        self.note(outcome, now);
        let Some(entry) = self.pending.get(key) else {
            return;
        };
        let said = entry.turn == write.turn;
        if !said || matches!(outcome, Outcome::Failed(_)) {
            self.pending.afresh(key);
        } else if entry.tries >= TRIES_MAX {
            self.counts.refused += 1;
            return self.pending.remove(key);
        }
        let believed = match (outcome, write.verb) {
            (Outcome::Missing, Verb::Create) | (Outcome::Forbidden, _) => {
                // The namespace is going, or the kind is not there, or we have no right to it: the
                // next survey will see.
                self.survey.want();
                return self.pending.remove(key);
            }
            (Outcome::Done | Outcome::Missing, Verb::Delete)
            | (Outcome::Done, Verb::Patch)
            | (Outcome::Refused, _)
                if said =>
            {
                return self.pending.remove(key);
            }
            (Outcome::Missing, _)
            | (Outcome::Done, Verb::Delete)
            | (Outcome::Failed(_) | Outcome::Refused, Verb::Create) => Believed::Missing,
            (Outcome::Done | Outcome::Exists | Outcome::Failed(_) | Outcome::Refused, _) => {
                Believed::There
            }
        };
        // What was replaced while it was written may soon be replaced again.
        let due = match said {
            true => now,
            false => now + OBJECT_DELAY,
        };
        self.pending.again(key, believed, due);
    }

    /// A survey begins: what [`Next::Survey`] asked for.
    pub fn survey_began(&mut self, now: Duration) {
        self.survey.begin(now);
    }

    /// A record that the survey found, and what is known of its node: perhaps a question, if that
    /// does not answer it.
    pub fn found(&mut self, found: Found, node: Presence, now: Duration) -> Option<Question> {
        let gone = node == Presence::Gone;
        let node = found.node()?;
        let Some(uid) = found.uid() else {
            if gone {
                let name = ObjectName::new("", &node);
                self.say_node(&node, Word::Nothing { name }, now);
            }
            return None;
        };
        self.survey.note(found.record());
        let name = found.object();
        let resource = self.resource(&found).cloned();
        let unwanted = |resource: &Resource| !self.has_records(resource);
        if gone || resource.as_ref().is_some_and(unwanted) {
            self.say_object(&node, uid, Word::Nothing { name }, now);
            return None;
        }
        Some(Question {
            resource: resource?,
            name,
            uid: uid.into(),
            told: found.told(),
            node,
        })
    }

    /// The answer to a question. What was said of the record since counts more.
    pub fn answer(&mut self, question: Question, known: Known, now: Duration) {
        let Question {
            node,
            resource,
            name,
            uid,
            told,
        } = question;
        if self.pending.contains(&key(&node, &uid)) {
            return;
        }
        match known {
            Known::Holds(version) if told.as_ref() != Some(&version) => {
                let holding = Holding {
                    resource,
                    name,
                    uid,
                    version,
                };
                self.hold(&node, &holding, Believed::There, now);
            }
            Known::Nothing => self.say_object(&node, &uid, Word::Nothing { name }, now),
            Known::Holds(_) | Known::Unknown => {}
        }
    }

    /// All records were found, or they could not be listed.
    pub fn survey_ended(&mut self, outcome: Outcome, now: Duration) {
        self.note(outcome, now);
        match outcome {
            Outcome::Done => self.survey.listed(),
            _ => self.survey.failed(),
        }
    }

    /// What the next node holds, so that records which are missing are made; nothing after the
    /// last.
    pub fn fill(&mut self, next: Option<(NodeName, Vec<Holding>)>, now: Duration) {
        let Some((node, holdings)) = next else {
            return self.survey.filled(None);
        };
        for holding in holdings {
            let key = key(&node, &holding.uid);
            let missing = key
                .record()
                .is_some_and(|record| !self.survey.is_found(&record));
            let waiting = self.pending.contains(&key);
            if missing && !waiting && self.has_records(&holding.resource) {
                self.hold(&node, &holding, Believed::Missing, now);
            }
        }
        self.survey.filled(Some(node));
    }

    /// How often what happened.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many records wait to be written.
    pub fn waiting(&self) -> usize {
        self.pending.objects() + self.pending.nodes()
    }

    pub(super) fn has_records(&self, resource: &Resource) -> bool {
        match self.mode {
            Mode::All => true,
            Mode::Node => !self.policy.shares(resource),
            Mode::Off => false,
        }
    }

    fn resource(&self, found: &Found) -> Option<&Resource> {
        let mut all = self.described.iter();
        let (resource, _) = all.find(|(_, described)| found.is_of(described))?;
        Some(resource)
    }

    fn hold(&mut self, node: &NodeName, holding: &Holding, believed: Believed, now: Duration) {
        if !self.described.contains_key(&holding.resource) {
            self.counts.unnamed += 1;
            return;
        }
        let word = Word::Holds {
            resource: holding.resource.clone(),
            name: holding.name.clone(),
            version: holding.version.clone(),
        };
        self.say(key(node, &holding.uid), word, believed, now);
    }

    fn say_object(&mut self, node: &NodeName, uid: &str, word: Word, now: Duration) {
        self.say(key(node, uid), word, Believed::There, now);
    }

    fn say(&mut self, key: Key, word: Word, believed: Believed, now: Duration) {
        if key.record().is_none() {
            self.counts.unnamed += 1;
            return;
        }
        if self.pending.objects() >= OBJECTS_MAX && !self.pending.contains(&key) {
            self.counts.forgotten += 1;
            return self.survey.want();
        }
        self.pending.say(key, word, believed, now + OBJECT_DELAY);
    }

    fn say_node(&mut self, node: &NodeName, word: Word, now: Duration) {
        let key = Key::Node { node: node.clone() };
        if self.pending.nodes() >= NODES_MAX && !self.pending.contains(&key) {
            self.counts.forgotten += 1;
            return;
        }
        self.pending
            .say(key, word, Believed::There, now + NODE_DELAY);
    }

    fn note(&mut self, outcome: Outcome, now: Duration) {
        match outcome {
            Outcome::Done => {
                self.counts.written += 1;
                self.pace.well();
            }
            Outcome::Failed(after) => {
                self.counts.failed += 1;
                self.pace.badly(now, after);
            }
            Outcome::Refused | Outcome::Forbidden => self.counts.refused += 1,
            Outcome::Missing | Outcome::Exists => {}
        }
    }
}

fn key(node: &NodeName, uid: &str) -> Key {
    Key::Object {
        node: node.clone(),
        uid: uid.into(),
    }
}
