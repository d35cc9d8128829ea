//! An API that is gone, forgets what was, and refuses.

use std::time::Duration;

use ::cluster::Signal;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::driver::{Driver, pod, service};
use crate::load::Load;
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);
/// How long the API of a test remembers changes.
const HISTORY: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn an_api_that_is_restarted_costs_a_node_nothing() {
    let mut world = World::started(Plan::default()).await;
    world.driver.furnish(NODES[0]).await;
    world.settled(SOON).await;
    let (sessions, before) = (
        world.nodes[0].sessions().await,
        world.nodes[0].received().await,
    );
    world.kill_api();
    sleep(Duration::from_millis(500)).await;
    world.start_api();
    world
        .driver
        .create("services", &service("later", "one"))
        .await;
    world.settled(CONVERGED).await;
    assert_eq!(world.nodes[0].sessions().await, sessions);
    let received = world.nodes[0].received().await - before;
    assert!(received < 4 * 1024, "{received} bytes");
}

/// The version up to which the hub follows a resource.
async fn followed(world: &World, resource: &str) -> String {
    let status = world.hubs[0].status().await;
    let all = status["resources"].as_array().unwrap();
    let found = all.iter().find(|it| it["resource"] == resource).unwrap();
    found["version"].as_str().unwrap().to_owned()
}

/// Waits until a watch from this version is told that it is too old.
async fn forgotten(driver: &Driver, path: &str, version: &str) {
    let watch = format!("{path}?watch=1&timeoutSeconds=1&resourceVersion={version}");
    let began = Instant::now();
    loop {
        let (status, body) = driver.ask("GET", &watch, None).await.unwrap();
        let text = String::from_utf8_lossy(&body);
        if status == 410 || text.contains("\"code\":410") {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{status} {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn what_went_while_the_hub_was_away_is_found_though_the_api_has_forgotten_it() {
    let plan = Plan {
        history: Some(HISTORY),
        ..Plan::default()
    };
    let mut world = World::started(plan).await;
    world.driver.furnish(NODES[0]).await;
    world.settled(SOON).await;
    let before = followed(&world, "services").await;
    // The hub stands still; its watches break; and what it missed cannot be watched any more.
    world.hubs[0].program.signal(Signal::STOP);
    world.kill_api();
    world.start_api();
    let driver = world.driver.another();
    for number in 0..10 {
        let names = format!("number-{number}");
        driver.delete("pods", &names).await;
        driver.delete("services", &names).await;
        driver.create("services", &service(&names, "anew")).await;
        driver
            .delete("services", &format!("number-{}", number + 10))
            .await;
    }
    // A real server remembers what happened since its start, however old it is.
    world.kill_api();
    world.start_api();
    for turn in 0..3 {
        sleep(HISTORY).await;
        driver
            .create("services", &service(&format!("turn-{turn}"), "one"))
            .await;
    }
    forgotten(&driver, "/api/v1/services", &before).await;
    world.hubs[0].program.signal(Signal::CONT);
    world.settled(CONVERGED).await;
}

/// A role with every right, but for these resources of the core group.
fn role(without: &[&str]) -> Value {
    let core = [
        "pods",
        "nodes",
        "secrets",
        "configmaps",
        "serviceaccounts",
        "persistentvolumeclaims",
        "persistentvolumes",
        "services",
        "namespaces",
        "events",
    ];
    let core: Vec<&str> = core
        .into_iter()
        .filter(|it| !without.contains(it))
        .collect();
    let groups = [
        "apps",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "holdfast.dev",
        "node.k8s.io",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "storage.k8s.io",
    ];
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "test-hub"},
        "rules": [
            {"apiGroups": [""], "resources": core, "verbs": ["*"]},
            {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}
        ]
    })
}

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// Lets the hub go on as a user whose rights are those of the role.
async fn lessen(world: &mut World) {
    world.driver.must("POST", ROLES, Some(&role(&[]))).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "test-hub"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "test-hub"
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "test-hub"}]
    });
    world.driver.must("POST", BINDINGS, Some(&binding)).await;
    let client = world.site().client("test-hub", &[]).unwrap();
    let kubeconfig = world
        .site()
        .write_kubeconfig("hub.kubeconfig", &client)
        .unwrap();
    world.hubs[0].kubeconfig(&kubeconfig);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn what_the_hub_may_not_read_stays_as_it_is_and_is_never_emptied() {
    let mut world = World::started(Plan::default()).await;
    lessen(&mut world).await;
    world.driver.furnish(NODES[0]).await;
    world.settled(SOON).await;
    let services = |held: &std::collections::BTreeSet<String>| {
        held.iter()
            .filter(|line| line.starts_with("services "))
            .count()
    };
    let before = services(&world.nodes[0].dump().await.unwrap());
    // The hub starts anew, knows nothing, and may not list services.
    let lesser = role(&["services"]);
    world
        .driver
        .must("PUT", &format!("{ROLES}/test-hub"), Some(&lesser))
        .await;
    world.hubs[0].program.kill();
    world.hubs[0].start().await;
    world
        .driver
        .create("services", &service("later", "one"))
        .await;
    world.driver.delete("services", "number-0").await;
    world
        .driver
        .create("pods", &pod("later", NODES[0], "number-1"))
        .await;
    let began = Instant::now();
    loop {
        let held = world.nodes[0].dump().await.unwrap();
        assert_eq!(services(&held), before, "services stay as they are");
        if held
            .iter()
            .any(|line| line.starts_with("pods default/later "))
        {
            break;
        }
        assert!(began.elapsed() < CONVERGED, "pods are delivered meanwhile");
        sleep(Duration::from_millis(50)).await;
    }
    assert_ne!(world.hubs[0].state("services").await, "complete");
    world
        .driver
        .must("PUT", &format!("{ROLES}/test-hub"), Some(&role(&[])))
        .await;
    world.settled(CONVERGED).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn an_api_that_is_restarted_under_load_again_and_again_is_followed() {
    let plan = Plan {
        nodes: 2,
        ..Plan::default()
    };
    let mut world = World::started(plan).await;
    let load = Load::begin(world.driver.another(), 41, 2, Duration::from_millis(5));
    for _ in 0..6 {
        sleep(Duration::from_secs(1)).await;
        world.kill_api();
        world.start_api();
    }
    load.end_after(100).await;
    world.settled(CONVERGED).await;
}
