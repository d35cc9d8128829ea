//! Links that break, swallow, stall and are slow.

use std::time::Duration;

use ::cluster::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::driver::{config_map, pod, service};
use crate::load::Load;
use crate::proxy::{Flow, Proxy, Weather};
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);
const ROUND_TRIP: Duration = Duration::from_millis(300);
/// How long a dead link may go unnoticed while something is on its way.
const NOTICED_BUSY: Duration = Duration::from_secs(10);
/// The same when nothing is.
const NOTICED_IDLE: Duration = Duration::from_secs(45);
/// How late a busy machine may be to look.
const LATE: Duration = Duration::from_secs(3);

/// A world whose one node comes through a proxy.
pub(crate) async fn through_a_proxy() -> (World, Proxy) {
    let mut world = World::new(Plan::default()).await;
    let proxy = Proxy::before(world.hubs[0].address()).await;
    world.nodes[0].hubs = vec![proxy.address.to_string()];
    world.nodes[0].start();
    let driver = &world.driver;
    driver.create("configmaps", &config_map("one", "one")).await;
    driver.create("pods", &pod("one", NODES[0], "one")).await;
    world.settled(SOON).await;
    (world, proxy)
}

/// Waits until the hub says that the node has no session, and says how long that took.
async fn unlinked(world: &World, within: Duration) -> Duration {
    let began = Instant::now();
    while began.elapsed() < within {
        let node = world.hubs[0].node(NODES[0]).await.expect("it was there");
        if node["connected"] == false {
            return began.elapsed();
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("the hub has not noticed after {within:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_cut_is_opened_again_and_only_what_is_missing_is_sent() {
    let (world, proxy) = through_a_proxy().await;
    let before = world.nodes[0].received().await;
    let driver = &world.driver;
    for turn in 0..5 {
        proxy.cut();
        driver
            .create("services", &service(&format!("after-{turn}"), "one"))
            .await;
        world.settled(CONVERGED).await;
    }
    let received = world.nodes[0].received().await - before;
    assert!(proxy.accepted() >= 6, "{}", proxy.accepted());
    assert!(received < 8 * 1024, "{received} bytes");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_link_that_swallows_everything_is_noticed_by_both_ends_while_something_is_on_its_way() {
    for (up, down) in [
        (Flow::Hole, Flow::Hole),
        (Flow::Open, Flow::Hole),
        (Flow::Hole, Flow::Open),
    ] {
        let (world, proxy) = through_a_proxy().await;
        proxy.weather(Weather::default().flow(up, down));
        let began = Instant::now();
        // A change is on its way, and nobody answers.
        world
            .driver
            .create("services", &service("lost", "one"))
            .await;
        let hub = unlinked(&world, NOTICED_BUSY + LATE).await;
        // The agent knows when it asks or waits for something itself.
        let left = NOTICED_IDLE.saturating_sub(began.elapsed()) + LATE;
        world.nodes[0].alone(left).await;
        proxy.weather(Weather::default());
        world.settled(CONVERGED).await;
        eprintln!("up {up:?}, down {down:?}: the hub noticed after {hub:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_silent_link_is_noticed_though_nothing_is_on_its_way() {
    let (world, proxy) = through_a_proxy().await;
    proxy.weather(Weather::default().flow(Flow::Hole, Flow::Hole));
    world.nodes[0].alone(NOTICED_IDLE + LATE).await;
    proxy.weather(Weather::default());
    world.nodes[0].connected(CONVERGED).await;
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_stalls_for_a_moment_goes_on() {
    let (world, proxy) = through_a_proxy().await;
    let sessions = world.nodes[0].sessions().await;
    proxy.weather(Weather::default().flow(Flow::Stall, Flow::Stall));
    for number in 0..5 {
        world
            .driver
            .create("services", &service(&format!("late-{number}"), "one"))
            .await;
    }
    sleep(Duration::from_secs(2)).await;
    assert!(!world.differences(&[&world.nodes[0]]).await.is_empty());
    proxy.weather(Weather::default());
    world.settled(SOON).await;
    assert_eq!(
        world.nodes[0].sessions().await,
        sessions,
        "the same session"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_far_link_that_breaks_all_the_time_and_says_everything_twice_carries_a_load() {
    let (world, proxy) = through_a_proxy().await;
    let far = Weather {
        twice: true,
        ..Weather::far(ROUND_TRIP)
    };
    proxy.weather(far);
    proxy.cut();
    let load = Load::begin(world.driver.another(), 7, 1, Duration::from_millis(10));
    for _ in 0..6 {
        sleep(Duration::from_secs(3)).await;
        proxy.cut();
    }
    load.end_after(100).await;
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_cut_of_twenty_seconds_is_made_good_in_few_bytes() {
    let (world, proxy) = through_a_proxy().await;
    let driver = &world.driver;
    for number in 0..70 {
        driver
            .create("services", &service(&format!("many-{number}"), "one"))
            .await;
    }
    proxy.weather(Weather::far(ROUND_TRIP));
    proxy.cut();
    world.settled(CONVERGED).await;
    world.nodes[0].connected(SOON).await;
    proxy.weather(Weather::far(ROUND_TRIP).flow(Flow::Hole, Flow::Hole));
    proxy.cut();
    let note = json!({"metadata": {"annotations": {"note": "changed"}}});
    for number in 0..50 {
        driver
            .patch("services", &format!("many-{number}"), &note)
            .await;
    }
    for number in 50..70 {
        driver.delete("services", &format!("many-{number}")).await;
    }
    sleep(Duration::from_secs(20)).await;
    let before = proxy.carried_down();
    proxy.weather(Weather::far(ROUND_TRIP));
    // Attempts that were swallowed go on until they are given up.
    proxy.cut();
    let connected = world.nodes[0].connected(CONVERGED).await;
    let took = world.settled(SOON).await;
    let bytes = proxy.carried_down() - before;
    eprintln!("back after {connected:?}, converged {took:?} later, {bytes} bytes down");
    assert!(bytes < 12_000, "{bytes} bytes");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_process_that_stood_still_goes_on_or_begins_anew() {
    let (world, _proxy) = through_a_proxy().await;
    let load = Load::begin(world.driver.another(), 9, 1, Duration::from_millis(10));
    for (program, seconds) in [
        (&world.nodes[0].program, 15),
        (&world.hubs[0].program, 15),
        (&world.nodes[0].program, 3),
    ] {
        program.signal(Signal::STOP);
        sleep(Duration::from_secs(seconds)).await;
        program.signal(Signal::CONT);
    }
    load.end_after(100).await;
    world.settled(CONVERGED).await;
    let is_one = |status: &Value| status["connected"] == true;
    world.nodes[0].until(CONVERGED, "a session", is_one).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn bits_that_flip_on_the_way_end_links_and_change_nothing() {
    let (world, proxy) = through_a_proxy().await;
    let before = proxy.accepted();
    proxy.weather(Weather {
        flips: Some(20),
        ..Weather::default()
    });
    let load = Load::begin(world.driver.another(), 71, 1, Duration::from_millis(5));
    sleep(Duration::from_secs(10)).await;
    proxy.weather(Weather::default());
    load.end_after(50).await;
    world.settled(CONVERGED).await;
    let (flipped, opened) = (proxy.flipped(), proxy.accepted() - before);
    eprintln!("{flipped} bits flipped, {opened} links opened anew");
    assert!(flipped > 0 && opened > 0, "{flipped} bits, {opened} links");
}
