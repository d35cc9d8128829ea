//! What nodes hold and what happens to them can be seen in the cluster.

use std::time::Duration;

use cloud::join::{NAMESPACE, revoked};
use cloud::record;
use host::Clock;
use serde_json::{Value, json};

use crate::stage::{Stage, until};

const RECORDS: &str = "/apis/holdfast.dev/v1alpha1/namespaces/default/objectsyncs";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    })
}

fn version_of(list: &Value, uid: &Value) -> Option<String> {
    let uid = uid.as_str()?;
    let items = list["items"].as_array()?;
    let name = format!("n1.{uid}");
    let record = items.iter().find(|it| it["metadata"]["name"] == *name)?;
    record["status"]["objectResourceVersion"]
        .as_str()
        .map(str::to_owned)
}

/// Records are found by a survey half a minute after the start of a hub, and kept after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_for_each_object_says_which_version_is_on_the_node() {
    let stage = Stage::open().await;
    record::install(&stage.client).await.unwrap();
    stage.create(PODS, &pod("first")).await;
    let hub = stage.hub("hub").await;
    let node = stage.node("n1", &[&hub]).await;
    let first = stage.get(&format!("{PODS}/first")).await.unwrap();
    let uid = &first["metadata"]["uid"];
    let is_at = |pod: &Value| {
        let version = pod["metadata"]["resourceVersion"]
            .as_str()
            .map(str::to_owned);
        let uid = pod["metadata"]["uid"].clone();
        move |list: &Value| version_of(list, &uid) == version
    };
    stage.sees(RECORDS, is_at(&first)).await;
    // It changes, and its record follows.
    let patch = json!({"metadata": {"annotations": {"a": "b"}}}).to_string();
    let path = format!("{PODS}/first");
    stage.client.patch(&path, patch.into()).await.unwrap();
    let first = stage.get(&path).await.unwrap();
    stage.sees(RECORDS, is_at(&first)).await;
    // Another comes.
    stage.create(PODS, &pod("second")).await;
    let second = stage.get(&format!("{PODS}/second")).await.unwrap();
    stage.sees(RECORDS, is_at(&second)).await;
    // One goes, and its record with it.
    let now = json!({"gracePeriodSeconds": 0}).to_string();
    stage.client.delete(&path, Some(now.into())).await.unwrap();
    let is_gone = |list: &Value| version_of(list, uid).is_none();
    stage.sees(RECORDS, is_gone).await;
    let summary = "/apis/holdfast.dev/v1alpha1/nodesyncs/n1";
    let found = stage
        .sees(summary, |it| it["status"]["connected"] == true)
        .await;
    assert_eq!(found["status"]["hub"], "hub");
    node.stop().await;
    stage
        .sees(summary, |it| it["status"]["connected"] == false)
        .await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_is_told_as_events() {
    let stage = Stage::open().await;
    let hub = stage.hub("hub").await;
    let node = stage.node("n1", &[&hub]).await;
    let events = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dn1";
    let has = |reason: &'static str| {
        move |list: &Value| {
            let items = list["items"].as_array().unwrap();
            items.iter().any(|event| event["reason"] == reason)
        }
    };
    stage.sees(events, has("NodeJoined")).await;
    until("a session", || node.report().connected).await;
    // Two agents with one identity take the session from each other.
    let clone = stage.moved(&node, "n1", &[&hub]).await;
    stage.sees(events, has("IdentityCloned")).await;
    clone.stop().await;
    let name = "n1".parse().unwrap();
    let now = Clock::machine().wall() + Duration::from_secs(1);
    revoked::revoke(&stage.client, &name, "a test", now)
        .await
        .unwrap();
    let list = stage.sees(events, has("NodeRevoked")).await;
    let kinds = list["items"].as_array().unwrap().iter();
    for event in kinds {
        assert_eq!(event["involvedObject"]["kind"], "Node");
        assert_eq!(event["source"]["component"], "holdfast");
    }
    until("the session is cut", || !hub.hub.sessions().has("n1")).await;
    assert_eq!(hub.hub.notices().counts().dropped, 0);
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
    assert!(stage.get(&leases).await.is_some());
}
