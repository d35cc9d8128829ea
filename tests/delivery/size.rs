//! Much at once, over little.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::driver::{Driver, service};
use crate::proxy::{Proxy, Weather};
use crate::world::{CONVERGED, Plan, World};

/// Makes services on several connections at once.
async fn make(driver: &Driver, count: usize) {
    let mut tasks = JoinSet::new();
    for lane in 0..8 {
        let driver = driver.another();
        tasks.spawn(async move {
            for number in (lane..count).step_by(8) {
                let name = format!("many-{number}");
                let note = format!("note {number} {}", number * 7919 % 10_007);
                driver.create("services", &service(&name, &note)).await;
            }
        });
    }
    while let Some(made) = tasks.join_next().await {
        made.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_first_sync_over_a_slow_link_that_breaks_many_times_comes_to_its_end() {
    let mut world = World::new(Plan::default()).await;
    make(&world.driver, 5_000).await;
    let proxy = Proxy::before(world.hubs[0].address()).await;
    let mut slow = Weather::far(Duration::from_millis(100));
    slow.down.bytes_per_second = Some(64 * 1024);
    proxy.weather(slow);
    world.nodes[0].hubs = vec![proxy.address.to_string()];
    world.nodes[0].start();
    let mut cuts = 0;
    let began = Instant::now();
    while !world.differences(&[&world.nodes[0]]).await.is_empty() {
        assert!(began.elapsed() < CONVERGED, "after {cuts} cuts");
        let session = world.nodes[0].connected(CONVERGED);
        session.await;
        sleep(Duration::from_secs(4)).await;
        if cuts < 12 {
            proxy.cut();
            cuts += 1;
        }
    }
    let took = began.elapsed();
    let bytes = proxy.carried_down();
    eprintln!("5,000 objects after {cuts} cuts, {took:?} and {bytes} bytes");
    assert!(cuts > 1, "it was too fast to be interrupted");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_burst_of_ten_thousand_changes_is_delivered_and_nothing_is_dropped() {
    let world = World::started(Plan::default()).await;
    make(&world.driver, 2_000).await;
    let mut tasks = JoinSet::new();
    for lane in 0..8 {
        let driver = world.driver.another();
        tasks.spawn(async move {
            for number in (lane..8_000).step_by(8) {
                let note = json!({"metadata": {"annotations": {"note": number.to_string()}}});
                driver
                    .patch("services", &format!("many-{}", number % 2_000), &note)
                    .await;
            }
        });
    }
    while let Some(made) = tasks.join_next().await {
        made.unwrap();
    }
    let took = world.settled(CONVERGED).await;
    eprintln!("10,000 changes: the last of them there after {took:?}");
    assert_eq!(world.nodes[0].sessions().await, 1, "in one session");
}
