//! How each node is doing, as the hub sees it: what is shown to people and to programs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use object::{ObjectName, Resource};
use parking_lot::Mutex;
use serde::Serialize;
use wire::outbox::Settled;
use wire::session::{Happening, Sender};

/// Objects set aside that are named for a node. Of more, the number is known.
const ASIDE_MAX: usize = 64;
/// Nodes without a session that are remembered. Beyond it the one that left first is forgotten.
const AWAY_MAX: usize = 100_000;

/// What is known of all nodes that came.
#[derive(Debug, Default)]
pub struct Ledger {
    nodes: Mutex<HashMap<Arc<str>, Entry>>,
    ends: Mutex<BTreeMap<&'static str, u64>>,
    overlooked: AtomicU64,
}

#[derive(Debug, Default)]
struct Entry {
    session: Option<Session>,
    left: Option<(Timestamp, Box<str>)>,
    sessions: u64,
    received_bytes: u64,
    sent_bytes: u64,
    even: Option<(bool, Timestamp)>,
    aside: BTreeMap<(Resource, ObjectName), Box<str>>,
    aside_more: u64,
    reached: BTreeMap<Resource, String>,
    in_flight: usize,
    sent: u64,
    again: u64,
    rejected: u64,
    void: u64,
}

#[derive(Debug, Clone)]
struct Session {
    number: u64,
    since: Timestamp,
    remote: Box<str>,
    program: Box<str>,
}

/// A session that begins.
#[derive(Debug, Clone)]
pub struct Began {
    /// Its number.
    pub number: u64,
    /// From where.
    pub remote: Box<str>,
    /// The agent's program and release.
    pub program: Box<str>,
}

/// How a node is doing.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// The node.
    pub node: Arc<str>,
    /// Whether it has a session here.
    pub connected: bool,
    /// Since when it has, or has not.
    pub since: Option<Timestamp>,
    /// Why the last session ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Box<str>>,
    /// The number of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// From where it comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<Box<str>>,
    /// The agent's program and release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<str>>,
    /// Sessions so far.
    pub sessions: u64,
    /// Bytes of messages received from it.
    pub received_bytes: u64,
    /// Bytes of messages sent to it.
    pub sent_bytes: u64,
    /// Whether what it holds is what it should hold, when that was last compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub even: Option<bool>,
    /// Since when it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub even_since: Option<Timestamp>,
    /// Deliveries on their way.
    pub in_flight: usize,
    /// Deliveries sent in this session.
    pub sent: u64,
    /// Deliveries sent again.
    pub again: u64,
    /// Deliveries that it rejected.
    pub rejected: u64,
    /// Deliveries that were given up.
    pub void: u64,
    /// The version that is on its disk, resource by resource.
    pub versions: BTreeMap<String, String>,
    /// Objects that it could not take, and why.
    pub set_aside: Vec<Aside>,
    /// How many more of them there are.
    pub set_aside_more: u64,
}

/// An object that a node could not take.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Aside {
    /// The resource.
    pub resource: String,
    /// The object.
    pub name: String,
    /// Why.
    pub why: Box<str>,
}

impl Ledger {
    /// A session began.
    pub fn began(&self, node: &Arc<str>, began: Began, now: Timestamp) {
        let mut nodes = self.nodes.lock();
        let entry = nodes.entry(Arc::clone(node)).or_default();
        entry.sessions += 1;
        entry.left = None;
        // What was set aside is found anew, or was put right.
        entry.aside.clear();
        entry.aside_more = 0;
        entry.session = Some(Session {
            number: began.number,
            since: now,
            remote: began.remote,
            program: began.program,
        });
    }

    /// A session is over.
    pub fn ended(
        &self,
        node: &str,
        number: u64,
        (label, words): (&'static str, &str),
        now: Timestamp,
    ) {
        *self.ends.lock().entry(label).or_default() += 1;
        let mut nodes = self.nodes.lock();
        let Some(entry) = nodes.get_mut(node) else {
            return;
        };
        if entry
            .session
            .as_ref()
            .is_some_and(|session| session.number == number)
        {
            entry.session = None;
            entry.in_flight = 0;
            entry.left = Some((now, words.into()));
        }
        if nodes.len() > AWAY_MAX {
            let away = nodes.iter().filter_map(|(node, entry)| {
                let (left, _) = entry.left.as_ref()?;
                Some((*left, Arc::clone(node)))
            });
            if let Some((_, node)) = away.min() {
                nodes.remove(&node);
            }
        }
    }

    /// The node was removed from the cluster: nothing is remembered of it.
    pub fn removed(&self, node: &str) {
        let mut nodes = self.nodes.lock();
        if nodes.get(node).is_some_and(|entry| entry.session.is_none()) {
            nodes.remove(node);
        }
    }

    /// Something happened in a session.
    pub fn happened(&self, node: &str, happening: &Happening, now: Timestamp) {
        let mut nodes = self.nodes.lock();
        let Some(entry) = nodes.get_mut(node) else {
            return;
        };
        match happening {
            Happening::Settled(Settled::Reached { resource, version }) => {
                entry.reached.insert(resource.clone(), version.to_string());
            }
            Happening::Settled(Settled::SetAside { resource, name, .. }) => {
                entry.set_aside(resource, name);
            }
            Happening::Compared { even } => {
                let news = entry.even.is_none_or(|(before, _)| before != *even);
                if news {
                    entry.even = Some((*even, now));
                }
            }
            Happening::Report(_) | Happening::Stream { .. } => {}
            Happening::Ahead { .. } | Happening::SetAsideAgain { .. } => {}
        }
    }

    /// Bytes were carried.
    pub fn carried(&self, node: &str, received: usize, sent: usize) {
        if let Some(entry) = self.nodes.lock().get_mut(node) {
            entry.received_bytes += received as u64;
            entry.sent_bytes += sent as u64;
        }
    }

    /// How a session looks now.
    pub fn looks(&self, node: &str, sender: &Sender) {
        if let Some(entry) = self.nodes.lock().get_mut(node) {
            let counts = sender.counts();
            entry.in_flight = sender.in_flight();
            entry.sent = counts.sent;
            entry.again = counts.again;
            entry.rejected = counts.rejected;
            entry.void = counts.void;
        }
    }

    /// Something happened that there was no room to see to.
    pub fn overlooked(&self) {
        self.overlooked.fetch_add(1, Ordering::Relaxed);
    }

    /// How sessions ended so far, by reason.
    pub fn ends(&self) -> BTreeMap<&'static str, u64> {
        self.ends.lock().clone()
    }

    /// How often something had to be overlooked.
    pub fn overlooked_count(&self) -> u64 {
        self.overlooked.load(Ordering::Relaxed)
    }

    /// How a node is doing.
    pub fn node(&self, node: &str) -> Option<NodeReport> {
        let nodes = self.nodes.lock();
        let (name, entry) = nodes.get_key_value(node)?;
        Some(entry.report(name))
    }

    /// How all nodes are doing, by name.
    pub fn all(&self) -> Vec<NodeReport> {
        let nodes = self.nodes.lock();
        let mut all: Vec<NodeReport> = nodes
            .iter()
            .map(|(node, entry)| entry.report(node))
            .collect();
        all.sort_by(|one, other| one.node.cmp(&other.node));
        all
    }
}

impl Entry {
    fn set_aside(&mut self, resource: &Resource, name: &ObjectName) {
        let key = (resource.clone(), name.clone());
        if self.aside.len() < ASIDE_MAX || self.aside.contains_key(&key) {
            self.aside.insert(key, "the node did not take it".into());
        } else {
            self.aside_more += 1;
        }
    }

    fn report(&self, node: &Arc<str>) -> NodeReport {
        let session = self.session.as_ref();
        let left = self.left.as_ref();
        NodeReport {
            node: Arc::clone(node),
            connected: session.is_some(),
            since: session
                .map(|session| session.since)
                .or_else(|| left.map(|(at, _)| *at)),
            ended: left.map(|(_, words)| words.clone()),
            session: session.map(|session| session.number),
            remote: session.map(|session| session.remote.clone()),
            program: session.map(|session| session.program.clone()),
            sessions: self.sessions,
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
            even: self.even.map(|(even, _)| even),
            even_since: self.even.map(|(_, since)| since),
            in_flight: self.in_flight,
            sent: self.sent,
            again: self.again,
            rejected: self.rejected,
            void: self.void,
            versions: self
                .reached
                .iter()
                .map(|(resource, version)| (resource.to_string(), version.clone()))
                .collect(),
            set_aside: self
                .aside
                .iter()
                .map(|((resource, name), why)| Aside {
                    resource: resource.to_string(),
                    name: name.to_string(),
                    why: why.clone(),
                })
                .collect(),
            set_aside_more: self.aside_more,
        }
    }
}
