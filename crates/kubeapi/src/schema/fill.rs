//! Defaults are filled in, and nulls that mean nothing are taken out.

use serde_json::{Map, Value};

use super::{DEPTH_MAX, Schema, Shape};

/// Fills in what the schema has defaults for, in lists and maps too.
///
/// A null where null is no value counts as missing: it becomes the default, or goes. Objects are
/// not made only to hold defaults; a default of `{}` says so where it is wanted.
pub fn fill(value: &mut Value, schema: &Schema) {
    walk(value, schema, 0);
}

fn walk(value: &mut Value, schema: &Schema, depth: usize) {
    if depth >= DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(fields) => walk_object(fields, schema, depth),
        Value::Array(items) => {
            let Some(item_schema) = schema.items() else {
                return;
            };
            for item in items {
                replace_null(item, item_schema);
                walk(item, item_schema, depth + 1);
            }
        }
        _ => {}
    }
}

fn walk_object(fields: &mut Map<String, Value>, schema: &Schema, depth: usize) {
    match &schema.shape {
        Shape::Object { properties, .. } => {
            for (name, property) in properties {
                let property = property.schema();
                match fields.get_mut(&**name) {
                    Some(value) => replace_null(value, property),
                    None => {
                        if let Some(default) = &property.default {
                            fields.insert(name.to_string(), default.clone());
                        }
                    }
                }
            }
            fields.retain(|name, value| match properties.get(name.as_str()) {
                Some(property) => !value.is_null() || property.schema().nullable,
                None => true,
            });
        }
        Shape::Map(values) => {
            for value in fields.values_mut() {
                replace_null(value, values.schema());
            }
        }
        _ => return,
    }
    for (name, value) in fields {
        if let Some(field) = schema.field(name) {
            walk(value, field, depth + 1);
        }
    }
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::builtin::definition;
    use super::super::structural;
    use super::*;

    fn filled(schema: Value, mut value: Value) -> Value {
        let schema = structural::parse(&schema).unwrap();
        fill(&mut value, &schema);
        value
    }

    #[test]
    fn defaults_reach_into_lists_and_maps() {
        let item = json!({"type": "object", "properties": {
            "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}}});
        let schema = json!({"type": "object", "properties": {
            "ports": {"type": "array", "items": item.clone()},
            "named": {"type": "object", "additionalProperties": item}}});
        let value = json!({"ports": [{"port": 1}, {"protocol": "UDP"}], "named": {"a": {}}});
        let wanted = json!({
            "ports": [{"port": 1, "protocol": "TCP"}, {"protocol": "UDP"}],
            "named": {"a": {"protocol": "TCP"}}});
        assert_eq!(filled(schema, value), wanted);
    }

    #[test]
    fn an_object_is_made_only_where_it_is_the_default() {
        let inner = json!({"type": "object", "properties": {
            "size": {"type": "integer", "default": 1}}});
        let mut made = inner.clone();
        made["default"] = json!({});
        let schema = json!({"type": "object", "properties": {"made": made, "left": inner}});
        assert_eq!(filled(schema, json!({})), json!({"made": {"size": 1}}));
    }

    #[test]
    fn a_null_is_a_value_only_where_the_schema_says_so() {
        let schema = json!({"type": "object", "properties": {
            "gone": {"type": "string"},
            "filled": {"type": "string", "default": "x"},
            "kept": {"type": "string", "nullable": true, "default": "x"}}});
        let value = json!({"gone": null, "filled": null, "kept": null, "unknown": null});
        let wanted = json!({"filled": "x", "kept": null, "unknown": null});
        assert_eq!(filled(schema, value), wanted);
    }

    #[test]
    fn built_in_kinds_have_a_few_defaults_too() {
        let mut pod = json!({"spec": {"containers": [{"name": "a", "ports": [
            {"containerPort": 80}]}]}});
        fill(&mut pod, definition("io.k8s.api.core.v1.Pod").unwrap());
        assert_eq!(pod["spec"]["containers"][0]["ports"][0]["protocol"], "TCP");
    }
}
