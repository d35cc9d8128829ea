//! What no node holds by itself is carried to a node whose clients watch it, as far as they may.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::accounts::{Pod, bind, client, passed_on, token};
use crate::local::{json_of, listed, text};
use crate::node::Node;
use crate::world::{CONVERGED, Plan, World};

const SOON: Duration = Duration::from_secs(60);
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "example.com";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const ALL_WIDGETS: &str = "/apis/example.com/v1/widgets";

fn widgets(group: &str) -> String {
    format!("/apis/{group}/v1/namespaces/default/widgets")
}

async fn define(world: &World, group: &str) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}
    });
    let made = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"}, "versions": [version]
        }
    });
    world.driver.must("POST", DEFINITIONS, Some(&made)).await;
    let began = Instant::now();
    while !matches!(
        world.driver.ask("GET", &widgets(group), None).await,
        Ok((200, _))
    ) {
        assert!(began.elapsed() < SOON, "the kind is not served");
        sleep(Duration::from_millis(100)).await;
    }
}

async fn make(world: &World, group: &str, name: &str) -> Value {
    let widget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": name}, "size": 1
    });
    let path = widgets(group);
    world.driver.must("POST", &path, Some(&widget)).await
}

/// Watches until the node itself answers, as informers do.
async fn is_carried(pod: &Pod, path: &str, node: &Node) {
    let began = Instant::now();
    let watch = format!("{path}?watch=1&timeoutSeconds=1");
    loop {
        let before = passed_on(node).await;
        let answer = pod.get(&watch).await;
        let here = passed_on(node).await == before;
        match answer.status {
            200 if here => return,
            200 => {}
            code => panic!("{path}: {code} {}", text(&answer)),
        }
        assert!(began.elapsed() < SOON, "{path} is not carried to the node");
        sleep(Duration::from_millis(200)).await;
    }
}

/// Whether a node has something of these.
async fn holds(node: &Node) -> bool {
    let dump = node.dump().await.expect("the agent answers");
    dump.iter().any(|line| line.contains("widgets."))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_pod_watches_is_carried_to_its_node_as_far_as_its_account_may_see_it() {
    let plan = Plan {
        nodes: 2,
        ..Plan::default()
    };
    let mut world = World::started(plan).await;
    define(&world, GROUP).await;
    let rules = json!([{
        "apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get", "list", "watch"]
    }]);
    bind(&world, &rules).await;
    let here = client(&world, 0, token(&world, "one", 0).await).await;
    make(&world, GROUP, "one").await;
    world.settled(CONVERGED).await;
    is_carried(&here, WIDGETS, &world.nodes[0]).await;
    let made = make(&world, GROUP, "two").await;
    // Nobody on the other node asked for it.
    assert!(holds(&world.nodes[0]).await && !holds(&world.nodes[1]).await);
    let at = made["metadata"]["resourceVersion"].as_str().unwrap();
    let newest = format!("{WIDGETS}?resourceVersion={at}");
    let list = here.until(&newest, 200).await;
    assert_eq!(listed(&json_of(&list)).len(), 2);
    // Without a hub it is there, and after a restart; more of it is not.
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    for _ in 0..2 {
        let list = here.until(WIDGETS, 200).await;
        assert_eq!(listed(&json_of(&list)).len(), 2);
        assert_eq!(here.get(ALL_WIDGETS).await.status, 503);
        world.nodes[0].restart();
        here.local.client().await;
    }
    // A hub that remembers nothing is told again, and goes on with it.
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    let made = make(&world, GROUP, "three").await;
    let at = made["metadata"]["resourceVersion"].as_str().unwrap();
    // Until it has come, the cluster is asked for what is as new as that.
    let newest = format!("{WIDGETS}?resourceVersion={at}");
    here.is_answered_here(&newest, &world.nodes[0]).await;
    let list = here.until(&newest, 200).await;
    assert_eq!(listed(&json_of(&list)).len(), 3);
    // Whoever may not see it any more has it taken away.
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/proxy";
    world.driver.must("DELETE", path, None).await;
    let began = Instant::now();
    while holds(&world.nodes[0]).await {
        assert!(began.elapsed() < SOON, "it is still there");
        sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(here.until(WIDGETS, 403).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_of_one_name_are_told_apart_and_one_that_goes_goes_from_the_node() {
    const OTHER: &str = "other.example";
    let world = World::started(Plan::default()).await;
    let rules = json!([{
        "apiGroups": [GROUP, OTHER], "resources": ["widgets"], "verbs": ["get", "list", "watch"]
    }]);
    bind(&world, &rules).await;
    for (group, name) in [(GROUP, "one"), (OTHER, "two")] {
        define(&world, group).await;
        make(&world, group, name).await;
    }
    let here = client(&world, 0, token(&world, "one", 0).await).await;
    world.settled(CONVERGED).await;
    for (group, name) in [(GROUP, "one"), (OTHER, "two")] {
        is_carried(&here, &widgets(group), &world.nodes[0]).await;
        let list = here.until(&widgets(group), 200).await;
        let names: Vec<String> = listed(&json_of(&list)).into_keys().collect();
        assert_eq!(names, [name], "{group}");
    }
    // A watch is told what goes, and ends with its kind.
    let mut watch = here
        .local
        .watch(&format!("{}?watch=1", widgets(OTHER)))
        .await;
    assert_eq!(watch.next().await["type"], "ADDED");
    let gone = format!("{DEFINITIONS}/widgets.{OTHER}");
    world.driver.must("DELETE", &gone, None).await;
    assert_eq!(watch.next().await["type"], "DELETED");
    assert!(watch.ends_in_order().await);
    here.until(&widgets(OTHER), 404).await;
    let list = here.until(WIDGETS, 200).await;
    assert_eq!(listed(&json_of(&list)).len(), 1);
    let began = Instant::now();
    let others = async || {
        let dump = world.nodes[0].dump().await.expect("the agent answers");
        dump.iter()
            .any(|line| line.contains("widgets.other.example"))
    };
    while others().await {
        assert!(began.elapsed() < SOON, "it is still there");
        sleep(Duration::from_millis(200)).await;
    }
}
