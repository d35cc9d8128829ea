//! Pods are led to the API of their node: a kubelet sees its address and its authority where pods
//! are given them, and nobody else does.

use ::cluster::client::{Door, Protocol};
use serde_json::{Value, json};

use crate::accounts::{bind, client, passed_on, token};
use crate::driver::{config_map, pod};
use crate::local::{Local, json_of};
use crate::world::{CONVERGED, NODES, Plan, World};

const SERVICE: &str = "/api/v1/namespaces/default/services/kubernetes";
const AUTHORITIES: &str = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";

/// A pod as Kubernetes makes them, with what it needs to find and trust the API.
fn with_authorities(name: &str) -> Value {
    let mut made = pod(name, NODES[0], "one");
    made["spec"]["volumes"] = json!([{
        "name": "api", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}
    }]);
    made
}

/// A world whose node leads its pods to its API.
async fn world() -> World {
    let mut world = World::new(Plan::default()).await;
    world.nodes[0].extra = vec!["--api-for-pods".to_owned()];
    world.nodes[0].start();
    // The embedded cluster and a control plane without its controllers do not make it.
    let map = json!({
        "metadata": {"name": "kube-root-ca.crt"},
        "data": {"ca.crt": world.site().authority().unwrap().certificate_pem()}
    });
    drop(
        world
            .driver
            .ask("POST", "/api/v1/namespaces/default/configmaps", Some(&map))
            .await,
    );
    world.driver.create("pods", &with_authorities("two")).await;
    world.settled(CONVERGED).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_gives_pods_the_address_and_the_authority_of_their_node() {
    let mut world = world().await;
    let rules = json!([{"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list"]}]);
    bind(&world, &rules).await;
    let token = token(&world, "one", 0).await;
    world.settled(CONVERGED).await;
    let known = client(&world, 0, token.clone()).await;
    known.is_answered_here(SERVICE, &world.nodes[0]).await;
    let (kubelet, admin) = (
        Local::of(&world.nodes[0], "kubelet"),
        Local::of(&world.nodes[0], "admin"),
    );
    let there = world.driver.must("GET", SERVICE, None).await;
    for _ in 0..2 {
        let seen = kubelet.get(SERVICE).await;
        let listed = kubelet.get("/api/v1/services").await;
        let items = listed["items"].as_array().unwrap();
        let item = items
            .iter()
            .find(|item| item["metadata"]["name"] == "kubernetes");
        assert_eq!(item.unwrap()["spec"], seen["spec"]);
        let version = |of: &Value| of["metadata"]["resourceVersion"].clone();
        assert_eq!(version(&seen), version(&there));
        // A pod has nothing but this, and its token.
        let map = kubelet.get(AUTHORITIES).await;
        let trusted = map["data"]["ca.crt"].as_str().unwrap();
        let ip = seen["spec"]["clusterIP"].as_str().unwrap();
        let address = format!("{ip}:{}", seen["spec"]["ports"][0]["port"]);
        let door = Door::trusting(&address, trusted).unwrap();
        let mut local = Local::of(&world.nodes[0], "admin");
        local.token = Some(token.clone());
        let mut client = door.connect(Protocol::Http2).await.unwrap();
        let answer = client
            .exchange(local.request("GET", SERVICE, None))
            .await
            .unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(json_of(&answer)["spec"], there["spec"], "it is no kubelet");
        assert_eq!(admin.get(SERVICE).await["spec"], there["spec"]);
        // The same without a hub, after a restart.
        world.hubs[0].program.kill();
        world.nodes[0].alone(CONVERGED).await;
        world.nodes[0].restart();
        kubelet.client().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_that_watches_sees_the_same_as_one_that_asks() {
    let world = world().await;
    let kubelet = Local::of(&world.nodes[0], "kubelet");
    for (path, name) in [
        ("/api/v1/services?watch=1", "kubernetes"),
        (
            "/api/v1/namespaces/default/configmaps?watch=1\
             &fieldSelector=metadata.name%3Dkube-root-ca.crt",
            "kube-root-ca.crt",
        ),
    ] {
        let mut watch = kubelet.watch(path).await;
        let seen = loop {
            let event = watch.next().await;
            if event["object"]["metadata"]["name"] == name {
                break event["object"].clone();
            }
        };
        let asked = kubelet
            .get(if name == "kubernetes" {
                SERVICE
            } else {
                AUTHORITIES
            })
            .await;
        assert_eq!(seen, asked);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_pod_names_is_answered_on_the_node_as_soon_as_the_pod_is_there() {
    let world = world().await;
    let kubelet = Local::of(&world.nodes[0], "kubelet");
    let mine = "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dnode-1";
    let mut pods = kubelet.watch(mine).await;
    let asked = passed_on(&world.nodes[0]).await;
    for number in 0..10 {
        let name = format!("many-{number}");
        let driver = &world.driver;
        driver.create("configmaps", &config_map(&name, "x")).await;
        driver.create("pods", &pod(&name, NODES[0], &name)).await;
        while pods.next().await["object"]["metadata"]["name"] != name {}
        let maps = "/api/v1/namespaces/default/configmaps";
        let path = format!("{maps}?fieldSelector=metadata.name%3D{name}");
        let list = kubelet.get(&path).await;
        assert_eq!(list["items"][0]["data"]["key"], "x", "{name}");
    }
    assert_eq!(passed_on(&world.nodes[0]).await, asked);
}
