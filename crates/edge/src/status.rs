//! How the agent is doing, for people and for programs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use host::metrics::{Kind, Metrics};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use wire::frame::Welcome;

/// What the agent counts and notes while it runs.
#[derive(Debug, Default)]
pub struct Status {
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    sessions: AtomicU64,
    link: Mutex<Link>,
}

#[derive(Debug, Default)]
struct Link {
    hub: Option<Box<str>>,
    since: Option<Timestamp>,
    /// Why there is none, in words.
    trouble: Option<Box<str>>,
    /// How sessions ended, by reason.
    ends: BTreeMap<&'static str, u64>,
}

/// How the agent is doing, at a moment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The node.
    pub node: Box<str>,
    /// Whether there is a session with a hub.
    pub connected: bool,
    /// Since when it is so.
    pub since: Option<Timestamp>,
    /// The hub of the session.
    pub hub: Option<Box<str>>,
    /// Why there is none.
    pub trouble: Option<Box<str>>,
    /// When the certificate of the node ends.
    pub certificate_ends: Option<Timestamp>,
    /// Sessions so far.
    pub sessions: u64,
    /// How they ended, by reason.
    pub session_ends: BTreeMap<&'static str, u64>,
    /// Bytes of messages sent so far.
    pub sent_bytes: u64,
    /// Bytes of messages received so far.
    pub received_bytes: u64,
    /// What is held, resource by resource.
    pub resources: Vec<Held>,
}

/// What is held of a resource.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// The resource.
    pub resource: String,
    /// Up to which version everything is here.
    pub version: Option<String>,
    /// Objects.
    pub objects: u64,
    /// Scopes.
    pub scopes: usize,
}

impl Status {
    /// So many bytes were sent.
    pub fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many bytes were received.
    pub fn received(&self, bytes: usize) {
        self.received_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A hub agreed to a session.
    pub fn welcomed(&self, welcome: &Welcome, now: Timestamp) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        let mut link = self.link.lock();
        link.hub = Some(welcome.hub.clone());
        link.since = Some(now);
        link.trouble = None;
    }

    /// A session, or an attempt at one, is over.
    pub fn ended(&self, label: &'static str, words: &str, now: Timestamp) {
        let mut link = self.link.lock();
        if link.hub.take().is_some() || link.since.is_none() {
            link.since = Some(now);
        }
        link.trouble = Some(words.into());
        *link.ends.entry(label).or_default() += 1;
    }

    /// How it is at this moment. `resources` is what the store says.
    pub fn report(&self, node: &str, resources: Vec<Held>) -> Report {
        let link = self.link.lock();
        Report {
            node: node.into(),
            connected: link.hub.is_some(),
            since: link.since,
            hub: link.hub.clone(),
            trouble: link.trouble.clone(),
            certificate_ends: None,
            sessions: self.sessions.load(Ordering::Relaxed),
            session_ends: link.ends.clone(),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            resources,
        }
    }
}

impl Report {
    /// The same as Prometheus' text.
    pub fn metrics(&self) -> String {
        let mut all = Metrics::default();
        let connected = (
            "holdfast_agent_connected",
            "Whether there is a session with a hub.",
        );
        all.one(Kind::Gauge, connected, u64::from(self.connected));
        let sessions = ("holdfast_agent_sessions_total", "Sessions so far.");
        all.one(Kind::Counter, sessions, self.sessions);
        let ends = (
            "holdfast_agent_session_ends_total",
            "Sessions that ended, by reason.",
        );
        let by_reason = self
            .session_ends
            .iter()
            .map(|(reason, count)| (*reason, *count));
        all.each(Kind::Counter, ends, "reason", by_reason);
        let sent = ("holdfast_agent_sent_bytes_total", "Bytes of messages sent.");
        all.one(Kind::Counter, sent, self.sent_bytes);
        let received = (
            "holdfast_agent_received_bytes_total",
            "Bytes of messages received.",
        );
        all.one(Kind::Counter, received, self.received_bytes);
        let objects = ("holdfast_agent_objects", "Objects on disk.");
        let by_resource = self
            .resources
            .iter()
            .map(|held| (&held.resource, held.objects));
        all.each(Kind::Gauge, objects, "resource", by_resource);
        all.text()
    }
}
