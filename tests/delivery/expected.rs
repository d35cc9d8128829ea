//! What a node must hold, computed from the API's lists: by the rules as people know them, and by
//! nothing of the hub.

use std::collections::{BTreeMap, BTreeSet};

use ::cluster::client::Error;
use serde_json::{Map, Value};
use wire::digest::content_hash;

use crate::driver::Driver;

/// A kind: resource, path, apiVersion, kind.
pub(crate) type Kind = (&'static str, &'static str, &'static str, &'static str);

/// Everything that is in a view without further ado.
const KINDS: [Kind; 13] = [
    ("pods", "/api/v1/pods", "v1", "Pod"),
    ("nodes", "/api/v1/nodes", "v1", "Node"),
    ("secrets", "/api/v1/secrets", "v1", "Secret"),
    ("configmaps", "/api/v1/configmaps", "v1", "ConfigMap"),
    (
        "serviceaccounts",
        "/api/v1/serviceaccounts",
        "v1",
        "ServiceAccount",
    ),
    (
        "persistentvolumeclaims",
        "/api/v1/persistentvolumeclaims",
        "v1",
        "PersistentVolumeClaim",
    ),
    (
        "persistentvolumes",
        "/api/v1/persistentvolumes",
        "v1",
        "PersistentVolume",
    ),
    ("services", "/api/v1/services", "v1", "Service"),
    ("namespaces", "/api/v1/namespaces", "v1", "Namespace"),
    (
        "endpointslices.discovery.k8s.io",
        "/apis/discovery.k8s.io/v1/endpointslices",
        "discovery.k8s.io/v1",
        "EndpointSlice",
    ),
    (
        "csidrivers.storage.k8s.io",
        "/apis/storage.k8s.io/v1/csidrivers",
        "storage.k8s.io/v1",
        "CSIDriver",
    ),
    (
        "csinodes.storage.k8s.io",
        "/apis/storage.k8s.io/v1/csinodes",
        "storage.k8s.io/v1",
        "CSINode",
    ),
    (
        "runtimeclasses.node.k8s.io",
        "/apis/node.k8s.io/v1/runtimeclasses",
        "node.k8s.io/v1",
        "RuntimeClass",
    ),
];

/// What every node holds whole.
const SHARED: [&str; 5] = [
    "namespaces",
    "services",
    "endpointslices.discovery.k8s.io",
    "csidrivers.storage.k8s.io",
    "runtimeclasses.node.k8s.io",
];

/// The cluster's objects at about one moment, resource by resource.
pub(crate) struct Lists {
    all: BTreeMap<&'static str, Vec<Item>>,
    /// What every node holds whole.
    shared: Vec<&'static str>,
}

struct Item {
    /// `namespace/name`, or the name alone.
    name: String,
    namespace: String,
    object: Value,
    line: String,
}

impl Lists {
    /// Lists everything; every node holds these further kinds whole. Without an answer, or with a
    /// refusal, there is nothing to expect.
    pub(crate) async fn read(driver: &Driver, further: &[Kind]) -> Result<Self, Error> {
        let mut all = BTreeMap::new();
        let mut shared = SHARED.to_vec();
        shared.extend(further.iter().map(|(resource, ..)| *resource));
        for &(resource, path, version, kind) in KINDS.iter().chain(further) {
            let (status, body) = driver.ask("GET", path, None).await?;
            assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
            let mut list: Value = serde_json::from_slice(&body).unwrap();
            let items = match list["items"].take() {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            let items = items
                .into_iter()
                .map(|object| Item::new(resource, object, (version, kind)));
            all.insert(resource, items.collect());
        }
        Ok(Self { all, shared })
    }

    /// Whether the cluster knows of a node. One that runs registers itself, a moment after it came.
    pub(crate) fn has_node(&self, node: &str) -> bool {
        self.all["nodes"].iter().any(|item| item.name == node)
    }

    /// The dump that a node should give, sorted.
    pub(crate) fn of(&self, node: &str) -> BTreeSet<String> {
        let pods: Vec<&Item> = self.all["pods"]
            .iter()
            .filter(|pod| pod.object["spec"]["nodeName"] == node)
            .collect();
        let named = self.named(&pods);
        let mut lines = BTreeSet::new();
        for (resource, items) in &self.all {
            for item in items {
                let holds = match *resource {
                    "pods" => item.object["spec"]["nodeName"] == node,
                    "nodes" | "csinodes.storage.k8s.io" => item.name == node,
                    shared if self.shared.contains(&shared) => true,
                    _ => named.contains(&(*resource, item.name.clone())),
                };
                if holds {
                    lines.insert(item.line.clone());
                }
            }
        }
        lines
    }

    /// What pods name, and the volumes of the claims that they name.
    fn named(&self, pods: &[&Item]) -> BTreeSet<(&'static str, String)> {
        let mut named = BTreeSet::new();
        for pod in pods {
            for (resource, name) in names_in(&pod.object) {
                named.insert((resource, format!("{}/{name}", pod.namespace)));
            }
        }
        let claims: BTreeSet<String> = named
            .iter()
            .filter(|(resource, _)| *resource == "persistentvolumeclaims")
            .map(|(_, name)| name.clone())
            .collect();
        for volume in &self.all["persistentvolumes"] {
            let claim = &volume.object["spec"]["claimRef"];
            let (namespace, name) = (word(&claim["namespace"]), word(&claim["name"]));
            if claims.contains(&format!("{namespace}/{name}")) {
                named.insert(("persistentvolumes", volume.name.clone()));
            }
        }
        named
    }
}

impl Item {
    fn new(resource: &str, object: Value, (version, kind): (&str, &str)) -> Self {
        let metadata = &object["metadata"];
        let namespace = word(&metadata["namespace"]).to_owned();
        let name = match namespace.as_str() {
            "" => word(&metadata["name"]).to_owned(),
            namespace => format!("{namespace}/{}", word(&metadata["name"])),
        };
        let uid = word(&metadata["uid"]);
        let at = word(&metadata["resourceVersion"]);
        let hash = content_hash(canonical(&object, version, kind).as_bytes());
        let line = format!("{resource} {name} {uid} {at} {hash:016x}");
        Self {
            name,
            namespace,
            line,
            object,
        }
    }
}

/// The bytes that a node must hold: with its type first, and without managed fields.
fn canonical(object: &Value, version: &str, kind: &str) -> String {
    let mut whole = Map::new();
    whole.insert("apiVersion".to_owned(), version.into());
    whole.insert("kind".to_owned(), kind.into());
    for (field, value) in object.as_object().unwrap() {
        whole.insert(field.clone(), value.clone());
    }
    if let Some(Value::Object(metadata)) = whole.get_mut("metadata") {
        metadata.shift_remove("managedFields");
    }
    Value::Object(whole).to_string()
}

/// What a pod names in its own namespace.
fn names_in(pod: &Value) -> Vec<(&'static str, String)> {
    let spec = &pod["spec"];
    let mut found = vec![("serviceaccounts", word(&spec["serviceAccountName"]))];
    for secret in each(&spec["imagePullSecrets"]) {
        found.push(("secrets", word(&secret["name"])));
    }
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        for container in each(&spec[containers]) {
            for source in each(&container["envFrom"]) {
                found.push(("secrets", word(&source["secretRef"]["name"])));
                found.push(("configmaps", word(&source["configMapRef"]["name"])));
            }
            for variable in each(&container["env"]) {
                let from = &variable["valueFrom"];
                found.push(("secrets", word(&from["secretKeyRef"]["name"])));
                found.push(("configmaps", word(&from["configMapKeyRef"]["name"])));
            }
        }
    }
    for volume in each(&spec["volumes"]) {
        found.push(("secrets", word(&volume["secret"]["secretName"])));
        found.push(("configmaps", word(&volume["configMap"]["name"])));
        let claim = &volume["persistentVolumeClaim"]["claimName"];
        found.push(("persistentvolumeclaims", word(claim)));
        for source in each(&volume["projected"]["sources"]) {
            found.push(("secrets", word(&source["secret"]["name"])));
            found.push(("configmaps", word(&source["configMap"]["name"])));
        }
    }
    let named = found.into_iter().filter(|(_, name)| !name.is_empty());
    named
        .map(|(resource, name)| (resource, name.to_owned()))
        .collect()
}

fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
