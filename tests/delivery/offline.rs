//! What is written on a node while its link is down: it is kept, shown, and in the cluster once the
//! link is back; exactly once, and only where it was meant.

use std::time::Duration;

use ::cluster::client::Answer;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::driver::{collection, place, pod};
use crate::local::{Local, furnished, json_of, text};
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(30);
const NODE: &str = "/api/v1/nodes/node-1";
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A strategic merge patch, as kubelets send them.
async fn patch(local: &Local, path: &str, patch: &Value) -> Answer {
    let mut request = local.request("PATCH", path, Some(patch));
    let kind = "application/strategic-merge-patch+json".parse().unwrap();
    request.headers_mut().insert("content-type", kind);
    local.client().await.exchange(request).await.unwrap()
}

async fn patched(local: &Local, path: &str, change: &Value) -> Value {
    let answer = patch(local, path, change).await;
    assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
    json_of(&answer)
}

/// Waits until something is so.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < CONVERGED, "{what} does not happen");
        sleep(Duration::from_millis(50)).await;
    }
}

fn condition(object: &Value, kind: &str) -> Value {
    let none = Vec::new();
    let all = object["status"]["conditions"].as_array().unwrap_or(&none);
    let found = all.iter().find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}

fn event(name: &str, count: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "one"},
        "reason": "Pulled", "message": "offline", "type": "Normal", "count": count
    })
}

/// What a kubelet writes without a link.
async fn write(local: &Local, two: &Value) {
    let disk = json!({"type": "DiskPressure", "status": "True", "reason": "Offline"});
    let status = json!({"status": {"conditions": [disk]}});
    let node = patched(local, &format!("{NODE}/status"), &status).await;
    assert_eq!(condition(&node, "DiskPressure")["status"], "True");
    let uid = &two["metadata"]["uid"];
    for (name, change) in [
        ("one", json!({"status": {"message": "first"}})),
        (
            "one",
            json!({"status": {"message": "second", "reason": "Offline"}}),
        ),
        (
            "two",
            json!({"metadata": {"uid": uid}, "status": {"message": "of the old one"}}),
        ),
    ] {
        let path = format!("{}/status", place("pods", name));
        let pod = patched(local, &path, &change).await;
        assert_eq!(pod["status"]["message"], change["status"]["message"]);
    }
    let made = local
        .ask("POST", &collection("events"), Some(&event("one.1", 1)))
        .await;
    assert_eq!(made.status, 201, "{}", text(&made));
    let path = place("events", "one.1");
    let counted = patched(local, &path, &json!({"count": 2})).await;
    assert_eq!(
        (&counted["count"], &counted["reason"]),
        (&json!(2), &json!("Pulled"))
    );
}

/// What cannot be done without a link is refused, and said so.
async fn refuses(local: &Local) {
    let again = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODES[0]}});
    let mirror = pod("mirror", NODES[0], "one");
    let wrong = json!({"metadata": {"uid": "another"}, "status": {"message": "x"}});
    let path = format!("{}/status", place("pods", "one"));
    assert_eq!(patch(local, &path, &wrong).await.status, 409);
    for (method, path, body, code) in [
        ("POST", "/api/v1/nodes".to_owned(), Some(&again), 409),
        ("POST", collection("pods"), Some(&mirror), 503),
        ("DELETE", place("pods", "one"), None, 503),
        ("PATCH", place("pods", "one"), Some(&wrong), 503),
        (
            "PATCH",
            "/api/v1/nodes/node-2/status".to_owned(),
            Some(&wrong),
            503,
        ),
    ] {
        let refused = local.ask(method, &path, body).await;
        assert_eq!(refused.status, code, "{method} {path}: {}", text(&refused));
    }
}

/// What was written is shown, with the version of the resource.
async fn shows(local: &Local) {
    let list = local
        .get("/api/v1/pods?fieldSelector=spec.nodeName=node-1")
        .await;
    let version = &list["metadata"]["resourceVersion"];
    let items = list["items"].as_array().unwrap();
    let one = items.iter().find(|it| it["metadata"]["name"] == "one");
    let by_name = local.get(&place("pods", "one")).await;
    for pod in [one.unwrap(), &by_name] {
        assert_eq!(pod["status"]["message"], "second");
        assert_eq!(pod["status"]["reason"], "Offline");
        assert_eq!(pod["metadata"]["resourceVersion"], *version);
    }
    let node = local.get(NODE).await;
    assert_eq!(condition(&node, "DiskPressure")["reason"], "Offline");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_without_a_link_is_in_the_cluster_once_it_is_back() {
    let mut world = furnished().await;
    let two = world
        .driver
        .create("pods", &pod("two", NODES[0], "one"))
        .await;
    world.settled(SOON).await;
    let local = Local::of(&world.nodes[0], "kubelet");
    let pods = "/api/v1/pods?fieldSelector=spec.nodeName=node-1";
    let at = local.get(pods).await["metadata"]["resourceVersion"].clone();
    let from = format!("{pods}&watch=1&resourceVersion={}", at.as_str().unwrap());
    let mut stream = local.watch(&from).await;
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    write(&local, &two).await;
    let event = stream.next().await;
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"]["metadata"]["resourceVersion"], at);
    drop(stream);
    refuses(&local).await;
    shows(&local).await;
    world.nodes[0].restart();
    shows(&local).await;
    // Who comes back to a watch sees it too.
    let event = local.watch(&from).await.next().await;
    assert_eq!(event["object"]["metadata"]["resourceVersion"], at);
    // Meanwhile another pod has the name, and somebody else writes a condition.
    world.driver.delete("pods", "two").await;
    let new = world
        .driver
        .create("pods", &pod("two", NODES[0], "one"))
        .await;
    let note = json!({"metadata": {"annotations": {"example.test/note": "there"}}});
    world.driver.patch("pods", "one", &note).await;
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    arrives(&world, &new).await;
    // In the end the node shows what the cluster has, and nothing lies over it.
    until("the node shows what the cluster has", async || {
        let there = world.driver.must("GET", &place("pods", "one"), None).await;
        let here = local.get(&place("pods", "one")).await;
        let version = |it: &Value| it["metadata"]["resourceVersion"].clone();
        (version(&here) == version(&there)).then_some(())
    })
    .await;
    world.settled(SOON).await;
    let here = local.get(&place("pods", "one")).await;
    assert_eq!(here["status"]["message"], "second");
    assert_eq!(
        here["metadata"]["annotations"]["example.test/note"],
        "there"
    );
}

/// What was written is in the cluster, once, and where it was meant.
async fn arrives(world: &World, new: &Value) {
    let driver = &world.driver;
    until("the status arrives", async || {
        let pod = driver.must("GET", &place("pods", "one"), None).await;
        (pod["status"]["message"] == "second").then_some(())
    })
    .await;
    let events = until("the event arrives", async || {
        let events = driver.must("GET", &collection("events"), None).await;
        let events = events["items"].as_array().unwrap().clone();
        let of = |it: &&Value| it["message"] == "offline";
        let events: Vec<Value> = events.iter().filter(of).cloned().collect();
        events
            .first()
            .is_some_and(|it| it["count"] == 2)
            .then_some(events)
    })
    .await;
    assert_eq!(events.len(), 1);
    let node = until("the condition arrives", async || {
        let node = driver.must("GET", NODE, None).await;
        (condition(&node, "DiskPressure")["reason"] == "Offline").then_some(node)
    })
    .await;
    // The hub's own condition of the node is as it was.
    assert_ne!(condition(&node, "Ready"), Value::Null);
    let two = driver.must("GET", &place("pods", "two"), None).await;
    assert_eq!(two["metadata"]["uid"], new["metadata"]["uid"]);
    assert_ne!(two["status"]["message"], "of the old one");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_a_kubelet_is_answered_on_the_node_and_renewed_by_the_hub() {
    let mut world = World::new(Plan::default()).await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODES[0]}});
    let made = world
        .driver
        .must("POST", "/api/v1/nodes", Some(&node))
        .await;
    world.nodes[0].extra = vec!["--register-node=false".to_owned()];
    world.nodes[0].start();
    world.nodes[0].connected(CONVERGED).await;
    let local = Local::of(&world.nodes[0], "kubelet");
    let path = format!("{LEASES}/{}", NODES[0]);
    let none = local.ask("GET", &path, None).await;
    assert_eq!(none.status, 404, "{}", text(&none));
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": NODES[0], "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": NODES[0], "leaseDurationSeconds": 40,
            "renewTime": "2026-11-16T10:00:00.000000Z"}
    });
    let created = local.ask("POST", LEASES, Some(&lease)).await;
    assert_eq!(created.status, 201, "{}", text(&created));
    let mut held = json_of(&created);
    let (code, _) = until("the hub makes the lease", async || {
        let answer = world.driver.ask("GET", &path, None).await.unwrap();
        (answer.0 == 200).then_some(answer)
    })
    .await;
    assert_eq!(code, 200);
    let there = world.driver.must("GET", &path, None).await;
    let owner = &there["metadata"]["ownerReferences"][0]["uid"];
    assert_eq!(*owner, made["metadata"]["uid"]);
    assert_ne!(there["spec"]["renewTime"], lease["spec"]["renewTime"]);
    // Heartbeats cost nothing on the link, and go on without it.
    let before = world.nodes[0].status().await.unwrap()["tunnelled"].clone();
    for _ in 0..20 {
        held = json_of(&local.ask("PUT", &path, Some(&held)).await);
        assert_eq!(held["kind"], "Lease", "{held}");
    }
    assert_eq!(world.nodes[0].status().await.unwrap()["tunnelled"], before);
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    world.nodes[0].restart();
    let renewed = local.ask("PUT", &path, Some(&held)).await;
    assert_eq!(renewed.status, 200, "{}", text(&renewed));
    // With the link back the hub knows that it lives, though it was started anew.
    let stale = world.driver.must("GET", &path, None).await;
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    until("the hub renews the lease", async || {
        let now = world.driver.must("GET", &path, None).await;
        (now["spec"]["renewTime"] != stale["spec"]["renewTime"]).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_cluster_gave_is_given_again_without_a_link_and_no_other() {
    let mut world = furnished().await;
    let local = Local::of(&world.nodes[0], "kubelet");
    let mut asks = pod("asks", NODES[0], "one");
    let token = json!({"serviceAccountToken": {"path": "token", "audience": "shop"}});
    let volume = json!({"name": "token", "projected": {"sources": [token]}});
    asks["spec"]["volumes"] = json!([volume]);
    let asks = world.driver.create("pods", &asks).await;
    world.settled(SOON).await;
    let path = place("serviceaccounts", "default/token");
    let request = |seconds: u64| {
        json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": ["shop"], "expirationSeconds": seconds, "boundObjectRef": {
                "kind": "Pod", "apiVersion": "v1", "name": "asks", "uid": asks["metadata"]["uid"]
            }}
        })
    };
    let given = local.ask("POST", &path, Some(&request(3607))).await;
    assert_eq!(given.status, 201, "{}", text(&given));
    let token = json_of(&given)["status"]["token"].clone();
    assert!(token.as_str().is_some_and(|token| token.len() > 100));
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    let again = local.ask("POST", &path, Some(&request(3607))).await;
    assert_eq!(again.status, 201, "{}", text(&again));
    assert_eq!(json_of(&again)["status"]["token"], token);
    let other = local.ask("POST", &path, Some(&request(7200))).await;
    assert_eq!(other.status, 503, "{}", text(&other));
}
