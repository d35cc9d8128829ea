//! The types that a set of kinds needs, by their OpenAPI names.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Dialect, render, words};
use crate::catalog::Kind;
use crate::schema::{Schema, SchemaRef, Shape, builtin};

/// Types by name, ready to be written.
pub(super) struct Definitions<'a> {
    by_name: BTreeMap<String, Source<'a>>,
    /// The group-versions that the kinds are of; what is deleted in them takes DeleteOptions.
    versions: Vec<(Arc<str>, Arc<str>)>,
}

enum Source<'a> {
    /// A built-in type.
    Builtin(&'static Schema),
    /// The schema of a custom kind.
    Custom(&'a Kind),
    /// The list of a kind.
    List(&'a Kind),
}

/// What every operation may take or give.
const ALWAYS: [&str; 4] = [
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
];
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

impl<'a> Definitions<'a> {
    /// Everything that these kinds need.
    pub(super) fn of(kinds: &[&'a Arc<Kind>]) -> Self {
        let mut definitions = Self {
            by_name: BTreeMap::new(),
            versions: Vec::new(),
        };
        for name in ALWAYS {
            definitions.add_builtin(name);
        }
        for kind in kinds {
            let version = (kind.group.clone(), kind.version.clone());
            if !definitions.versions.contains(&version) {
                definitions.versions.push(version);
            }
            definitions.add_kind(kind);
        }
        definitions
    }

    /// Name and OpenAPI of each.
    pub(super) fn rendered(&self, dialect: Dialect) -> impl Iterator<Item = (String, Value)> {
        self.by_name.iter().map(move |(name, source)| {
            let value = match source {
                Source::Builtin(schema) => self.builtin(name, schema, dialect),
                Source::Custom(kind) => custom(kind, dialect),
                Source::List(kind) => list(kind, dialect),
            };
            (name.clone(), value)
        })
    }

    fn add_kind(&mut self, kind: &'a Kind) {
        match &kind.schema {
            Some(SchemaRef::Named(name)) => self.add_builtin(name),
            _ => {
                self.add_builtin(OBJECT_META);
                self.by_name.insert(name_of(kind), Source::Custom(kind));
            }
        }
        if kind.allows("list") {
            self.by_name.insert(list_name_of(kind), Source::List(kind));
        }
        for sub in &kind.subresources {
            let reference = builtin::type_of(&sub.group, &sub.version, &sub.kind);
            if let Some(SchemaRef::Named(name)) = reference {
                self.add_builtin(&name);
            }
        }
    }

    /// Adds a built-in type and all that it leads to. Types refer to each other in circles.
    fn add_builtin(&mut self, name: &str) {
        let mut waiting = vec![name.to_owned()];
        while let Some(name) = waiting.pop() {
            if self.by_name.contains_key(&name) {
                continue;
            }
            if let Some(schema) = builtin::definition(&name) {
                each_name(schema, &mut waiting);
                self.by_name.insert(name, Source::Builtin(schema));
            }
        }
    }

    fn builtin(&self, name: &str, schema: &Schema, dialect: Dialect) -> Value {
        let mut value = render::schema(schema, dialect);
        let kinds: Vec<Value> = match name.rsplit('.').next() {
            Some("DeleteOptions") => {
                let versions = self.versions.iter();
                versions
                    .map(|(group, version)| kind(group, version, "DeleteOptions"))
                    .collect()
            }
            Some("Status") if name.contains(".meta.v1.") => vec![kind("", "v1", "Status")],
            _ => {
                let named = builtin::kind_of(name).into_iter();
                named
                    .map(|(group, version, name)| kind(group, version, name))
                    .collect()
            }
        };
        if let Value::Object(fields) = &mut value {
            if !kinds.is_empty() {
                fields.insert("x-kubernetes-group-version-kind".into(), kinds.into());
            }
            words::describe(name, fields, dialect);
        }
        value
    }
}

/// The OpenAPI name of a kind: that of its built-in type, or its group turned round.
pub(super) fn name_of(kind: &Kind) -> String {
    match &kind.schema {
        Some(SchemaRef::Named(name)) => name.to_string(),
        _ => {
            let mut labels: Vec<&str> = kind.group.split('.').collect();
            labels.reverse();
            format!("{}.{}.{}", labels.join("."), kind.version, kind.kind)
        }
    }
}

/// The OpenAPI name of a kind's list.
pub(super) fn list_name_of(kind: &Kind) -> String {
    let name = name_of(kind);
    match name.strip_suffix(&*kind.kind) {
        Some(package) => format!("{package}{}", kind.list_kind),
        None => format!("{name}List"),
    }
}

fn each_name(schema: &Schema, found: &mut Vec<String>) {
    let mut follow = |part: &SchemaRef| match part {
        SchemaRef::Named(name) => found.push(name.to_string()),
        SchemaRef::Inline(schema) => each_name(schema, found),
    };
    match &schema.shape {
        Shape::Object { properties, .. } => properties.values().for_each(follow),
        Shape::Map(part) | Shape::Array(part) => follow(part),
        _ => {}
    }
}

fn kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "kind": kind, "version": version})
}

/// A custom kind's schema, with the head that every object has.
fn custom(owner: &Kind, dialect: Dialect) -> Value {
    let schema = owner.schema.as_ref().map(SchemaRef::schema);
    let mut value = match schema {
        Some(schema) => render::schema(schema, dialect),
        None => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    if let Value::Object(fields) = &mut value {
        let properties = fields
            .entry("properties")
            .or_insert_with(|| Map::new().into());
        properties["apiVersion"] = json!({"type": "string", "description": words::API_VERSION});
        properties["kind"] = json!({"type": "string", "description": words::KIND});
        properties["metadata"] = render::described_name(OBJECT_META, words::METADATA, dialect);
        let kinds = vec![kind(&owner.group, &owner.version, &owner.kind)];
        fields.insert("x-kubernetes-group-version-kind".into(), kinds.into());
    }
    value
}

fn list(owner: &Kind, dialect: Dialect) -> Value {
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
    json!({
        "type": "object",
        "description": format!("A list of {}.", owner.plural),
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": words::API_VERSION},
            "items": {
                "type": "array",
                "description": format!("The {}.", owner.plural),
                "items": render::name(&name_of(owner), dialect),
            },
            "kind": {"type": "string", "description": words::KIND},
            "metadata": render::described_name(meta, words::LIST_METADATA, dialect),
        },
        "x-kubernetes-group-version-kind": [
            kind(&owner.group, &owner.version, &owner.list_kind)
        ],
    })
}
