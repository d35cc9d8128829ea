//! create and update, durable on both sides.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;

use crate::client::{Coding, Protocol, request};
use crate::disk::Disk;
use crate::generator::callers::{Callers, Until};
use crate::objects::{collection, config_map, items, name};
use crate::pair::Pair;
use crate::report::{Goal, Report, Sample};
use crate::server::Server;

/// Bytes of an object.
const BYTES: usize = 2048;
/// The namespace of the large list, and that of the small one.
pub(crate) const MANY: &str = "many";
pub(crate) const FEW: &str = "few";

/// All objects that the other parts read, made one by one; those of the small list by one client.
pub(crate) async fn create(pair: &Pair, report: &mut Report) {
    for (namespace, connections, says) in [(FEW, 1, "1 connection"), (MANY, 16, "16 connections")] {
        pair.make_namespace(namespace).await;
        let objects = objects(pair, namespace);
        let per_round = objects / pair.scale.rounds;
        let measure = async |server: &Server, round: usize| {
            let asked = move |turn: usize| post(namespace, round * per_round + turn);
            let mut callers = Callers::open(server, connections).await;
            Sample::of(&callers.run(server, Until::Count(per_round), asked).await)
        };
        let compared = pair.compare(&format!("create, {says}"), measure).await;
        report.add(Goal::Writes, compared);
        for server in [&pair.real, &pair.ours] {
            let mut client = server.door.connect(Protocol::Http1).await;
            let there = items(&client.read(&collection(namespace)).await);
            assert!(there >= objects, "{there} of {objects} objects are there");
        }
    }
}

/// Updates without a condition, spread over all objects.
pub(crate) async fn update(pair: &Pair, report: &mut Report) {
    let objects = pair.scale.objects;
    // Every write must change something: one that does not is not written at all.
    let changes = Arc::new(AtomicUsize::new(objects));
    for (connections, says) in [(1, "1 connection"), (16, "16 connections")] {
        let measure = async |server: &Server, _| {
            let changes = changes.clone();
            let asked = move |_| {
                let change = changes.fetch_add(1, Ordering::Relaxed);
                put(change * 7919 % objects, change)
            };
            let mut callers = Callers::open(server, connections).await;
            let warming = Until::Time(pair.scale.warming);
            callers.run(server, warming, asked.clone()).await;
            let lasting = Until::Time(pair.scale.lasting);
            Sample::of(&callers.run(server, lasting, asked).await)
        };
        let compared = pair.compare(&format!("update, {says}"), measure).await;
        report.add(Goal::Writes, compared);
    }
    if let Some(disk) = &pair.disk {
        let real = flushes_each(&pair.real, disk, &changes, objects).await;
        let ours = flushes_each(&pair.ours, disk, &changes, objects).await;
        report.flushes(real, ours);
    }
}

/// How often the disk is flushed for each of some updates that come one after the other. Others may
/// flush it too, but nobody flushes it less.
async fn flushes_each(server: &Server, disk: &Disk, changes: &AtomicUsize, objects: usize) -> f64 {
    let first = changes.fetch_add(SOME, Ordering::Relaxed);
    let mut callers = Callers::open(server, 1).await;
    let before = disk.flushes();
    let asked = move |turn| put((first + turn) % objects, first + turn);
    callers.run(server, Until::Count(SOME), asked).await;
    (disk.flushes() - before) as f64 / SOME as f64
}

const SOME: usize = 500;

fn objects(pair: &Pair, namespace: &str) -> usize {
    match namespace {
        FEW => pair.scale.objects / 10,
        _ => pair.scale.objects,
    }
}

fn post(namespace: &str, number: usize) -> Request<Full<Bytes>> {
    let body = config_map(&name(number), number, BYTES);
    request("POST", &collection(namespace), body, Coding::Plain)
}

fn put(number: usize, change: usize) -> Request<Full<Bytes>> {
    let name = name(number);
    let path = format!("{}/{name}", collection(MANY));
    request(
        "PUT",
        &path,
        config_map(&name, change, BYTES),
        Coding::Plain,
    )
}
