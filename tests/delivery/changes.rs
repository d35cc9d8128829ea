//! What comes, changes and goes reaches every node, with everything up and with everything down.

use std::time::Duration;

use serde_json::{Value, json};

use crate::driver::{Driver, config_map, pod, secret, service};
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

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_a_node_is_away_is_there_when_it_is_back() {
    let mut world = World::started(Plan::default()).await;
    let driver = world.driver.another();
    for names in ["kept", "gone", "again", "moved"] {
        driver.create("secrets", &secret(names, "b25l")).await;
        driver.create("configmaps", &config_map(names, "one")).await;
        driver.create("pods", &pod(names, NODES[0], names)).await;
        driver.create("services", &service(names, "one")).await;
    }
    world.settled(SOON).await;
    world.nodes[0].program.kill();
    // An object changes often, one goes, one goes and another takes its name, one is no more named.
    for turn in 0..50 {
        let note = json!({"metadata": {"annotations": {"note": format!("turn {turn}")}}});
        driver.patch("pods", "kept", &note).await;
    }
    for plural in ["pods", "services", "secrets", "configmaps"] {
        driver.delete(plural, "gone").await;
        driver.delete(plural, "again").await;
    }
    driver.create("secrets", &secret("again", "dHdv")).await;
    driver
        .create("configmaps", &config_map("again", "two"))
        .await;
    driver
        .create("pods", &pod("again", NODES[0], "again"))
        .await;
    driver.create("services", &service("again", "two")).await;
    driver.delete("pods", "moved").await;
    driver
        .create("pods", &pod("moved", NODES[1], "moved"))
        .await;
    // And something comes that the node never saw.
    driver.create("configmaps", &config_map("new", "one")).await;
    driver.create("pods", &pod("new", NODES[0], "new")).await;
    world.nodes[0].start();
    world.settled(SOON).await;
    // Of fifty changes one is sent, and of what did not change nothing.
    let received = world.nodes[0].received().await;
    assert!(received < 8 * 1024, "{received} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_while_everything_is_down_is_gone_when_it_is_up() {
    let mut world = World::started(Plan::default()).await;
    let driver = world.driver.another();
    for number in 0..20 {
        let names = format!("number-{number}");
        driver
            .create("configmaps", &config_map(&names, "one"))
            .await;
        driver.create("pods", &pod(&names, NODES[0], &names)).await;
        driver.create("services", &service(&names, "one")).await;
    }
    world.settled(SOON).await;
    world.nodes[0].program.kill();
    world.hubs[0].program.kill();
    for number in 0..10 {
        let names = format!("number-{number}");
        for plural in ["pods", "services", "configmaps"] {
            driver.delete(plural, &names).await;
        }
    }
    world.kill_api();
    world.nodes[0].start();
    // Without anybody to ask, a node keeps what it has.
    let alone = |status: &Value| status["trouble"].is_string();
    world.nodes[0].until(SOON, "trouble", alone).await;
    let held = world.nodes[0].dump().await.unwrap();
    assert!(
        held.iter()
            .any(|line| line.starts_with("pods default/number-0 "))
    );
    world.start_api();
    world.hubs[0].start().await;
    world.settled(CONVERGED).await;
    let held = world.nodes[0].dump().await.unwrap();
    assert!(
        !held
            .iter()
            .any(|line| line.starts_with("pods default/number-0 "))
    );
    assert!(
        held.iter()
            .any(|line| line.starts_with("pods default/number-19 "))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_from_its_disk_with_nobody_around() {
    let mut world = World::started(Plan::default()).await;
    let driver = world.driver.another();
    driver
        .create("configmaps", &config_map("here", "one"))
        .await;
    driver.create("pods", &pod("here", NODES[0], "here")).await;
    world.settled(SOON).await;
    let before = world.nodes[0].dump().await.unwrap();
    world.hubs[0].program.kill();
    world.kill_api();
    for _ in 0..3 {
        world.nodes[0].restart();
        let served = |status: &Value| status["connected"] == false;
        world.nodes[0].until(SOON, "an answer", served).await;
        assert_eq!(world.nodes[0].dump().await.unwrap(), before);
    }
}

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn widget(name: &str, size: u32) -> Value {
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": size}
    })
}

/// Makes a kind of our own, and waits until it is served.
async fn define_widgets(driver: &Driver) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": schema}
    });
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget"});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    driver.must("POST", path, Some(&definition)).await;
    let served = tokio::time::timeout(SOON, async {
        while !matches!(driver.ask("GET", WIDGETS, None).await, Ok((200, _))) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    served.await.expect("a kind that is served");
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_a_custom_kind_are_as_safe_as_pods() {
    let mut world = World::new(Plan::default()).await;
    define_widgets(&world.driver).await;
    world.hubs[0].program.kill();
    world.hubs[0].extra = vec!["--share".to_owned(), "widgets.example.com".to_owned()];
    world.hubs[0].start().await;
    let all = "/apis/example.com/v1/widgets";
    world.shared = vec![("widgets.example.com", all, "example.com/v1", "Widget")];
    world.nodes[0].start();
    let driver = world.driver.another();
    for number in 0..10 {
        let made = widget(&format!("widget-{number}"), number);
        driver.must("POST", WIDGETS, Some(&made)).await;
    }
    world.settled(SOON).await;
    world.nodes[0].program.kill();
    for number in 0..5 {
        let path = format!("{WIDGETS}/widget-{number}");
        driver.must("DELETE", &path, None).await;
        let path = format!("{WIDGETS}/widget-{}", number + 5);
        let larger = json!({"spec": {"size": number + 100}});
        driver.must("PATCH", &path, Some(&larger)).await;
    }
    driver
        .must("POST", WIDGETS, Some(&widget("widget-0", 7)))
        .await;
    world.hubs[0].program.kill();
    world.nodes[0].start();
    world.hubs[0].start().await;
    world.settled(CONVERGED).await;
    let held = world.nodes[0].dump().await.unwrap();
    let widgets = held
        .iter()
        .filter(|line| line.starts_with("widgets.example.com "));
    assert_eq!(widgets.count(), 6);
}
