//! What goes wrong is told to people: as Events, in records, and in what a hub says of its nodes.

use std::time::Duration;

use ::cluster::Signal;
use cloud::cluster::Config;
use cloud::record;
use serde_json::{Value, json};

use crate::picky::Picky;
use crate::stage::{Stage, until};

const EVENTS: &str = "/api/v1/namespaces/default/events";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// The event of a reason.
fn event<'l>(list: &'l Value, reason: &str) -> Option<&'l Value> {
    let items = list["items"].as_array().unwrap();
    items.iter().find(|event| event["reason"] == reason)
}

fn message(list: &Value, reason: &str) -> String {
    let event = event(list, reason).unwrap();
    event["message"].as_str().unwrap().to_owned()
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    })
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}]},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_a_node_does_not_take_is_told_of_everywhere() {
    let stage = Stage::open().await;
    record::install(&stage.client).await.unwrap();
    stage.create(PODS, &pod("good")).await;
    stage.create(PODS, &pod("odd")).await;
    let hub = stage.hub("hub").await;
    let node = Picky::join(&stage, "n1", &hub, "odd").await;
    let scene = async {
        let list = stage
            .sees(EVENTS, |list| event(list, "ObjectSetAside").is_some())
            .await;
        let found = event(&list, "ObjectSetAside").unwrap();
        assert_eq!(found["involvedObject"]["kind"], "Node");
        assert_eq!(found["involvedObject"]["name"], "n1");
        assert_eq!(found["type"], "Warning");
        let words = message(&list, "ObjectSetAside");
        assert!(words.contains("pods default/odd"), "{words}");
        // The rest is there, and the hub says which object is not, and why.
        until("the rest is on the node", || {
            let report = hub.hub.node_report("n1").unwrap();
            report.in_flight == 0 && report.versions.contains_key("pods")
        })
        .await;
        let report = hub.hub.node_report("n1").unwrap();
        assert_eq!(report.set_aside.len(), 1);
        assert_eq!(report.set_aside[0].name, "default/odd");
        assert_eq!(
            &*report.set_aside[0].why,
            "the node cannot make sense of it"
        );
        assert!(report.rejected >= 1 && report.void >= 1);
        let metrics = hub.hub.report("hub").metrics();
        assert!(
            metrics.contains("\nholdfast_hub_set_aside 1\n"),
            "{metrics}"
        );
        let summary = "/apis/holdfast.dev/v1alpha1/nodesyncs/n1";
        let named = |it: &Value| it["status"]["setAside"][0]["name"] == "default/odd";
        let found = stage.sees(summary, named).await;
        assert_eq!(found["status"]["inSync"], false);
    };
    tokio::select! {
        () = node.run() => unreachable!("it goes on for ever"),
        () = scene => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_that_cannot_be_followed_and_one_that_can_again_are_told_of() {
    let stage = Stage::open().await;
    let role = |verbs: &[&str]| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "test-hub"},
            "rules": [
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "create", "update",
                    "patch", "delete"]},
                {"apiGroups": [""], "resources": ["services"], "verbs": verbs},
                {"apiGroups": [""], "resources": ["pods", "nodes", "secrets", "configmaps",
                    "serviceaccounts", "persistentvolumeclaims", "persistentvolumes"],
                    "verbs": ["list", "watch"]},
            ],
        })
    };
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    stage.create(roles, &role(&["list", "watch"])).await;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    stage.create(bindings, &binding()).await;
    let site = stage.cluster.site();
    let lesser = site.client("test-hub", &[]).unwrap();
    let kubeconfig = site.write_kubeconfig("hub.kubeconfig", &lesser).unwrap();
    // Without the right from the start, nothing of it is known.
    let path = format!("{roles}/test-hub");
    let put = |role: Value| {
        let body = role.to_string().into();
        stage.client.update(&path, body)
    };
    put(role(&["get"])).await.unwrap();
    let hub = stage
        .hub_with("hub", |config| {
            config.cluster = Config::from_kubeconfig(&kubeconfig).unwrap();
            config.frozen_long = Duration::from_millis(100);
        })
        .await;
    let list = stage
        .sees(EVENTS, |list| {
            let named = |it: &Value| {
                it["reason"] == "ResourceFrozen"
                    && it["message"].as_str().unwrap().contains("services")
            };
            list["items"].as_array().unwrap().iter().any(named)
        })
        .await;
    let found = event(&list, "ResourceFrozen").unwrap();
    assert_eq!(found["involvedObject"]["kind"], "Namespace");
    let state = |resource: &str| {
        let all = hub.hub.report("hub").resources.into_iter();
        let mut named = all.filter(|it| it.resource == resource);
        named.next().map(|it| it.state)
    };
    assert_eq!(state("services"), Some("unlisted"));
    put(role(&["list", "watch"])).await.unwrap();
    stage
        .sees(EVENTS, |list| {
            let named = |it: &Value| {
                it["reason"] == "ResourceFollowed"
                    && it["message"].as_str().unwrap().contains("services")
            };
            list["items"].as_array().unwrap().iter().any(named)
        })
        .await;
    assert_eq!(state("services"), Some("complete"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_was_restored_from_a_backup_begins_an_epoch_and_that_is_told() {
    let mut stage = Stage::lasting().await;
    stage.create(SERVICES, &service("before")).await;
    let hub = stage.hub("hub").await;
    let node = stage.node("n1", &[&hub]).await;
    let holds = |count: u64| {
        let report = node.report();
        let mut of = report
            .resources
            .iter()
            .filter(|it| it.resource == "services");
        of.next().is_some_and(|it| it.objects == count)
    };
    // The service of the API itself is one, too.
    until("the first is on the node", || holds(2)).await;
    // A backup, and what happens after it.
    stage.cluster.end_by(Signal::TERM);
    let (home, backup) = (stage.cluster.home(), stage.folder.path().join("backup"));
    copy(&home.join("store"), &backup);
    stage.cluster.start_again().unwrap();
    for number in 0..20 {
        stage
            .create(SERVICES, &service(&format!("lost-{number}")))
            .await;
    }
    until("all are on the node", || holds(22)).await;
    stage.cluster.end_by(Signal::TERM);
    std::fs::remove_dir_all(home.join("store")).unwrap();
    copy(&backup, &home.join("store"));
    stage.cluster.start_again().unwrap();
    let list = stage
        .sees(EVENTS, |list| event(list, "EpochBegan").is_some())
        .await;
    assert_eq!(event(&list, "EpochBegan").unwrap()["type"], "Warning");
    until("what was lost is gone from the node", || holds(2)).await;
    until("the session ended for it", || {
        hub.hub
            .ledger()
            .ends()
            .get("drained")
            .is_some_and(|count| *count >= 1)
    })
    .await;
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let there = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &there),
            false => drop(std::fs::copy(entry.path(), there).unwrap()),
        }
    }
}

/// What gives the hub its role.
fn binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "test-hub"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "test-hub"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
            "name": "test-hub"}],
    })
}
