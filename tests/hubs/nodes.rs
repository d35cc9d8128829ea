//! An agent without a kubelet is a node of the cluster all the same.

use cloud::nodes::{Leases, MARK};
use edge::agent::Registration;
use serde_json::{Value, json};

use crate::stage::{Stage, until};

fn ready(node: &Value) -> Option<&str> {
    let conditions = node["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|it| it["type"] == "Ready")?;
    ready["status"].as_str()
}

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_registered_and_its_lease_is_kept() {
    let stage = Stage::open().await;
    let hub = stage.hub("hub").await;
    let node = stage.node("n1", &[&hub]).await;
    let found = stage.sees("/api/v1/nodes/n1", |_| true).await;
    let labels = &found["metadata"]["labels"];
    assert_eq!(labels["kubernetes.io/hostname"], "shop");
    assert_eq!(labels["kubernetes.io/arch"], "arm64");
    assert_eq!(labels[MARK], "true");
    assert_eq!(ready(&found), Some("True"));
    let path = format!("{LEASES}/n1");
    let lease = stage.sees(&path, |_| true).await;
    assert_eq!(lease["spec"]["holderIdentity"], "n1");
    let owner = &lease["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], found["metadata"]["uid"]);

    // A controller gives the node up; a hub that has its session says otherwise.
    let gone = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let patched = stage
        .client
        .patch("/api/v1/nodes/n1/status", gone.to_string().into());
    patched.await.unwrap();
    node.stop().await;
    let renewed = lease["spec"]["renewTime"].clone();
    let node = stage.node("n1", &[&hub]).await;
    stage
        .sees("/api/v1/nodes/n1", |it| ready(it) == Some("True"))
        .await;
    stage
        .sees(&path, |it| it["spec"]["renewTime"] != renewed)
        .await;

    // Somebody deletes the Node: with it goes the right to be one, until the agent is told to stop.
    stage.client.delete("/api/v1/nodes/n1", None).await.unwrap();
    let uid = found["metadata"]["uid"].clone();
    stage
        .sees("/api/v1/nodes/n1", |it| it["metadata"]["uid"] != uid)
        .await;
    node.stop().await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_a_kubelet_and_one_that_does_not_ask_are_left_alone() {
    let stage = Stage::open().await;
    let by_kubelet = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    stage.create("/api/v1/nodes", &by_kubelet).await;
    let hub = stage.hub("hub").await;
    let quiet = stage
        .hub_with("quiet", |config| config.leases = Leases::Off)
        .await;
    let of_kubelet = stage.node("n1", &[&hub]).await;
    let elsewhere = stage
        .node_with("n2", &[&hub], Registration::Elsewhere)
        .await;
    let unleased = stage.node("n3", &[&quiet]).await;
    // A node that comes last is registered: by then the others had their turn.
    let last = stage.node("n4", &[&hub]).await;
    stage.sees(&format!("{LEASES}/n4"), |_| true).await;
    stage.sees("/api/v1/nodes/n3", |_| true).await;
    let all = [&of_kubelet, &elsewhere, &unleased, &last];
    for node in all {
        until("a session", || node.report().connected).await;
    }
    let found = stage.get("/api/v1/nodes/n1").await.unwrap();
    assert_eq!(ready(&found), None);
    assert_eq!(found["metadata"]["labels"][MARK], Value::Null);
    assert_eq!(stage.get("/api/v1/nodes/n2").await, None);
    for node in ["n1", "n2", "n3"] {
        assert_eq!(stage.get(&format!("{LEASES}/{node}")).await, None, "{node}");
    }
    assert_eq!(hub.hub.register().counts().nodes, 2);
}
