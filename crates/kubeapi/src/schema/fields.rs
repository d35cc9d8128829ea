//! Fields that a kind does not have, and fields that an object has twice.
//!
//! Unknown fields are always dropped; what else happens is the client's choice (`fieldValidation`).

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::path::Path;
use super::{DEPTH_MAX, Schema, Shape, object_meta};
use crate::Status;

/// How many faults are reported; the rest is cut, as a real server does.
pub const FAULTS_MAX: usize = 100;

/// What a client wants done about unknown and repeated fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Nothing.
    Ignore,
    /// Say so in Warning headers.
    #[default]
    Warn,
    /// Refuse the object.
    Strict,
}

impl FieldValidation {
    /// Reads the query parameter; an empty one is a missing one.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "Ignore" => Some(Self::Ignore),
            "Warn" | "" => Some(Self::Warn),
            "Strict" => Some(Self::Strict),
            _ => None,
        }
    }

    /// What to do about these faults: warnings to send, or a refusal. The kind and version are
    /// those of the object that was sent.
    pub fn judge(
        self,
        (kind, version): (&str, &str),
        repeated: &[String],
        unknown: &[String],
    ) -> Result<Vec<String>, Status> {
        let repeated = repeated
            .iter()
            .map(|path| format!("duplicate field \"{path}\""));
        let unknown = unknown
            .iter()
            .map(|path| format!("unknown field \"{path}\""));
        let faults: Vec<String> = repeated.chain(unknown).take(FAULTS_MAX).collect();
        match self {
            Self::Ignore => Ok(Vec::new()),
            Self::Warn => Ok(faults),
            Self::Strict if faults.is_empty() => Ok(faults),
            Self::Strict => Err(Status::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: \
                 strict decoding error: {}",
                faults.join(", ")
            ))),
        }
    }
}

/// Drops the fields of a whole object that its schema does not have, and says which.
///
/// apiVersion, kind and metadata belong to every object, whatever its schema says. What nests
/// deeper than [`DEPTH_MAX`] is left alone; it is refused elsewhere.
pub fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut pruning = Pruning {
        dropped: Vec::new(),
    };
    if let Value::Object(fields) = object {
        pruning.object(fields, schema, Root::Yes, (&Path::ROOT, 0));
    }
    pruning.dropped
}

/// The paths of fields that stand twice in the same object. Not valid JSON has none.
pub fn repeated(bytes: &[u8]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let scan = Scan {
        path: &Path::ROOT,
        faults: &mut faults,
    };
    // A fault in the JSON itself is found and worded by whoever decodes it.
    let _ = scan.deserialize(&mut deserializer);
    faults
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    Yes,
    No,
}

struct Pruning {
    dropped: Vec<String>,
}

/// Where a walk is, and how deep.
type Place<'a> = (&'a Path<'a>, usize);

impl Pruning {
    fn value(&mut self, value: &mut Value, schema: &Schema, (path, depth): Place<'_>) {
        if depth >= DEPTH_MAX {
            return;
        }
        match value {
            Value::Object(fields) => self.object(fields, schema, Root::No, (path, depth)),
            Value::Array(items) => {
                let Some(item_schema) = schema.items() else {
                    return;
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, item_schema, (&path.index(index), depth + 1));
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        fields: &mut Map<String, Value>,
        schema: &Schema,
        root: Root,
        (path, depth): Place<'_>,
    ) {
        let whole = root == Root::Yes || schema.embedded_object;
        let known = match &schema.shape {
            Shape::Object { .. } | Shape::Map(_) => true,
            // A value of another type than its schema has is refused elsewhere, as it came.
            _ => false,
        };
        fields.retain(|name, value| {
            let here = path.field(name);
            if whole && matches!(name.as_str(), "apiVersion" | "kind") {
                return true;
            }
            if whole && name == "metadata" {
                self.value(value, object_meta(), (&here, depth + 1));
                return true;
            }
            if let Some(field) = schema.field(name) {
                self.value(value, field, (&here, depth + 1));
                return true;
            }
            if !known || schema.preserve_unknown {
                return true;
            }
            if self.dropped.len() < FAULTS_MAX {
                self.dropped.push(here.to_string());
            }
            false
        });
    }
}

/// Walks JSON text without building it, for what a built value no longer shows.
struct Scan<'a> {
    path: &'a Path<'a>,
    faults: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Scan<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let here = self.path.field(&name);
            if seen.contains(&name) && self.faults.len() < FAULTS_MAX {
                let fault = here.to_string();
                if !self.faults.contains(&fault) {
                    self.faults.push(fault);
                }
            }
            map.next_value_seed(Scan {
                path: &here,
                faults: self.faults,
            })?;
            seen.insert(name);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let here = self.path.index(index);
            let scan = Scan {
                path: &here,
                faults: self.faults,
            };
            if seq.next_element_seed(scan)?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::super::{SchemaRef, builtin::definition};
    use super::*;

    fn deployment() -> &'static Schema {
        definition("io.k8s.api.apps.v1.Deployment").unwrap()
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "extra": 1,
            "metadata": {"name": "web", "labels": {"anything": "goes"}, "colour": "red"},
            "spec": {"replica": 2, "template": {"spec": {"containers": [
                {"name": "a"}, {"name": "b", "imagee": "x"}]}}}
        });
        let dropped = prune(&mut object, deployment());
        let wanted = [
            "extra",
            "metadata.colour",
            "spec.replica",
            "spec.template.spec.containers[1].imagee",
        ];
        assert_eq!(dropped, wanted);
        assert_eq!(object["spec"].get("replica"), None);
        assert_eq!(object["metadata"]["labels"]["anything"], "goes");
    }

    #[test]
    fn what_nobody_describes_is_kept() {
        let mut revision = json!({"data": {"any": {"thing": [1, {"deep": true}]}}, "revision": 1});
        let schema = definition("io.k8s.api.apps.v1.ControllerRevision").unwrap();
        assert!(prune(&mut revision, schema).is_empty());
        assert_eq!(revision["data"]["any"]["thing"][1]["deep"], true);
    }

    #[test]
    fn a_schema_that_preserves_still_prunes_below_the_fields_it_knows() {
        let inner = Schema::of(Shape::Object {
            properties: BTreeMap::from([("a".into(), SchemaRef::inline(Schema::default()))]),
            required: Vec::new(),
        });
        let mut schema = Schema::of(Shape::Object {
            properties: BTreeMap::from([("spec".into(), SchemaRef::inline(inner))]),
            required: Vec::new(),
        });
        schema.preserve_unknown = true;
        let mut object = json!({"free": {"x": 1}, "spec": {"a": 1, "b": 2}});
        assert_eq!(prune(&mut object, &schema), ["spec.b"]);
        assert_eq!(object, json!({"free": {"x": 1}, "spec": {"a": 1}}));
    }

    #[test]
    fn an_embedded_object_keeps_its_head() {
        let mut embedded = Schema::of(Shape::Object {
            properties: BTreeMap::new(),
            required: Vec::new(),
        });
        embedded.embedded_object = true;
        let schema = Schema::of(Shape::Object {
            properties: BTreeMap::from([("template".into(), SchemaRef::inline(embedded))]),
            required: Vec::new(),
        });
        let mut object = json!({"template": {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "odd": 1}, "spec": {}}});
        let dropped = prune(&mut object, &schema);
        assert_eq!(dropped, ["template.metadata.odd", "template.spec"]);
    }

    #[test]
    fn repeated_fields_are_found_in_the_text() {
        let text = br#"{"spec": {"replicas": 1, "replicas": 2, "replicas": 3,
            "list": [{"a": 1}, {"a": 1, "\u0061": 2}]}, "kind": "x", "kind": "y"}"#;
        assert_eq!(repeated(text), ["spec.replicas", "spec.list[1].a", "kind"]);
        assert!(repeated(br#"{"a": {"x": 1}, "b": {"x": 1}}"#).is_empty());
        assert!(repeated(b"{\"a\": ").is_empty());
    }

    #[test]
    fn deep_text_ends_the_scan_and_not_the_process() {
        let text = "[".repeat(1_000_000);
        assert!(repeated(text.as_bytes()).is_empty());
    }

    #[test]
    fn strict_refuses_in_the_words_of_kubernetes_and_warn_warns() {
        let unknown = ["spec.foo".to_owned()];
        let repeated = ["spec.paused".to_owned()];
        let kind = ("Deployment", "v1");
        let refused = FieldValidation::Strict
            .judge(kind, &repeated, &unknown)
            .unwrap_err();
        assert_eq!(refused.code, 400);
        assert_eq!(
            refused.message,
            "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding \
             error: duplicate field \"spec.paused\", unknown field \"spec.foo\""
        );
        let warned = FieldValidation::Warn.judge(kind, &[], &unknown).unwrap();
        assert_eq!(warned, ["unknown field \"spec.foo\""]);
        let ignored = FieldValidation::Ignore
            .judge(kind, &repeated, &unknown)
            .unwrap();
        assert!(ignored.is_empty());
        assert_eq!(FieldValidation::parse("strict"), None);
    }
}
