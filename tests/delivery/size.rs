//! Much at once, over little.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::driver::{Driver, NAMESPACE};
use crate::proxy::{Proxy, Weather};
use crate::world::{CONVERGED, Plan, World};

/// A kind that every node holds whole, and that costs the API little to make.
fn slices() -> String {
    format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices")
}

fn slice(number: usize) -> Value {
    let at = |part: usize| (number / 250_usize.pow(part as u32)) % 250 + 1;
    let address = format!("10.1.{}.{}", at(1), at(0));
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("many-{number}"),
            "labels": {"kubernetes.io/service-name": format!("service-{}", number * 7919 % 10_007)}
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]
    })
}

/// Asks for so many things on several connections at once.
async fn ask(driver: &Driver, count: usize, what: fn(usize) -> (&'static str, String, Value)) {
    let mut tasks = JoinSet::new();
    for lane in 0..8 {
        let driver = driver.another();
        tasks.spawn(async move {
            for number in (lane..count).step_by(8) {
                let (method, path, body) = what(number);
                driver.must(method, &path, Some(&body)).await;
            }
        });
    }
    while let Some(asked) = tasks.join_next().await {
        asked.unwrap();
    }
}

/// Makes so many objects that every node holds.
pub(crate) async fn make(driver: &Driver, count: usize) {
    ask(driver, count, |number| ("POST", slices(), slice(number))).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_first_sync_over_a_slow_link_that_breaks_many_times_makes_progress_each_time() {
    let mut world = World::new(Plan::default()).await;
    make(&world.driver, 5_000).await;
    let proxy = Proxy::before(world.hubs[0].address()).await;
    let mut slow = Weather::far(Duration::from_millis(100));
    slow.down.bytes_per_second = Some(64 * 1024);
    proxy.weather(slow);
    world.nodes[0].hubs = vec![proxy.address.to_string()];
    world.nodes[0].start();
    // A session carries a sixth of it, and then the link breaks.
    for cuts in 0.. {
        world.nodes[0].connected(CONVERGED).await;
        sleep(Duration::from_secs(4)).await;
        if world.differences(&[&world.nodes[0]]).await.is_empty() {
            assert!(cuts > 1, "it was too fast to be interrupted");
            return;
        }
        let bytes = proxy.carried_down();
        assert!(
            cuts < 12,
            "after {cuts} cuts and {bytes} bytes it is not done"
        );
        proxy.cut();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_link_of_a_modem_carries_much_in_one_session() {
    let mut world = World::new(Plan::default()).await;
    make(&world.driver, 150).await;
    let proxy = Proxy::before(world.hubs[0].address()).await;
    let mut slow = Weather::far(Duration::from_secs(1));
    // 9,600 bits.
    slow.down.bytes_per_second = Some(1_200);
    slow.up.bytes_per_second = Some(1_200);
    proxy.weather(slow);
    world.nodes[0].hubs = vec![proxy.address.to_string()];
    world.nodes[0].start();
    let took = world.settled(2 * CONVERGED).await;
    eprintln!(
        "150 objects at 9,600 bits a second: {took:?}, {} bytes",
        proxy.carried_down()
    );
    assert_eq!(world.nodes[0].sessions().await, 1, "in one session");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_burst_of_ten_thousand_changes_is_delivered_and_nothing_is_dropped() {
    let world = World::started(Plan::default()).await;
    make(&world.driver, 2_000).await;
    ask(&world.driver, 8_000, |number| {
        let note = json!({"metadata": {"annotations": {"note": number.to_string()}}});
        let path = format!("{}/many-{}", slices(), number % 2_000);
        ("PATCH", path, note)
    })
    .await;
    let took = world.settled(CONVERGED).await;
    eprintln!("10,000 changes: the last of them there after {took:?}");
    assert_eq!(world.nodes[0].sessions().await, 1, "in one session");
}
