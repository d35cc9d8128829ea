//! A schema as OpenAPI writes it.

use serde_json::{Map, Value, json};

use super::Dialect;
use crate::schema::{Bounds, ListKind, Merge, Schema, SchemaRef, Shape};

/// A schema and everything in place within it. How deep that goes was limited when it was read.
pub(super) fn schema(schema: &Schema, dialect: Dialect) -> Value {
    let mut out = Map::new();
    if !schema.description.is_empty() {
        out.insert("description".into(), (&*schema.description).into());
    }
    shape(schema, dialect, &mut out);
    if !schema.format.is_empty() {
        out.insert("format".into(), (&*schema.format).into());
    }
    if let Some(default) = &schema.default {
        out.insert("default".into(), default.clone());
    }
    if !schema.allowed.is_empty() {
        out.insert("enum".into(), schema.allowed.clone().into());
    }
    if schema.nullable && dialect == Dialect::V3 {
        out.insert("nullable".into(), true.into());
    }
    if let Some(said) = &schema.bounds {
        bounds(said, dialect, &mut out);
    }
    extensions(schema, &mut out);
    Value::Object(out)
}

/// A reference to a type.
pub(super) fn name(name: &str, dialect: Dialect) -> Value {
    let place = match dialect {
        Dialect::V2 => "definitions",
        Dialect::V3 => "components/schemas",
    };
    json!({ "$ref": format!("#/{place}/{name}") })
}

/// A reference to a type, and words about it.
pub(super) fn described_name(target: &str, description: &str, dialect: Dialect) -> Value {
    described(name(target, dialect), description, dialect)
}

/// A field with words about it. Nothing may stand beside a reference in v3.
pub(super) fn described(field: Value, description: &str, dialect: Dialect) -> Value {
    let mut words = Map::new();
    words.insert("description".into(), description.into());
    match field {
        Value::Object(mut said) if !said.contains_key("$ref") => {
            said.append(&mut words);
            Value::Object(said)
        }
        reference => beside(reference, words, dialect),
    }
}

fn beside(reference: Value, mut fields: Map<String, Value>, dialect: Dialect) -> Value {
    match (dialect, reference) {
        (_, reference) if fields.is_empty() => reference,
        (Dialect::V3, reference) => {
            fields.insert("allOf".into(), json!([reference]));
            Value::Object(fields)
        }
        (Dialect::V2, Value::Object(mut reference)) => {
            reference.append(&mut fields);
            Value::Object(reference)
        }
        (Dialect::V2, reference) => reference,
    }
}

fn part(reference: &SchemaRef, dialect: Dialect) -> Value {
    match reference {
        SchemaRef::Named(target) => name(target, dialect),
        SchemaRef::Inline(inline) => schema(inline, dialect),
    }
}

fn shape(schema: &Schema, dialect: Dialect, out: &mut Map<String, Value>) {
    let name = match &schema.shape {
        Shape::Any => return,
        Shape::Object { .. } | Shape::Map(_) => "object",
        Shape::Array(_) => "array",
        Shape::String => "string",
        Shape::Integer => "integer",
        Shape::Number => "number",
        Shape::Boolean => "boolean",
        Shape::IntOrString | Shape::Quantity => {
            number_or_string(schema, dialect, out);
            return;
        }
    };
    if !schema.untyped {
        out.insert("type".into(), name.into());
    }
    match &schema.shape {
        Shape::Object {
            properties,
            required,
        } => {
            if !required.is_empty() {
                out.insert("required".into(), json!(required));
            }
            if !properties.is_empty() {
                let properties = properties.iter().map(|(name, property)| {
                    (name.to_string(), field(schema, name, property, dialect))
                });
                out.insert("properties".into(), Value::Object(properties.collect()));
            }
        }
        Shape::Map(values) => {
            out.insert("additionalProperties".into(), part(values, dialect));
        }
        Shape::Array(items) => {
            out.insert("items".into(), part(items, dialect));
        }
        _ => {}
    }
}

/// v2 has no word for a number or a string; built-in types call it a string there.
fn number_or_string(schema: &Schema, dialect: Dialect, out: &mut Map<String, Value>) {
    let number = match schema.shape {
        Shape::Quantity => "number",
        _ => "integer",
    };
    match dialect {
        Dialect::V2 => {
            out.insert("type".into(), "string".into());
            if number == "integer" {
                out.insert("format".into(), "int-or-string".into());
            }
        }
        Dialect::V3 => {
            out.insert(
                "oneOf".into(),
                json!([{"type": "string"}, {"type": number}]),
            );
        }
    }
}

/// A field, with what its owner says about it.
fn field(owner: &Schema, name: &str, property: &SchemaRef, dialect: Dialect) -> Value {
    let merges = owner
        .native
        .as_deref()
        .map(|native| native.merges.as_slice());
    let said = merges
        .unwrap_or_default()
        .iter()
        .find(|(field, _)| &**field == name);
    let mut fields = Map::new();
    if let Some((_, said)) = said {
        merge(said, &mut fields);
    }
    match property {
        SchemaRef::Named(_) => beside(part(property, dialect), fields, dialect),
        SchemaRef::Inline(_) => part(property, dialect),
    }
}

fn bounds(said: &Bounds, dialect: Dialect, out: &mut Map<String, Value>) {
    let numbers = [
        ("minimum", said.minimum),
        ("maximum", said.maximum),
        ("multipleOf", said.multiple_of),
    ];
    for (keyword, value) in numbers {
        if let Some(value) = value {
            out.insert(keyword.into(), number(value));
        }
    }
    let counts = [
        ("minLength", said.length_min),
        ("maxLength", said.length_max),
        ("minItems", said.items_min),
        ("maxItems", said.items_max),
        ("minProperties", said.properties_min),
        ("maxProperties", said.properties_max),
    ];
    for (keyword, count) in counts {
        if let Some(count) = count {
            out.insert(keyword.into(), count.into());
        }
    }
    let flags = [
        ("exclusiveMinimum", said.exclusive_minimum),
        ("exclusiveMaximum", said.exclusive_maximum),
        ("uniqueItems", said.unique_items),
    ];
    for (keyword, flag) in flags {
        if flag {
            out.insert(keyword.into(), true.into());
        }
    }
    if let Some(pattern) = &said.pattern {
        out.insert("pattern".into(), (&**pattern).into());
    }
    // v2 has no alternatives; a real server leaves them out of it too.
    if dialect == Dialect::V3 {
        logic(said, out);
    }
}

fn logic(said: &Bounds, out: &mut Map<String, Value>) {
    let several = [
        ("allOf", &said.all_of),
        ("anyOf", &said.any_of),
        ("oneOf", &said.one_of),
    ];
    for (keyword, schemas) in several {
        if !schemas.is_empty() {
            let rendered: Vec<Value> = schemas
                .iter()
                .map(|nested| schema(nested, Dialect::V3))
                .collect();
            out.insert(keyword.into(), rendered.into());
        }
    }
    if let Some(not) = &said.not {
        out.insert("not".into(), schema(not, Dialect::V3));
    }
}

/// Whole numbers are written as such, as their author wrote them.
fn number(value: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the value is whole and small enough"
    )]
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Value::from(value as i64);
    }
    Value::from(value)
}

fn extensions(schema: &Schema, out: &mut Map<String, Value>) {
    let is_list = matches!(schema.shape, Shape::Array(_));
    let type_keyword = match is_list {
        true => "x-kubernetes-list-type",
        false => "x-kubernetes-map-type",
    };
    let kind = match &schema.list {
        ListKind::Unset => None,
        ListKind::Atomic => Some("atomic"),
        ListKind::Granular => Some("granular"),
        ListKind::Set => Some("set"),
        ListKind::Map(keys) => {
            out.insert("x-kubernetes-list-map-keys".into(), json!(keys));
            Some("map")
        }
    };
    if let Some(kind) = kind {
        out.insert(type_keyword.into(), kind.into());
    }
    merge(&schema.merge, out);
    let said_in_place = !matches!(schema.shape, Shape::Any) || !schema.format.is_empty();
    let flags = [
        (
            "x-kubernetes-preserve-unknown-fields",
            schema.preserve_unknown && said_in_place,
        ),
        ("x-kubernetes-embedded-resource", schema.embedded_object),
        (
            "x-kubernetes-int-or-string",
            schema.shape == Shape::IntOrString,
        ),
    ];
    for (keyword, flag) in flags {
        if flag {
            out.insert(keyword.into(), true.into());
        }
    }
}

fn merge(said: &Merge, out: &mut Map<String, Value>) {
    let words = [
        (said.merge, "merge"),
        (said.replace, "replace"),
        (said.retain_keys, "retainKeys"),
    ];
    let strategy: Vec<&str> = words
        .into_iter()
        .filter(|(said, _)| *said)
        .map(|(_, word)| word)
        .collect();
    if !strategy.is_empty() {
        out.insert(
            "x-kubernetes-patch-strategy".into(),
            strategy.join(",").into(),
        );
    }
    if !said.key.is_empty() {
        out.insert("x-kubernetes-patch-merge-key".into(), (&*said.key).into());
    }
}
