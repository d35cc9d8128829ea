//! How a hub is doing: what `holdfast status` shows, and the same as metrics.

use std::collections::BTreeMap;

use host::metrics::{Kind, Metrics};
use serde::Serialize;

use crate::cache::State;
use crate::hub::Hub;
use crate::ledger::NodeReport;
use crate::talk::Desk;

/// How a hub is doing.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HubReport {
    /// The hub.
    pub hub: String,
    /// What it waits for before it begins, if it has not begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Sessions now.
    pub sessions: usize,
    /// How sessions ended so far, by reason.
    pub session_ends: BTreeMap<&'static str, u64>,
    /// Happenings that there was no room to see to.
    pub overlooked: u64,
    /// Nodes that are registered for their agents.
    pub registered: usize,
    /// Requests for nodes and their leases, and how many of them failed.
    pub registrations: Tries,
    /// Events that were told in the cluster, and how many were dropped.
    pub events: Tries,
    /// The resources that are followed.
    pub resources: Vec<ResourceReport>,
    /// The nodes that came.
    pub nodes: Vec<NodeReport>,
}

/// How often something was done, and how often it was not.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Tries {
    /// It was.
    pub done: u64,
    /// It was not.
    pub failed: u64,
}

/// How far a resource is known.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceReport {
    /// The resource.
    pub resource: String,
    /// Up to which version.
    pub version: Option<String>,
    /// Objects.
    pub objects: usize,
    /// Their bytes in memory.
    pub bytes: usize,
    /// `complete`, `unlisted` or `frozen`.
    pub state: &'static str,
    /// Why it is frozen, and for how many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl Hub {
    /// How the hub is doing.
    pub fn report(&self, name: &str) -> HubReport {
        let cache = self.cache().read();
        let now = self.times().clock().now();
        let resources = cache.resources().map(|resource| {
            let counts = cache.counts(resource);
            let (state, trouble) = match cache.state(resource) {
                State::Unlisted => ("unlisted", cache.trouble(resource).cloned()),
                State::Complete => ("complete", None),
                State::Frozen(trouble) => ("frozen", Some(trouble)),
            };
            let trouble = trouble.map(|trouble| {
                let seconds = now.saturating_duration_since(trouble.since).as_secs();
                format!("{} ({seconds} s)", trouble.why)
            });
            ResourceReport {
                resource: resource.to_string(),
                version: cache.version(resource).map(ToString::to_string),
                objects: counts.objects,
                bytes: counts.packed_bytes,
                state,
                trouble,
            }
        });
        let (registered, told) = (self.register().counts(), self.notices().counts());
        HubReport {
            hub: name.to_owned(),
            waits_for: None,
            registered: registered.nodes,
            registrations: Tries {
                done: registered.written,
                failed: registered.failed,
            },
            events: Tries {
                done: told.written,
                failed: told.dropped,
            },
            sessions: self.sessions().len(),
            session_ends: self.ledger().ends(),
            overlooked: self.ledger().overlooked_count(),
            resources: resources.collect(),
            nodes: self.ledger().all(),
        }
    }
}

impl HubReport {
    /// Of a hub that has not begun.
    pub fn waiting(name: &str, waits_for: String) -> Self {
        Self {
            hub: name.to_owned(),
            waits_for: Some(waits_for),
            sessions: 0,
            session_ends: BTreeMap::new(),
            overlooked: 0,
            registered: 0,
            registrations: Tries::default(),
            events: Tries::default(),
            resources: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// The same as Prometheus' text. What concerns single nodes is summed up: a hundred thousand
    /// series are of no use to anybody.
    pub fn metrics(&self) -> String {
        let mut all = Metrics::default();
        let sum = |of: fn(&NodeReport) -> u64| self.nodes.iter().map(of).sum::<u64>();
        let ready = (
            "holdfast_hub_ready",
            "Whether the hub has begun and lets nodes in.",
        );
        all.one(Kind::Gauge, ready, u64::from(self.waits_for.is_none()));
        let sessions = ("holdfast_hub_sessions", "Sessions now.");
        all.one(Kind::Gauge, sessions, self.sessions as u64);
        let ends = (
            "holdfast_hub_session_ends_total",
            "Sessions that ended, by reason.",
        );
        let by_reason = self
            .session_ends
            .iter()
            .map(|(reason, count)| (*reason, *count));
        all.each(Kind::Counter, ends, "reason", by_reason);
        let in_flight = ("holdfast_hub_in_flight", "Deliveries on their way.");
        all.one(Kind::Gauge, in_flight, sum(|node| node.in_flight as u64));
        let sent = (
            "holdfast_hub_sent_bytes_total",
            "Bytes of messages sent to nodes.",
        );
        all.one(Kind::Counter, sent, sum(|node| node.sent_bytes));
        let received = (
            "holdfast_hub_received_bytes_total",
            "Bytes of messages from nodes.",
        );
        all.one(Kind::Counter, received, sum(|node| node.received_bytes));
        let uneven = (
            "holdfast_hub_nodes_uneven",
            "Nodes that do not hold what they should.",
        );
        all.one(
            Kind::Gauge,
            uneven,
            sum(|node| u64::from(node.even == Some(false))),
        );
        let aside = (
            "holdfast_hub_set_aside",
            "Objects that nodes could not take.",
        );
        let of_node = |node: &NodeReport| node.set_aside.len() as u64 + node.set_aside_more;
        all.one(Kind::Gauge, aside, sum(of_node));
        let objects = (
            "holdfast_hub_objects",
            "Objects of the cluster that are known.",
        );
        let counts = self
            .resources
            .iter()
            .map(|it| (&it.resource, it.objects as u64));
        all.each(Kind::Gauge, objects, "resource", counts);
        let frozen = (
            "holdfast_hub_frozen",
            "Whether a resource cannot be followed for now.",
        );
        let states = self.resources.iter();
        let states = states.map(|it| (&it.resource, u64::from(it.state != "complete")));
        all.each(Kind::Gauge, frozen, "resource", states);
        self.beside(&mut all);
        all.text()
    }

    /// What the hub does in the cluster beside delivering.
    fn beside(&self, all: &mut Metrics) {
        let nodes = (
            "holdfast_hub_registered_nodes",
            "Nodes that are registered for their agents.",
        );
        all.one(Kind::Gauge, nodes, self.registered as u64);
        let requests = (
            "holdfast_hub_registrations_total",
            "Requests for nodes and leases, by outcome.",
        );
        let of = |tries: Tries| [("done", tries.done), ("failed", tries.failed)];
        all.each(Kind::Counter, requests, "outcome", of(self.registrations));
        let events = (
            "holdfast_hub_events_total",
            "Events told in the cluster, by outcome.",
        );
        all.each(Kind::Counter, events, "outcome", of(self.events));
    }
}
