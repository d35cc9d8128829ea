//! What comes, changes and goes reaches every node, with everything up and with everything down.

use std::time::Duration;

use serde_json::json;

use crate::driver::{config_map, pod, secret, service};
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn every_node_holds_its_pods_and_what_they_name_and_nothing_of_others() {
    let plan = Plan {
        nodes: 2,
        ..Plan::default()
    };
    let world = World::started(plan).await;
    let driver = &world.driver;
    for (node, names) in [(NODES[0], "first"), (NODES[1], "second")] {
        driver.create("secrets", &secret(names, "b25l")).await;
        driver.create("configmaps", &config_map(names, "one")).await;
        driver.create("pods", &pod(names, node, names)).await;
    }
    driver
        .create("services", &service("shared", "for all"))
        .await;
    driver.create("secrets", &secret("nobodys", "b25l")).await;
    world.settled(SOON).await;
    let held = world.nodes[0].dump().await.unwrap();
    let has = |start: &str| held.iter().any(|line| line.starts_with(start));
    assert!(has("secrets default/first ") && has("services default/shared "));
    assert!(!has("secrets default/second ") && !has("secrets default/nobodys "));
    assert!(!has("pods default/second ") && !has("nodes node-2 "));

    let patch = json!({"metadata": {"annotations": {"note": "changed"}}});
    driver.patch("pods", "first", &patch).await;
    driver
        .patch("secrets", "first", &json!({"data": {"key": "dHdv"}}))
        .await;
    world.settled(SOON).await;
    // The last pod that names them goes, and they go with it.
    driver.delete("pods", "first").await;
    world.settled(SOON).await;
    let held = world.nodes[0].dump().await.unwrap();
    assert!(!held.iter().any(|line| line.starts_with("secrets ")));
}
