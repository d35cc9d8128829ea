//! Processes that are killed again and again while the cluster changes.

use std::time::Duration;

use tokio::time::sleep;

use crate::load::{Dice, Load};
use crate::world::{CONVERGED, Plan, World};

/// Whom a kill meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Api,
    Hub,
    Agent(usize),
}

/// Kills and starts again as the dice fall, while the cluster changes.
async fn kill(world: &mut World, victims: &[Victim], kills: usize, seed: u64) {
    let pause = Duration::from_millis(5);
    let load = Load::begin(world.driver.another(), seed, world.nodes.len(), pause);
    let mut dice = Dice(seed);
    for _ in 0..kills {
        sleep(Duration::from_millis(300 + dice.below(1_200))).await;
        let victim = victims[dice.below(victims.len() as u64) as usize];
        match victim {
            Victim::Api => {
                world.kill_api();
                sleep(Duration::from_millis(dice.below(500))).await;
                world.start_api();
            }
            Victim::Hub => {
                world.hubs[0].program.kill();
                sleep(Duration::from_millis(dice.below(500))).await;
                world.hubs[0].launch();
            }
            Victim::Agent(number) => {
                world.nodes[number].restart();
            }
        }
    }
    load.end_after(100).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn agents_that_are_killed_under_load_lose_nothing() {
    let plan = Plan {
        nodes: 3,
        ..Plan::default()
    };
    let mut world = World::started(plan).await;
    let victims = [Victim::Agent(0), Victim::Agent(1), Victim::Agent(2)];
    kill(&mut world, &victims, 15, 1).await;
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_hub_that_is_killed_under_load_skips_nothing() {
    let plan = Plan {
        nodes: 3,
        ..Plan::default()
    };
    let mut world = World::started(plan).await;
    kill(&mut world, &[Victim::Hub], 8, 2).await;
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn everything_that_is_killed_under_load_comes_back_in_agreement() {
    let plan = Plan {
        nodes: 3,
        ..Plan::default()
    };
    let mut world = World::started(plan).await;
    let victims = [
        Victim::Api,
        Victim::Hub,
        Victim::Agent(0),
        Victim::Agent(1),
        Victim::Agent(2),
    ];
    kill(&mut world, &victims, 15, 3).await;
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_in_the_middle_of_changes_comes_back_in_agreement() {
    let mut world = World::started(Plan::default()).await;
    let victims = [Victim::Agent(0), Victim::Hub];
    kill(&mut world, &victims, 3, 4).await;
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_starts_before_its_cluster_waits_for_it_and_goes_on() {
    let mut world = World::started(Plan::default()).await;
    world.kill_api();
    world.hubs[0].program.kill();
    world.hubs[0].launch();
    let hub = &world.hubs[0];
    let waits = async {
        loop {
            match hub.waits_for().await {
                Some(words) if words.contains("cannot be reached") => return,
                _ => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let waits = tokio::time::timeout(CONVERGED, waits).await;
    assert!(waits.is_ok(), "it does not wait:\n{}", hub.program.log());
    assert!(!hub.program.has_ended());
    world.start_api();
    world.settled(CONVERGED).await;
}
