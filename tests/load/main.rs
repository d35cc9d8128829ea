//! The real program under load: a thousand watchers, a hundred thousand objects.
//!
//! A plain run is short; `HOLDFAST_LOAD=full` with a release build is all of it (`just load`).
//! Nothing here asserts a time: speed is kept by `benches/`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a client under test stands outside the program: it has its own sockets and clock"
)]

mod client; // connections
mod cluster; // the program, from outside
mod event; // what is checked of an event
mod fanout; // many watchers
mod many; // many objects
mod objects; // what the load is made of
mod server; // time and memory that a server takes
mod stuck; // clients that never read
mod watcher; // a watcher that checks what it is told

use std::time::Duration;

use cluster::{Cluster, Storage};
use fanout::{Load, Stuck};

/// How much a run asks of the machine.
fn is_full() -> bool {
    std::env::var_os("HOLDFAST_LOAD").is_some_and(|value| value == "full")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_watcher_misses_an_event_and_one_that_never_reads_harms_nobody() {
    let (storage, load) = match is_full() {
        true => (Storage::Disk, FULL),
        false => (Storage::Memory, SHORT),
    };
    let cluster = Cluster::start(storage);
    fanout::run(&cluster, load).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_objects_are_paged_at_one_version_watched_and_found_again_after_a_kill() {
    let counts: &[usize] = if is_full() {
        &[10_000, 100_000]
    } else {
        &[5_000]
    };
    for count in counts {
        many::run(*count).await;
    }
}

const FULL: Load = Load {
    watchers: 1_000,
    changes_per_second: 500,
    lasting: Duration::from_secs(60),
    stuck: Stuck::Cut,
};

const SHORT: Load = Load {
    watchers: 100,
    changes_per_second: 200,
    lasting: Duration::from_secs(5),
    stuck: Stuck::Harmless,
};
