//! What a cluster says of itself, on a node: its version, its kinds and their schemas are the same
//! there as in the cluster, with a hub and without one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::cluster::client::{Answer, Door, Protocol};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::world::{CONVERGED, Plan, World};

const SOON: Duration = Duration::from_secs(20);
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const JSON: &str = "application/json";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Asks an API, whoever its kubeconfig is for.
async fn ask(kubeconfig: &Path, path: &str, headers: &[(&str, &str)]) -> Answer {
    let began = Instant::now();
    let mut request = Request::builder().uri(format!("https://127.0.0.1{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::new())).unwrap();
    loop {
        if let Ok(door) = Door::of_kubeconfig(kubeconfig)
            && let Ok(mut client) = door.connect(Protocol::Http2).await
            && let Ok(answer) = client.exchange(request.clone()).await
        {
            return answer;
        }
        assert!(began.elapsed() < SOON, "{path}: the API does not answer");
        sleep(Duration::from_millis(20)).await;
    }
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// The body of an answer, without what differs between two servers of the same thing.
fn said(answer: &Answer, path: &str) -> Value {
    assert_eq!(answer.status, 200, "{path}: {}", text(answer));
    let mut value: Value = serde_json::from_slice(&answer.body).unwrap();
    let fields = value.as_object_mut().unwrap();
    // Where the API itself is.
    fields.remove("serverAddressByClientCIDRs");
    // In which version the cluster stores a kind: discovery in one answer does not say it.
    let resources = fields.get_mut("resources").and_then(Value::as_array_mut);
    for resource in resources.into_iter().flatten() {
        resource
            .as_object_mut()
            .unwrap()
            .remove("storageVersionHash");
    }
    value
}

/// The same is said on the node as in the cluster, as long as the cluster said it once.
struct Twins {
    cluster: PathBuf,
    node: PathBuf,
}

impl Twins {
    fn of(world: &World) -> Self {
        Self {
            cluster: world.kubeconfig(),
            node: world.nodes[0].data_dir.join("local/admin.kubeconfig"),
        }
    }

    async fn agree(&self, path: &str, accept: &str) {
        let form = [("accept", accept)];
        let (here, there) = (
            ask(&self.node, path, &form).await,
            ask(&self.cluster, path, &form).await,
        );
        assert_eq!(said(&here, path), said(&there, path), "{path} as {accept}");
        let media = |answer: &Answer| answer.headers["content-type"].clone();
        assert_eq!(media(&here), media(&there), "{path}");
    }

    async fn agree_on_everything(&self) {
        for path in ["/version", "/api/v1", "/apis/apps", "/apis/apps/v1"] {
            self.agree(path, JSON).await;
        }
        for path in [
            "/apis/example.com",
            "/apis/example.com/v1",
            "/apis/example.com/v1beta1",
        ] {
            self.agree(path, JSON).await;
        }
        for path in ["/api", "/apis"] {
            for accept in [JSON, AGGREGATED] {
                self.agree(path, accept).await;
            }
        }
    }

    /// Waits until the node knows as many versions of the custom group.
    async fn know(&self, versions: usize) {
        let began = Instant::now();
        loop {
            let group = ask(&self.node, "/apis", &[("accept", JSON)]).await;
            let groups: Value = serde_json::from_slice(&group.body).unwrap_or_default();
            let mut all = groups["groups"].as_array().into_iter().flatten();
            let found = all.find(|group| group["name"] == "example.com");
            let found = found.map_or(0, |group| group["versions"].as_array().unwrap().len());
            let whole = ask(&self.node, "/version", &[]).await.status == 200;
            if found == versions && whole {
                return;
            }
            assert!(began.elapsed() < CONVERGED, "{found} versions: {groups}");
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A kind in these versions, the first of which is stored.
fn definition(versions: &[&str]) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": *name == versions[0],
            "schema": {"openAPIV3Schema": schema},
            "additionalPrinterColumns": [
                {"name": "Color", "type": "string", "jsonPath": ".spec.color"}]
        })
    };
    let versions: Vec<Value> = versions.iter().map(version).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {
                "plural": "widgets", "singular": "widget", "kind": "Widget",
                "listKind": "WidgetList", "shortNames": ["wd"]
            },
            "versions": versions
        }
    })
}

/// A cluster with a kind of its own, which every node holds.
async fn furnished() -> World {
    let mut world = World::new(Plan::default()).await;
    let made = definition(&["v1", "v1beta1"]);
    world.driver.must("POST", DEFINITIONS, Some(&made)).await;
    world.hubs[0].program.kill();
    world.hubs[0].extra = vec!["--share".to_owned(), "widgets.example.com".to_owned()];
    world.hubs[0].start().await;
    let all = "/apis/example.com/v1/widgets";
    world.shared = vec![("widgets.example.com", all, "example.com/v1", "Widget")];
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "one"}, "spec": {"color": "red"}
    });
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let served = tokio::time::timeout(SOON, async {
        while !matches!(world.driver.ask("GET", path, None).await, Ok((200, _))) {
            sleep(Duration::from_millis(50)).await;
        }
    });
    served.await.expect("a kind that is served");
    world.driver.must("POST", path, Some(&widget)).await;
    world.nodes[0].start();
    world.settled(CONVERGED).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_says_of_itself_is_the_same_on_a_node_with_a_hub_and_without_one() {
    let mut world = furnished().await;
    let twins = Twins::of(&world);
    twins.know(2).await;
    twins.agree_on_everything().await;
    let widgets = "/apis/example.com/v1/widgets";
    let older = "/apis/example.com/v1beta1/widgets";
    let shown = ask(&twins.node, widgets, &[("accept", JSON)]).await;
    let list = said(&shown, widgets);
    assert_eq!(list["items"][0]["apiVersion"], "example.com/v1");
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    for _ in 0..2 {
        twins.agree_on_everything().await;
        let shown = ask(&twins.node, widgets, &[("accept", JSON)]).await;
        assert_eq!(said(&shown, widgets), list);
        let table = said(
            &ask(&twins.node, widgets, &[("accept", TABLE)]).await,
            widgets,
        );
        assert_eq!(table["rows"][0]["cells"][0], "one");
        // Only the cluster can make the other version of it.
        assert_eq!(ask(&twins.node, older, &[]).await.status, 503);
        world.nodes[0].restart();
    }
}

/// What of an answer must be the same at any time.
fn whole(answer: &Answer) -> (u16, Vec<Option<String>>, Bytes) {
    let headers = ["content-type", "content-encoding", "etag", "cache-control"];
    let value = |name: &str| Some(answer.headers.get(name)?.to_str().unwrap().to_owned());
    let headers = headers.map(value).to_vec();
    (answer.status, headers, answer.body.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_that_were_asked_for_once_are_there_without_a_hub() {
    let mut world = World::started(Plan::default()).await;
    let node = Twins::of(&world).node;
    world.nodes[0].connected(SOON).await;
    let index = said(&ask(&node, "/openapi/v3", &[]).await, "/openapi/v3");
    let apps = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str();
    let apps = format!("{}&timeout=32s", apps.unwrap());
    let protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let questions: [(&str, Vec<(&str, &str)>); 4] = [
        ("/openapi/v3", vec![]),
        (&apps, vec![("accept", JSON)]),
        (&apps, vec![("accept", JSON), ("accept-encoding", "gzip")]),
        ("/openapi/v2", vec![("accept", protobuf)]),
    ];
    let mut before = Vec::new();
    for (path, headers) in &questions {
        let answer = ask(&node, path, headers).await;
        assert_eq!(answer.status, 200, "{path}: {}", text(&answer));
        before.push(whole(&answer));
    }
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    for _ in 0..2 {
        for ((path, headers), before) in questions.iter().zip(&before) {
            let answer = whole(&ask(&node, path, headers).await);
            assert_eq!(answer.1, before.1, "{path} {headers:?}");
            assert!(answer == *before, "{path} {headers:?} has other bytes");
        }
        let etag = before[1].1[2].clone().unwrap();
        let known = [("accept", JSON), ("if-none-match", etag.as_str())];
        let same = ask(&node, &apps, &known).await;
        assert_eq!((same.status, same.body.len()), (304, 0));
        // Without the hash it is the same, and nobody may keep it for long.
        let bare = ask(&node, "/openapi/v3/apis/apps/v1", &[]).await;
        assert_eq!(bare.body, before[1].2);
        assert_eq!(bare.headers["cache-control"], "no-cache, private");
        // What nobody asked for is what this program knows of it.
        let batch = ask(&node, "/openapi/v3/apis/batch/v1", &[]).await;
        assert!(said(&batch, "batch")["components"]["schemas"].is_object());
        world.nodes[0].restart();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn a_kind_that_comes_changes_and_goes_is_known_on_a_node_soon() {
    let world = World::started(Plan::default()).await;
    let twins = Twins::of(&world);
    twins.know(0).await;
    let made = definition(&["v1"]);
    let made = world.driver.must("POST", DEFINITIONS, Some(&made)).await;
    twins.know(1).await;
    let mut more = definition(&["v1", "v1beta1"]);
    more["metadata"] = made["metadata"].clone();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let patch = json!({"spec": more["spec"]});
    world.driver.must("PATCH", &path, Some(&patch)).await;
    twins.know(2).await;
    twins.agree("/apis", AGGREGATED).await;
    world.driver.must("DELETE", &path, None).await;
    twins.know(0).await;
}
