//! Differences between two values, by path.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::values::at;

/// A place in which two values are different. Nothing means that it is not there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub(crate) path: String,
    pub(crate) real: Option<Value>,
    pub(crate) ours: Option<Value>,
}

/// All differences between two values, each at the deepest path that both have.
pub(super) fn differences(real: &Value, ours: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    gather(Some(real), Some(ours), "", &mut found);
    found
}

fn gather(real: Option<&Value>, ours: Option<&Value>, path: &str, found: &mut Vec<Difference>) {
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match (real, ours) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                gather(left.get(key), right.get(key), &below(key), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                let path = below(&index.to_string());
                gather(left.get(index), right.get(index), &path, found);
            }
        }
        (real, ours) if real == ours => {}
        (real, ours) => found.push(Difference {
            path: path.to_owned(),
            real: real.cloned(),
            ours: ours.cloned(),
        }),
    }
}

/// Whether a path of a directive is this path or one above it. `*` stands for any one key.
pub(super) fn covers(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('.');
    let fits = |wanted: &str| match (wanted, parts.next()) {
        ("*", _) => true,
        (wanted, part) => part == Some(wanted),
    };
    pattern.split('.').all(fits)
}

/// How many entries there are in the lists and maps at a path, together.
pub(super) fn count(value: &Value, path: &str) -> usize {
    let (part, rest) = match path.split_once('.') {
        Some((part, rest)) => (part, rest),
        None => (path, ""),
    };
    let fits = |name: &str| part == "*" || part == name;
    match value {
        Value::Array(entries) if path.is_empty() => entries.len(),
        Value::Object(fields) if path.is_empty() => fields.len(),
        Value::Array(entries) => {
            let entries = entries.iter().enumerate();
            let below = entries.filter(|(index, _)| fits(&index.to_string()));
            below.map(|(_, entry)| count(entry, rest)).sum()
        }
        Value::Object(fields) => {
            let below = fields.iter().filter(|(name, _)| fits(name));
            below.map(|(_, field)| count(field, rest)).sum()
        }
        _ => 0,
    }
}

/// Takes what our side has not out of a list or map of the real side; says whether there was
/// something. The path may have `*` for every entry of a list or map.
pub(super) fn leave_out(real: &mut Value, ours: &Value, path: &str, key: Option<&str>) -> bool {
    let (part, rest) = match path.split_once('.') {
        Some((part, rest)) => (part, Some(rest)),
        None => (path, None),
    };
    if path.is_empty() {
        return leave_out_here(real, ours, key);
    }
    let deeper = |real: &mut Value, ours: &Value| match rest {
        None => leave_out_here(real, ours, key),
        Some(rest) => leave_out(real, ours, rest, key),
    };
    match (real, ours) {
        (Value::Array(left), Value::Array(right)) => {
            let mut used = false;
            for (index, (left, right)) in left.iter_mut().zip(right).enumerate() {
                if part == "*" || part == index.to_string() {
                    used |= deeper(left, right);
                }
            }
            used
        }
        (Value::Object(left), Value::Object(right)) => {
            let mut used = false;
            for (name, left) in left.iter_mut() {
                if let Some(right) = right.get(name).filter(|_| part == "*" || part == name) {
                    used |= deeper(left, right);
                }
            }
            used
        }
        _ => false,
    }
}

fn leave_out_here(real: &mut Value, ours: &Value, key: Option<&str>) -> bool {
    match (real, ours) {
        (Value::Array(left), Value::Array(right)) => {
            let before = left.len();
            let names: Vec<_> = right.iter().map(|entry| name(entry, key)).collect();
            left.retain(|entry| names.contains(&name(entry, key)));
            left.len() < before
        }
        (Value::Object(left), Value::Object(right)) => {
            let before = left.len();
            left.retain(|name, _| right.contains_key(name));
            left.len() < before
        }
        _ => false,
    }
}

/// What tells an entry of a list from others.
fn name<'a>(entry: &'a Value, key: Option<&str>) -> Option<&'a Value> {
    match key {
        None => Some(entry),
        Some(key) => at(entry, key),
    }
}
