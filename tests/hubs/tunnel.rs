//! Requests of nodes to the cluster, over real links.

use std::time::Duration;

use bytes::Bytes;
use edge::tunnel::{NotPassed, Whose};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::stage::{DEADLINE, Node, Stage, until};

const PODS: &str = "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1";

fn request(method: &str, path: &str, body: &str) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json");
    request.body(Full::new(body.to_owned().into())).unwrap()
}

async fn asked(node: &Node, request: Request<Full<Bytes>>) -> Result<(u16, Value), NotPassed> {
    let answer = timeout(DEADLINE, node.tunnel.pass(request, Whose::Node)).await;
    let answer: Response<Incoming> = answer.expect("an answer in time")?;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    Ok((code, serde_json::from_slice(&body).unwrap()))
}

/// Who the cluster says that a node is.
pub(crate) async fn user(node: &Node) -> String {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
    });
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let asked = asked(node, request("POST", path, &review.to_string()));
    let (code, said) = asked.await.unwrap();
    assert_eq!(code, 201, "{said}");
    said["status"]["userInfo"]["username"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn pod(stage: &Stage, name: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    });
    stage.create("/api/v1/namespaces/default/pods", &pod).await;
}

/// Reads a watch until it tells of this pod.
async fn hears_of(body: &mut Incoming, name: &str) {
    let mut heard = String::new();
    let hearing = async {
        while !heard.contains(&format!("\"name\":\"{name}\"")) {
            let frame = body.frame().await.expect("it goes on").unwrap();
            heard.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    };
    let listened = timeout(DEADLINE, hearing).await;
    assert!(listened.is_ok(), "nothing of {name}: {heard}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_asks_the_cluster_in_its_own_name_as_long_as_there_is_a_hub() {
    let stage = Stage::open().await;
    let hub = stage.hub("hub").await;
    let node = stage.node("n1", &[&hub]).await;
    node.is_with("hub").await;
    assert_eq!(user(&node).await, "system:node:n1");
    let (code, secrets) = asked(&node, request("GET", "/api/v1/secrets", ""))
        .await
        .unwrap();
    assert_eq!((code, &secrets["reason"]), (403, &json!("Forbidden")));

    let watch = request("GET", &format!("{PODS}&watch=true"), "");
    let watch = timeout(DEADLINE, node.tunnel.pass(watch, Whose::Node))
        .await
        .unwrap();
    let mut watch = watch.unwrap().into_body();
    pod(&stage, "first").await;
    hears_of(&mut watch, "first").await;
    until("the hub counts", || hub.hub.report("hub").tunnels == 1).await;

    // The hub ends: who listens is told, and who asks as well.
    let port = hub.port();
    hub.kill().await;
    let broken = timeout(DEADLINE, watch.frame()).await.unwrap();
    assert!(
        broken.is_some_and(|frame| frame.is_err()),
        "never a clean end"
    );
    until("the link is gone", || !node.tunnel.is_open()).await;
    let offline = asked(&node, request("GET", PODS, "")).await.unwrap_err();
    assert!(
        matches!(offline, NotPassed::Offline { since: Some(_) }),
        "{offline}"
    );

    let hub = stage.hub_on(port, "hub", |_| ()).await;
    until("there is a link again", || node.tunnel.is_open()).await;
    let (code, pods) = asked(&node, request("GET", PODS, "")).await.unwrap();
    assert_eq!((code, pods["items"].as_array().unwrap().len()), (200, 1));
    let report = node.report();
    assert_eq!(report.tunnelled["offline"], 1);
    assert!(report.tunnelled["passed"] >= 4);
    node.stop().await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_go_on_beside_answers_that_nobody_reads() {
    let stage = Stage::open().await;
    let hub = stage.hub("hub").await;
    let node = stage.node("n1", &[&hub]).await;
    node.is_with("hub").await;
    let mut stuck = Vec::new();
    for _ in 0..20 {
        // More than a window, and nobody reads it.
        let schemas = request("GET", "/openapi/v2", "");
        let answer = timeout(DEADLINE, node.tunnel.pass(schemas, Whose::Node))
            .await
            .unwrap();
        stuck.push(answer.unwrap());
    }
    pod(&stage, "first").await;
    until("the pod is on the node", || {
        node.keep.dump().contains("pods default/first")
    })
    .await;
    let began = tokio::time::Instant::now();
    assert_eq!(user(&node).await, "system:node:n1");
    assert!(began.elapsed() < Duration::from_secs(5));
    drop(stuck);
    until("the hub has nothing left", || {
        hub.hub.report("hub").tunnels == 0
    })
    .await;
    node.stop().await;
    hub.stop().await;
}
