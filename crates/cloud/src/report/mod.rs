//! How a hub is doing: what `holdfast status` shows, and the same as metrics.

mod metrics; // as numbers for programs

use std::collections::BTreeMap;

use object::Resource;
use serde::Serialize;

use crate::cache::State;
use crate::hub::Hub;
use crate::lag::{self, Behind};
use crate::ledger::{NodeReport, ResourceStanding, Totals};
use crate::talk::Desk;
use crate::tunnel::Tunnels;

/// Nodes of which it is looked what they lack when all are asked for: those that are away, or have
/// something on its way. Beyond it that is not told, since it takes the hub's time.
const LOOKS_MAX: usize = 2000;

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
    /// What was counted since it started.
    #[serde(skip)]
    pub totals: Totals,
    /// Objects that nodes lack, and for how many seconds the first of them; by resource.
    pub lacking: BTreeMap<String, Lacking>,
    /// Happenings that there was no room to see to.
    pub overlooked: u64,
    /// Nodes that are registered for their agents.
    pub registered: usize,
    /// Requests for nodes and their leases, and how many of them failed.
    pub registrations: Tries,
    /// Events that were told in the cluster, and how many were dropped.
    pub events: Tries,
    /// Requests of nodes that are on their way to the cluster.
    pub tunnels: usize,
    /// Requests of nodes so far, by what became of them.
    pub tunnelled: BTreeMap<&'static str, u64>,
    /// What nodes reported so far, by what became of it.
    pub reported: BTreeMap<&'static str, u64>,
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

/// What nodes lack of a resource.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Lacking {
    /// Objects, each counted for each node that lacks it.
    pub objects: u64,
    /// For how long the first of them is missing.
    pub lag_seconds: u64,
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
        let resources: Vec<ResourceReport> = resources.collect();
        drop(cache);
        let mut lacking = BTreeMap::new();
        let mut nodes = self.ledger().all();
        let busy = nodes.iter_mut().filter(|node| may_lack(node));
        for node in busy.take(LOOKS_MAX) {
            for standing in self.standings(node) {
                let all: &mut Lacking = lacking.entry(standing.resource).or_default();
                all.objects += standing.lacks;
                let lag = standing.lag_seconds.unwrap_or_default();
                all.lag_seconds = all.lag_seconds.max(lag);
            }
        }
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
            tunnels: self.tunnels().map_or(0, Tunnels::open),
            tunnelled: self.tunnels().map(Tunnels::outcomes).unwrap_or_default(),
            reported: self.replay().outcomes(),
            sessions: self.sessions().len(),
            session_ends: self.ledger().ends(),
            overlooked: self.ledger().overlooked_count(),
            totals: self.ledger().totals(),
            lacking,
            resources,
            nodes,
        }
    }

    /// How one node is doing, resource by resource.
    pub fn node_report(&self, node: &str) -> Option<NodeReport> {
        let mut report = self.ledger().node(node)?;
        report.resources = self.standings(&mut report);
        Some(report)
    }

    /// How a node stands with each resource. Its report is told what that amounts to.
    fn standings(&self, report: &mut NodeReport) -> Vec<ResourceStanding> {
        let node = &*report.node;
        let (held, wanted) = (self.ledger().all_held(node), self.wanted(node));
        let none = [].into();
        let mut all: Vec<ResourceStanding> = Vec::new();
        for resource in held.keys().chain(wanted.keys()) {
            if all.iter().any(|it| it.resource == resource.as_str()) {
                continue;
            }
            let wanted = wanted.get(resource).unwrap_or(&none);
            let found = match self.ledger().even_of(node, resource) {
                Some((true, _)) => lag::Found::Even,
                Some((false, _)) | None => lag::Found::Otherwise,
            };
            let both = (held.get(resource), &**wanted, found);
            let behind = lag::behind(resource, both, &self.cache().read(), &self.marks);
            let version = held.get(resource).map(|held| held.version.to_string());
            all.push(self.standing(report, resource, (version, behind)));
        }
        all.sort_by(|one, other| one.resource.cmp(&other.resource));
        let lacks = all.iter().map(|it| it.lacks).sum();
        let sent = self.ledger().objects_in_flight(node) as u64;
        report.lacks = Some(lacks);
        report.queued = Some(lacks.saturating_sub(sent));
        report.lag_seconds = all.iter().filter_map(|it| it.lag_seconds).max();
        let heard = self.ledger().heard(node);
        let silent = heard.map(|heard| self.times().now().saturating_sub(heard).as_secs());
        report.silent_seconds = silent.filter(|_| report.connected);
        all
    }

    fn standing(
        &self,
        report: &NodeReport,
        resource: &Resource,
        (version, behind): (Option<String>, Behind),
    ) -> ResourceStanding {
        let now = self.times().now();
        let lag = behind
            .since
            .map(|since| now.saturating_sub(since).as_secs());
        // What began with the session, or with what is on its way, lags since then.
        let wall = self.times().clock().wall();
        let begun = report.sending_since.or(report.since);
        let begun = begun.map(|begun| wall.as_second().saturating_sub(begun.as_second()));
        let begun = begun.and_then(|seconds| u64::try_from(seconds).ok());
        let even = self.ledger().even_of(&report.node, resource);
        let cache = self.cache().read();
        ResourceStanding {
            resource: resource.to_string(),
            version,
            cluster_version: cache.version(resource).map(ToString::to_string),
            objects: behind.objects,
            lacks: behind.lacks,
            lag_seconds: lag.or(begun).filter(|_| behind.lacks > 0),
            digest_equal: even.map(|(even, _)| even),
            digest_since: even.map(|(_, since)| since),
        }
    }
}

impl HubReport {
    /// Of a hub that has not begun.
    pub fn waiting(name: &str, waits_for: String) -> Self {
        Self {
            hub: name.to_owned(),
            waits_for: Some(waits_for),
            tunnels: 0,
            tunnelled: BTreeMap::new(),
            reported: BTreeMap::new(),
            sessions: 0,
            session_ends: BTreeMap::new(),
            totals: Totals::default(),
            lacking: BTreeMap::new(),
            overlooked: 0,
            registered: 0,
            registrations: Tries::default(),
            events: Tries::default(),
            resources: Vec::new(),
            nodes: Vec::new(),
        }
    }
}

/// Whether something may be missing on a node. What is connected and acknowledged everything was
/// sent everything.
fn may_lack(node: &NodeReport) -> bool {
    !node.connected || node.in_flight > 0 || node.even == Some(false) || node.versions.is_empty()
}
