//! How each node is doing, as the hub sees it: what is shown to people and to programs.

mod report; // as it is told

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use object::{ObjectName, Resource, Scope, Version};
use parking_lot::Mutex;
use wire::frame::{Fault, Weight};
use wire::outbox::Settled;
use wire::session::{Counts, Happening, Sender};
use wire::window::Why;

pub use report::{Aside, NodeReport, ResourceStanding, by_class};

/// Objects set aside that are named for a node. Of more, the number is known.
const ASIDE_MAX: usize = 64;
/// Nodes without a session that are remembered. Beyond it the one that left first is forgotten.
const AWAY_MAX: usize = 100_000;

/// What is known of all nodes that came.
#[derive(Debug, Default)]
pub struct Ledger {
    nodes: Mutex<HashMap<Arc<str>, Entry>>,
    ends: Mutex<BTreeMap<&'static str, u64>>,
    totals: Mutex<Totals>,
    overlooked: AtomicU64,
    /// Nodes that came, left, or are in another state than they were. There are no more of them
    /// than nodes.
    news: Mutex<BTreeSet<Arc<str>>>,
}

/// What was counted since the hub started, of all nodes: also of those that are forgotten.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Bytes of messages from nodes.
    pub received: Weight,
    /// Bytes of messages to nodes.
    pub sent: Weight,
    /// What became of deliveries.
    pub counts: Counts,
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
    left: Option<Timestamp>,
    /// Why the last session ended.
    last_end: Option<Box<str>>,
    sessions: u64,
    received: Weight,
    sent_bytes: Weight,
    heard: Option<Duration>,
    even: Option<(bool, Timestamp)>,
    /// The same of single resources, where that was not true of all.
    even_of: BTreeMap<Resource, (bool, Timestamp)>,
    aside: BTreeMap<(Resource, ObjectName), Box<str>>,
    aside_more: u64,
    held: BTreeMap<Resource, Held>,
    in_flight: usize,
    objects_in_flight: usize,
    sending_since: Option<Timestamp>,
    /// Of this session.
    counts: Counts,
}

#[derive(Debug, Clone)]
struct Session {
    number: u64,
    since: Timestamp,
    remote: Box<str>,
    transport: &'static str,
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
    /// Over what.
    pub transport: &'static str,
    /// The agent's program and release.
    pub program: Box<str>,
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
        entry.counts = Counts::default();
        (entry.in_flight, entry.objects_in_flight) = (0, 0);
        entry.sending_since = None;
        entry.session = Some(Session {
            number: began.number,
            since: now,
            remote: began.remote,
            transport: began.transport,
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
            // Since when it was sent something stays: it lacks that since then.
            entry.session = None;
            (entry.in_flight, entry.objects_in_flight) = (0, 0);
            entry.left = Some(now);
            entry.last_end = Some(words.into());
            self.news_of(node);
        }
        if nodes.len() > AWAY_MAX {
            let away = nodes
                .iter()
                .filter_map(|(node, entry)| Some((entry.left?, Arc::clone(node))));
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
                if !entry.compared(*even, now) {
                    return;
                }
            }
            Happening::ComparedOne { resource, even } => {
                let before = entry.even_of.get(resource);
                if before.is_none_or(|(before, _)| before != even) {
                    entry.even_of.insert(resource.clone(), (*even, now));
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
    pub fn carried(&self, node: &str, (received, sent): (Weight, Weight), now: Duration) {
        let mut totals = self.totals.lock();
        totals.received = totals.received.and(received);
        totals.sent = totals.sent.and(sent);
        drop(totals);
        if let Some(entry) = self.nodes.lock().get_mut(node) {
            entry.received = entry.received.and(received);
            entry.sent_bytes = entry.sent_bytes.and(sent);
            if received.total() > 0 {
                entry.heard = Some(now);
            }
        }
    }

    /// When something was last heard of a node, if ever.
    pub fn heard(&self, node: &str) -> Option<Duration> {
        self.nodes.lock().get(node)?.heard
    }

    /// How a session looks now.
    pub fn looks(&self, node: &str, sender: &Sender, now: Timestamp) {
        let mut nodes = self.nodes.lock();
        let Some(entry) = nodes.get_mut(node) else {
            return;
        };
        let (before, counts) = (entry.counts, sender.counts());
        entry.counts = counts;
        entry.in_flight = sender.in_flight();
        entry.objects_in_flight = sender.objects_in_flight();
        entry.sending_since = match entry.in_flight {
            0 => None,
            _ => entry.sending_since.or(Some(now)),
        };
        drop(nodes);
        if before != counts {
            let mut totals = self.totals.lock();
            let all = &mut totals.counts;
            all.sent += counts.sent.saturating_sub(before.sent);
            all.again += counts.again.saturating_sub(before.again);
            all.rejected += counts.rejected.saturating_sub(before.rejected);
            all.void += counts.void.saturating_sub(before.void);
            all.refreshed += counts.refreshed.saturating_sub(before.refreshed);
            all.in_vain += counts.in_vain.saturating_sub(before.in_vain);
            all.asked += counts.asked.saturating_sub(before.asked);
        }
    }

    /// What was counted since the hub started.
    pub fn totals(&self) -> Totals {
        *self.totals.lock()
    }

    /// Objects that are on their way to a node.
    pub fn objects_in_flight(&self, node: &str) -> usize {
        let nodes = self.nodes.lock();
        nodes.get(node).map_or(0, |entry| entry.objects_in_flight)
    }

    /// Whether a node holds of a resource what it should, when that was last compared, and since
    /// when that is so.
    pub fn even_of(&self, node: &str, resource: &Resource) -> Option<(bool, Timestamp)> {
        let nodes = self.nodes.lock();
        let entry = nodes.get(node)?;
        // If something differs, all that is known is known of single resources.
        let all = entry.even.filter(|(even, _)| *even);
        entry.even_of.get(resource).copied().or(all)
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
    /// Everything was compared. Says whether that is news.
    fn compared(&mut self, even: bool, now: Timestamp) -> bool {
        let news = self.even.is_none_or(|(before, _)| before != even);
        if news {
            self.even = Some((even, now));
        }
        if even {
            self.even_of.clear();
        }
        if even && news {
            // Nothing is missing: what was set aside has come since.
            self.aside.clear();
            self.aside_more = 0;
        }
        news
    }

    fn set_aside(&mut self, resource: &Resource, name: &ObjectName, why: Why) {
        let key = (resource.clone(), name.clone());
        if self.aside.len() < ASIDE_MAX || self.aside.contains_key(&key) {
            self.aside.insert(key, words(why).into());
        } else {
            self.aside_more += 1;
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

#[cfg(test)]
mod tests;
