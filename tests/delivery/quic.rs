//! The core of it over QUIC: what comes and goes, links that are cut, kills, another hub, packets
//! that are lost, repeated and late, and a NAT that maps anew.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::datagrams::{Datagrams, Sky};
use crate::driver::{config_map, pod, secret, service};
use crate::load::Load;
use crate::node::Node;
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);

/// A world whose hubs and nodes speak nothing but QUIC, once they have joined.
async fn over_quic(nodes: usize, hubs: usize) -> World {
    let plan = Plan {
        nodes,
        hubs,
        ..Plan::default()
    };
    let mut world = World::new(plan).await;
    for hub in &mut world.hubs {
        // The same port for both: agents are told one address.
        let address = hub.address().to_string();
        hub.program.kill();
        hub.extra = vec!["--quic-listen".to_owned(), address];
        hub.start().await;
    }
    for node in &mut world.nodes {
        node.extra = ["--transport", "quic"].map(str::to_owned).to_vec();
    }
    world
}

async fn furnish(world: &World) {
    let driver = &world.driver;
    for number in 0..20 {
        let names = format!("number-{number}");
        driver
            .create("configmaps", &config_map(&names, &names))
            .await;
        driver.create("secrets", &secret(&names, "b25l")).await;
        let node = NODES[number % world.nodes.len()];
        driver.create("pods", &pod(&names, node, &names)).await;
        driver.create("services", &service(&names, &names)).await;
    }
}

/// A world with one node behind a proxy of datagrams.
async fn behind_a_proxy() -> (World, Datagrams) {
    let mut world = over_quic(1, 1).await;
    let proxy = Datagrams::before(world.hubs[0].address()).await;
    world.nodes[0].hubs = vec![proxy.address.to_string()];
    world.nodes[0].start();
    furnish(&world).await;
    world.settled(SOON).await;
    (world, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn over_quic_nodes_hold_what_they_must_through_kills_of_both_ends() {
    let mut world = over_quic(2, 1).await;
    world.nodes.iter_mut().for_each(|node| node.start());
    furnish(&world).await;
    world.settled(SOON).await;
    for node in &world.nodes {
        let status = node.status().await.unwrap();
        assert_eq!(status["transport"], "quic", "{status}");
    }
    let load = Load::begin(world.driver.another(), 51, 2, Duration::from_millis(10));
    for turn in 0..4 {
        sleep(Duration::from_millis(700)).await;
        match turn % 2 {
            0 => world.nodes[turn / 2].restart(),
            _ => {
                world.hubs[0].program.kill();
                world.hubs[0].start().await;
            }
        }
    }
    load.end_after(100).await;
    world.settled(CONVERGED).await;
    let said = world.hubs[0].node(NODES[0]).await.unwrap();
    assert_eq!(said["transport"], "quic", "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_quic_a_node_whose_hub_is_killed_goes_on_with_another_without_a_new_list() {
    let mut world = over_quic(1, 2).await;
    world.nodes[0].start();
    furnish(&world).await;
    world.settled(SOON).await;
    let hub_of = |status: &Value| status["hub"].as_str().map(str::to_owned);
    let first = hub_of(&world.nodes[0].status().await.unwrap()).unwrap();
    let before = world.nodes[0].received().await;
    let hub = world.hubs.iter_mut().find(|hub| hub.name == first);
    hub.unwrap().program.kill();
    for number in 0..5 {
        let name = format!("number-{number}");
        world.driver.delete("services", &name).await;
    }
    world.settled(CONVERGED).await;
    let status = world.nodes[0].status().await.unwrap();
    assert_ne!(hub_of(&status), Some(first));
    let received = world.nodes[0].received().await - before;
    assert!(received < 6 * 1024, "{received} bytes");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn over_quic_a_link_that_swallows_everything_is_noticed_and_taken_up_again() {
    let (world, proxy) = behind_a_proxy().await;
    let before = world.nodes[0].received().await;
    proxy.sky(Sky {
        lost: 100,
        ..Sky::default()
    });
    let driver = &world.driver;
    driver.create("services", &service("lost", "one")).await;
    driver.delete("services", "number-0").await;
    world.nodes[0].alone(Duration::from_secs(48)).await;
    proxy.sky(Sky::default());
    world.settled(CONVERGED).await;
    let received = world.nodes[0].received().await - before;
    assert!(received < 6 * 1024, "{received} bytes");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn over_quic_datagrams_that_are_lost_repeated_and_late_change_nothing() {
    let (world, proxy) = behind_a_proxy().await;
    for (lost, seconds) in [(0, 4), (10, 6), (30, 8)] {
        proxy.sky(Sky {
            lost,
            twice: 30,
            delay: Duration::from_millis(150),
            late: 25,
        });
        let pause = Duration::from_millis(20);
        let load = Load::begin(world.driver.another(), lost, 1, pause);
        sleep(Duration::from_secs(seconds)).await;
        load.end_after(50).await;
        let took = world.settled(CONVERGED).await;
        eprintln!("{lost} % lost, 30 % twice, 25 % late at 300 ms: converged after {took:?}");
    }
}

/// Waits until a hub has said nothing to a node for some seconds: what the cluster says of itself
/// comes a little after the objects.
async fn silent(node: &Node) {
    let mut before = u64::MAX;
    loop {
        let received = node.received().await;
        if received == before {
            return;
        }
        before = received;
        sleep(Duration::from_secs(4)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn over_quic_a_nat_that_maps_anew_costs_no_session_if_the_agent_speaks_first() {
    let (world, proxy) = behind_a_proxy().await;
    silent(&world.nodes[0]).await;
    let (sessions, before) = (
        world.nodes[0].sessions().await,
        world.nodes[0].received().await,
    );
    let driver = &world.driver;
    proxy.rebind();
    // Its next heartbeat comes from elsewhere, and the hub goes on with it there.
    proxy.heard(Duration::from_secs(35)).await;
    driver.create("services", &service("after", "one")).await;
    world.settled(SOON).await;
    assert_eq!(world.nodes[0].sessions().await, sessions);
    // If the hub speaks first, nobody hears it: a new session takes up where this one stood.
    proxy.rebind();
    driver.create("services", &service("later", "one")).await;
    world.settled(CONVERGED).await;
    let received = world.nodes[0].received().await - before;
    assert!(received < 6 * 1024, "{received} bytes");
}
