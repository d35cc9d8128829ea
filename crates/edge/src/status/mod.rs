//! How the agent is doing, for people and for programs.

mod metrics; // as numbers for programs

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use wire::frame::{Class, Fault, Weight, Welcome};

/// What the agent counts and notes while it runs.
#[derive(Debug, Default)]
pub struct Status(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    sent: Weight,
    received: Weight,
    sessions: u64,
    counts: Counts,
    rejected: BTreeMap<&'static str, u64>,
    waiting: usize,
    tunnelled: BTreeMap<&'static str, u64>,
    heard: Option<Instant>,
    link: Link,
}

#[derive(Debug, Default)]
struct Link {
    hub: Option<Box<str>>,
    /// Over what the link goes, if one is open.
    transport: Option<&'static str>,
    session: Option<u64>,
    since: Option<Timestamp>,
    certificate_ends: Option<Timestamp>,
    /// Why there is none, in words.
    trouble: Option<Box<str>>,
    /// How sessions ended, by reason.
    ends: BTreeMap<&'static str, u64>,
}

/// What became of deliveries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Deliveries that came.
    pub received: u64,
    /// Of these, deliveries that had come before.
    pub again: u64,
    /// Deliveries that the hub gave up: what they had is not here.
    pub void: u64,
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
    /// Over what it goes: `websocket` or `quic`.
    pub transport: Option<&'static str>,
    /// Its number.
    pub session: Option<u64>,
    /// For how long nothing was heard of the hub.
    pub silent_seconds: Option<u64>,
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
    /// The bytes sent, by what they were for.
    pub sent_by_class: BTreeMap<&'static str, u64>,
    /// The bytes received, by what they were for.
    pub received_by_class: BTreeMap<&'static str, u64>,
    /// What became of deliveries.
    pub deliveries: Counts,
    /// Deliveries that could not be taken as they were, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Pieces that came and are not on disk yet.
    pub waiting: usize,
    /// Requests to the cluster, by what became of them.
    pub tunnelled: BTreeMap<&'static str, u64>,
    /// Of these, those that are on their way, and answers that still come.
    pub tunnels: usize,
    /// What clients have open of the node's API.
    pub api: Visits,
    /// What is written on the node and not in the cluster yet.
    pub reports: Reports,
    /// What is held, resource by resource.
    pub resources: Vec<Held>,
}

/// What became of what was written on the node for the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reports {
    /// It waits to be reported.
    pub waiting: usize,
    /// It was taken.
    pub taken: u64,
    /// It was refused: there was no room, or it was too large.
    pub refused: u64,
    /// It was sent again, since the link broke before the hub had it.
    pub sent_again: u64,
}

/// What clients have open of the node's API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Visits {
    /// Connections.
    pub connections: usize,
    /// Watches that the node answers. Those that it passes on are tunnels.
    pub watches: usize,
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
    /// The digest of what is held, as the hub compares it.
    pub digest: String,
}

impl Status {
    /// These bytes were sent.
    pub fn sent(&self, bytes: Weight) {
        let mut notes = self.0.lock();
        notes.sent = notes.sent.and(bytes);
    }

    /// These bytes were received.
    pub fn received(&self, bytes: Weight, now: Instant) {
        let mut notes = self.0.lock();
        notes.received = notes.received.and(bytes);
        notes.heard = Some(now);
    }

    /// A delivery came, for the first time or again.
    pub fn delivered(&self, again: bool) {
        let counts = &mut self.0.lock().counts;
        counts.received += 1;
        counts.again += u64::from(again);
    }

    /// The hub gave up a delivery.
    pub fn given_up(&self) {
        self.0.lock().counts.void += 1;
    }

    /// A delivery could not be taken as it was.
    pub fn rejected(&self, fault: Fault) {
        *self.0.lock().rejected.entry(label(fault)).or_default() += 1;
    }

    /// So many pieces wait for the disk, or are being written.
    pub fn waiting(&self, pieces: usize) {
        self.0.lock().waiting = pieces;
    }

    /// A request to the cluster was answered, or not.
    pub fn tunnelled(&self, what: &'static str) {
        *self.0.lock().tunnelled.entry(what).or_default() += 1;
    }

    /// The certificate with which links are opened ends then.
    pub fn certificate(&self, ends: Timestamp) {
        self.0.lock().link.certificate_ends = Some(ends);
    }

    /// A link is open, and a session is asked for.
    pub fn opened(&self, transport: &'static str, session: u64) {
        let link = &mut self.0.lock().link;
        link.transport = Some(transport);
        link.session = Some(session);
    }

    /// A hub agreed to a session.
    pub fn welcomed(&self, welcome: &Welcome, now: Timestamp) {
        let mut notes = self.0.lock();
        notes.sessions += 1;
        notes.link.hub = Some(welcome.hub.clone());
        notes.link.since = Some(now);
        notes.link.trouble = None;
    }

    /// A session, or an attempt at one, is over. Says with which hub it was, and over what.
    pub fn ended(
        &self,
        label: &'static str,
        words: &str,
        now: Timestamp,
    ) -> (Option<Box<str>>, Option<&'static str>) {
        let mut notes = self.0.lock();
        notes.waiting = 0;
        let link = &mut notes.link;
        let (hub, transport) = (link.hub.take(), link.transport.take());
        if hub.is_some() || link.since.is_none() {
            link.since = Some(now);
        }
        link.trouble = Some(words.into());
        *link.ends.entry(label).or_default() += 1;
        (hub, transport)
    }

    /// How it is at this moment. `resources` is what the store says.
    pub fn report(&self, node: &str, resources: Vec<Held>, now: Instant) -> Report {
        let notes = self.0.lock();
        let link = &notes.link;
        let connected = link.hub.is_some();
        let silent = notes
            .heard
            .map(|heard| now.saturating_duration_since(heard));
        Report {
            node: node.into(),
            connected,
            since: link.since,
            hub: link.hub.clone(),
            transport: link.transport.filter(|_| connected),
            session: link.session.filter(|_| connected),
            silent_seconds: silent.map(|silent| silent.as_secs()),
            trouble: link.trouble.clone(),
            certificate_ends: link.certificate_ends,
            sessions: notes.sessions,
            session_ends: link.ends.clone(),
            sent_bytes: notes.sent.total(),
            received_bytes: notes.received.total(),
            sent_by_class: by_class(notes.sent),
            received_by_class: by_class(notes.received),
            deliveries: notes.counts,
            rejected: notes.rejected.clone(),
            waiting: notes.waiting,
            tunnelled: notes.tunnelled.clone(),
            tunnels: 0,
            api: Visits::default(),
            reports: Reports::default(),
            resources,
        }
    }
}

impl Report {
    /// The same with what clients have open: of the node's API, and of the cluster's through it.
    #[must_use]
    pub fn with_visits(mut self, api: Visits, tunnels: usize) -> Self {
        (self.api, self.tunnels) = (api, tunnels);
        self
    }

    /// The same with what waits to be reported.
    #[must_use]
    pub fn with_reports(mut self, reports: Reports) -> Self {
        self.reports = reports;
        self
    }
}

fn by_class(weight: Weight) -> BTreeMap<&'static str, u64> {
    let all = Class::ALL.into_iter();
    all.map(|class| (class.as_str(), weight.get(class)))
        .collect()
}

/// Why a delivery is not taken, in a word.
fn label(fault: Fault) -> &'static str {
    match fault {
        Fault::NoBase => "no-base",
        Fault::Different => "different",
        Fault::NoObject => "no-object",
        Fault::TooLarge => "too-large",
        Fault::OutOfOrder => "out-of-order",
        Fault::NotStored => "not-stored",
        Fault::Other(_) => "other",
    }
}

#[cfg(test)]
mod tests;
