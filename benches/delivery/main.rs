//! What delivery costs and how fast it is: bytes on a link, time over a far one, sessions, memory.
//!
//! `just bench-delivery` runs all parts, `just bench-delivery sync cut` only these.
//! `HOLDFAST_SESSIONS` says how many sessions the part of that name opens, and with
//! `HOLDFAST_LEASES` their nodes are registered in the cluster.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a client stands outside the program: it has its own sockets and clock"
)]
#![allow(
    dead_code,
    reason = "the generator has what either benchmark needs, and each takes its part"
)]

#[path = "../../tests/load/client.rs"]
mod client; // connections
mod counter; // requests at the cluster
#[path = "../../tests/load/event.rs"]
mod event; // what is read of an event
mod far; // a node that is far away
#[path = "../generator/mod.rs"]
mod generator; // the load, and what it took
mod ground; // a cluster, hubs and agents
mod kinds; // services, pods and config maps
mod light; // many agents in this process
mod load; // many nodes
mod memory; // memory and disk
mod memory_store; // a node's store in maps
#[path = "../../tests/load/objects.rs"]
mod objects; // config maps of a known size
mod proxy; // a link that is far away
#[path = "../../tests/load/server.rs"]
mod server; // time and memory that a server takes
mod sessions; // thousands of them
mod table; // rows
mod words; // what goes over a link

use generator::parts::Parts;
use table::Table;

/// The parts, in the order in which they run.
const PARTS: [&str; 12] = [
    "sync",
    "behind",
    "cut",
    "change",
    "idle",
    "reconnect",
    "fleet",
    "rate",
    "latency",
    "sessions",
    "memory",
    "cost",
];

#[tokio::main(worker_threads = 2)]
async fn main() {
    let parts = Parts::asked(&PARTS);
    let mut table = Table::new();
    for part in PARTS {
        if parts.wanted(part) {
            Box::pin(run(part, &mut table)).await;
        }
    }
}

async fn run(part: &str, table: &mut Table) {
    match part {
        "sync" => far::sync(table).await,
        "behind" => far::behind(table).await,
        "cut" => far::cut(table).await,
        "change" => words::change(table).await,
        "idle" => words::idle(table).await,
        "reconnect" => words::reconnect(table).await,
        "fleet" => load::fleet(table).await,
        "rate" => load::rate(table).await,
        "latency" => load::latency(table).await,
        "sessions" => sessions::sessions(table).await,
        "memory" => memory::memory(table).await,
        "cost" => load::cost(table).await,
        _ => unreachable!("words were checked"),
    }
}
