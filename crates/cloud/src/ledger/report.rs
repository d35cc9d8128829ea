//! How a node is doing, as it is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use wire::frame::{Class, Weight};

use super::Entry;

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
    /// Over what: `websocket` or `quic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<&'static str>,
    /// The agent's program and release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<str>>,
    /// For how long nothing was heard of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_seconds: Option<u64>,
    /// Sessions so far.
    pub sessions: u64,
    /// Bytes of messages received from it.
    pub received_bytes: u64,
    /// Bytes of messages sent to it.
    pub sent_bytes: u64,
    /// The bytes received, by what they were for.
    pub received_by_class: BTreeMap<&'static str, u64>,
    /// The bytes sent, by what they were for.
    pub sent_by_class: BTreeMap<&'static str, u64>,
    /// Whether what it holds is what it should hold, when that was last compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub even: Option<bool>,
    /// Since when it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub even_since: Option<Timestamp>,
    /// Deliveries on their way.
    pub in_flight: usize,
    /// Since when there is always something on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sending_since: Option<Timestamp>,
    /// Objects that are not on its disk as they should be; nothing if nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<u64>,
    /// Of these, objects that are not on their way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<u64>,
    /// For how long it lacks the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_seconds: Option<u64>,
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
    /// How it stands with each resource; only where one node is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceStanding>,
    /// Objects that it could not take, and why.
    pub set_aside: Vec<Aside>,
    /// How many more of them there are.
    pub set_aside_more: u64,
}

/// How a node stands with a resource.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceStanding {
    /// The resource.
    pub resource: String,
    /// The version that is on its disk.
    pub version: Option<String>,
    /// The version of the cluster, as far as this hub knows it.
    pub cluster_version: Option<String>,
    /// Objects on its disk.
    pub objects: Option<u64>,
    /// Objects that are not there as they should be.
    pub lacks: u64,
    /// For how long the first of them is not.
    pub lag_seconds: Option<u64>,
    /// Whether it holds of this resource what it should, when that was last compared.
    pub digest_equal: Option<bool>,
    /// Since when it is so.
    pub digest_since: Option<Timestamp>,
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

impl NodeReport {
    /// How it is, in a word.
    pub fn state(&self) -> &'static str {
        match (self.even, self.in_flight) {
            _ if !self.connected => "away",
            (_, 1..) => "sending",
            (Some(false), _) => "differs",
            _ if !self.set_aside.is_empty() => "lacks",
            (Some(true), _) => "equal",
            (None, _) => "sent",
        }
    }

    /// Objects that it could not take.
    pub fn aside(&self) -> u64 {
        self.set_aside.len() as u64 + self.set_aside_more
    }
}

impl Entry {
    pub(super) fn report(&self, node: &Arc<str>) -> NodeReport {
        let session = self.session.as_ref();
        let held = self.held.iter();
        let aside = self.aside.iter();
        NodeReport {
            node: Arc::clone(node),
            connected: session.is_some(),
            since: session.map(|session| session.since).or(self.left),
            ended: self.last_end.clone(),
            session: session.map(|session| session.number),
            remote: session.map(|session| session.remote.clone()),
            transport: session.map(|session| session.transport),
            program: session.map(|session| session.program.clone()),
            silent_seconds: None,
            sessions: self.sessions,
            received_bytes: self.received.total(),
            sent_bytes: self.sent_bytes.total(),
            received_by_class: by_class(self.received),
            sent_by_class: by_class(self.sent_bytes),
            even: self.even.map(|(even, _)| even),
            even_since: self.even.map(|(_, since)| since),
            in_flight: self.in_flight,
            sending_since: self.sending_since,
            lacks: None,
            queued: None,
            lag_seconds: None,
            sent: self.counts.sent,
            again: self.counts.again,
            rejected: self.counts.rejected,
            void: self.counts.void,
            refreshed: self.counts.refreshed,
            in_vain: self.counts.in_vain,
            versions: held
                .map(|(resource, held)| (resource.to_string(), held.version.to_string()))
                .collect(),
            resources: Vec::new(),
            set_aside: aside
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

/// Bytes as they are told.
pub fn by_class(weight: Weight) -> BTreeMap<&'static str, u64> {
    let all = Class::ALL.into_iter();
    all.map(|class| (class.as_str(), weight.get(class)))
        .collect()
}
