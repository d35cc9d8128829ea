//! Objects as tests write them: a place, labels, and a few fields.

use object::{ObjectName, Resource};
use serde_json::{Map, Value, json};

/// An object without uid and version.
#[derive(Debug, Clone)]
pub struct Body {
    plural: &'static str,
    kind: &'static str,
    metadata: Map<String, Value>,
    rest: Map<String, Value>,
}

/// A pod in a namespace.
pub fn pod(namespace: &str, name: &str) -> Body {
    let metadata = json!({ "name": name, "namespace": namespace });
    Body::new("pods", "Pod", metadata)
}

/// A node: it has no namespace.
pub fn node(name: &str) -> Body {
    Body::new("nodes", "Node", json!({ "name": name }))
}

/// An event of the core group.
pub fn event(namespace: &str, name: &str) -> Body {
    let metadata = json!({ "name": name, "namespace": namespace });
    Body::new("events", "Event", metadata)
}

/// The version of an object or of a list.
/// An object as it stands in a list, which says once what all of its items are.
pub fn item(object: &Value) -> Value {
    let mut item = object.clone();
    let fields = item.as_object_mut().unwrap();
    fields.shift_remove("apiVersion");
    fields.shift_remove("kind");
    item
}

pub fn version(object: &Value) -> &str {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_else(|| panic!("no version in {object}"))
}

impl Body {
    fn new(plural: &'static str, kind: &'static str, metadata: Value) -> Self {
        let Value::Object(metadata) = metadata else {
            unreachable!("metadata is an object")
        };
        let rest = Map::new();
        Self {
            plural,
            kind,
            metadata,
            rest,
        }
    }

    pub fn label(mut self, key: &str, value: &str) -> Self {
        let labels = self.metadata.entry("labels").or_insert_with(|| json!({}));
        labels[key] = value.into();
        self
    }

    /// An annotation: what tests change when anything may change.
    pub fn note(mut self, text: &str) -> Self {
        self.metadata
            .insert("annotations".into(), json!({ "note": text }));
        self
    }

    /// Sets a field beside the metadata: `with("spec", json!({…}))`.
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.rest.insert(key.into(), value);
        self
    }

    /// A pod bound to a node.
    pub fn assigned(self, node: &str) -> Self {
        self.with("spec", json!({ "nodeName": node }))
    }

    pub fn resource(&self) -> Resource {
        Resource::new("", self.plural)
    }

    pub fn name(&self) -> ObjectName {
        let text = |key| self.metadata.get(key).and_then(Value::as_str).unwrap_or("");
        ObjectName::new(text("namespace"), text("name"))
    }

    /// The bytes before and after the version.
    pub fn around_version(&self, uid: &str) -> (String, String) {
        let mut metadata = self.metadata.clone();
        metadata.insert("uid".into(), uid.into());
        let metadata = Value::Object(metadata).to_string();
        let open = metadata.strip_suffix('}').unwrap();
        let kind = self.kind;
        let head = format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"{kind}\",\
             \"metadata\":{open},\"resourceVersion\":\""
        );
        let mut tail = "\"}".to_owned();
        for (key, value) in &self.rest {
            tail += &format!(",\"{key}\":{value}");
        }
        (head, tail + "}")
    }
}
