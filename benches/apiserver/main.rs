//! A real kube-apiserver with etcd and our program under one load, in one run. Prints a table.
//!
//! Both run at once on this machine and are measured in turn, round by round; a figure is the
//! median of its rounds. The client shares the machine with them, so a rate is that of client and
//! server together; the processor time is the server's alone.
//! `cargo bench --bench apiserver -- get list` runs only these; with `quick` a run takes seconds,
//! and its figures say little.

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
mod disk; // whether writes reach the disk
#[path = "../../tests/load/event.rs"]
mod event; // what is read of an event
#[path = "../generator/mod.rs"]
mod generator; // the load, and what it took
#[path = "../../tests/load/objects.rs"]
mod objects; // what the load is made of
mod pair; // both servers, in turn
mod reads; // get, list
mod report; // medians, ratios, goals -> Markdown
#[path = "../../tests/load/server.rs"]
mod server; // time and memory that a server takes
mod watches; // one change to many watchers
mod writes; // create, update

use std::time::Duration;

use generator::parts::Parts;
use pair::Pair;
use report::Report;

/// The parts, in the order in which they run.
const PARTS: [&str; 6] = ["create", "get", "list", "update", "watch", "memory"];

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    /// How often each server is measured, in turn with the other. An odd number has a middle.
    rounds: usize,
    /// How long each round lasts.
    lasting: Duration,
    /// How long a server does the same before it is measured.
    warming: Duration,
    /// Objects of the large list; the small one has a tenth.
    objects: usize,
}

const WHOLE: Scale = Scale {
    rounds: 5,
    lasting: Duration::from_secs(2),
    warming: Duration::from_millis(500),
    objects: 10_000,
};

const QUICK: Scale = Scale {
    rounds: 1,
    lasting: Duration::from_millis(500),
    warming: Duration::from_millis(100),
    objects: 2_000,
};

#[tokio::main(worker_threads = 2)]
async fn main() {
    let mut parts = Parts::asked(&[&PARTS[..], &["quick"]].concat());
    let scale = if parts.take("quick") { QUICK } else { WHOLE };
    let pair = match tokio::task::block_in_place(|| Pair::start(scale)) {
        Ok(pair) => pair,
        Err(error) => {
            eprintln!("there is nothing to compare with: {error}");
            std::process::exit(1);
        }
    };
    let mut report = Report::default();
    run(&pair, &mut report, |part| parts.wanted(part)).await;
    report.print();
}

async fn run(pair: &Pair, report: &mut Report, wanted: impl Fn(&str) -> bool) {
    if wanted("memory") {
        pair.rest().await;
        report.memory("at rest, nothing stored", pair);
    }
    // What is made here, the others read.
    if PARTS[..4].iter().any(|part| wanted(part)) {
        writes::create(pair, report).await;
        report.memory("these objects just made", pair);
    }
    if wanted("get") {
        reads::get(pair, report).await;
    }
    if wanted("list") {
        reads::list(pair, report).await;
        report.memory("after these lists", pair);
    }
    if wanted("update") {
        writes::update(pair, report).await;
    }
    if wanted("watch") {
        watches::run(pair, report).await;
    }
    if wanted("memory") {
        pair.rest().await;
        report.memory_after(pair);
    }
}
