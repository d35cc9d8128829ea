//! What stands between an agent and its hub and has its own mind: addresses that change, idle
//! connections that are dropped, packets that are too large.

use std::time::Duration;

use tokio::time::sleep;

use crate::driver::service;
use crate::links::through_a_proxy;
use crate::net::{Fate, Net};
use crate::packets::behind_a_net;
use crate::proxy::Weather;
use crate::world::{CONVERGED, World};

/// How long a middlebox keeps an idle connection.
const IDLE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn a_node_whose_address_changes_resumes_where_it_stood() {
    let (world, net) = behind_a_net().await;
    let before = world.nodes[0].received().await;
    let sessions = world.nodes[0].sessions().await;
    net.move_agent();
    let driver = &world.driver;
    driver.create("services", &service("moved", "one")).await;
    world.settled(CONVERGED).await;
    assert!(world.nodes[0].sessions().await > sessions, "a new link");
    let received = world.nodes[0].received().await - before;
    assert!(received < 6 * 1024, "{received} bytes: not everything anew");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_middlebox_that_drops_idle_connections_never_finds_one() {
    let (world, proxy) = through_a_proxy().await;
    let sessions = world.nodes[0].sessions().await;
    proxy.weather(Weather {
        idle: Some(IDLE),
        ..Weather::default()
    });
    // Longer than the middlebox's patience, with nothing but heartbeats on the link.
    sleep(IDLE + Duration::from_secs(15)).await;
    let driver = &world.driver;
    driver.create("services", &service("later", "one")).await;
    world.settled(Duration::from_secs(5)).await;
    assert_eq!(world.nodes[0].sessions().await, sessions);
    assert_eq!(proxy.dropped(), 0);
}

async fn many(world: &World) {
    for number in 0..60 {
        let name = format!("large-{number}");
        let note = "many words ".repeat(200);
        world
            .driver
            .create("services", &service(&name, &note))
            .await;
    }
}

/// Packets of more than 1,280 bytes vanish, and nobody is told.
fn narrow(net: &Net) {
    net.all(Fate {
        bytes_max: Some(1280),
        ..Fate::default()
    });
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn over_quic_a_path_that_swallows_large_packets_is_crossed_with_small_ones() {
    let (mut world, net) = behind_a_net().await;
    world.nodes[0].program.kill();
    let address = world.hubs[0].address().to_string();
    world.hubs[0].program.kill();
    world.hubs[0].extra = vec!["--quic-listen".to_owned(), address];
    world.hubs[0].start().await;
    world.nodes[0].extra = ["--transport", "quic"].map(str::to_owned).to_vec();
    world.nodes[0].start();
    world.nodes[0].connected(CONVERGED).await;
    narrow(&net);
    many(&world).await;
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: just e2e"]
async fn a_path_that_swallows_large_packets_is_crossed_with_small_ones() {
    let (world, net) = behind_a_net().await;
    narrow(&net);
    many(&world).await;
    world.settled(CONVERGED).await;
}
