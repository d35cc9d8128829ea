//! What an agent says of itself, for people.

use std::fmt::Write;

use jiff::Timestamp;
use serde::Deserialize;

use super::{ago, bytes, table};

/// What an agent says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Agent {
    node: String,
    connected: bool,
    since: Option<Timestamp>,
    hub: Option<String>,
    trouble: Option<String>,
    sessions: u64,
    sent_bytes: u64,
    received_bytes: u64,
    resources: Vec<Held>,
}

#[derive(Deserialize)]
struct Held {
    resource: String,
    version: Option<String>,
    objects: u64,
    scopes: usize,
}

/// Tells of an agent.
pub(super) fn text(agent: &Agent, now: Timestamp) -> anyhow::Result<String> {
    let mut out = String::new();
    let since = ago(agent.since, now);
    match (&agent.hub, agent.connected) {
        (Some(hub), true) => {
            writeln!(out, "Node {}: connected to {hub} for {since}", agent.node)?;
        }
        _ => writeln!(out, "Node {}: without a hub for {since}", agent.node)?,
    }
    if let Some(trouble) = &agent.trouble {
        writeln!(out, "  {trouble}")?;
    }
    writeln!(
        out,
        "  {} sessions, {} sent, {} received\n",
        agent.sessions,
        bytes(agent.sent_bytes),
        bytes(agent.received_bytes)
    )?;
    let head = ["RESOURCE", "OBJECTS", "SCOPES", "VERSION"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for held in &agent.resources {
        rows.push(vec![
            held.resource.clone(),
            held.objects.to_string(),
            held.scopes.to_string(),
            held.version.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table(&mut out, &rows)?;
    Ok(out)
}
