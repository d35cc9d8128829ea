//! How each node is doing, as the hub sees it: what is shown to people and to programs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use object::{ObjectName, Resource, Scope, Version};
use parking_lot::Mutex;
use serde::Serialize;
use wire::frame::Fault;
use wire::outbox::Settled;
use wire::session::{Happening, Sender};
use wire::window::Why;

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
    /// Nodes that came, left, or are in another state than they were. There are no more of them
    /// than nodes.
    news: Mutex<BTreeSet<Arc<str>>>,
}

/// What a node holds of a resource: everything in these scopes, as it was at this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The version.
    pub version: Version,
    /// The scopes.
    pub scopes: Arc<[Scope]>,
}

#[derive(Debug, Default)]
struct Entry {
    session: Option<Session>,
    left: Option<(Timestamp, Box<str>)>,
    sessions: u64,
    received_bytes: u64,
    sent_bytes: u64,
    heard: Option<Duration>,
    even: Option<(bool, Timestamp)>,
    aside: BTreeMap<(Resource, ObjectName), Box<str>>,
    aside_more: u64,
    held: BTreeMap<Resource, Held>,
    in_flight: usize,
    sent: u64,
    again: u64,
    rejected: u64,
    void: u64,
    refreshed: u64,
    in_vain: u64,
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
    /// When, since the start of the program.
    pub at: Duration,
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
    /// Objects that were sent anew since the node had other bytes of the same version.
    pub refreshed: u64,
    /// Times that such objects differed still afterwards.
    pub in_vain: u64,
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
        entry.heard = Some(began.at);
        entry.left = None;
        // What was set aside is found anew, or was put right.
        entry.aside.clear();
        entry.aside_more = 0;
        // And what it holds is told anew.
        entry.held.clear();
        entry.session = Some(Session {
            number: began.number,
            since: now,
            remote: began.remote,
            program: began.program,
        });
        drop(nodes);
        self.news_of(node);
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
            self.news_of(node);
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
            Happening::Settled(Settled::Reached {
                resource,
                version,
                scopes,
            }) => {
                let held = Held {
                    version: version.clone(),
                    scopes: Arc::clone(scopes),
                };
                entry.held.insert(resource.clone(), held);
                return;
            }
            Happening::Settled(Settled::SetAside {
                resource,
                name,
                why,
            }) => entry.set_aside(resource, name, *why),
            Happening::Compared { even } => {
                if entry.even.is_some_and(|(before, _)| before == *even) {
                    return;
                }
                entry.even = Some((*even, now));
                if *even {
                    // Nothing is missing: what was set aside has come since.
                    entry.aside.clear();
                    entry.aside_more = 0;
                }
            }
            Happening::Report(_) | Happening::Stream { .. } => return,
            Happening::MoreSetAside { count } => entry.aside_more += count,
            Happening::Settled(Settled::DocumentAside { .. }) => return,
            Happening::Ahead { .. } | Happening::SetAsideAgain { .. } => return,
        }
        self.news_of(node);
    }

    /// What a node holds of a resource, as far as this session knows.
    pub fn held(&self, node: &str, resource: &Resource) -> Option<Held> {
        let nodes = self.nodes.lock();
        let entry = nodes.get(node).filter(|entry| entry.session.is_some())?;
        entry.held.get(resource).cloned()
    }

    /// All that a node holds, as far as its last session knows.
    pub fn all_held(&self, node: &str) -> BTreeMap<Resource, Held> {
        let nodes = self.nodes.lock();
        nodes
            .get(node)
            .map(|it| it.held.clone())
            .unwrap_or_default()
    }

    /// The objects that a node could not take, and why; as many as are named.
    pub fn aside(&self, node: &str) -> Vec<(Resource, ObjectName, Box<str>)> {
        let nodes = self.nodes.lock();
        let all = nodes.get(node).into_iter().flat_map(|it| &it.aside);
        all.map(|((resource, name), why)| (resource.clone(), name.clone(), why.clone()))
            .collect()
    }

    /// Whether a node could not take an object.
    pub fn is_aside(&self, node: &str, resource: &Resource, name: &ObjectName) -> bool {
        let nodes = self.nodes.lock();
        let Some(entry) = nodes.get(node) else {
            return false;
        };
        // Of more than are named, any may be one.
        entry.aside_more > 0 || entry.aside.contains_key(&(resource.clone(), name.clone()))
    }

    /// The next node, by name, that has a session, and what it holds.
    pub fn next_held(&self, after: Option<&str>) -> Option<(Arc<str>, BTreeMap<Resource, Held>)> {
        let nodes = self.nodes.lock();
        let later = nodes.iter().filter(|(node, entry)| {
            entry.session.is_some() && after.is_none_or(|after| &***node > after)
        });
        let (node, entry) = later.min_by_key(|(node, _)| Arc::clone(node))?;
        Some((Arc::clone(node), entry.held.clone()))
    }

    /// The nodes of which there is something to tell since the last call.
    pub fn news(&self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut *self.news.lock())
    }

    /// The nodes that have a session.
    pub fn connected(&self) -> Vec<Arc<str>> {
        let nodes = self.nodes.lock();
        let connected = nodes.iter().filter(|(_, entry)| entry.session.is_some());
        connected.map(|(node, _)| Arc::clone(node)).collect()
    }

    fn news_of(&self, node: &str) {
        self.news.lock().insert(node.into());
    }

    /// Bytes were carried.
    pub fn carried(&self, node: &str, (received, sent): (usize, usize), now: Duration) {
        if let Some(entry) = self.nodes.lock().get_mut(node) {
            entry.received_bytes += received as u64;
            entry.sent_bytes += sent as u64;
            if received > 0 {
                entry.heard = Some(now);
            }
        }
    }

    /// When something was last heard of a node, if ever.
    pub fn heard(&self, node: &str) -> Option<Duration> {
        self.nodes.lock().get(node)?.heard
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
            entry.refreshed = counts.refreshed;
            entry.in_vain = counts.in_vain;
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
    fn set_aside(&mut self, resource: &Resource, name: &ObjectName, why: Why) {
        let key = (resource.clone(), name.clone());
        if self.aside.len() < ASIDE_MAX || self.aside.contains_key(&key) {
            self.aside.insert(key, words(why).into());
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
            refreshed: self.refreshed,
            in_vain: self.in_vain,
            versions: self
                .held
                .iter()
                .map(|(resource, held)| (resource.to_string(), held.version.to_string()))
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

/// Why an object was set aside, in words.
pub fn words(why: Why) -> &'static str {
    match why {
        Why::Rejected(Fault::TooLarge) => "it is larger than the node takes",
        Why::Rejected(Fault::NotStored) => "the node's disk does not take it",
        Why::Rejected(Fault::NoObject) => "the node cannot make sense of it",
        Why::Rejected(_) => "the node does not take it",
        Why::Unanswered => "the node does not answer to it",
        Why::Gone => "something newer took its place before it could be sent again",
    }
}
