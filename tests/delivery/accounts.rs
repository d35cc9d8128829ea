//! What runs on a node and shows its own token: it is known there, and reads there what it may read
//! in the cluster, with and without a link.

use std::time::Duration;

use ::cluster::client::{Answer, Door, Protocol};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::driver::{collection, pod, service};
use crate::local::{Local, json_of, listed, text};
use crate::node::Node;
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(30);
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const SERVICES: &str = "/api/v1/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";

/// A client that has nothing but a token.
pub(crate) struct Pod {
    pub(crate) local: Local,
    pub(crate) door: Door,
}

impl Pod {
    pub(crate) async fn get(&self, path: &str) -> Answer {
        let mut client = self.door.connect(Protocol::Http2).await.unwrap();
        let request = self.local.request("GET", path, None);
        client.exchange(request).await.unwrap()
    }

    /// Asks until the node itself answers: nothing goes to the cluster for it any more.
    pub(crate) async fn is_answered_here(&self, path: &str, node: &Node) {
        let began = Instant::now();
        loop {
            let before = passed_on(node).await;
            assert_eq!(self.get(path).await.status, 200);
            if passed_on(node).await == before {
                return;
            }
            assert!(began.elapsed() < SOON, "{path} is asked of the cluster");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Asks until the answer has this code: what is said to hubs takes a moment to be on a node.
    pub(crate) async fn until(&self, path: &str, code: u16) -> Answer {
        let began = Instant::now();
        loop {
            let answer = self.get(path).await;
            if answer.status == code {
                return answer;
            }
            let late = began.elapsed() > SOON;
            assert!(!late, "{path}: {} {}", answer.status, text(&answer));
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// What the node asked of the cluster so far.
pub(crate) async fn passed_on(node: &Node) -> Value {
    let status = node.status().await.expect("how the agent is doing");
    status["tunnelled"].clone()
}

/// An account that may do what these rules say, everywhere.
pub(crate) async fn bind(world: &World, rules: &Value) {
    let driver = &world.driver;
    let named = |name: &str| json!({"metadata": {"name": name}});
    driver.create("serviceaccounts", &named("proxy")).await;
    let role = json!({"metadata": {"name": "proxy"}, "rules": rules});
    let path = format!("{RBAC}/clusterroles");
    driver.must("POST", &path, Some(&role)).await;
    let binding = json!({
        "metadata": {"name": "proxy"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "proxy"
        },
        "subjects": [{"kind": "ServiceAccount", "name": "proxy", "namespace": "default"}]
    });
    let path = format!("{RBAC}/clusterrolebindings");
    driver.must("POST", &path, Some(&binding)).await;
}

/// A pod of that account on a node, and a token that is bound to it.
pub(crate) async fn token(world: &World, name: &str, node: usize) -> String {
    let driver = &world.driver;
    let mut made = pod(name, NODES[node], "one");
    made["spec"]["serviceAccountName"] = "proxy".into();
    let made = driver.create("pods", &made).await;
    let asked = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": name, "uid": made["metadata"]["uid"]
        }}
    });
    let path = collection("serviceaccounts/proxy/token");
    let given: Value = driver.must("POST", &path, Some(&asked)).await;
    given["status"]["token"].as_str().unwrap().to_owned()
}

/// A token of that account that is of no pod: only the cluster knows whose it is.
pub(crate) async fn token_of_nobody(world: &World) -> String {
    let asked = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}
    });
    let path = collection("serviceaccounts/proxy/token");
    let given: Value = world.driver.must("POST", &path, Some(&asked)).await;
    given["status"]["token"].as_str().unwrap().to_owned()
}

/// A client on a node that has nothing but this token.
pub(crate) async fn client(world: &World, node: usize, token: String) -> Pod {
    let mut local = Local::of(&world.nodes[node], "admin");
    local.token = Some(token);
    local.client().await;
    let door = Door::of_kubeconfig(&local.kubeconfig).unwrap().as_nobody();
    Pod { local, door }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_reads_on_its_node_what_its_account_may_read_without_a_link() {
    let plan = Plan {
        nodes: 2,
        ..Plan::default()
    };
    let mut world = World::started(plan).await;
    let rules = json!([
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["*"]}
    ]);
    bind(&world, &rules).await;
    world
        .driver
        .create("services", &service("one", "one"))
        .await;
    let here = client(&world, 0, token(&world, "one", 0).await).await;
    let gone = client(&world, 0, token(&world, "two", 0).await).await;
    world.settled(SOON).await;
    for pod in [&here, &gone] {
        pod.is_answered_here(SERVICES, &world.nodes[0]).await;
    }
    world.driver.delete("pods", "two").await;
    world.settled(SOON).await;
    let there = world.driver.must("GET", SERVICES, None).await;
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    for _ in 0..2 {
        let answer = here.until(SERVICES, 200).await;
        assert_eq!(listed(&json_of(&answer)), listed(&there));
        assert_eq!(here.get(SLICES).await.status, 200);
        // What the account may not read, the node does not give, though it has it.
        for path in [
            "/api/v1/namespaces/default/pods/one".to_owned(),
            "/apis/node.k8s.io/v1/runtimeclasses".to_owned(),
            collection("secrets"),
        ] {
            let refused = here.get(&path).await;
            assert_eq!(refused.status, 503, "{path}: {}", text(&refused));
        }
        // The pod is gone, and its token with it.
        let refused = gone.get(SERVICES).await;
        assert_eq!(refused.status, 503, "{}", text(&refused));
        world.nodes[0].restart();
        gone.local.client().await;
    }
    // A token of a pod on another node is nothing that this node knows.
    let token = here.local.token.clone().unwrap();
    let other = client(&world, 1, token).await;
    assert_eq!(other.get(SERVICES).await.status, 503);
    // A right that is taken away is gone from the node too, once it hears of it.
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    let path = format!("{RBAC}/clusterrolebindings/proxy");
    world.driver.must("DELETE", &path, None).await;
    let refused = here.until(SERVICES, 403).await;
    assert!(text(&refused).contains("system:serviceaccount:default:proxy"));
}
