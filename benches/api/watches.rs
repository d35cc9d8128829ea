//! One change to many watchers: how many events a second, how late, and what each costs.

use std::time::Duration;

use crate::client::Protocol;
use crate::cluster::Cluster;
use crate::generator::crowd::{Crowd, Each, Pace, Shape};
use crate::objects::make_namespace;
use crate::table::Table;

const SHAPE: Shape = Shape {
    watchers: 1_000,
    each: Each::Same,
    streams_per_connection: 50,
    writers: 1,
    bytes: 1024,
};
const LASTING: Duration = Duration::from_secs(6);

/// One object, a thousand watchers: at a steady pace, then as fast as all can follow.
pub(crate) async fn fanout(cluster: &Cluster, table: &mut Table) {
    let crowd = open(cluster, "fanout-10", SHAPE).await;
    let memory = cluster.server.memory().to_string();
    table.row("1,000 idle watchers on 20 connections", &memory, "", "");
    let what = "1,000 watchers of one object, 10 updates a second";
    run(cluster, crowd, Pace::PerSecond(10), what, table).await;

    let crowd = open(cluster, "fanout-100", SHAPE).await;
    let what = "1,000 watchers of one object, 100 updates a second";
    run(cluster, crowd, Pace::PerSecond(100), what, table).await;

    let crowd = open(cluster, "fanout", SHAPE).await;
    let what = "1,000 watchers of one object, as fast as all follow";
    run(cluster, crowd, Pace::AsAllFollow, what, table).await;
    let memory = cluster.server.memory().to_string();
    table.row("after these watches", &memory, "", "");
}

/// A thousand watchers, each of an object of its own.
pub(crate) async fn own_objects(cluster: &Cluster, table: &mut Table) {
    let shape = Shape {
        each: Each::Own,
        ..SHAPE
    };
    let crowd = open(cluster, "own", shape).await;
    let what = "1,000 watchers each of its own object, 100 updates a second";
    run(cluster, crowd, Pace::PerSecond(100), what, table).await;
}

async fn open(cluster: &Cluster, namespace: &str, shape: Shape) -> Crowd {
    let mut admin = cluster.server.door.connect(Protocol::Http1).await;
    make_namespace(&mut admin, namespace).await;
    Crowd::open(&cluster.server, namespace, shape).await
}

async fn run(cluster: &Cluster, crowd: Crowd, pace: Pace, what: &str, table: &mut Table) {
    let followed = crowd.run(&cluster.server, pace, LASTING).await;
    assert_eq!(followed.cut, 0, "a watcher that reads is never cut");
    table.measured(what, "events", &followed.events);
}
