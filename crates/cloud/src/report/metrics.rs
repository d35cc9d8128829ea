//! How a hub is doing, as Prometheus' text. What concerns single nodes is summed up: a hundred
//! thousand series are of no use to anybody. Each agent has its own numbers.

use std::collections::BTreeMap;

use host::metrics::{Kind, Metrics};

use super::{HubReport, Tries};
use crate::ledger::{NodeReport, by_class};

impl HubReport {
    /// The same as Prometheus' text.
    pub fn metrics(&self) -> String {
        let mut all = Metrics::default();
        self.sessions(&mut all);
        self.deliveries(&mut all);
        self.nodes(&mut all);
        self.cluster(&mut all);
        self.beside(&mut all);
        all.text()
    }

    /// Sessions, and how they ended.
    fn sessions(&self, all: &mut Metrics) {
        let ready = (
            "holdfast_hub_ready",
            "Whether the hub has begun and lets nodes in.",
        );
        all.one(Kind::Gauge, ready, u64::from(self.waits_for.is_none()));
        let sessions = ("holdfast_hub_sessions", "Sessions now.");
        all.one(Kind::Gauge, sessions, self.sessions as u64);
        let over = (
            "holdfast_hub_sessions_by_transport",
            "Sessions now, by what they go over.",
        );
        let mut transports = BTreeMap::from([("quic", 0), ("websocket", 0)]);
        for transport in self.nodes.iter().filter_map(|node| node.transport) {
            *transports.entry(transport).or_default() += 1;
        }
        all.each(Kind::Gauge, over, "transport", transports);
        let ends = (
            "holdfast_hub_session_ends_total",
            "Sessions that ended, by reason.",
        );
        let by_reason = self.session_ends.iter();
        let by_reason = by_reason.map(|(reason, count)| (*reason, *count));
        all.each(Kind::Counter, ends, "reason", by_reason);
    }

    /// What was sent, and what became of it.
    fn deliveries(&self, all: &mut Metrics) {
        let sent = (
            "holdfast_hub_sent_bytes_total",
            "Bytes of messages sent to nodes, by class.",
        );
        all.each(Kind::Counter, sent, "class", by_class(self.totals.sent));
        let received = (
            "holdfast_hub_received_bytes_total",
            "Bytes of messages from nodes, by class.",
        );
        let bytes = by_class(self.totals.received);
        all.each(Kind::Counter, received, "class", bytes);
        let deliveries = (
            "holdfast_hub_deliveries_total",
            "Deliveries that were sent, sent again, rejected by nodes and given up.",
        );
        let counts = self.totals.counts;
        let counts = [
            ("sent", counts.sent),
            ("again", counts.again),
            ("rejected", counts.rejected),
            ("void", counts.void),
        ];
        all.each(Kind::Counter, deliveries, "what", counts);
        let refreshed = (
            "holdfast_hub_refreshed_total",
            "Objects sent anew since nodes had other bytes of the same version.",
        );
        all.one(Kind::Counter, refreshed, self.totals.counts.refreshed);
        let in_flight = ("holdfast_hub_in_flight", "Deliveries on their way.");
        let flying = self.sum(|node| node.in_flight as u64);
        all.one(Kind::Gauge, in_flight, flying);
        let queued = (
            "holdfast_hub_queued",
            "Objects that nodes lack and that are not on their way.",
        );
        let waiting = self.sum(|node| node.queued.unwrap_or_default());
        all.one(Kind::Gauge, queued, waiting);
    }

    /// How nodes are.
    fn nodes(&self, all: &mut Metrics) {
        let states = ("holdfast_hub_nodes", "Nodes that came, by how they are.");
        let known = ["away", "sending", "differs", "lacks", "equal", "sent"];
        let mut counts: BTreeMap<_, u64> = known.into_iter().map(|state| (state, 0)).collect();
        for node in &self.nodes {
            *counts.entry(node.state()).or_default() += 1;
        }
        all.each(Kind::Gauge, states, "state", counts);
        let uneven = (
            "holdfast_hub_nodes_uneven",
            "Nodes that do not hold what they should.",
        );
        let differ = self.sum(|node| u64::from(node.even == Some(false)));
        all.one(Kind::Gauge, uneven, differ);
        let since = (
            "holdfast_hub_uneven_since_seconds",
            "Since when the first of them does not, as a Unix time; 0 if all do.",
        );
        let differ = self.nodes.iter().filter(|node| node.even == Some(false));
        let first = differ.filter_map(|node| node.even_since).min();
        let first = first.map_or(0, |first| first.as_second().unsigned_abs());
        all.one(Kind::Gauge, since, first);
        let aside = (
            "holdfast_hub_set_aside",
            "Objects that nodes could not take.",
        );
        all.one(Kind::Gauge, aside, self.sum(NodeReport::aside));
        let lacking = (
            "holdfast_hub_lacking",
            "Objects that are not on nodes' disks as they should be, of those not set aside.",
        );
        let counts = self.lacking.iter().map(|(of, it)| (of, it.objects));
        all.each(Kind::Gauge, lacking, "resource", counts);
        let lag = (
            "holdfast_hub_lag_seconds",
            "For how long the first of them is missing.",
        );
        let lags = self.lacking.iter().map(|(of, it)| (of, it.lag_seconds));
        all.each(Kind::Gauge, lag, "resource", lags);
    }

    /// What is known of the cluster.
    fn cluster(&self, all: &mut Metrics) {
        let objects = (
            "holdfast_hub_objects",
            "Objects of the cluster that are known.",
        );
        let counts = self.resources.iter();
        let counts = counts.map(|it| (&it.resource, it.objects as u64));
        all.each(Kind::Gauge, objects, "resource", counts);
        let version = (
            "holdfast_hub_version",
            "Up to which version of a resource everything is known.",
        );
        // One that is no number of Prometheus' is left out.
        let versions = self.resources.iter();
        let versions = versions
            .filter_map(|it| Some((&it.resource, it.version.as_ref()?.parse::<u64>().ok()?)));
        all.each(Kind::Gauge, version, "resource", versions);
        let frozen = (
            "holdfast_hub_frozen",
            "Whether a resource cannot be followed for now.",
        );
        let states = self.resources.iter();
        let states = states.map(|it| (&it.resource, u64::from(it.state != "complete")));
        all.each(Kind::Gauge, frozen, "resource", states);
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
        let tunnels = (
            "holdfast_hub_tunnels",
            "Requests of nodes that are on their way to the cluster.",
        );
        all.one(Kind::Gauge, tunnels, self.tunnels as u64);
        let tunnelled = (
            "holdfast_hub_tunnelled_total",
            "Requests of nodes to the cluster, by what became of them.",
        );
        let by_outcome = self.tunnelled.iter().map(|(what, count)| (*what, *count));
        all.each(Kind::Counter, tunnelled, "outcome", by_outcome);
        let reported = (
            "holdfast_hub_reports_total",
            "What nodes reported to be written into the cluster, by what became of it.",
        );
        let by_outcome = self.reported.iter().map(|(what, count)| (*what, *count));
        all.each(Kind::Counter, reported, "outcome", by_outcome);
        let overlooked = (
            "holdfast_hub_overlooked_total",
            "Happenings that there was no room to see to.",
        );
        all.one(Kind::Counter, overlooked, self.overlooked);
    }

    fn sum(&self, of: fn(&NodeReport) -> u64) -> u64 {
        self.nodes.iter().map(of).sum()
    }
}
