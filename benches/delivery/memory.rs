//! Memory and disk: the hub for each pod, an agent for what it holds, and how soon it serves.

use std::net::SocketAddr;
use std::time::Duration;

use crate::ground::{Agent, Ground, eventually};
use crate::kinds::{PODS, SERVICES, make, pod, service};
use crate::table::{Goal, Several, Table};

const PODS_HELD: usize = 10_000;

pub(crate) async fn memory(table: &mut Table) {
    hub(table).await;
    agent(table).await;
}

/// A hub that holds the pods of a hundred nodes.
async fn hub(table: &mut Table) {
    let ground = Ground::start().await;
    let empty = ground.hub(&[]).await.program.memory(&ground).resident;
    make(&ground.server, (PODS, PODS_HELD), |number| {
        pod(
            &format!("pod-{number:05}"),
            &format!("node-{}", number % 100),
            &[],
        )
    })
    .await;
    let hub = ground.hub(&[]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let full = hub.program.memory(&ground).resident;
    let each = full.saturating_sub(empty) as f64 / PODS_HELD as f64;
    let what = "resident memory of a hub for each of 10,000 pods, after its first list";
    let measured = format!("{each:.0} B ({:.1} MB in all)", full as f64 / 1e6);
    table.goal(what, &measured, Goal::AtMost(each, 1024.0, "B"));
}

/// An agent with more and more on its disk.
async fn agent(table: &mut Table) {
    let ground = Ground::start().await;
    let hub = ground.hub(&[]).await;
    let mut made = 0;
    for (count, goal) in [(0, 12.0), (1_000, 20.0), (10_000, 48.0)] {
        let from = made;
        if count > made {
            make(&ground.server, (SERVICES, count - from), move |number| {
                service(from + number)
            })
            .await;
            made = count;
        }
        let synced = first(&ground, hub.address, count).await;
        let resident = synced.program.memory(&ground).resident as f64 / 1e6;
        let what = format!("an agent with {count} services, just received");
        let measured = format!("{resident:.1} MB");
        table.goal(&what, &measured, Goal::AtMost(resident, goal, "MB"));
        if count > 0 {
            written(table, &synced, count);
        }
        drop(synced);
        again(table, &ground, (count, goal)).await;
    }
}

/// A new node gets everything.
async fn first(ground: &Ground, hub: SocketAddr, count: usize) -> Agent {
    let agent = ground.agent(&format!("held-{count}"), hub).await;
    eventually(async || agent.holds("services").await.1 > count as u64).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    agent
}

/// What an agent wrote to disk for each object that it was sent first.
fn written(table: &mut Table, agent: &Agent, count: usize) {
    let each = |field| agent.program.number("io", field) as f64 / count as f64;
    let what = format!("bytes written for each of {count} services: by the agent, to the disk");
    let (by, to) = (each("wchar: "), each("write_bytes: "));
    table.row(&what, &format!("{by:.0} B, {to:.0} B"));
}

/// The agent starts again, with no hub that it could reach.
async fn again(table: &mut Table, ground: &Ground, (count, goal): (usize, f64)) {
    let nobody: SocketAddr = ([127, 0, 0, 1], 9).into();
    let (mut starts, mut sizes) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let agent = ground.agent(&format!("held-{count}"), nobody).await;
        assert!(agent.holds("services").await.1 > count as u64);
        starts.push(agent.program.ready_after.as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_secs(1)).await;
        sizes.push(agent.program.memory(ground).resident as f64 / 1e6);
    }
    let (starts, sizes) = (Several::new(starts), Several::new(sizes));
    let what = format!("an agent with {count} services, started again without a hub");
    let measured = format!("{:.1} MB", sizes.median());
    table.goal(&what, &measured, Goal::AtMost(sizes.median(), goal, "MB"));
    let what = format!("from its start to its first answer, {count} services (median, worst)");
    let measured = format!("{:.0} ms, {:.0} ms", starts.median(), starts.worst());
    table.goal(&what, &measured, Goal::AtMost(starts.worst(), 300.0, "ms"));
}
