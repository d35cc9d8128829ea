//! Changes in the cluster, made through its API by its administrator; and its lists.

use ::cluster::Site;
use ::cluster::client::{Answer, Client, Door, Error, Protocol};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// Where everything of a test is.
pub(crate) const NAMESPACE: &str = "default";

/// Who makes changes. A connection that broke is opened anew for the next request.
pub(crate) struct Driver {
    door: Door,
    client: Mutex<Option<Client>>,
}

impl Driver {
    /// The administrator of a server.
    pub(crate) fn new(site: &Site) -> Self {
        Self {
            door: Door::for_admin(site).unwrap(),
            client: Mutex::default(),
        }
    }

    /// Another connection to the same server.
    pub(crate) fn another(&self) -> Self {
        Self {
            door: self.door.clone(),
            client: Mutex::default(),
        }
    }

    /// The code and body of an answer, or none if the server did not give one.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Bytes), Error> {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let bytes = body.map_or(Bytes::new(), |body| body.to_string().into());
        let request = Request::builder()
            .method(method)
            .uri(format!("https://127.0.0.1{path}"))
            .header("accept", "application/json")
            .header("content-type", content_type)
            .body(Full::new(bytes))
            .unwrap();
        let mut client = self.client.lock().await;
        let mut open = match client.take().filter(|client| !client.is_closed()) {
            Some(open) => open,
            None => self.door.connect(Protocol::Http2).await?,
        };
        let Answer { status, body, .. } = open.exchange(request).await?;
        *client = Some(open);
        Ok((status, body))
    }

    /// An answer that must come and be a success.
    pub(crate) async fn must(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let asked = self.ask(method, path, body).await;
        let (status, body) = asked.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let text = String::from_utf8_lossy(&body);
        assert!(
            (200..300).contains(&status),
            "{method} {path}: {status} {text}"
        );
        serde_json::from_slice(&body).unwrap()
    }

    /// Makes an object of a namespace.
    pub(crate) async fn create(&self, plural: &str, object: &Value) -> Value {
        self.must("POST", &collection(plural), Some(object)).await
    }

    /// Gives a node thirty pods, each with a configmap, and makes as many services.
    pub(crate) async fn furnish(&self, node: &str) {
        for number in 0..30 {
            let names = format!("number-{number}");
            self.create("configmaps", &config_map(&names, &names)).await;
            self.create("pods", &pod(&names, node, &names)).await;
            self.create("services", &service(&names, &names)).await;
        }
    }

    /// Changes some fields of an object of a namespace.
    pub(crate) async fn patch(&self, plural: &str, name: &str, patch: &Value) -> Value {
        self.must("PATCH", &place(plural, name), Some(patch)).await
    }

    /// Removes an object of a namespace at once.
    pub(crate) async fn delete(&self, plural: &str, name: &str) {
        let path = format!("{}?gracePeriodSeconds=0", place(plural, name));
        self.must("DELETE", &path, None).await;
    }
}

/// The path of a collection in the namespace.
pub(crate) fn collection(plural: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/{plural}")
}

/// The path of an object in it.
pub(crate) fn place(plural: &str, name: &str) -> String {
    format!("{}/{name}", collection(plural))
}

/// A pod that is bound to a node and names a configmap and a secret of these names.
pub(crate) fn pod(name: &str, node: &str, names: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": names}},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main",
                "image": "example.test/main:1",
                "env": [{
                    "name": "KEY",
                    "valueFrom": {"secretKeyRef": {"name": names, "key": "key", "optional": true}}
                }]
            }],
            "volumes": [{"name": "settings", "configMap": {"name": names, "optional": true}}]
        }
    })
}

/// A configmap with one value.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    let metadata = json!({"name": name});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": value}})
}

/// A secret with one value, in base64.
pub(crate) fn secret(name: &str, value: &str) -> Value {
    let metadata = json!({"name": name});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": value}})
}

/// A service.
pub(crate) fn service(name: &str, note: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "annotations": {"note": note}},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}
    })
}
