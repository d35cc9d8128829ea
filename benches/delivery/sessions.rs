//! Thousands of sessions on one hub: what each costs while nothing happens, and what happens when
//! all are cut at once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::counter::Counter;
use crate::ground::{Ground, Hub, eventually};
use crate::kinds::{SERVICES, make, service};
use crate::light::{Crowd, Note, Place, leases_are_on};
use crate::memory_store::MemoryStore;
use crate::table::{Goal, Table};

/// Sessions, unless `HOLDFAST_SESSIONS` says otherwise.
const SESSIONS: usize = 9_000;
/// How many agents come at once when the crowd is built up.
const AT_ONCE: usize = 200;
/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(60);

pub(crate) async fn sessions(table: &mut Table) {
    let said = std::env::var("HOLDFAST_SESSIONS").ok();
    let count = said
        .and_then(|count| count.parse().ok())
        .unwrap_or(SESSIONS);
    let ground = Ground::start().await;
    make(&ground.server, (SERVICES, 20), service).await;
    let counter = Counter::before(&ground).await;
    let hub = ground.hub_of(&counter.kubeconfig, &[]).await;
    let empty = hub.program.memory(&ground);
    let places = (0..count).map(|_| Place::Maps(MemoryStore::default()));
    let mut crowd = Crowd::new(&ground, hub.address, Note::Nothing, places);
    let began = Instant::now();
    crowd.connect(AT_ONCE).await;
    let took = began.elapsed().as_secs_f64();
    table.row(
        &format!("{count} sessions, 20 services each, built up {AT_ONCE} at once"),
        &format!("{took:.0} s, {:.0} sessions/s", count as f64 / took),
    );
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = hub.program.memory(&ground);
    let each = (before.resident - empty.resident) as f64 / count as f64 / 1024.0;
    let what = format!("resident memory of the hub for each of {count} idle sessions");
    let measured = format!("{each:.1} KiB ({before})");
    table.goal(&what, &measured, Goal::AtMost(each, 16.0, "KiB"));
    let cpu = hub.program.cpu();
    tokio::time::sleep(IDLE).await;
    let cpu = (hub.program.cpu() - cpu).as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    let leases = if leases_are_on() { "on" } else { "off" };
    let what = format!(
        "the hub's processor time while nothing happens (heartbeats every 30 s, leases {leases})"
    );
    table.row(&what, &format!("{cpu:.1} % of a core"));
    counter.take();
    cut(table, (&ground, &hub), (&mut crowd, count), &counter).await;
}

/// All are cut at once.
async fn cut(
    table: &mut Table,
    (ground, hub): (&Ground, &Hub),
    (crowd, count): (&mut Crowd, usize),
    counter: &Counter,
) {
    let before = hub.program.memory(ground).resident;
    let cut = Instant::now();
    crowd.cut();
    eventually(async || crowd.connected() < count as u64 / 2).await;
    let (mut most, mut peak) = (None, before);
    loop {
        peak = peak.max(hub.program.memory(ground).resident);
        let connected = crowd.connected();
        if most.is_none() && connected * 100 >= count as u64 * 99 {
            most = Some(cut.elapsed().as_secs_f64());
        }
        if connected >= count as u64 {
            break;
        }
        assert!(
            cut.elapsed() < Duration::from_secs(600),
            "not all come back"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let all = cut.elapsed().as_secs_f64();
    let most = most.unwrap_or(all);
    let what = "all cut at once: 99 % are back, all are back";
    let measured = format!("{most:.1} s, {all:.1} s");
    table.goal(what, &measured, Goal::AtMost(all, 120.0, "s"));
    tokio::time::sleep(Duration::from_secs(10)).await;
    peak = peak.max(hub.program.memory(ground).resident);
    let ratio = peak as f64 / before as f64;
    let measured = format!("{ratio:.2} × ({:.0} MB)", peak as f64 / 1e6);
    let goal = Goal::AtMost(ratio, 1.3, "×");
    table.goal("the hub's memory meanwhile, at most", &measured, goal);
    let seen = counter.take();
    let lists = most_of_one(&seen, "GET");
    let what = "lists of one resource at the API server meanwhile, at most";
    table.goal(
        what,
        &lists.to_string(),
        Goal::AtMost(lists as f64, 1.0, ""),
    );
    let told: Vec<String> = folded(&seen)
        .iter()
        .map(|(request, count)| format!("{count} × {request}"))
        .collect();
    table.row("all requests meanwhile", &told.join(", "));
    table.row("attempts that failed", &crowd.lost().to_string());
}

/// Requests without the names of objects.
fn folded(seen: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let mut folded = BTreeMap::new();
    for (request, count) in seen {
        let (path, query) = request.split_once('?').unwrap_or((request, ""));
        let mut parts: Vec<&str> = path.split('/').collect();
        // "GET ", "api", "v1" or "GET ", "apis", group, version; then perhaps a namespace.
        let mut kind = if parts.get(1) == Some(&"api") { 3 } else { 4 };
        if parts.get(kind) == Some(&"namespaces") && parts.len() > kind + 2 {
            kind += 2;
        }
        if let Some(name) = parts.get_mut(kind + 1) {
            *name = "…";
        }
        let watch = if query.contains("watch=") {
            " (watch)"
        } else {
            ""
        };
        *folded.entry(parts.join("/") + watch).or_default() += count;
    }
    folded
}

/// How often one and the same collection was listed.
fn most_of_one(seen: &BTreeMap<String, usize>, method: &str) -> usize {
    let lists = seen.iter().filter(|(request, _)| {
        let path = request.strip_prefix(method).unwrap_or_default();
        path.trim().split('/').count() <= 5 && !path.is_empty()
    });
    lists.map(|(_, count)| *count).max().unwrap_or(0)
}
