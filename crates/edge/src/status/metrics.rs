//! How the agent is doing, as Prometheus' text.

use host::metrics::{Kind, Metrics};

use super::Report;

impl Report {
    /// The same as Prometheus' text.
    pub fn metrics(&self) -> String {
        let mut all = Metrics::default();
        self.link(&mut all);
        self.carried(&mut all);
        self.held(&mut all);
        self.visits(&mut all);
        all.text()
    }

    /// The session, and those before.
    fn link(&self, all: &mut Metrics) {
        let connected = (
            "holdfast_agent_connected",
            "Whether there is a session with a hub.",
        );
        all.one(Kind::Gauge, connected, u64::from(self.connected));
        let over = (
            "holdfast_agent_transport",
            "What the session goes over, if there is one.",
        );
        let transports = ["quic", "websocket"].map(|it| (it, self.transport == Some(it)));
        let transports = transports.map(|(it, is)| (it, u64::from(is)));
        all.each(Kind::Gauge, over, "transport", transports);
        let since = (
            "holdfast_agent_since_seconds",
            "Since when there is a session, or none, as a Unix time.",
        );
        let at = self.since.map_or(0, |at| at.as_second().unsigned_abs());
        all.one(Kind::Gauge, since, at);
        if let Some(silent) = self.silent_seconds {
            let heard = (
                "holdfast_agent_silent_seconds",
                "For how long nothing was heard of a hub.",
            );
            all.one(Kind::Gauge, heard, silent);
        }
        let sessions = ("holdfast_agent_sessions_total", "Sessions so far.");
        all.one(Kind::Counter, sessions, self.sessions);
        let ends = (
            "holdfast_agent_session_ends_total",
            "Sessions that ended, by reason.",
        );
        let by_reason = self.session_ends.iter();
        let by_reason = by_reason.map(|(reason, count)| (*reason, *count));
        all.each(Kind::Counter, ends, "reason", by_reason);
    }

    /// What went over links, and what became of it.
    fn carried(&self, all: &mut Metrics) {
        let sent = (
            "holdfast_agent_sent_bytes_total",
            "Bytes of messages sent, by class.",
        );
        let bytes = self.sent_by_class.iter().map(|(of, bytes)| (*of, *bytes));
        all.each(Kind::Counter, sent, "class", bytes);
        let received = (
            "holdfast_agent_received_bytes_total",
            "Bytes of messages received, by class.",
        );
        let bytes = self.received_by_class.iter();
        let bytes = bytes.map(|(of, bytes)| (*of, *bytes));
        all.each(Kind::Counter, received, "class", bytes);
        let deliveries = (
            "holdfast_agent_deliveries_total",
            "Deliveries that came, came again, were rejected and were given up by the hub.",
        );
        let counts = [
            ("received", self.deliveries.received),
            ("again", self.deliveries.again),
            ("rejected", self.rejected.values().sum()),
            ("void", self.deliveries.void),
        ];
        all.each(Kind::Counter, deliveries, "what", counts);
        let rejected = (
            "holdfast_agent_rejected_total",
            "Deliveries that could not be taken as they were, by reason.",
        );
        let by_reason = self.rejected.iter().map(|(why, count)| (*why, *count));
        all.each(Kind::Counter, rejected, "reason", by_reason);
        let waiting = (
            "holdfast_agent_waiting",
            "Pieces that came and are not on disk yet.",
        );
        all.one(Kind::Gauge, waiting, self.waiting as u64);
        let tunnelled = (
            "holdfast_agent_tunnelled_total",
            "Requests to the cluster, by what became of them.",
        );
        let by_outcome = self.tunnelled.iter().map(|(what, count)| (*what, *count));
        all.each(Kind::Counter, tunnelled, "outcome", by_outcome);
        let tunnels = (
            "holdfast_agent_tunnels",
            "Requests to the cluster that are on their way, and answers that still come.",
        );
        all.one(Kind::Gauge, tunnels, self.tunnels as u64);
        let waiting = (
            "holdfast_agent_reports_waiting",
            "What was written on the node and is not in the cluster yet.",
        );
        all.one(Kind::Gauge, waiting, self.reports.waiting as u64);
        let reports = (
            "holdfast_agent_reports_total",
            "What was written on the node for the cluster: taken, refused, sent again.",
        );
        let counts = [
            ("taken", self.reports.taken),
            ("refused", self.reports.refused),
            ("again", self.reports.sent_again),
        ];
        all.each(Kind::Counter, reports, "what", counts);
    }

    /// What clients have open.
    fn visits(&self, all: &mut Metrics) {
        let connections = (
            "holdfast_agent_api_connections",
            "Connections to the API of the node.",
        );
        all.one(Kind::Gauge, connections, self.api.connections as u64);
        let watches = (
            "holdfast_agent_api_watches",
            "Watches that the node answers.",
        );
        all.one(Kind::Gauge, watches, self.api.watches as u64);
    }

    /// What is held.
    fn held(&self, all: &mut Metrics) {
        let objects = ("holdfast_agent_objects", "Objects on disk.");
        let counts = self.resources.iter();
        let counts = counts.map(|held| (&held.resource, held.objects));
        all.each(Kind::Gauge, objects, "resource", counts);
        let version = (
            "holdfast_agent_version",
            "Up to which version of a resource everything is on disk.",
        );
        // One that is no number of Prometheus' is left out.
        let versions = self.resources.iter();
        let versions = versions
            .filter_map(|it| Some((&it.resource, it.version.as_ref()?.parse::<u64>().ok()?)));
        all.each(Kind::Gauge, version, "resource", versions);
    }
}
