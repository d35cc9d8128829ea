//! Records as JSON, and back: their kinds, names, places and bodies.

use bytes::Bytes;
use object::{ObjectName, Version};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Summary;
use crate::view::{NodeName, OUR_GROUP};

/// The version of our group in which records are written.
const API_VERSION: &str = "holdfast.dev/v1alpha1";

/// The label that says whose a record is, where the node's name is short enough for one.
const NODE_LABEL: &str = "holdfast.dev/node";
const LABEL_BYTES_MAX: usize = 63;

/// Bytes of a record's name: what Kubernetes allows.
const NAME_BYTES_MAX: usize = 253;

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordKind {
    /// Of an object in a namespace.
    ObjectSync,
    /// Of an object in no namespace.
    ClusterObjectSync,
    /// Of a node.
    NodeSync,
}

impl RecordKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ObjectSync, Self::ClusterObjectSync, Self::NodeSync];

    /// The kind, as it stands in a record.
    pub fn kind(self) -> &'static str {
        match self {
            Self::ObjectSync => "ObjectSync",
            Self::ClusterObjectSync => "ClusterObjectSync",
            Self::NodeSync => "NodeSync",
        }
    }

    /// The resource, as it stands in a path.
    pub fn plural(self) -> &'static str {
        match self {
            Self::ObjectSync => "objectsyncs",
            Self::ClusterObjectSync => "clusterobjectsyncs",
            Self::NodeSync => "nodesyncs",
        }
    }

    /// The kind of record that an object of this name has.
    pub(super) fn of(name: &ObjectName) -> Self {
        match name.namespace() {
            "" => Self::ClusterObjectSync,
            _ => Self::ObjectSync,
        }
    }

    /// How the cluster serves this kind.
    pub(super) fn served(self) -> crate::cluster::Served {
        let resource = object::Resource::new(OUR_GROUP, self.plural());
        crate::cluster::Served::new(resource, API_VERSION, self.kind())
    }
}

/// The name of a record: the node's, a dot, and the object's uid. None for a uid or a node that
/// makes no name.
pub(super) fn record_name(node: &NodeName, uid: &str) -> Option<String> {
    let plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !text.starts_with('-')
            && !text.ends_with('-')
            && !text.is_empty()
    };
    let name = format!("{node}.{uid}");
    let right = plain(uid) && node.split('.').all(plain) && name.len() <= NAME_BYTES_MAX;
    right.then_some(name)
}

/// The body that creates a record of an object.
pub(super) fn object_record(
    node: &NodeName,
    record: &str,
    object: &ObjectName,
    described: &Described,
) -> Bytes {
    let kind = RecordKind::of(object);
    let mut body = json!({
        "apiVersion": API_VERSION, "kind": kind.kind(),
        "metadata": metadata(node, record),
        "spec": {
            "objectAPIVersion": described.api_version,
            "objectKind": described.kind,
            "objectName": object.name(),
        },
    });
    if kind == RecordKind::ObjectSync {
        body["metadata"]["namespace"] = object.namespace().into();
    }
    Bytes::from(body.to_string())
}

/// The patch that says which version of an object is on the node.
pub(super) fn object_status(version: &Version) -> Bytes {
    let body = json!({"status": {"objectResourceVersion": version.to_string()}});
    Bytes::from(body.to_string())
}

/// The body that creates a node's record.
pub(super) fn node_record(node: &NodeName) -> Bytes {
    let metadata = metadata(node, node);
    let body = json!({"apiVersion": API_VERSION, "kind": "NodeSync", "metadata": metadata});
    Bytes::from(body.to_string())
}

/// The patch that says how far a node is.
pub(super) fn node_status(summary: &Summary) -> Bytes {
    Bytes::from(json!({"status": summary.to_json()}).to_string())
}

fn metadata(node: &NodeName, name: &str) -> Value {
    let mut metadata = json!({ "name": name });
    if node.len() <= LABEL_BYTES_MAX {
        metadata["labels"] = json!({ NODE_LABEL: **node });
    }
    metadata
}

/// How objects of a resource are called in records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) api_version: Box<str>,
    pub(super) kind: Box<str>,
}

/// A record as it was found.
#[derive(Debug, Clone)]
pub struct Found {
    kind: RecordKind,
    text: FoundText,
}

impl Found {
    /// Reads a record. Nothing if it makes no sense.
    pub fn read(kind: RecordKind, bytes: &[u8]) -> Option<Self> {
        let text = serde_json::from_slice(bytes).ok()?;
        Some(Self { kind, text })
    }

    /// Whose it is.
    pub fn node(&self) -> Option<NodeName> {
        let record = self.record();
        match self.kind {
            RecordKind::NodeSync => Some(record.into()),
            _ => record.rsplit_once('.').map(|(node, _)| node.into()),
        }
    }

    /// The uid of the object, if it is the record of one.
    pub(super) fn uid(&self) -> Option<&str> {
        match self.kind {
            RecordKind::NodeSync => None,
            _ => self.record().rsplit_once('.').map(|(_, uid)| uid),
        }
    }

    /// Its name.
    pub(super) fn record(&self) -> &str {
        &self.text.metadata.name
    }

    /// The name of the object.
    pub(super) fn object(&self) -> ObjectName {
        ObjectName::new(&self.text.metadata.namespace, &self.text.spec.object_name)
    }

    /// The version that it tells.
    pub(super) fn told(&self) -> Option<Version> {
        self.text
            .status
            .object_resource_version
            .as_deref()?
            .parse()
            .ok()
    }

    /// Whether it is the record of an object of this kind.
    pub(super) fn is_of(&self, described: &Described) -> bool {
        let spec = &self.text.spec;
        *described.kind == *spec.object_kind && *described.api_version == *spec.object_api_version
    }
}

#[derive(Debug, Clone, Deserialize)]
struct FoundText {
    metadata: FoundMetadata,
    #[serde(default)]
    spec: FoundSpec,
    #[serde(default)]
    status: FoundStatus,
}

#[derive(Debug, Clone, Deserialize)]
struct FoundMetadata {
    name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FoundSpec {
    #[serde(rename = "objectAPIVersion")]
    object_api_version: String,
    object_kind: String,
    object_name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FoundStatus {
    object_resource_version: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_named_after_the_node_and_the_uid_or_not_at_all() {
        let name = |node: &str, uid: &str| record_name(&node.into(), uid);
        assert_eq!(
            name("edge-1.far", "0b-8d").as_deref(),
            Some("edge-1.far.0b-8d")
        );
        for (node, uid) in [
            ("a", ""),
            ("a", "x.y"),
            ("a", "X"),
            ("a/b", "x"),
            ("", "x"),
            ("a", "x-"),
        ] {
            assert_eq!(name(node, uid), None, "{node} {uid}");
        }
        assert_eq!(name(&"n".repeat(250), "abcd"), None);
    }

    #[test]
    fn a_node_whose_name_is_too_long_for_a_label_has_none() {
        let of =
            |node: &str| -> Value { serde_json::from_slice(&node_record(&node.into())).unwrap() };
        assert_eq!(of("a")["metadata"]["labels"][NODE_LABEL], "a");
        assert_eq!(of(&"a".repeat(64))["metadata"]["labels"], Value::Null);
    }
}
