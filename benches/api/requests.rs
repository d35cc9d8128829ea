//! get, list, create and update, from one connection and from many; memory at rest and in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::task::JoinSet;

use crate::client::{Client, Coding, Protocol, request};
use crate::cluster::{Cluster, Storage};
use crate::figures::{Latencies, Measured, Stretch, Table};
use crate::objects::{collection, config_map, make_namespace, name};

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
    let cpu = cluster.cpu();
    tokio::time::sleep(LASTING).await;
    let used = (cluster.cpu() - cpu).as_secs_f64() / LASTING.as_secs_f64() * 100.0;
    let memory = cluster.memory().to_string();
    table.row(
        "at rest, nothing stored",
        &memory,
        &ready,
        &format!("{used:.1} % of a core"),
    );
}

/// Ten thousand objects, made durable one by one.
pub(crate) async fn create(cluster: &Cluster, table: &mut Table) {
    let mut admin = cluster.door.connect(Protocol::Http1).await;
    make_namespace(&mut admin, NAMESPACE).await;
    let next = Arc::new(AtomicUsize::new(0));
    let mut made = repeat(cluster, 16, Until::Count(OBJECTS), move |_| {
        let number = next.fetch_add(1, Ordering::Relaxed);
        request(
            "POST",
            &collection(NAMESPACE),
            config_map(&name(number), number, BYTES),
            PLAIN,
        )
    })
    .await;
    table.measured("create, 16 connections, durable", "objects", &mut made);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let memory = cluster.memory().to_string();
    table.row("10,000 objects of 2 KiB just made", &memory, "", "");
}

const PLAIN: Coding = Coding::Plain;

pub(crate) async fn get(cluster: &Cluster, table: &mut Table) {
    for connections in [1, 16, 64] {
        let mut got = repeat(cluster, connections, Until::Time(LASTING), |turn| {
            let path = format!("{}/{}", collection(NAMESPACE), name(turn * 7919 % OBJECTS));
            request("GET", &path, Bytes::new(), PLAIN)
        })
        .await;
        table.measured(
            &format!("get, {connections} connections"),
            "requests",
            &mut got,
        );
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
        let mut listed = repeat(cluster, connections, Until::Time(LASTING), asked).await;
        let what = format!("list {limit}, {coding:?}, {connections} connections");
        table.measured(&what, "lists", &mut listed);
    }
    let memory = cluster.memory().to_string();
    table.row("after these lists", &memory, "", "");
}

pub(crate) async fn update(cluster: &Cluster, table: &mut Table) {
    for connections in [1, 16, 64] {
        let next = Arc::new(AtomicUsize::new(0));
        let mut put = repeat(cluster, connections, Until::Time(LASTING), move |_| {
            let change = next.fetch_add(1, Ordering::Relaxed);
            let name = name(change * 7919 % OBJECTS);
            let path = format!("{}/{name}", collection(NAMESPACE));
            let change = OBJECTS * connections + change;
            request("PUT", &path, config_map(&name, change, BYTES), PLAIN)
        })
        .await;
        let what = format!("update, {connections} connections, durable");
        table.measured(&what, "updates", &mut put);
    }
}

/// Memory with ten thousand objects, in programs of their own: found at the start, and in use.
pub(crate) async fn memory(table: &mut Table) {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("cluster");
    tokio::task::block_in_place(|| crate::objects::seed(&home, NAMESPACE, OBJECTS, BYTES));
    let cluster = Cluster::start(&home, Storage::Disk);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let ready = format!(
        "ready after {:.0} ms",
        cluster.ready_after.as_secs_f64() * 1e3
    );
    table.row(
        "started with 10,000 objects",
        &cluster.memory().to_string(),
        &ready,
        "",
    );
    let mut client = cluster.door.connect(Protocol::Http1).await;
    for _ in 0..10 {
        client.read(&collection(NAMESPACE)).await;
    }
    table.row("and ten lists later", &cluster.memory().to_string(), "", "");
    let cluster = cluster.killed_and_started_again();
    let ready = format!(
        "ready after {:.0} ms",
        cluster.ready_after.as_secs_f64() * 1e3
    );
    table.row(
        "killed and started again",
        &cluster.memory().to_string(),
        &ready,
        "",
    );
}

/// When a measurement is over.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    Time(Duration),
    Count(usize),
}

/// Sends requests over so many connections, each as soon as the one before is answered.
async fn repeat(
    cluster: &Cluster,
    connections: usize,
    until: Until,
    asked: impl Fn(usize) -> hyper::Request<http_body_util::Full<Bytes>> + Clone + Send + 'static,
) -> Measured {
    let turns = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(cluster.door.connect(Protocol::Http1).await);
    }
    let (time, count) = match until {
        Until::Time(time) => (time, usize::MAX),
        Until::Count(count) => (Duration::from_secs(3600), count),
    };
    let stretch = Stretch::start(cluster);
    let end = Instant::now() + time;
    let mut working = JoinSet::new();
    for mut client in clients {
        let (turns, asked) = (turns.clone(), asked.clone());
        working.spawn(async move {
            let mut latencies = Latencies::default();
            loop {
                let turn = turns.fetch_add(1, Ordering::Relaxed);
                if turn >= count || Instant::now() >= end {
                    return latencies;
                }
                let started = Instant::now();
                drain(&mut client, asked(turn)).await;
                latencies.add(started.elapsed());
            }
        });
    }
    let latencies = working.join_all().await;
    let latencies = latencies
        .into_iter()
        .fold(Latencies::default(), Latencies::join);
    let done = latencies.len();
    stretch.end(cluster, done, latencies)
}

/// Reads an answer and keeps nothing of it.
async fn drain(client: &mut Client, request: hyper::Request<http_body_util::Full<Bytes>>) {
    let answer = client.ask(request).await;
    assert!(answer.status().is_success(), "{}", answer.status());
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        frame.expect("a whole body");
    }
}
