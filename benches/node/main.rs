//! The API of a node beside a real kube-apiserver, under the same clients. Prints tables.
//!
//! A kube-apiserver with etcd, a hub and an agent run at once on this machine; both APIs are
//! measured in turn, round by round. `just bench-node` runs all parts, `just bench-node read` only
//! this; with `quick` it takes a minute or two, and its figures say little.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a client stands outside the program: it has its own sockets and clock"
)]
#![allow(dead_code, reason = "what other benchmarks have is taken in part")]

#[path = "../../tests/load/client.rs"]
mod client; // connections
mod component; // what lists and watches as Kubernetes' own programs do
mod day; // bytes over the link for a day of a node
#[path = "../../tests/load/event.rs"]
mod event; // what is read of an event
#[path = "../generator/mod.rs"]
mod generator; // the load, and what it took
#[path = "../delivery/ground.rs"]
mod ground; // a cluster, hubs and agents
#[path = "../delivery/kinds.rs"]
mod kinds; // services, pods and config maps
mod kubelet; // what a kubelet writes
mod message; // what is read of an answer, in JSON or protobuf
#[path = "../../tests/load/objects.rs"]
mod objects; // config maps of a known size
#[path = "../delivery/proxy.rs"]
mod proxy; // a link whose bytes are counted
mod reads; // get, list, with and without a link
#[path = "../../tests/load/server.rs"]
mod server; // time and memory that a server takes
mod scene; // two nodes, with Holdfast and without
mod sheet; // rows
mod shop; // what is in their cluster
mod side; // one of them, as its API sees it
mod stage; // both APIs
mod watchers; // one change to a thousand watchers
mod writes; // what is written through a node

use std::time::Duration;

use generator::parts::Parts;
use sheet::Sheet;
use stage::Stage;

/// The parts, in the order in which they run.
const PARTS: [&str; 5] = ["watch", "read", "write", "offline", "day"];

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    /// How often each API is measured, in turn with the other.
    rounds: usize,
    /// How long each round lasts.
    lasting: Duration,
    /// How long an API does the same before it is measured.
    warming: Duration,
    /// Services of the large list; the small one has a tenth.
    services: usize,
    watchers: usize,
    /// Changes that these watch, in each round.
    changes: usize,
    /// How long nothing happens in the day.
    idle: Duration,
    /// What is done for the day is divided by this.
    less: usize,
}

const WHOLE: Scale = Scale {
    rounds: 5,
    lasting: Duration::from_millis(1500),
    warming: Duration::from_millis(300),
    services: 10_000,
    watchers: 1_000,
    changes: 10,
    idle: Duration::from_secs(120),
    less: 1,
};

const QUICK: Scale = Scale {
    rounds: 1,
    lasting: Duration::from_millis(300),
    warming: Duration::from_millis(100),
    services: 500,
    watchers: 100,
    changes: 3,
    idle: Duration::from_secs(5),
    less: 10,
};

#[tokio::main(worker_threads = 2)]
async fn main() {
    let mut parts = Parts::asked(&[&PARTS[..], &["quick"]].concat());
    let scale = if parts.take("quick") { QUICK } else { WHOLE };
    if PARTS[..4].iter().any(|part| parts.wanted(part)) {
        let mut stage = Stage::set(scale).await;
        let mut sheet = Sheet::new();
        for part in PARTS[..4].iter().filter(|part| parts.wanted(part)) {
            Box::pin(run(part, &mut stage, &mut sheet)).await;
        }
    }
    if parts.wanted("day") {
        Box::pin(day::run(scale)).await;
    }
}

async fn run(part: &str, stage: &mut Stage, sheet: &mut Sheet) {
    match part {
        "watch" => watchers::run(stage, sheet).await,
        "read" => reads::run(stage, sheet).await,
        "write" => writes::run(stage, sheet).await,
        "offline" => reads::offline(stage, sheet).await,
        _ => unreachable!("words were checked"),
    }
}
