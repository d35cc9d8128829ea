//! A hub works with the rights that deploy/hub-rbac.yaml gives it, and with no others.

use cloud::cluster::Config;
use cloud::join::NAMESPACE;
use cloud::record;
use serde_json::{Value, json};

use crate::stage::{Hub, Stage, until};
use crate::tunnel;

const RIGHTS: &str = include_str!("../../deploy/hub-rbac.yaml");
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/holdfast-hub";

/// The objects of the file.
fn objects() -> Vec<Value> {
    let texts = RIGHTS.split("\n---\n");
    texts
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect()
}

/// Where an object is created.
fn collection(object: &Value) -> String {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    match object["kind"].as_str().unwrap() {
        "Namespace" => "/api/v1/namespaces".to_owned(),
        "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
        "ClusterRole" => format!("{rbac}/clusterroles"),
        "ClusterRoleBinding" => format!("{rbac}/clusterrolebindings"),
        "Role" => format!("{rbac}/namespaces/{namespace}/roles"),
        "RoleBinding" => format!("{rbac}/namespaces/{namespace}/rolebindings"),
        other => panic!("{other} is not expected here"),
    }
}

async fn furnish(stage: &Stage) {
    record::install(&stage.client).await.unwrap();
    for object in objects() {
        stage.create(&collection(&object), &object).await;
    }
}

/// A hub that is the service account of the file.
async fn hub(stage: &Stage, port: u16) -> Hub {
    let user = "system:serviceaccount:holdfast-system:holdfast-hub";
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:holdfast-system",
    ];
    let site = stage.cluster.site();
    let credential = site.client(user, &groups).unwrap();
    let path = site.write_kubeconfig("hub", &credential).unwrap();
    let cluster = Config::from_kubeconfig(&path).unwrap();
    let as_hub = |config: &mut cloud::run::Config| config.cluster = cluster;
    stage.hub_on(port, "hub", as_hub).await
}

async fn secret(stage: &Stage, name: &str) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "stringData": {"key": "value"},
    });
    stage
        .create("/api/v1/namespaces/default/secrets", &secret)
        .await;
}

async fn pod(stage: &Stage, name: &str, secret: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "s", "secret": {"secretName": secret}}],
        },
    });
    stage.create("/api/v1/namespaces/default/pods", &pod).await;
}

fn trouble(hub: &Hub, resource: &str) -> Option<String> {
    let report = hub.hub.report("hub");
    let mut all = report.resources.into_iter();
    all.find(|it| it.resource == resource)?.trouble
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_works_with_the_rights_of_its_role_and_freezes_without_them() {
    let stage = Stage::open().await;
    furnish(&stage).await;
    secret(&stage, "first").await;
    pod(&stage, "first", "first").await;
    let hub = hub(&stage, 0).await;
    let node = stage.node("n1", &[&hub]).await;
    let holds = |count: u64| {
        let held = node.report().resources;
        let secrets = held.iter().find(|it| it.resource == "secrets");
        secrets.is_some_and(|it| it.objects == count)
    };
    until("the secret is on the node", || holds(1)).await;
    for resource in &hub.hub.report("hub").resources {
        assert!(resource.trouble.is_none(), "{resource:?}");
    }
    works_in_the_cluster(&stage).await;
    assert_eq!(tunnel::user(&node).await, "system:node:n1");
    let counts = hub.hub.register().counts();
    assert_eq!(counts.failed, 0);
    assert_eq!(hub.hub.notices().counts().dropped, 0);

    // The right to read secrets is taken away. A watch that is open goes on; the next hub has none.
    forbid_secrets(&stage).await;
    let port = hub.port();
    hub.kill().await;
    let hub = self::hub(&stage, port).await;
    until("secrets cannot be read", || {
        trouble(&hub, "secrets").is_some_and(|why| why.contains("forbidden"))
    })
    .await;
    // Pods go on; what the node has of secrets stays, though no pod names it any more.
    secret(&stage, "second").await;
    pod(&stage, "second", "second").await;
    let first = "/api/v1/namespaces/default/pods/first";
    let now = json!({"gracePeriodSeconds": 0}).to_string();
    stage.client.delete(first, Some(now.into())).await.unwrap();
    until("pods go on", || {
        let dump = node.keep.dump();
        dump.contains("pods default/second") && !dump.contains("pods default/first")
    })
    .await;
    let secrets = |dump: String| -> Vec<String> {
        let lines = dump.lines().filter(|line| line.starts_with("secrets"));
        lines
            .map(|it| it.split(' ').nth(1).unwrap().to_owned())
            .collect()
    };
    assert_eq!(secrets(node.keep.dump()), ["default/first"]);
    node.stop().await;
    hub.stop().await;
    let lease = format!("{LEASES}/{NAMESPACE}/leases/holdfast-hub-hub");
    assert_eq!(stage.get(&lease).await, None);
}

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces";

/// Everything that the hub writes is written.
async fn works_in_the_cluster(stage: &Stage) {
    stage.sees("/api/v1/nodes/n1", |_| true).await;
    stage
        .sees(&format!("{LEASES}/kube-node-lease/leases/n1"), |_| true)
        .await;
    stage
        .sees(
            &format!("{LEASES}/{NAMESPACE}/leases/holdfast-hub-hub"),
            |_| true,
        )
        .await;
    let records = "/apis/holdfast.dev/v1alpha1/namespaces/default/objectsyncs";
    let told = |list: &Value| {
        let items = list["items"].as_array().unwrap();
        items
            .iter()
            .any(|it| it["status"]["objectResourceVersion"].is_string())
    };
    stage.sees(records, told).await;
    stage
        .sees("/apis/holdfast.dev/v1alpha1/nodesyncs/n1", |_| true)
        .await;
    let events = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dn1";
    let some = |list: &Value| !list["items"].as_array().unwrap().is_empty();
    stage.sees(events, some).await;
    let sessions = format!(
        "/api/v1/namespaces/{NAMESPACE}/configmaps?labelSelector=holdfast.dev%2Fkind%3Dsessions"
    );
    stage.sees(&sessions, some).await;
    // A Node that is given up is put right, which needs a right of its own.
    let gone = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let path = "/api/v1/nodes/n1/status";
    stage
        .client
        .patch(path, gone.to_string().into())
        .await
        .unwrap();
    let ready = |node: &Value| node["status"]["conditions"][0]["status"] == "True";
    stage.sees("/api/v1/nodes/n1", ready).await;
}

async fn forbid_secrets(stage: &Stage) {
    let mut role = stage.get(ROLE).await.unwrap();
    for rule in role["rules"].as_array_mut().unwrap() {
        if let Some(resources) = rule["resources"].as_array_mut() {
            resources.retain(|resource| resource != "secrets");
        }
    }
    let role = role.to_string().into();
    stage.client.update(ROLE, role).await.unwrap();
}
