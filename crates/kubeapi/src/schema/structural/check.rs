//! What a real server refuses in the schema of a CustomResourceDefinition.

use regex_lite::Regex;
use serde_json::Value;

use super::super::path::Path;
use super::super::{DEPTH_MAX, fields, too_deep, validate};
use super::{flag, list, nested, strings, text};
use crate::status::Cause;

/// Everything that is wrong with a schema; `base` is where it stands in its definition
/// (`spec.versions[0].schema.openAPIV3Schema`).
pub fn check(schema: &Value, base: &str) -> Vec<Cause> {
    let root = Path::ROOT.field(base);
    if too_deep(schema) {
        let detail = format!("must not nest deeper than {DEPTH_MAX} levels");
        return vec![forbidden(&root, &detail)];
    }
    let mut causes = Vec::new();
    check_node(schema, Level::Root, &root, &mut causes);
    nested::check_complete(schema, (schema, &root), &root, &mut causes);
    causes.sort_by(|left, right| left.field.cmp(&right.field));
    causes
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Root,
    Item,
    Field,
}

fn check_node(schema: &Value, level: Level, path: &Path<'_>, causes: &mut Vec<Cause>) {
    check_keywords(schema, path, causes);
    check_type(schema, level, path, causes);
    check_extensions(schema, path, causes);
    check_list(schema, path, causes);
    let map_kind = text(schema, "x-kubernetes-map-type");
    if !matches!(map_kind, "" | "atomic" | "granular") {
        let here = path.field("x-kubernetes-map-type");
        causes.push(unsupported(&here, map_kind, &["atomic", "granular"]));
    }
    check_default(schema, path, causes);
    if let Some(free) = schema.get("additionalProperties") {
        check_free(schema, free, level, path, causes);
    }
    if text(schema, "type") == "array" && !schema.get("items").is_some_and(Value::is_object) {
        causes.push(required(&path.field("items"), "must be specified"));
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        check_node(items, Level::Item, &path.field("items"), causes);
    }
    let properties = path.field("properties");
    for (name, property) in properties_of(schema) {
        check_node(property, Level::Field, &properties.key(name), causes);
    }
    nested::check(schema, path, causes);
    check_head(schema, level, path, causes);
}

/// The properties of a schema by name.
pub(super) fn properties_of(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn check_keywords(schema: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let unsupported = [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ];
    for keyword in unsupported {
        if schema.get(keyword).is_some_and(|value| !value.is_null()) {
            let here = path.field(keyword);
            causes.push(forbidden(&here, &format!("{keyword} is not supported")));
        }
    }
    if schema.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        causes.push(forbidden(&path.field("items"), detail));
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes \
                      quadratic";
        causes.push(forbidden(&path.field("uniqueItems"), detail));
    }
}

/// Whether a pattern is a regular expression that can be evaluated.
pub(super) fn check_pattern(schema: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let pattern = text(schema, "pattern");
    if let Err(why) = Regex::new(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        causes.push(invalid(&path.field("pattern"), &pattern.into(), &detail));
    }
}

fn check_type(schema: &Value, level: Level, path: &Path<'_>, causes: &mut Vec<Cause>) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    let here = path.field("type");
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let free = flag(schema, "x-kubernetes-int-or-string")
        || flag(schema, "x-kubernetes-preserve-unknown-fields");
    match text(schema, "type") {
        "" if embedded => {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            causes.push(required(&here, detail));
        }
        "" if !free => {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            causes.push(required(&here, detail));
        }
        "" => {}
        "null" => {
            causes.push(unsupported(&here, "null", &TYPES));
            let detail = "type cannot be set to null, use nullable as an alternative";
            causes.push(forbidden(&here, detail));
        }
        found if !TYPES.contains(&found) => {
            causes.push(unsupported(&here, found, &TYPES));
        }
        found if embedded && found != "object" => {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            causes.push(invalid(&here, &found.into(), detail));
        }
        found if level == Level::Root && found != "object" => {
            causes.push(invalid(&here, &found.into(), "must be object at the root"));
        }
        _ => {}
    }
}

fn check_extensions(schema: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for keyword in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ] {
        if flag(schema, keyword) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            causes.push(invalid(&path.field(keyword), &true.into(), detail));
        }
    }
}

fn check_free(
    schema: &Value,
    free: &Value,
    level: Level,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    let here = path.field("additionalProperties");
    if *free != true && properties_of(schema).next().is_some() {
        let detail = "additionalProperties and properties are mutual exclusive";
        causes.push(forbidden(&here, detail));
    }
    if level == Level::Root {
        causes.push(forbidden(&here, "must not be used at the root"));
    }
    if flag(schema, "x-kubernetes-embedded-resource") {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        causes.push(forbidden(&here, detail));
    }
    if free.is_object() {
        check_node(free, Level::Field, &here, causes);
    }
}

fn check_list(schema: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let keys = strings(schema, "x-kubernetes-list-map-keys");
    let kind_path = path.field("x-kubernetes-list-type");
    let kind = text(schema, "x-kubernetes-list-type");
    if !matches!(kind, "" | "atomic" | "set" | "map") {
        causes.push(unsupported(&kind_path, kind, &["atomic", "set", "map"]));
    }
    if !keys.is_empty() && kind != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        causes.push(match kind {
            "" => required(&kind_path, detail),
            kind => invalid(&kind_path, &kind.into(), detail),
        });
    }
    if kind == "map" {
        check_map_list(schema, &keys, path, causes);
    }
}

fn check_map_list(schema: &Value, keys: &[Box<str>], path: &Path<'_>, causes: &mut Vec<Cause>) {
    let keys_path = path.field("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        causes.push(required(&keys_path, detail));
    }
    let items_path = path.field("items");
    let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        causes.push(required(&items_path, detail));
        return;
    };
    if text(items, "type") != "object" {
        let found = text(items, "type").into();
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        causes.push(invalid(&items_path.field("type"), &found, detail));
        return;
    }
    let properties_path = items_path.field("properties");
    let mandatory = strings(items, "required");
    for key in keys {
        let Some(property) = items.get("properties").and_then(|all| all.get(&**key)) else {
            let named = schema
                .get("x-kubernetes-list-map-keys")
                .cloned()
                .unwrap_or_default();
            let detail = "entries must all be names of item properties";
            causes.push(invalid(&keys_path, &named, detail));
            continue;
        };
        let here = properties_path.key(key);
        if matches!(text(property, "type"), "array" | "object") {
            let found = text(items, "type").into();
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            causes.push(invalid(&here.field("type"), &found, detail));
        }
        if !mandatory.contains(key) && property.get("default").is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                          default or be a required property";
            causes.push(required(&here.field("default"), detail));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            causes.push(forbidden(&here.field("nullable"), detail));
        }
    }
}

/// A default is a value that the schema itself takes.
fn check_default(schema: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let Some(default) = schema.get("default").filter(|value| !value.is_null()) else {
        return;
    };
    let here = path.field("default");
    let Ok(parsed) = super::parse(schema) else {
        return;
    };
    let mut pruned = serde_json::json!({ "default": default });
    let holder = serde_json::json!({ "type": "object", "properties": { "default": schema } });
    let unknown = super::parse(&holder).map(|holder| fields::prune(&mut pruned, &holder));
    if unknown.is_ok_and(|unknown| !unknown.is_empty()) {
        causes.push(invalid(&here, default, "must not have unknown fields"));
    }
    for cause in validate::validate(default, &parsed) {
        let field = match cause.field.as_str() {
            "" | "<nil>" => here.to_string(),
            field => format!("{here}.{field}"),
        };
        causes.push(Cause { field, ..cause });
    }
}

/// apiVersion, kind and metadata of a whole object are given; a schema may say little about them.
fn check_head(schema: &Value, level: Level, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let properties = path.field("properties");
    let empty = properties_of(schema).next().is_none();
    if embedded && empty && !flag(schema, "x-kubernetes-preserve-unknown-fields") {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        causes.push(required(&properties, detail));
    }
    if level != Level::Root && !embedded {
        return;
    }
    for (name, wanted) in [
        ("kind", "string"),
        ("apiVersion", "string"),
        ("metadata", "object"),
    ] {
        let property = schema.get("properties").and_then(|all| all.get(name));
        let found = property.map(|property| text(property, "type"));
        if let Some(found) = found.filter(|found| *found != wanted) {
            let here = properties.key(name);
            let detail = format!("must be {wanted}");
            causes.push(invalid(&here.field("type"), &found.into(), &detail));
        }
    }
    let metadata = schema.get("properties").and_then(|all| all.get("metadata"));
    if level == Level::Root && metadata.is_some_and(says_more_than_a_name) {
        let detail = "must not specify anything other than name and generateName, but metadata is \
                      implicitly specified";
        causes.push(forbidden(&properties.key("metadata"), detail));
    }
}

fn says_more_than_a_name(metadata: &Value) -> bool {
    let fields = metadata.as_object().into_iter().flatten();
    let other_keyword = fields
        .filter(|(keyword, _)| !matches!(keyword.as_str(), "type" | "properties"))
        .any(|(_, value)| !value.is_null());
    let other_field =
        properties_of(metadata).any(|(name, _)| !matches!(name.as_str(), "name" | "generateName"));
    other_keyword || other_field || !list(metadata, "required").is_empty()
}

/// `x: Required value: why`
pub(super) fn required(path: &Path<'_>, detail: &str) -> Cause {
    let message = format!("Required value: {detail}");
    Cause::new("FieldValueRequired", path.to_string(), message)
}

/// `x: Forbidden: why`
pub(super) fn forbidden(path: &Path<'_>, detail: &str) -> Cause {
    Cause::new(
        "FieldValueForbidden",
        path.to_string(),
        format!("Forbidden: {detail}"),
    )
}

/// `x: Unsupported value: v: supported values: …`
fn unsupported(path: &Path<'_>, found: &str, supported: &[&str]) -> Cause {
    let quoted: Vec<String> = supported.iter().map(|name| format!("\"{name}\"")).collect();
    let quoted = quoted.join(", ");
    let message = format!("Unsupported value: \"{found}\": supported values: {quoted}");
    Cause::new("FieldValueNotSupported", path.to_string(), message)
}

/// `x: Invalid value: v: why`
pub(super) fn invalid(path: &Path<'_>, value: &Value, detail: &str) -> Cause {
    let message = format!("Invalid value: {value}: {detail}");
    Cause::new("FieldValueInvalid", path.to_string(), message)
}
