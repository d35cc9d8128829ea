//! What is shown of an agent: its status, its metrics and what it holds, on a socket and a port.

use std::path::Path;
use std::sync::Arc;

use edge::keep::Keep;
use edge::local::Visits;
use edge::reports::Reports;
use edge::status::Status;
use edge::tunnel::Tunnel;
use host::glass::{Page, Port, Shown, Socket};
use host::{Clock, Tasks};
use wire::join::NodeName;

use crate::config::value::Listen;

/// Looks at once.
const LOOKS_MAX: u32 = 8;

/// Shows how the agent is doing.
pub(crate) async fn show(
    path: &Path,
    metrics: Option<Listen>,
    shown: Shown,
    tasks: &mut Tasks,
) -> anyhow::Result<()> {
    let crowd = tasks.crowd("looks", LOOKS_MAX);
    let shutdown = tasks.shutdown().clone();
    let socket = Socket::bind(path)?;
    let looks = socket.run(Arc::clone(&shown), crowd.clone(), shutdown.clone());
    tasks.add("status", looks);
    if let Some(Listen(address)) = metrics {
        let port = Port::bind(address).await?;
        let metrics: Shown = Arc::new(move |path| (path == "/metrics").then(|| shown(path))?);
        tasks.add("metrics", port.run(metrics, crowd, shutdown));
    }
    Ok(())
}

/// What is shown on the socket.
pub(crate) fn shown(
    (keep, reports): (Keep, Reports),
    (status, tunnel, visits): (Arc<Status>, Tunnel, Visits),
    node: &NodeName,
    clock: Clock,
) -> Shown {
    let node = node.to_string();
    let report = move |keep: &Keep| {
        let report = status.report(&node, keep.held(), clock.now());
        let report = report.with_reports(reports.status());
        report.with_visits(visits.now(), tunnel.open())
    };
    Arc::new(move |path| match path {
        "/status" => {
            let report = report(&keep);
            let body = serde_json::to_vec(&report).ok()?;
            Some(Page {
                content_type: "application/json",
                body,
            })
        }
        "/metrics" => Some(Page {
            content_type: "text/plain; version=0.0.4",
            body: report(&keep).metrics().into_bytes(),
        }),
        "/dump" => Some(Page {
            content_type: "text/plain",
            body: keep.dump().into_bytes(),
        }),
        _ => None,
    })
}
