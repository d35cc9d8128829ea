//! What is kept in the cluster, as JSON: Secrets and ConfigMaps with text in them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::NAMESPACE;

/// The label by which our records are found.
pub const KIND_LABEL: &str = "holdfast.dev/kind";

/// Which resource a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Secrets in our namespace.
    Secrets,
    /// ConfigMaps in our namespace.
    ConfigMaps,
    /// Nodes, which are the cluster's and only looked at.
    Nodes,
}

/// A record: named texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Secret or ConfigMap.
    pub resource: Resource,
    /// Its name.
    pub name: String,
    /// The type of a Secret; empty for a ConfigMap.
    pub secret_type: String,
    /// What kind of record of ours it is, as its label says; empty for none.
    pub kind: String,
    /// Its version in the cluster, if it is there: an update is of this one or of none.
    pub version: Option<String>,
    /// The texts.
    pub texts: BTreeMap<String, String>,
}

impl Record {
    /// A record that is not in the cluster yet.
    pub fn new(resource: Resource, name: &str, kind: &str) -> Self {
        Self {
            resource,
            name: name.to_owned(),
            secret_type: String::new(),
            kind: kind.to_owned(),
            version: None,
            texts: BTreeMap::new(),
        }
    }

    /// A record with one more text.
    pub fn with(mut self, key: &str, text: impl Into<String>) -> Self {
        self.texts.insert(key.to_owned(), text.into());
        self
    }

    /// A text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    /// Reads an object of the cluster. Texts that are not texts are left out: who needs one misses
    /// it then.
    pub fn read(resource: Resource, object: &Value) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let empty = Map::new();
        let entries = object.get("data").and_then(Value::as_object);
        let decoded = entries
            .unwrap_or(&empty)
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), decode(resource, value.as_str()?)?)));
        Some(Self {
            resource,
            name: text(metadata.get("name")?)?,
            secret_type: object.get("type").and_then(text).unwrap_or_default(),
            kind: metadata["labels"][KIND_LABEL]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            version: metadata.get("resourceVersion").and_then(text),
            texts: decoded.collect(),
        })
    }

    /// The object that the cluster is given.
    pub fn object(&self) -> Value {
        let mut metadata = json!({ "name": self.name, "namespace": NAMESPACE });
        if !self.kind.is_empty() {
            metadata["labels"] = json!({ KIND_LABEL: self.kind });
        }
        if let Some(version) = &self.version {
            metadata["resourceVersion"] = json!(version);
        }
        let texts = self.texts.iter();
        match self.resource {
            Resource::Secrets => {
                let encoded = texts.map(|(key, text)| (key.clone(), BASE64_STANDARD.encode(text)));
                let data: BTreeMap<String, String> = encoded.collect();
                json!({
                    "apiVersion": "v1", "kind": "Secret", "type": self.secret_type,
                    "metadata": metadata, "data": data,
                })
            }
            Resource::ConfigMaps | Resource::Nodes => json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": metadata, "data": self.texts,
            }),
        }
    }
}

fn decode(resource: Resource, text: &str) -> Option<String> {
    match resource {
        Resource::Secrets => String::from_utf8(BASE64_STANDARD.decode(text).ok()?).ok(),
        Resource::ConfigMaps | Resource::Nodes => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_went_in() {
        for resource in [Resource::Secrets, Resource::ConfigMaps] {
            let mut record = Record::new(resource, "a", "b").with("key", "täxt\n");
            record.version = Some("17".to_owned());
            assert_eq!(Record::read(resource, &record.object()), Some(record));
        }
        let secret = Record::new(Resource::Secrets, "a", "").with("key", "x");
        assert_eq!(secret.object()["data"]["key"], "eA==");
    }

    #[test]
    fn what_is_no_text_is_left_out() {
        let object = json!({
            "metadata": { "name": "a" },
            "data": { "number": 1, "broken": "%%", "bytes": "/w==", "good": "eA==" },
        });
        let record = Record::read(Resource::Secrets, &object).unwrap();
        assert_eq!(
            record.texts,
            BTreeMap::from([("good".to_owned(), "x".to_owned())])
        );
        assert_eq!(
            Record::read(Resource::Secrets, &json!({ "data": {} })),
            None
        );
    }
}
