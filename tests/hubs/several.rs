//! Several hubs on one cluster: a node has one session, wherever it is, and nothing is sent twice.

use std::time::Duration;

use cloud::join::NAMESPACE;
use cloud::owners::Waits;
use cloud::run;
use cloud::view::Policy;
use object::Resource;
use serde_json::{Value, json};

use crate::stage::{Hub, Node, Stage, until};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A pod on n1 that names some config maps, and nothing else that a node would hold.
async fn furnish(stage: &Stage) {
    let mut volumes = Vec::new();
    for number in 0..20 {
        let name = format!("map-{number}");
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"text": noise(number)},
        });
        stage.create(CONFIG_MAPS, &object).await;
        volumes.push(json!({"name": name, "configMap": {"name": name}}));
    }
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": volumes,
        },
    });
    stage.create("/api/v1/namespaces/default/pods", &pod).await;
}

/// A text that no compression makes shorter by much.
fn noise(seed: u64) -> String {
    let mut state = seed;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'!' + (state >> 33) as u8 % 90).to_string()
    };
    (0..TEXT_BYTES).map(|_| draw()).collect()
}

/// Characters of a config map.
const TEXT_BYTES: usize = 1000;

/// Waits until the node holds all of it.
async fn holds_everything(node: &Node) {
    let what = "everything is on the node";
    until(what, || {
        let held = node.report().resources;
        let of = |name: &str| held.iter().find(|it| it.resource == name);
        of("pods").is_some_and(|it| it.objects == 1)
            && of("configmaps").is_some_and(|it| it.objects >= 20)
            && of("nodes").is_some_and(|it| it.objects == 1)
    })
    .await;
}

/// Waits until a hub knows that the node holds what it should, and gives the bytes that it sent for
/// that.
async fn is_even(hub: &Hub) -> u64 {
    let of = |hub: &Hub| hub.hub.ledger().node("n1");
    until("the hub knows the node", || {
        of(hub).is_some_and(|it| it.connected && it.in_flight == 0 && it.versions.len() >= 3)
    })
    .await;
    of(hub).unwrap().sent_bytes
}

fn records() -> String {
    format!(
        "/api/v1/namespaces/{NAMESPACE}/configmaps?labelSelector=holdfast.dev%2Fkind%3Dsessions"
    )
}

fn lease(hub: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/holdfast-hub-{hub}")
}

fn has(list: &Value, hub: &str) -> bool {
    let items = list["items"].as_array().unwrap();
    items.iter().any(|record| {
        let data = &record["data"];
        let sessions = data["sessions"].as_str().unwrap_or_default();
        data["hub"] == hub && sessions.contains("n1")
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_moves_ends_its_old_session() {
    let stage = Stage::open().await;
    let (one, other) = (stage.hub("one").await, stage.hub("other").await);
    let node = stage.node("n1", &[&one]).await;
    node.is_with("one").await;
    stage.sees(&records(), |list| has(list, "one")).await;
    until("the other knows", || {
        let owners = other.hub.owners().lock();
        owners.hub_of("n1").is_some_and(|(hub, _)| hub == "one")
    })
    .await;
    // The same node, with its disk, by another way; the first link stays open, as one does whose
    // end is not heard of.
    let moved = stage.moved(&node, "n1", &[&other]).await;
    moved.is_with("other").await;
    until("the old session ends", || {
        one.hub.ledger().ends().get("superseded") == Some(&1)
    })
    .await;
    assert!(!one.hub.sessions().has("n1"));
    assert!(other.hub.sessions().has("n1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_hub_dies_goes_on_with_another_and_is_sent_nothing_anew() {
    let stage = Stage::open().await;
    furnish(&stage).await;
    let (one, other) = (stage.hub("one").await, stage.hub("other").await);
    let node = stage.node("n1", &[&one, &other]).await;
    until("a session", || node.report().connected).await;
    holds_everything(&node).await;
    let (first, second) = match one.hub.sessions().has("n1") {
        true => (one, other),
        false => (other, one),
    };
    let sent = is_even(&first).await;
    assert!(sent > 20 * TEXT_BYTES as u64 / 2, "{sent}");
    let dump = node.keep.dump();
    first.kill().await;
    until("the other hub has the node", || {
        second.hub.sessions().has("n1")
    })
    .await;
    let sent = is_even(&second).await;
    // What is new is how far the node is, resource by resource; no object comes again.
    assert!(sent < 5 * TEXT_BYTES as u64, "{sent} bytes");
    let objects = |dump: &str| dump.lines().filter(|it| !it.starts_with("nodes")).count();
    assert_eq!(objects(&node.keep.dump()), objects(&dump));
    until("two sessions", || node.report().sessions == 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_stops_takes_its_lease_with_it_and_is_gone_for_the_others() {
    let stage = Stage::open().await;
    let (one, other) = (stage.hub("one").await, stage.hub("other").await);
    let node = stage.node("n1", &[&one, &other]).await;
    until("a session", || node.report().connected).await;
    let first = stage.sees(&lease("one"), |_| true).await;
    let renewed = |it: &Value| it["spec"]["renewTime"] != first["spec"]["renewTime"];
    stage.sees(&lease("one"), renewed).await;
    stage.sees(&lease("other"), |_| true).await;
    let (first, second, name) = match one.hub.sessions().has("n1") {
        true => (one, other, "one"),
        false => (other, one, "other"),
    };
    until("the second knows of the first", || {
        second.hub.owners().lock().hub_of("n1").is_some()
    })
    .await;
    first.stop().await;
    assert_eq!(stage.get(&lease(name)).await, None);
    until("the node is here now", || second.hub.sessions().has("n1")).await;
    until("nobody else has it", || {
        second.hub.owners().lock().hub_of("n1").is_none()
    })
    .await;
    // The hub comes back: what it said before it stopped is put right.
    let again = stage.hub(name).await;
    stage.sees(&records(), |list| !has(list, name)).await;
    again.stop().await;
}

fn deployments() -> Resource {
    Resource::new("apps", "deployments")
}

/// How many deployments the node holds, and in how many scopes.
fn held(node: &Node) -> (u64, usize) {
    let held = node.report().resources;
    let of = held.iter().find(|it| it.resource == "deployments.apps");
    of.map_or((0, 0), |it| (it.objects, it.scopes))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_stays_on_nodes_until_a_hub_is_told_to_end_it() {
    let stage = Stage::open().await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    let path = "/apis/apps/v1/namespaces/default/deployments";
    stage.create(path, &deployment).await;
    let shares = Policy::default().and([deployments()]).unwrap();
    let shares = |config: &mut run::Config| config.policy = shares;
    let first = stage.hub_with("first", shares).await;
    let port = first.port();
    let node = stage.node("n1", &[&first]).await;
    until("the deployment is there", || held(&node) == (1, 1)).await;

    // A hub that does not know the kind has everything else on the node, and leaves this alone.
    first.stop().await;
    let second = stage.hub_on(port, "second", |_| ()).await;
    node.is_with("second").await;
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}]}});
    let services = |node: &Node| {
        let held = node.report().resources;
        let of = held.iter().find(|it| it.resource == "services");
        of.map_or(0, |it| it.objects)
    };
    let before = services(&node);
    stage
        .create("/api/v1/namespaces/default/services", &object)
        .await;
    until("a service comes", || services(&node) == before + 1).await;
    assert_eq!(held(&node), (1, 1));

    // One that is told to end it, ends it.
    second.stop().await;
    let ends = Policy::default().ending([deployments()]).unwrap();
    let ends = |config: &mut run::Config| config.policy = ends;
    let third = stage.hub_on(port, "third", ends).await;
    until("the deployment goes", || held(&node) == (0, 0)).await;
    node.stop().await;
    third.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_hub_left_is_collected_by_another() {
    let stage = Stage::open().await;
    let short = |config: &mut run::Config| {
        config.peers = Waits {
            renew_every: Duration::from_millis(200),
            gone_after: Duration::from_secs(2),
            collected_after: Duration::from_secs(4),
        };
    };
    let dead = stage.hub_with("dead", short).await;
    let node = stage.node("n1", &[&dead]).await;
    node.is_with("dead").await;
    stage.sees(&records(), |list| has(list, "dead")).await;
    let path = lease("dead");
    let left = [
        stage.sees(&path, |_| true).await,
        stage.sees(&records(), |list| has(list, "dead")).await,
    ];
    // It ends without a word: what it said stays, as if it had been killed.
    dead.stop().await;
    node.stop().await;
    let [lease_left, list] = left;
    stage.leave(&path, lease_left).await;
    for record in list["items"].as_array().unwrap() {
        let name = record["metadata"]["name"].as_str().unwrap();
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}");
        stage.leave(&path, record.clone()).await;
    }
    let other = stage.hub_with("other", short).await;
    until("the other knows of the dead hub's sessions", || {
        let owners = other.hub.owners().lock();
        owners.hub_of("n1").is_some_and(|(hub, _)| hub == "dead")
    })
    .await;
    let gone = |list: &Value| {
        let items = list["items"].as_array().unwrap();
        !items.iter().any(|record| record["data"]["hub"] == "dead")
    };
    stage.sees(&records(), gone).await;
    until("nobody has the node", || {
        other.hub.owners().lock().hub_of("n1").is_none()
    })
    .await;
    stage.loses(&path).await;
    // A hub that is there is left alone, however short the time is.
    assert!(stage.get(&lease("other")).await.is_some());
}
