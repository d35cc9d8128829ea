//! What an agent says of itself, for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use serde::Deserialize;

use super::{ago, by_class, bytes, seconds, table};

/// What an agent says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Agent {
    node: String,
    connected: bool,
    since: Option<Timestamp>,
    hub: Option<String>,
    transport: Option<String>,
    session: Option<u64>,
    silent_seconds: Option<u64>,
    trouble: Option<String>,
    certificate_ends: Option<Timestamp>,
    sessions: u64,
    sent_bytes: u64,
    received_bytes: u64,
    sent_by_class: BTreeMap<String, u64>,
    received_by_class: BTreeMap<String, u64>,
    deliveries: Deliveries,
    rejected: BTreeMap<String, u64>,
    waiting: usize,
    tunnels: usize,
    api: Api,
    reports: Reports,
    resources: Vec<Held>,
}

#[derive(Deserialize)]
struct Reports {
    waiting: usize,
    refused: u64,
}

#[derive(Deserialize)]
struct Api {
    connections: usize,
    watches: usize,
}

#[derive(Deserialize)]
struct Deliveries {
    received: u64,
    again: u64,
    void: u64,
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
            let over = agent.transport.as_deref().unwrap_or("-");
            let node = &agent.node;
            writeln!(
                out,
                "Node {node}: connected to {hub} for {since}, over {over}"
            )?;
        }
        _ if agent.since.is_none() => {
            writeln!(out, "Node {}: without a hub since it started", agent.node)?;
        }
        _ => writeln!(out, "Node {}: without a hub for {since}", agent.node)?,
    }
    if let Some(trouble) = &agent.trouble {
        writeln!(out, "  {trouble}")?;
    }
    table(&mut out, &facts(agent, now))?;
    let objects: u64 = agent.resources.iter().map(|held| held.objects).sum();
    writeln!(out, "\nOn its disk, {objects} objects:")?;
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

fn facts(agent: &Agent, now: Timestamp) -> Vec<Vec<String>> {
    let heard = agent.silent_seconds;
    let heard = heard.map(|silent| format!("{} ago", seconds(silent)));
    let certificate = agent.certificate_ends.map(|ends| match ends > now {
        true => format!("ends in {}", ago(Some(now), ends)),
        false => format!("ended {} ago", ago(Some(ends), now)),
    });
    let Deliveries {
        received,
        again,
        void,
    } = agent.deliveries;
    let rejected: u64 = agent.rejected.values().sum();
    let deliveries = format!(
        "{received} came, {again} again, {rejected} rejected, {void} given up by the hub, {} wait \
         for the disk",
        agent.waiting
    );
    let Api {
        connections,
        watches,
    } = agent.api;
    let api = format!(
        "{connections} connections, {watches} watches, {} requests to the cluster under way",
        agent.tunnels
    );
    let Reports { waiting, refused } = agent.reports;
    let reports = format!("{waiting} wait for the cluster, {refused} refused");
    let told = |total, classes| format!("{} ({})", bytes(total), by_class(classes));
    [
        ("session", agent.session.map(|number| number.to_string())),
        ("sessions", Some(format!("{} so far", agent.sessions))),
        ("heard", heard),
        ("certificate", certificate),
        ("deliveries", Some(deliveries)),
        ("api", Some(api)),
        ("reports", Some(reports)),
        ("sent", Some(told(agent.sent_bytes, &agent.sent_by_class))),
        (
            "received",
            Some(told(agent.received_bytes, &agent.received_by_class)),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(vec![format!("  {name}"), value?]))
    .collect()
}
