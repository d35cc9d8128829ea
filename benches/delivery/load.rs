//! Many nodes: how many deliveries are acked in a second, how late a change is, and what it costs
//! that an ack means "on disk".

use std::sync::Arc;
use std::time::{Duration, Instant};

use store::disk::memory::MemoryDisk;
use store::disk::real::RealDisk;
use tokio::task::JoinSet;

use crate::generator::figures::{Latencies, Measured, Stretch};
use crate::ground::{Agent, Ground, Hub, eventually};
use crate::kinds::{Hand, PODS, SERVICES, change, make, many, pod, service};
use crate::light::{Crowd, Note, Place, node};
use crate::memory_store::MemoryStore;
use crate::table::{Goal, Table};

/// Services, each of which changes once.
const CHANGES: usize = 2_000;
/// Agents as programs of their own.
const AGENTS: usize = 40;
/// Agents in this process.
const LIGHTS: usize = 100;

/// Where the agents of a crowd store things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// In maps: an ack says that it was received.
    Maps,
    /// In a store that is on no disk.
    MemoryDisk,
    /// On a disk: an ack says that it is there.
    Disk,
}

impl Where {
    fn place(self, ground: &Ground, number: usize) -> Place {
        match self {
            Self::Maps => Place::Maps(MemoryStore::default()),
            Self::MemoryDisk => Place::store(Arc::new(MemoryDisk::default())),
            Self::Disk => {
                let folder = ground.folder.path().join(format!("light-{number}"));
                std::fs::create_dir_all(&folder).expect("a folder");
                Place::store(Arc::new(RealDisk::open(&folder).expect("a disk")))
            }
        }
    }
}

/// Forty agents as programs, 2,000 changes of services to each.
pub(crate) async fn fleet(table: &mut Table) {
    let ground = Ground::start().await;
    make(&ground.server, (SERVICES, CHANGES), service).await;
    let hub = ground.hub(&[]).await;
    let mut agents = Vec::new();
    for number in 0..AGENTS {
        agents.push(ground.agent(&node(number), hub.address).await);
    }
    for agent in &agents {
        eventually(async || agent.holds("services").await.1 >= CHANGES as u64).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let cpu = hub.program.cpu();
    let began = Instant::now();
    let version = change_all(&ground).await;
    let changed = began.elapsed().as_secs_f64();
    for agent in &agents {
        agent.reaches("services", version).await;
    }
    let took = began.elapsed().as_secs_f64();
    let cpu = (hub.program.cpu() - cpu).as_secs_f64() * 1e6 / (AGENTS * CHANGES) as f64;
    for agent in &agents {
        assert_eq!(sessions(agent).await, 1, "no session was lost");
    }
    let cluster = Hand::of(&ground.server).await.list(SERVICES).await;
    assert_eq!(agents[0].dump("services").await, cluster);
    let what = "40 agents as programs, 2,000 changes of services to each, all on disk";
    let measured = format!(
        "{took:.1} s ({changed:.1} s to make the changes; {:.0} deliveries/s, {cpu:.0} µs of the \
         hub's processor time each)",
        (AGENTS * CHANGES) as f64 / took
    );
    table.goal(what, &measured, Goal::AtMost(took, 10.0, "s"));
}

async fn sessions(agent: &Agent) -> u64 {
    let status = agent.status().await;
    status["sessions"].as_u64().unwrap_or(0)
}

/// Changes each service once. Returns the version of a last change.
async fn change_all(ground: &Ground) -> u64 {
    many(&ground.server, CHANGES - 1, |number| {
        change(&format!("{SERVICES}/service-{:05}", number + 1), 1)
    })
    .await;
    let mut hand = Hand::of(&ground.server).await;
    hand.change(&format!("{SERVICES}/service-00000"), 1).await
}

/// A hundred agents in one process: acked deliveries in a second.
pub(crate) async fn rate(table: &mut Table) {
    let maps = throughput(Where::Maps, LIGHTS).await;
    let what = format!("{LIGHTS} sessions of in-memory agents, 2,000 changes to each, all acked");
    let goal = Goal::AtLeast(maps.per_second(), 20_000.0, "deliveries/s");
    table.goal(&what, &told(&maps), goal);
    let disk = throughput(Where::Disk, LIGHTS).await;
    let what = format!("the same with {LIGHTS} stores on one real disk, each ack after its sync");
    table.row(&what, &told(&disk));
}

fn told(measured: &Measured) -> String {
    format!(
        "{:.0} deliveries/s, {:.1} µs of the hub's processor time each (hub {:.2} cores, agents \
         and changes {:.2})",
        measured.per_second(),
        measured.cpu_each(),
        measured.cores(),
        measured.own_cores()
    )
}

/// So many agents get 2,000 changes each. One count is one change that an agent stored and acked.
async fn throughput(place: Where, count: usize) -> Measured {
    let ground = Ground::start().await;
    make(&ground.server, (SERVICES, CHANGES), service).await;
    let hub = ground.hub(&["--window", window(place)]).await;
    let crowd = connected(&ground, &hub, (place, count), Note::Nothing).await;
    // Each has everything when it has all services, and the one that is always there.
    let first = (count * (CHANGES + 1)) as u64;
    eventually(async || crowd.objects() >= first).await;
    settled(&hub).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = crowd.objects();
    let server = hub.program.server(&ground);
    let stretch = Stretch::start(&server);
    change_all(&ground).await;
    let wanted = before + (count * CHANGES) as u64;
    eventually(async || crowd.objects() >= wanted).await;
    settled(&hub).await;
    let measured = stretch.end(&server, (crowd.objects() - before) as usize);
    assert_eq!(measured.count, count * CHANGES, "each once");
    assert_eq!(crowd.lost(), 0, "no session was lost");
    measured
}

/// Who waits for nothing lets as much be on its way as an agent takes.
fn window(place: Where) -> &'static str {
    match place {
        Where::Maps => "4096",
        Where::MemoryDisk | Where::Disk => "1024",
    }
}

async fn connected(
    ground: &Ground,
    hub: &Hub,
    (place, count): (Where, usize),
    note: Note,
) -> Crowd {
    let places = (0..count).map(|number| place.place(ground, number));
    let mut crowd = Crowd::new(ground, hub.address, note, places);
    crowd.connect(64).await;
    crowd
}

/// Waits until everything that was sent is acked.
async fn settled(hub: &Hub) {
    eventually(async || {
        let status = hub.status().await;
        let nodes = status["nodes"].as_array().expect("nodes");
        nodes.iter().all(|node| node["inFlight"] == 0)
    })
    .await;
}

/// Changes in a second.
const PACE: u32 = 200;
/// For how long.
const LASTING: Duration = Duration::from_secs(20);

/// A thousand sessions, 200 changes of pods in a second, each to one node.
pub(crate) async fn latency(table: &mut Table) {
    let latencies = lateness(Where::Disk, 1_000).await;
    let (half, most) = latencies.p50_and_p99();
    let what = "1,000 sessions, 200 changes of pods a second: from the request at the API until \
        the change is on the node's disk and its ack sent (p50, p99)";
    table.row(what, &format!("{half:.1} ms, {most:.1} ms"));
}

async fn lateness(place: Where, count: usize) -> Latencies {
    let ground = Ground::start().await;
    make(&ground.server, (PODS, count), |number| {
        pod(&format!("pod-{number:05}"), &node(number), &[])
    })
    .await;
    let hub = ground.hub(&["--window", window(place)]).await;
    let crowd = connected(&ground, &hub, (place, count), Note::Acks).await;
    eventually(async || crowd.objects() >= 2 * count as u64).await;
    settled(&hub).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let sent = change_at_pace(&ground, count).await;
    let mut acked = Vec::new();
    eventually(async || {
        let tally = crowd.tally.acked.as_ref().expect("acks are noted");
        acked = tally.lock().expect("nobody panicked").clone();
        acked.len() >= sent.len()
    })
    .await;
    assert_eq!(crowd.lost(), 0, "no session was lost");
    let when: std::collections::HashMap<u64, Instant> = acked.into_iter().collect();
    let mut latencies = Latencies::default();
    for (version, at) in sent {
        // A change that was overtaken by a newer one of its object has none.
        if let Some(there) = when.get(&version) {
            latencies.add(*there - at);
        }
    }
    latencies
}

/// Changes pods in turn. Returns the version that each change made, and when it was asked for.
async fn change_at_pace(ground: &Ground, pods: usize) -> Vec<(u64, Instant)> {
    const HANDS: u32 = 8;
    let began = tokio::time::Instant::now();
    let mut working = JoinSet::new();
    for first in 0..HANDS {
        let mut hand = Hand::of(&ground.server).await;
        working.spawn(async move {
            let mut sent = Vec::new();
            let mut number = first;
            loop {
                let due = began + Duration::from_secs(1) * number / PACE;
                if due >= began + LASTING {
                    return sent;
                }
                tokio::time::sleep_until(due).await;
                let name = format!("{PODS}/pod-{:05}", number as usize % pods);
                let asked = Instant::now();
                let version = hand.change(&name, number as usize + 1).await;
                sent.push((version, asked));
                number += HANDS;
            }
        });
    }
    working.join_all().await.concat()
}

/// The cost of reliability: the same load where an ack means less.
pub(crate) async fn cost(table: &mut Table) {
    for (place, words) in [
        (Where::Disk, "acks after the sync of a real disk"),
        (Where::MemoryDisk, "acks, the store in memory, no sync"),
        (
            Where::Maps,
            "fire and forget: acked on receipt, before anything is stored",
        ),
    ] {
        let rate = throughput(place, AGENTS).await;
        let (half, most) = lateness(place, AGENTS).await.p50_and_p99();
        let measured = format!(
            "{:.0} deliveries/s, {:.1} µs of the hub's processor time each; a change after \
             {half:.1} / {most:.1} ms (p50 / p99)",
            rate.per_second(),
            rate.cpu_each()
        );
        table.row(&format!("{AGENTS} sessions, {words}"), &measured);
    }
}
