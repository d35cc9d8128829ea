//! Several hubs beside one cluster.

use std::time::Duration;

use serde_json::json;

use crate::driver::service;
use crate::load::Load;
use crate::world::{CONVERGED, Plan, World};

const SOON: Duration = Duration::from_secs(20);

async fn with_two_hubs(nodes: usize) -> World {
    let plan = Plan {
        nodes,
        hubs: 2,
        ..Plan::default()
    };
    let world = World::started(plan).await;
    for number in 0..100 {
        let name = format!("many-{number}");
        world
            .driver
            .create("services", &service(&name, &name))
            .await;
    }
    world.settled(SOON).await;
    world
}

/// The hub that a node has its session with.
pub(crate) async fn hub_of(world: &World, node: usize) -> usize {
    world.nodes[node].connected(CONVERGED).await;
    let status = world.nodes[node].status().await.unwrap();
    let names = world.hubs.iter().map(|hub| hub.name);
    let mut named = names.enumerate().filter(|(_, name)| status["hub"] == *name);
    named.next().unwrap_or_else(|| panic!("{status}")).0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_hub_is_killed_goes_on_with_another_without_a_new_list() {
    let mut world = with_two_hubs(1).await;
    let before = world.nodes[0].received().await;
    let hub = hub_of(&world, 0).await;
    world.hubs[hub].program.kill();
    let note = json!({"metadata": {"annotations": {"note": "changed"}}});
    for number in 0..10 {
        world
            .driver
            .patch("services", &format!("many-{number}"), &note)
            .await;
    }
    for number in 90..95 {
        world
            .driver
            .delete("services", &format!("many-{number}"))
            .await;
    }
    world.settled(CONVERGED).await;
    assert_ne!(hub_of(&world, 0).await, hub);
    let received = world.nodes[0].received().await - before;
    assert!(received < 6 * 1024, "{received} bytes");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn hubs_that_are_restarted_one_after_the_other_under_load_lose_nothing() {
    let mut world = with_two_hubs(3).await;
    let load = Load::begin(world.driver.another(), 31, 3, Duration::from_millis(10));
    for turn in 0..4 {
        let hub = &mut world.hubs[turn % 2];
        let ended = hub.program.stop();
        assert!(ended.success(), "{ended}: {}", hub.program.log());
        hub.start().await;
        for number in 0..3 {
            hub_of(&world, number).await;
        }
    }
    load.end_after(100).await;
    world.settled(CONVERGED).await;
}
