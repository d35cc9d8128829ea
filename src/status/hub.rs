//! What a hub says of its nodes, for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use serde::Deserialize;

use super::{ago, bytes, table};

/// What a hub says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hub {
    hub: String,
    waits_for: Option<String>,
    sessions: usize,
    resources: Vec<Resource>,
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: String,
    version: Option<String>,
    objects: usize,
    state: String,
    trouble: Option<String>,
}

/// What a hub says of a node.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    node: String,
    connected: bool,
    since: Option<Timestamp>,
    ended: Option<String>,
    session: Option<u64>,
    remote: Option<String>,
    program: Option<String>,
    sessions: u64,
    received_bytes: u64,
    sent_bytes: u64,
    even: Option<bool>,
    even_since: Option<Timestamp>,
    in_flight: usize,
    sent: u64,
    again: u64,
    rejected: u64,
    void: u64,
    versions: BTreeMap<String, String>,
    set_aside: Vec<Aside>,
    set_aside_more: u64,
}

#[derive(Deserialize)]
struct Aside {
    resource: String,
    name: String,
    why: String,
}

impl Node {
    fn link(&self) -> &'static str {
        match self.connected {
            true => "connected",
            false => "away",
        }
    }

    /// Whether it holds what it should, in a word.
    fn sync(&self) -> &'static str {
        match (self.even, self.in_flight) {
            _ if !self.connected => "unknown",
            (_, 1..) => "sending",
            (Some(false), _) => "differs",
            _ if !self.set_aside.is_empty() => "lacks",
            (Some(true), _) => "equal",
            (None, _) => "sent",
        }
    }
}

/// Tells of a hub and all its nodes.
pub(super) fn all(out: &mut String, hub: &Hub, now: Timestamp) -> std::fmt::Result {
    if let Some(waits_for) = &hub.waits_for {
        return writeln!(
            out,
            "Hub {} has not begun: it waits for {waits_for}",
            hub.hub
        );
    }
    writeln!(out, "Hub {}: {} sessions", hub.hub, hub.sessions)?;
    let trouble = hub.resources.iter().filter(|it| it.state != "complete");
    for resource in trouble {
        let why = resource.trouble.as_deref().unwrap_or("not listed yet");
        writeln!(out, "  {} is {}: {why}", resource.resource, resource.state)?;
    }
    let objects: usize = hub.resources.iter().map(|it| it.objects).sum();
    let newest = hub.resources.iter().filter_map(|it| it.version.as_ref());
    let newest = newest.max_by_key(|version| (version.len(), (*version).clone()));
    let newest = newest.map_or("-", String::as_str);
    writeln!(out, "  {objects} objects, up to version {newest}\n")?;
    let head = [
        "NODE", "LINK", "SINCE", "SYNC", "FLIGHT", "ASIDE", "SENT", "RECEIVED",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for node in &hub.nodes {
        rows.push(vec![
            node.node.clone(),
            node.link().to_owned(),
            ago(node.since, now),
            node.sync().to_owned(),
            node.in_flight.to_string(),
            (node.set_aside.len() as u64 + node.set_aside_more).to_string(),
            bytes(node.sent_bytes),
            bytes(node.received_bytes),
        ]);
    }
    table(out, &rows)
}

/// Tells of one node.
pub(super) fn node(out: &mut String, node: &Node, now: Timestamp) -> std::fmt::Result {
    writeln!(
        out,
        "Node {}: {} for {}",
        node.node,
        node.link(),
        ago(node.since, now)
    )?;
    let rows: Vec<Vec<String>> = [
        ("session", node.session.map(|number| number.to_string())),
        ("from", node.remote.clone()),
        ("agent", node.program.clone()),
        ("last end", node.ended.clone()),
        ("sessions", Some(node.sessions.to_string())),
        ("sync", Some(sync(node, now))),
        ("in flight", Some(node.in_flight.to_string())),
        ("deliveries", Some(deliveries(node))),
        ("sent", Some(bytes(node.sent_bytes))),
        ("received", Some(bytes(node.received_bytes))),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(vec![format!("  {name}"), value?]))
    .collect();
    table(out, &rows)?;
    writeln!(out, "\nOn its disk:")?;
    let versions = node.versions.iter();
    let rows: Vec<Vec<String>> = versions
        .map(|(resource, version)| vec![format!("  {resource}"), version.clone()])
        .collect();
    table(out, &rows)?;
    if !node.set_aside.is_empty() {
        writeln!(out, "\nSet aside:")?;
        for aside in &node.set_aside {
            writeln!(out, "  {} {}: {}", aside.resource, aside.name, aside.why)?;
        }
        if node.set_aside_more > 0 {
            writeln!(out, "  and {} more", node.set_aside_more)?;
        }
    }
    Ok(())
}

fn sync(node: &Node, now: Timestamp) -> String {
    let since = node.even_since.map(|since| ago(Some(since), now));
    match since {
        Some(since) => format!("{} (compared equal or not for {since})", node.sync()),
        None => node.sync().to_owned(),
    }
}

fn deliveries(node: &Node) -> String {
    let Node {
        sent,
        again,
        rejected,
        void,
        ..
    } = node;
    format!("{sent} sent, {again} again, {rejected} rejected, {void} given up")
}
