//! Lists that are sets or maps hold each value, or each key, once.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::super::path::Path;
use super::super::{DEPTH_MAX, ListKind, Schema, Shape};
use super::words;
use crate::status::Cause;

/// Adds a cause for every item that stands twice where it must not.
pub(super) fn check(
    value: &Value,
    schema: &Schema,
    (path, depth): super::Place<'_>,
    causes: &mut Vec<Cause>,
) {
    if depth > DEPTH_MAX || causes.len() > super::CAUSES_MAX {
        return;
    }
    match value {
        Value::Array(items) => {
            match &schema.list {
                ListKind::Set => report(items, path, causes),
                ListKind::Map(keys) => check_map(items, keys, path, causes),
                ListKind::Unset | ListKind::Atomic | ListKind::Granular => {}
            }
            let Some(item_schema) = schema.items() else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                check(item, item_schema, (&path.index(index), depth + 1), causes);
            }
        }
        Value::Object(fields) => {
            let is_map = matches!(schema.shape, Shape::Map(_));
            for (name, value) in fields {
                let here = if is_map {
                    path.key(name)
                } else {
                    path.field(name)
                };
                if let Some(field) = schema.field(name) {
                    check(value, field, (&here, depth + 1), causes);
                }
            }
        }
        _ => {}
    }
}

/// Whether any item stands twice.
pub(super) fn has_repeats(items: &[Value]) -> bool {
    !repeats(items).is_empty()
}

fn check_map(items: &[Value], keys: &[Box<str>], path: &Path<'_>, causes: &mut Vec<Cause>) {
    let wrong = items
        .iter()
        .position(|item| !item.is_null() && !item.is_object());
    if let Some(index) = wrong {
        let detail = "must be an object for an array of list-type map";
        causes.push(words::plainly_invalid(
            &path.index(index),
            &items[index],
            detail,
        ));
        return;
    }
    let keyed: Vec<Value> = items.iter().map(|item| key_of(item, keys)).collect();
    report(&keyed, path, causes);
}

fn key_of(item: &Value, keys: &[Box<str>]) -> Value {
    let found = keys.iter().filter_map(|key| {
        let value = item.get(&**key)?;
        Some((key.to_string(), value.clone()))
    });
    Value::Object(found.collect::<Map<String, Value>>())
}

fn report(items: &[Value], path: &Path<'_>, causes: &mut Vec<Cause>) {
    for index in repeats(items) {
        causes.push(words::duplicate(&path.index(index), &items[index]));
    }
}

/// The second place of every value that stands more than once.
fn repeats(items: &[Value]) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(items.len());
    let mut places = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let times = seen.entry(canonical(item)).or_default();
        *times += 1;
        if *times == 2 {
            places.push(index);
        }
    }
    places
}

/// A text that is the same for equal values, whatever the order of their fields. The depth of what
/// comes here has been checked.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            let written = sorted.into_iter().map(|(name, value)| {
                format!("{}:{}", Value::from(name.as_str()), canonical(value))
            });
            format!("{{{}}}", written.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            let written: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", written.join(","))
        }
        other => other.to_string(),
    }
}
