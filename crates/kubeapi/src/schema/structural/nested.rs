//! What is allowed inside allOf, anyOf, oneOf and not: bounds on values, but no shape of its own.

use serde_json::{Value, json};

use super::super::path::Path;
use super::check::{check_pattern, forbidden, properties_of, required};
use super::{flag, list, text};
use crate::status::Cause;

/// Refuses shapes inside the logical combinations of a schema, and patterns that do not compile in
/// it and in them. The forms of "a number or a string" are allowed.
pub(super) fn check(schema: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    check_pattern(schema, path, causes);
    let number_or_string = json!([{"type": "integer"}, {"type": "string"}]);
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let here = path.field(keyword);
        if keyword == "anyOf" && schema.get(keyword) == Some(&number_or_string) {
            continue;
        }
        for (index, nested) in list(schema, keyword).iter().enumerate() {
            let mut nested = std::borrow::Cow::Borrowed(nested);
            let exception =
                keyword == "allOf" && index == 0 && nested.get("anyOf") == Some(&number_or_string);
            if exception && let Some(fields) = nested.to_mut().as_object_mut() {
                fields.remove("anyOf");
            }
            check_nested(&nested, &here.index(index), causes);
        }
    }
    if let Some(not) = schema.get("not").filter(|not| not.is_object()) {
        check_nested(not, &path.field("not"), causes);
    }
}

fn check_nested(schema: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    check(schema, path, causes);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        check_nested(items, &path.field("items"), causes);
    }
    let properties = path.field("properties");
    for (name, property) in properties_of(schema) {
        check_nested(property, &properties.key(name), causes);
        if name == "metadata" {
            let detail = "must not be specified in a nested context";
            causes.push(forbidden(&properties.key(name), detail));
        }
    }
    for keyword in ["type", "title", "description"] {
        if !text(schema, keyword).is_empty() {
            causes.push(forbidden(
                &path.field(keyword),
                "must be empty to be structural",
            ));
        }
    }
    let flags = [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ];
    for keyword in flags {
        if flag(schema, keyword) {
            causes.push(forbidden(
                &path.field(keyword),
                "must be false to be structural",
            ));
        }
    }
    let undefined = [
        "additionalProperties",
        "default",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    for keyword in undefined {
        if schema.get(keyword).is_some_and(|value| !value.is_null()) {
            causes.push(forbidden(
                &path.field(keyword),
                "must be undefined to be structural",
            ));
        }
    }
    for keyword in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if !list(schema, keyword).is_empty() {
            causes.push(forbidden(
                &path.field(keyword),
                "must be empty to be structural",
            ));
        }
    }
}

/// Whatever the combinations of a schema speak of is described outside of them too.
pub(super) fn check_complete(
    nested: &Value,
    (schema, schema_path): (&Value, &Path<'_>),
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let here = path.field(keyword);
        for (index, nested) in list(nested, keyword).iter().enumerate() {
            let place = (schema, schema_path);
            check_described(nested, place, &here.index(index), causes);
        }
    }
    if let Some(not) = nested.get("not").filter(|not| not.is_object()) {
        check_described(not, (schema, schema_path), &path.field("not"), causes);
    }
}

fn check_described(
    nested: &Value,
    (schema, schema_path): (&Value, &Path<'_>),
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    check_complete(nested, (schema, schema_path), path, causes);
    let mut follow =
        |part: &Value, described: Option<&Value>, at: &Path<'_>, from: &Path<'_>| match described {
            Some(described) => check_described(part, (described, at), from, causes),
            None => causes.push(required(at, &format!("because it is defined in {from}"))),
        };
    if let Some(items) = nested.get("items").filter(|items| items.is_object()) {
        let described = schema.get("items").filter(|items| items.is_object());
        follow(
            items,
            described,
            &schema_path.field("items"),
            &path.field("items"),
        );
    }
    let (at, from) = (schema_path.field("properties"), path.field("properties"));
    for (name, property) in properties_of(nested) {
        let described = schema.get("properties").and_then(|all| all.get(name));
        follow(property, described, &at.key(name), &from.key(name));
    }
}
