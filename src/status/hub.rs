//! What a hub says of its nodes, for people.

use std::fmt::Write;

use jiff::Timestamp;
use serde::Deserialize;

use super::node::Node;
use super::{ago, bytes, seconds, table};

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
        "NODE", "LINK", "SINCE", "SYNC", "LACKS", "LAG", "FLIGHT", "ASIDE", "SENT", "RECEIVED",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(hub.nodes.iter().map(|node| row(node, now)));
    table(out, &rows)?;
    let trouble: Vec<String> = hub.nodes.iter().filter_map(|it| it.trouble(now)).collect();
    if !trouble.is_empty() {
        writeln!(out)?;
    }
    for words in trouble.iter().take(TROUBLE_MAX) {
        writeln!(out, "{words}")?;
    }
    match trouble.len().saturating_sub(TROUBLE_MAX) {
        0 => Ok(()),
        more => writeln!(out, "and {more} more"),
    }
}

/// Nodes whose trouble is told in words. Of more, the table tells.
const TROUBLE_MAX: usize = 10;

fn row(node: &Node, now: Timestamp) -> Vec<String> {
    // Where nobody looked, everything was sent and acknowledged.
    let lacks = node.lacks.unwrap_or_default();
    vec![
        node.node.clone(),
        node.link().to_owned(),
        ago(node.since, now),
        node.sync().to_owned(),
        lacks.to_string(),
        node.lag_seconds.map_or_else(|| "-".to_owned(), seconds),
        node.in_flight.to_string(),
        node.aside().to_string(),
        bytes(node.sent_bytes),
        bytes(node.received_bytes),
    ]
}
