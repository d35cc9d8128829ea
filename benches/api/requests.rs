//! get, list, create and update, from one connection and from many; memory at rest and in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::client::{Coding, Protocol, request};
use crate::cluster::{Cluster, Storage};
use crate::generator::callers::{Callers, Until};
use crate::generator::figures::Measured;
use crate::objects::{collection, config_map, make_namespace, name};
use crate::table::Table;

/// Bytes of an object.
const BYTES: usize = 2048;
/// Where the ten thousand objects are.
pub(crate) const NAMESPACE: &str = "bench";
const OBJECTS: usize = 10_000;
/// How long each figure is measured.
const LASTING: Duration = Duration::from_secs(4);

/// A program that does nothing.
pub(crate) async fn idle(cluster: &Cluster, table: &mut Table) {
    let ready = format!(
        "ready after {:.0} ms",
        cluster.ready_after.as_secs_f64() * 1e3
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cpu = cluster.server.cpu();
    tokio::time::sleep(LASTING).await;
    let used = (cluster.server.cpu() - cpu).as_secs_f64() / LASTING.as_secs_f64() * 100.0;
    let memory = cluster.server.memory().to_string();
    table.row(
        "at rest, nothing stored",
        &memory,
        &ready,
        &format!("{used:.1} % of a core"),
    );
}

/// Ten thousand objects, made durable one by one.
pub(crate) async fn create(cluster: &Cluster, table: &mut Table) {
    let mut admin = cluster.server.door.connect(Protocol::Http1).await;
    make_namespace(&mut admin, NAMESPACE).await;
    let next = Arc::new(AtomicUsize::new(0));
    let made = repeat(cluster, 16, Until::Count(OBJECTS), move |_| {
        let number = next.fetch_add(1, Ordering::Relaxed);
        request(
            "POST",
            &collection(NAMESPACE),
            config_map(&name(number), number, BYTES),
            PLAIN,
        )
    })
    .await;
    table.measured("create, 16 connections, durable", "objects", &made);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let memory = cluster.server.memory().to_string();
    table.row("10,000 objects of 2 KiB just made", &memory, "", "");
}

const PLAIN: Coding = Coding::Plain;

pub(crate) async fn get(cluster: &Cluster, table: &mut Table) {
    for connections in [1, 16, 64] {
        let got = repeat(cluster, connections, Until::Time(LASTING), |turn| {
            let path = format!("{}/{}", collection(NAMESPACE), name(turn * 7919 % OBJECTS));
            request("GET", &path, Bytes::new(), PLAIN)
        })
        .await;
        table.measured(&format!("get, {connections} connections"), "requests", &got);
    }
}

pub(crate) async fn list(cluster: &Cluster, table: &mut Table) {
    for (limit, connections, coding) in [
        (1_000, 1, Coding::Plain),
        (1_000, 1, Coding::Gzip),
        (10_000, 1, Coding::Plain),
        (10_000, 1, Coding::Gzip),
        (10_000, 4, Coding::Plain),
    ] {
        let path = format!("{}?limit={limit}", collection(NAMESPACE));
        let asked = move |_| request("GET", &path, Bytes::new(), coding);
        let listed = repeat(cluster, connections, Until::Time(LASTING), asked).await;
        let what = format!("list {limit}, {coding:?}, {connections} connections");
        table.measured(&what, "lists", &listed);
    }
    let memory = cluster.server.memory().to_string();
    table.row("after these lists", &memory, "", "");
}

pub(crate) async fn update(cluster: &Cluster, table: &mut Table) {
    for connections in [1, 16, 64] {
        let next = Arc::new(AtomicUsize::new(0));
        let put = repeat(cluster, connections, Until::Time(LASTING), move |_| {
            let change = next.fetch_add(1, Ordering::Relaxed);
            let name = name(change * 7919 % OBJECTS);
            let path = format!("{}/{name}", collection(NAMESPACE));
            let change = OBJECTS * connections + change;
            request("PUT", &path, config_map(&name, change, BYTES), PLAIN)
        })
        .await;
        let what = format!("update, {connections} connections, durable");
        table.measured(&what, "updates", &put);
    }
}

/// Memory with ten thousand objects, in programs of their own: found at the start, and in use.
pub(crate) async fn memory(table: &mut Table) {
    let cluster = Cluster::start_on(Storage::Disk, |home| {
        tokio::task::block_in_place(|| crate::objects::seed(home, NAMESPACE, OBJECTS, BYTES));
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let ready = format!(
        "ready after {:.0} ms",
        cluster.ready_after.as_secs_f64() * 1e3
    );
    table.row(
        "started with 10,000 objects",
        &cluster.server.memory().to_string(),
        &ready,
        "",
    );
    let mut client = cluster.server.door.connect(Protocol::Http1).await;
    for _ in 0..10 {
        client.read(&collection(NAMESPACE)).await;
    }
    table.row(
        "and ten lists later",
        &cluster.server.memory().to_string(),
        "",
        "",
    );
    let cluster = cluster.killed_and_started_again();
    let ready = format!(
        "ready after {:.0} ms",
        cluster.ready_after.as_secs_f64() * 1e3
    );
    table.row(
        "killed and started again",
        &cluster.server.memory().to_string(),
        &ready,
        "",
    );
}

/// Sends requests over so many new connections.
async fn repeat(
    cluster: &Cluster,
    connections: usize,
    until: Until,
    asked: impl Fn(usize) -> hyper::Request<http_body_util::Full<Bytes>> + Clone + Send + 'static,
) -> Measured {
    let mut callers = Callers::open(&cluster.server, connections).await;
    callers.run(&cluster.server, until, asked).await
}
