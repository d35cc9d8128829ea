//! The Kubernetes API of a node: what it holds is answered there, with and without a link;
//! everything else is asked of the cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ::cluster::client::{Answer, Client, Door, Protocol};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::driver::{collection, config_map, pod, secret, service};
use crate::node::Node;
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);

/// A client of a node's API.
pub(crate) struct Local {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) token: Option<String>,
}

impl Local {
    /// Whoever this kubeconfig of the node is for.
    pub(crate) fn of(node: &Node, holder: &str) -> Self {
        let name = format!("local/{holder}.kubeconfig");
        Self {
            kubeconfig: node.data_dir.join(name),
            token: None,
        }
    }

    pub(crate) async fn client(&self) -> Client {
        let began = Instant::now();
        loop {
            if let Ok(door) = Door::of_kubeconfig(&self.kubeconfig)
                && let Ok(client) = door.connect(Protocol::Http2).await
            {
                return client;
            }
            assert!(began.elapsed() < SOON, "the node's API does not answer");
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Request<Full<Bytes>> {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://127.0.0.1{path}"))
            .header("accept", "application/json")
            .header("content-type", content_type);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let bytes = body.map_or(Bytes::new(), |body| body.to_string().into());
        request.body(Full::new(bytes)).unwrap()
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let request = self.request(method, path, body);
        let asked = async { self.client().await.exchange(request).await };
        let answer = timeout(SOON, asked).await.expect("an answer in time");
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, None).await;
        assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
        json_of(&answer)
    }

    /// A watch, and what comes of it.
    pub(crate) async fn watch(&self, path: &str) -> Stream {
        let mut client = self.client().await;
        let answer = client.ask(self.request("GET", path, None)).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        Stream {
            body: answer.into_body(),
            rest: Vec::new(),
            _client: client,
        }
    }
}

/// The events of a watch.
pub(crate) struct Stream {
    body: Incoming,
    rest: Vec<u8>,
    _client: Client,
}

impl Stream {
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            let frame = timeout(SOON, self.body.frame()).await.expect("an event");
            let frame = frame.expect("the watch goes on").unwrap();
            self.rest.extend(frame.into_data().unwrap());
        }
    }

    /// Reads on to the end, and says whether it was one in order.
    pub(crate) async fn ends_in_order(&mut self) -> bool {
        loop {
            match timeout(SOON, self.body.frame()).await.expect("an end") {
                Some(Ok(_)) => {}
                Some(Err(_)) => return false,
                None => return true,
            }
        }
    }
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

pub(crate) fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

/// Names and versions of a list.
pub(crate) fn listed(list: &Value) -> BTreeMap<String, String> {
    let items = list["items"].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let versions = items.map(|item| {
        let metadata = &item["metadata"];
        (word(&metadata["name"]), word(&metadata["resourceVersion"]))
    });
    versions.collect()
}

/// A node with a pod, a config map and a secret that the pod names, and services.
pub(crate) async fn furnished() -> World {
    let world = World::started(Plan::default()).await;
    let driver = &world.driver;
    driver.create("configmaps", &config_map("one", "one")).await;
    driver.create("secrets", &secret("one", "b25l")).await;
    driver.create("secrets", &secret("other", "b25l")).await;
    driver.create("pods", &pod("one", NODES[0], "one")).await;
    driver.create("services", &service("one", "one")).await;
    world.settled(SOON).await;
    world
}

const PODS_OF_NODE: &str = "/api/v1/pods?fieldSelector=spec.nodeName=node-1";
const SERVICES: &str = "/api/v1/services";

/// Everything that a node answers by itself, as it must be answered at any time.
async fn answers_reads(local: &Local, world: &World) {
    for path in [
        SERVICES,
        PODS_OF_NODE,
        "/apis/node.k8s.io/v1/runtimeclasses",
    ] {
        let here = local.get(path).await;
        let there = world.driver.must("GET", path, None).await;
        assert_eq!(listed(&here), listed(&there), "{path}");
        let version: u64 = here["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let newest = listed(&here).values().map(|at| at.parse().unwrap()).max();
        assert!(version >= newest.unwrap_or(0), "{path}");
        assert_eq!(here["kind"], there["kind"], "{path}");
    }
    for path in [
        "/api/v1/namespaces/default/pods/one",
        "/api/v1/namespaces/default/pods/one/status",
        "/api/v1/namespaces/default/configmaps/one",
        "/api/v1/namespaces/default/secrets/one",
        "/api/v1/nodes/node-1",
    ] {
        let (mut here, mut there) = (
            local.get(path).await,
            world.driver.must("GET", path, None).await,
        );
        for object in [&mut here, &mut there] {
            object["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("managedFields");
        }
        assert_eq!(here, there, "{path}");
    }
    let named = "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name=one";
    assert_eq!(listed(&local.get(named).await).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_holds_is_answered_on_the_node_with_the_cluster_s_versions() {
    let world = furnished().await;
    for holder in ["admin", "kubelet"] {
        answers_reads(&Local::of(&world.nodes[0], holder), &world).await;
    }
    let local = Local::of(&world.nodes[0], "kubelet");
    let list = local.get(SERVICES).await;
    let at = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut stream = local
        .watch(&format!("{SERVICES}?watch=1&resourceVersion={at}"))
        .await;
    let made = world
        .driver
        .create("services", &service("two", "two"))
        .await;
    let event = stream.next().await;
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["metadata"]["name"], "two");
    let version = &made["metadata"]["resourceVersion"];
    assert_eq!(event["object"]["metadata"]["resourceVersion"], *version);
    world.driver.delete("services", "two").await;
    assert_eq!(stream.next().await["type"], "DELETED");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_does_not_hold_is_asked_of_the_cluster_as_the_node() {
    let world = furnished().await;
    let local = Local::of(&world.nodes[0], "kubelet");
    // The node may read its lease, and not the secrets of others; both says the cluster.
    let lists = local.ask("GET", "/api/v1/secrets", None).await;
    assert_eq!(lists.status, 403, "{}", text(&lists));
    assert!(
        text(&lists).contains("system:node:node-1"),
        "{}",
        text(&lists)
    );
    let other = local
        .ask("GET", "/api/v1/namespaces/default/secrets/other", None)
        .await;
    assert_eq!(other.status, 403, "{}", text(&other));
    let unknown = local.ask("GET", "/apis/example.test/v1/things", None).await;
    assert!([403, 404].contains(&unknown.status), "{}", text(&unknown));
    // What it may write it writes, and sees what came of it.
    let status = "/api/v1/nodes/node-1/status";
    let patch = json!({"metadata": {"annotations": {"example.test/note": "through"}}});
    let written = local.ask("PATCH", status, Some(&patch)).await;
    assert_eq!(written.status, 200, "{}", text(&written));
    let version = json_of(&written)["metadata"]["resourceVersion"].clone();
    let path = format!(
        "/api/v1/nodes?fieldSelector=metadata.name=node-1&resourceVersion={}",
        version.as_str().unwrap()
    );
    let list = local.get(&path).await;
    let note = &list["items"][0]["metadata"]["annotations"]["example.test/note"];
    assert_eq!(note, "through");
    // What it may not, it does not.
    let made = local
        .ask(
            "POST",
            &collection("configmaps"),
            Some(&config_map("no", "no")),
        )
        .await;
    assert_eq!(made.status, 403, "{}", text(&made));
    // Nobody becomes somebody else by saying so.
    let mut request = local.request("GET", "/api/v1/secrets", None);
    for (name, value) in [
        ("impersonate-user", "kubernetes-admin"),
        ("impersonate-group", "system:masters"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let answer = local.client().await.exchange(request).await.unwrap();
    assert_eq!(answer.status, 403, "{}", text(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_looked_at_by_the_cluster() {
    let world = furnished().await;
    let driver = &world.driver;
    let mut local = Local::of(&world.nodes[0], "admin");
    local.token = Some("no.such.token".to_owned());
    let door = Door::of_kubeconfig(&local.kubeconfig).unwrap().as_nobody();
    let mut client = door.connect(Protocol::Http2).await.unwrap();
    let request = local.request("GET", SERVICES, None);
    let refused = client.exchange(request).await.unwrap();
    assert_eq!(refused.status, 401, "{}", text(&refused));
    // Who loses his token on the way must not arrive as the node.
    let mut client = door.connect(Protocol::Http1).await.unwrap();
    let mut request = local.request("GET", "/api/v1/nodes/node-1", None);
    let named = "authorization".parse().unwrap();
    request.headers_mut().insert("connection", named);
    let refused = client.exchange(request).await.unwrap();
    assert_eq!(refused.status, 400, "{}", text(&refused));
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let asked =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let made = driver.must("POST", path, Some(&asked)).await;
    local.token = Some(made["status"]["token"].as_str().unwrap().to_owned());
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "SelfSubjectReview",
    });
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = local.ask("POST", path, Some(&review)).await;
    assert_eq!(who.status, 201, "{}", text(&who));
    let name = &json_of(&who)["status"]["userInfo"]["username"];
    assert_eq!(name, "system:serviceaccount:default:default");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_link_reads_go_on_and_the_rest_is_refused_honestly() {
    let mut world = furnished().await;
    let local = Local::of(&world.nodes[0], "kubelet");
    let list = local.get(SERVICES).await;
    let at = list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let from = format!("{SERVICES}?watch=1&resourceVersion={at}");
    let mut stream = local.watch(&from).await;
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    for _ in 0..2 {
        answers_reads(&local, &world).await;
        let made = config_map("no", "no");
        for (method, path, body) in [
            ("POST", collection("configmaps"), Some(&made)),
            ("DELETE", collection("pods/one"), None),
            ("GET", "/api/v1/secrets".to_owned(), None),
            ("GET", "/apis/example.test/v1/things".to_owned(), None),
            ("GET", collection("secrets/other"), None),
        ] {
            let refused = local.ask(method, &path, body).await;
            assert_eq!(refused.status, 503, "{method} {path}: {}", text(&refused));
            assert!(
                refused.headers.contains_key("retry-after"),
                "{method} {path}"
            );
            assert_eq!(json_of(&refused)["reason"], "ServiceUnavailable");
            assert!(text(&refused).contains("since"), "{}", text(&refused));
        }
        assert_eq!(local.ask("GET", "/readyz", None).await.status, 200);
        // The same after the agent was started anew without a hub.
        world.nodes[0].restart();
    }
    // History is there after a restart, too.
    let late = local
        .ask("GET", &format!("{from}&timeoutSeconds=1"), None)
        .await;
    assert_eq!((late.status, late.body.len()), (200, 0), "{}", text(&late));
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    world.settled(CONVERGED).await;
    // Who comes back sees what is new, and nothing else: the hub remembers nothing, but what the
    // node holds is what there is.
    let made = service("two", "two");
    world.driver.create("services", &made).await;
    drop(stream);
    stream = local.watch(&from).await;
    let event = stream.next().await;
    assert_eq!(event["type"], "ADDED", "{event}");
    assert_eq!(event["object"]["metadata"]["name"], "two");
    world.settled(SOON).await;
    assert!(listed(&local.get(SERVICES).await).contains_key("two"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_looks_after_a_node_sees_what_it_holds_and_that_there_may_be_more() {
    let world = furnished().await;
    let local = Local::of(&world.nodes[0], "admin");
    for (path, names) in [
        ("/api/v1/secrets", vec!["one"]),
        ("/api/v1/pods", vec!["one"]),
        ("/api/v1/namespaces/default/pods", vec!["one"]),
    ] {
        let answer = local.ask("GET", path, None).await;
        assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
        let list = json_of(&answer);
        let found: Vec<String> = listed(&list).into_keys().collect();
        assert_eq!(found, names, "{path}");
        let warning = answer.headers["warning"].to_str().unwrap();
        assert!(warning.contains("that this node holds"), "{warning}");
    }
    // One that is covered has everything, and says nothing of it.
    let answer = local.ask("GET", SERVICES, None).await;
    assert!(!answer.headers.contains_key("warning"));
    let list = local.get("/api/v1/pods").await;
    let at = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut stream = local
        .watch(&format!("/api/v1/pods?watch=1&resourceVersion={at}"))
        .await;
    let patch = json!({"metadata": {"annotations": {"example.test/note": "new"}}});
    world.driver.patch("pods", "one", &patch).await;
    assert_eq!(stream.next().await["type"], "MODIFIED");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_credential_gets_health_and_nothing_else() {
    let world = furnished().await;
    let local = Local::of(&world.nodes[0], "admin");
    let door = Door::of_kubeconfig(&local.kubeconfig).unwrap().as_nobody();
    for (path, code) in [
        ("/livez", 200),
        (SERVICES, 401),
        ("/api/v1/namespaces/default/pods/one", 401),
        ("/apis", 401),
    ] {
        let mut client = door.connect(Protocol::Http2).await.unwrap();
        let answer = client
            .exchange(local.request("GET", path, None))
            .await
            .unwrap();
        assert_eq!(answer.status, code, "{path}: {}", text(&answer));
    }
}
