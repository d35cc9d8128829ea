//! The API of the real program over TLS: what each kind of request costs. Prints a table.
//!
//! Client and program share the machine, so the rate is that of both; the processor time is the
//! program's alone. `cargo bench --bench api -- get list` runs only these.

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
#[path = "../../tests/load/cluster.rs"]
mod cluster; // the program, from outside
#[path = "../../tests/load/event.rs"]
mod event; // what is read of an event
#[path = "../generator/mod.rs"]
mod generator; // the load, and what it took
#[path = "../../tests/load/objects.rs"]
mod objects; // what the load is made of
mod requests; // get, list, create, update
#[path = "../../tests/load/server.rs"]
mod server; // time and memory that a server takes
mod table; // rows
mod watches; // one change to many watchers

use cluster::{Cluster, Storage};
use generator::parts::Parts;
use table::Table;

/// The parts, in the order in which they run.
const PARTS: [&str; 8] = [
    "idle", "create", "get", "list", "update", "fanout", "own", "memory",
];

#[tokio::main(worker_threads = 2)]
async fn main() {
    let parts = Parts::asked(&PARTS);
    let cluster = Cluster::start(Storage::Disk);
    let mut table = Table::new();
    // What is made by one part, three others read.
    let needs_objects = PARTS[2..5].iter().any(|part| parts.named(part));
    for part in PARTS {
        if parts.wanted(part) || (part == "create" && needs_objects) {
            run(part, &cluster, &mut table).await;
        }
    }
}

async fn run(part: &str, cluster: &Cluster, table: &mut Table) {
    match part {
        "idle" => requests::idle(cluster, table).await,
        "create" => requests::create(cluster, table).await,
        "get" => requests::get(cluster, table).await,
        "list" => requests::list(cluster, table).await,
        "update" => requests::update(cluster, table).await,
        "fanout" => watches::fanout(cluster, table).await,
        "own" => watches::own_objects(cluster, table).await,
        "memory" => requests::memory(table).await,
        _ => unreachable!("words were checked"),
    }
}
