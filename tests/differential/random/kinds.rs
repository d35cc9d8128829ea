//! The kinds of object that random conversations are about.

use serde_json::{Value, json};

use super::lot::Lot;

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    ConfigMap,
    Secret,
    Service,
    Pod,
    Lease,
    /// A custom kind with a schema and a status.
    Thing,
}

/// All of them.
pub(super) const KINDS: [Kind; 6] = [
    Kind::ConfigMap,
    Kind::Secret,
    Kind::Service,
    Kind::Pod,
    Kind::Lease,
    Kind::Thing,
];

/// The names that objects have; few, so that conversations come back to them.
pub(super) const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Label selectors. Every one matches [`LAST_LABELS`].
pub(super) const LABEL_SELECTORS: [&str; 8] = [
    "color=red",
    "color!=blue",
    "color in (red,green)",
    "color notin (blue)",
    "color",
    "!ghost",
    "color=red,size=big",
    "size!=small,color==red",
];

/// The labels of the object that a conversation ends with: every watch sees it.
pub(super) fn last_labels() -> Value {
    json!({"color": "red", "size": "big", "last": "yes"})
}

impl Kind {
    /// Where objects of this kind are.
    pub(super) fn collection(self) -> &'static str {
        match self {
            Self::ConfigMap => "/api/v1/namespaces/{{ns}}/configmaps",
            Self::Secret => "/api/v1/namespaces/{{ns}}/secrets",
            Self::Service => "/api/v1/namespaces/{{ns}}/services",
            Self::Pod => "/api/v1/namespaces/{{ns}}/pods",
            Self::Lease => "/apis/coordination.k8s.io/v1/namespaces/{{ns}}/leases",
            Self::Thing => "/apis/{{ns}}.example.com/v1/namespaces/{{ns}}/things",
        }
    }

    /// A word for titles.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::ConfigMap => "config map",
            Self::Secret => "secret",
            Self::Service => "service",
            Self::Pod => "pod",
            Self::Lease => "lease",
            Self::Thing => "thing",
        }
    }

    /// Whether an update may leave out the version.
    pub(super) fn takes_any_version(self) -> bool {
        !matches!(self, Self::Lease | Self::Thing)
    }

    /// Field selectors. Every one matches an object named `a`.
    pub(super) fn field_selectors(self) -> &'static [&'static str] {
        match self {
            Self::Pod => &[
                "metadata.name=a",
                "metadata.name!=b",
                "spec.nodeName={{ns}}-n1",
                "spec.nodeName!={{ns}}-n2",
            ],
            Self::Secret => &["metadata.name=a", "metadata.name!=b", "type=Opaque"],
            _ => &[
                "metadata.name=a",
                "metadata.name!=b",
                "metadata.namespace={{ns}}",
            ],
        }
    }

    /// A whole object of this name.
    pub(super) fn object(self, name: &str, lot: &mut Lot) -> Value {
        let (version, kind) = match self {
            Self::ConfigMap => ("v1", "ConfigMap"),
            Self::Secret => ("v1", "Secret"),
            Self::Service => ("v1", "Service"),
            Self::Pod => ("v1", "Pod"),
            Self::Lease => ("coordination.k8s.io/v1", "Lease"),
            Self::Thing => ("{{ns}}.example.com/v1", "Thing"),
        };
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
        if lot.percent(70) {
            object["metadata"]["labels"] = labels(lot);
        }
        if lot.percent(20) {
            object["metadata"]["annotations"] = json!({"note": lot.below(100).to_string()});
        }
        self.put_content(&mut object, name, lot);
        object
    }

    fn put_content(self, object: &mut Value, name: &str, lot: &mut Lot) {
        match self {
            Self::ConfigMap => {
                object["data"] = words(lot);
                if lot.percent(10) {
                    object["binaryData"] = json!({"bin": "AAEC"});
                }
                if lot.percent(4) {
                    object["immutable"] = json!(true);
                }
            }
            Self::Secret => {
                // A watch of this type must see `a`, and the type cannot be changed.
                if name != "a" && lot.percent(20) {
                    object["type"] = json!("example.com/custom");
                }
                let field = lot.one_of(&["stringData", "data"]);
                object[field] = match field {
                    "data" => json!({"k": lot.one_of(&["djE=", "djI=", ""])}),
                    _ => words(lot),
                };
            }
            Self::Service => object["spec"] = service(lot),
            Self::Pod => object["spec"] = pod(name, lot),
            Self::Lease => {
                let seconds = lot.below(40);
                object["spec"] = json!({
                    "holderIdentity": lot.one_of(&["one", "two"]),
                    "leaseDurationSeconds": seconds + 1,
                    "renewTime": format!("2020-01-01T00:00:{seconds:02}.000000Z"),
                });
            }
            Self::Thing => object["spec"] = thing(lot),
        }
    }

    /// A merge patch of what is particular to this kind.
    pub(super) fn change(self, lot: &mut Lot) -> Value {
        match self {
            Self::ConfigMap => json!({"data": words(lot)}),
            Self::Secret => json!({"stringData": words(lot)}),
            Self::Service => {
                let kind = lot.one_of(&["ClusterIP", "NodePort", "ExternalName"]);
                match lot.percent(30) {
                    true => json!({"spec": {"type": kind}}),
                    false => {
                        json!({"spec": {"sessionAffinity": lot.one_of(&["None", "ClientIP"])}})
                    }
                }
            }
            Self::Pod => json!({"spec": {"activeDeadlineSeconds": lot.below(3) + 100}}),
            Self::Lease => json!({"spec": {"leaseTransitions": lot.below(5)}}),
            Self::Thing => json!({"spec": {"size": lot.below(14)}}),
        }
    }

    /// A merge patch of the status, of kinds that have one of their own.
    pub(super) fn status(self, lot: &mut Lot) -> Option<Value> {
        match self {
            Self::Pod => Some(json!({"status": {"message": lot.one_of(&["up", "down"]),
                "phase": lot.one_of(&["Pending", "Running"])}})),
            Self::Thing => Some(json!({"status": {"ready": lot.percent(50), "stray": 1}})),
            Self::Service => Some(json!({"status": {"loadBalancer": {}}})),
            _ => None,
        }
    }
}

/// Some labels.
pub(super) fn labels(lot: &mut Lot) -> Value {
    let mut labels = json!({"color": lot.one_of(&["red", "blue", "green"])});
    if lot.percent(40) {
        labels["size"] = json!(lot.one_of(&["big", "small"]));
    }
    labels
}

fn words(lot: &mut Lot) -> Value {
    let mut words = json!({"k": format!("v{}", lot.below(5))});
    if lot.percent(30) {
        words[lot.one_of(&["l", "m"])] = json!("w");
    }
    words
}

fn service(lot: &mut Lot) -> Value {
    let port = lot.below(3) + 80;
    match lot.below(5) {
        0 => json!({"clusterIP": "None", "ports": [{"port": port}]}),
        1 => json!({"type": "ExternalName", "externalName": "example.com"}),
        2 => json!({"type": "NodePort", "ports": [{"port": port, "protocol": "UDP"}]}),
        _ => json!({"selector": {"app": "x"}, "ports": [
            {"name": "web", "port": port, "targetPort": "http"}, {"name": "b", "port": 1}]}),
    }
}

/// Which node a pod is on says its name: a watch of a node's pods must see `a`.
fn pod(name: &str, lot: &mut Lot) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "example.com/i:1"}]});
    match name {
        "b" => spec["nodeName"] = json!("{{ns}}-n2"),
        "d" => {}
        _ => spec["nodeName"] = json!("{{ns}}-n1"),
    }
    if lot.percent(70) {
        spec["automountServiceAccountToken"] = json!(false);
    }
    if lot.percent(30) {
        spec["terminationGracePeriodSeconds"] = json!(lot.below(3));
    }
    spec
}

/// At most one thing is wrong with it: a real server names several in any order.
fn thing(lot: &mut Lot) -> Value {
    let mut spec = json!({"size": lot.below(11)});
    if lot.percent(50) {
        spec["color"] = json!(lot.one_of(&["red", "blue"]));
    }
    match lot.below(10) {
        0 => spec["size"] = json!(11),
        1 => spec["color"] = json!("pink"),
        _ => {}
    }
    if lot.percent(30) {
        spec["parts"] = json!([{"name": "x"}, {"name": lot.one_of(&["x", "y"]), "count": 2}]);
    }
    if lot.percent(20) {
        spec["stray"] = json!("pruned");
    }
    spec
}

/// The definition of the custom kind.
pub(super) fn definition() -> Value {
    let part = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "count": {"type": "integer", "default": 1}}});
    let spec = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 10},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
        "parts": {"type": "array", "maxItems": 3, "items": part}}});
    let status = json!({"type": "object", "properties": {"ready": {"type": "boolean"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.{{ns}}.example.com"},
        "spec": {"group": "{{ns}}.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing",
                "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Ready", "type": "boolean", "jsonPath": ".status.ready"}],
                "schema": {"openAPIV3Schema": schema}}]}})
}
