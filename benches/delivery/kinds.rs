//! The objects of these parts, made and changed through the API: services, which every node holds,
//! and pods, which one node does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};

use crate::client::{Client, Coding, Protocol, request, whole};
use crate::generator::callers::{Callers, Until};
use crate::objects::version;
use crate::server::Server;

/// Where services are.
pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";
/// Where pods are.
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
/// Where config maps are.
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Connections over which many objects are made or changed.
const CONNECTIONS: usize = 16;

/// A service of about a KiB, as a chart makes it.
pub(crate) fn service(number: usize) -> Value {
    let name = format!("service-{number:05}");
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "labels": {
            "app.kubernetes.io/name": name, "app.kubernetes.io/instance": name,
            "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/version": "1.2.3",
            "helm.sh/chart": "shop-1.2.3", "team": format!("team-{}", number % 17)},
            "annotations": {"meta.helm.sh/release-name": name,
                "meta.helm.sh/release-namespace": "default", "filling": filling(number, 320)}},
        "spec": {"type": "ClusterIP", "clusterIP": "None",
            "selector": {"app.kubernetes.io/name": name},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"},
                {"name": "metrics", "port": 9090, "targetPort": 9090, "protocol": "TCP"}]}
    })
}

/// A config map of a KiB.
pub(crate) fn config_map(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("config-{number:05}")},
        "data": {"settings": filling(number, 760), "change": "0"}
    })
}

/// A pod of about 3 KB, bound to a node, that names these config maps.
pub(crate) fn pod(name: &str, node: &str, names: &[String]) -> Value {
    let probe = json!({"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "initialDelaySeconds": 10, "periodSeconds": 10, "timeoutSeconds": 1,
        "successThreshold": 1, "failureThreshold": 3});
    let from: Vec<Value> = names
        .iter()
        .map(|name| json!({"configMapRef": {"name": name}}))
        .collect();
    let container = |container: &str| {
        json!({"name": container, "image": format!("registry.example.com/shop/{container}:1.2.3"),
            "imagePullPolicy": "IfNotPresent", "args": ["--listen=:8080", "--log=json"],
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1",
                "fieldPath": "metadata.name"}}}],
            "envFrom": from, "livenessProbe": probe, "readinessProbe": probe,
            "resources": {"limits": {"cpu": "1", "memory": "256Mi"},
                "requests": {"cpu": "100m", "memory": "128Mi"}},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File"})
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "shop", "pod-template-hash": "6d4cf56db6"},
            "annotations": {"example.com/change": "0"}},
        "spec": {"nodeName": node, "serviceAccountName": "default",
            "automountServiceAccountToken": false, "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "containers": [container("web"), container("cache")]}
    })
}

/// Text that does not shrink much.
fn filling(seed: usize, bytes: usize) -> String {
    let mut state = seed as u64;
    let mut text = String::with_capacity(bytes + 8);
    while text.len() < bytes {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        text.push_str(&format!("{:08x}", state >> 32));
    }
    text.truncate(bytes);
    text
}

/// Makes so many objects.
pub(crate) async fn make(
    server: &Server,
    (path, count): (&str, usize),
    object: impl Fn(usize) -> Value + Clone + Send + 'static,
) {
    let path = path.to_owned();
    many(server, count, move |number| {
        let body = object(number).to_string().into();
        request("POST", &path, body, Coding::Plain)
    })
    .await;
}

/// Sends so many requests, each number once.
pub(crate) async fn many(
    server: &Server,
    count: usize,
    asked: impl Fn(usize) -> Request<Full<Bytes>> + Clone + Send + 'static,
) {
    let connections = CONNECTIONS.min(count);
    let mut callers = Callers::open(server, connections).await;
    let next = Arc::new(AtomicUsize::new(0));
    let numbered = move |_| asked(next.fetch_add(1, Ordering::Relaxed));
    callers.run(server, Until::Count(count), numbered).await;
}

/// Changes an annotation, or for a config map a value.
pub(crate) fn change(path: &str, change: usize) -> Request<Full<Bytes>> {
    let body = match path.contains("/configmaps/") {
        true => json!({"data": {"change": change.to_string()}}),
        false => json!({"metadata": {"annotations": {"example.com/change": change.to_string()}}}),
    };
    Request::builder()
        .method("PATCH")
        .uri(format!("https://127.0.0.1{path}"))
        .header("content-type", "application/merge-patch+json")
        .body(Full::new(body.to_string().into()))
        .expect("a request that can be said")
}

/// Somebody who changes one object after the other.
pub(crate) struct Hand(Client);

impl Hand {
    pub(crate) async fn of(server: &Server) -> Self {
        Self(server.door.connect(Protocol::Http1).await)
    }

    /// Makes an object, and gives its version.
    pub(crate) async fn make(&mut self, path: &str, object: &Value) -> u64 {
        let body = object.to_string().into();
        version(&self.0.call("POST", path, body).await)
    }

    /// Changes an object, and gives its version.
    pub(crate) async fn change(&mut self, path: &str, number: usize) -> u64 {
        let answer = self.0.ask(change(path, number)).await;
        version(&whole(answer).await)
    }

    /// Deletes an object.
    pub(crate) async fn delete(&mut self, path: &str) {
        self.0.call("DELETE", path, Bytes::new()).await;
    }

    /// Names, uids and versions of all objects at a path, sorted, as an agent tells them.
    pub(crate) async fn list(&mut self, path: &str) -> Vec<String> {
        let list: Value = serde_json::from_slice(&self.0.read(path).await).expect("JSON");
        let items = list["items"].as_array().expect("items").iter();
        let text = |item: &Value, field: &str| {
            let text = item["metadata"][field].as_str();
            text.unwrap_or_default().to_owned()
        };
        let row = |item: &Value| {
            let [name, space] = ["name", "namespace"].map(|field| text(item, field));
            let [uid, version] = ["uid", "resourceVersion"].map(|field| text(item, field));
            format!("{space}/{name} {uid} {version}")
        };
        let mut rows: Vec<String> = items.map(row).collect();
        rows.sort();
        rows
    }
}
