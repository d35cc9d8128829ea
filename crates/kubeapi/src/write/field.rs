//! Reads and sets fields of an object that may be absent or of another type than expected.
//!
//! Every accessor answers a neutral value instead of failing: the shape of an object is checked
//! elsewhere, and a rule that meets a wrong type has nothing to say about it.

use serde_json::{Map, Value};

static ABSENT: Value = Value::Null;

/// The field `key`, or null.
pub(crate) fn child<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&ABSENT)
}

/// The field at a path of keys, or null.
pub(crate) fn at<'a>(value: &'a Value, keys: &[&str]) -> &'a Value {
    keys.iter().fold(value, |inner, key| child(inner, key))
}

/// The string `key`, empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    child(value, key).as_str().unwrap_or_default()
}

/// The whole number `key`.
pub(crate) fn number(value: &Value, key: &str) -> Option<i64> {
    child(value, key).as_i64()
}

/// Whether `key` is true.
pub(crate) fn flag(value: &Value, key: &str) -> bool {
    child(value, key).as_bool().unwrap_or_default()
}

/// The list `key`, empty where there is none.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    child(value, key).as_array().map_or(&[], Vec::as_slice)
}

/// The strings of the list `key`.
pub(crate) fn texts<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    list(value, key).iter().filter_map(Value::as_str).collect()
}

/// The entries of the object `key`.
pub(crate) fn entries<'a>(
    value: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    child(value, key).as_object().into_iter().flatten()
}

/// Whether `key` is there and is not null.
pub(crate) fn is_set(value: &Value, key: &str) -> bool {
    !child(value, key).is_null()
}

/// Whether `value` is absent, null, or an empty string, list or object.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether two fields say the same. A typed server cannot tell absent from empty, and neither may
/// we.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = left
                .keys()
                .chain(right.keys().filter(|key| !left.contains_key(*key)));
            let mut keys = keys;
            keys.all(|key| same(child(a, key), child(b, key)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(x, y)| same(x, y))
        }
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64()
        }
        _ => a == b || (is_empty(a) && is_empty(b)),
    }
}

/// The object `key`, made where it is absent or something else.
pub(crate) fn object_mut<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    let field = slot(value, key);
    if !field.is_object() {
        *field = Value::Object(Map::new());
    }
    field
}

/// The items of the list `key`.
pub(crate) fn items_mut<'a>(value: &'a mut Value, key: &str) -> &'a mut [Value] {
    value
        .get_mut(key)
        .and_then(Value::as_array_mut)
        .map_or(&mut [], Vec::as_mut_slice)
}

/// The object `key`, where it is one.
pub(crate) fn existing_mut<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    value.get_mut(key).filter(|field| field.is_object())
}

/// Sets `key`.
pub(crate) fn set(value: &mut Value, key: &str, to: impl Into<Value>) {
    *slot(value, key) = to.into();
}

/// Sets `key` where it is absent, null or an empty string: what a typed server takes as "not
/// given".
pub(crate) fn set_default(value: &mut Value, key: &str, to: impl Into<Value>) {
    let given = child(value, key);
    if given.is_null() || given.as_str().is_some_and(str::is_empty) {
        set(value, key, to);
    }
}

/// Sets `key` where it is absent or zero: a whole number without a pointer in the typed API.
pub(crate) fn set_default_number(value: &mut Value, key: &str, to: i64) {
    let given = child(value, key);
    if given.is_null() || given.as_i64() == Some(0) {
        set(value, key, to);
    }
}

/// Takes `key` out.
pub(crate) fn remove(value: &mut Value, key: &str) -> Option<Value> {
    value
        .as_object_mut()
        .and_then(|fields| fields.shift_remove(key))
}

/// Makes field `key` what it is in `source`: set, or absent.
pub(crate) fn copy(value: &mut Value, source: &Value, key: &str) {
    match source.get(key) {
        Some(field) => set(value, key, field.clone()),
        None => {
            remove(value, key);
        }
    }
}

/// Appends to the list `key`, made where it is absent.
pub(crate) fn push(value: &mut Value, key: &str, item: Value) {
    let list = slot(value, key);
    match list {
        Value::Array(items) => items.push(item),
        other => *other = Value::Array(vec![item]),
    }
}

/// Takes out every field that is null. A typed server reads null as absent.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The field `key` for writing. A value that is no object becomes one: the request's shape was
/// checked before.
fn slot<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields.entry(key).or_insert(Value::Null),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_null_and_empty_say_the_same() {
        assert!(same(&json!({"a": {}, "b": null}), &json!({"c": []})));
        assert!(same(&json!({"a": 1}), &json!({"a": 1.0})));
        assert!(!same(&json!({"a": 0}), &json!({})));
        assert!(!same(&json!({"a": [{}]}), &json!({})));
        assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
    }

    #[test]
    fn nulls_go_at_every_depth_and_other_values_stay() {
        let mut value = json!({"a": null, "b": [{"c": null, "d": 0}], "e": ""});
        drop_nulls(&mut value);
        assert_eq!(value, json!({"b": [{"d": 0}], "e": ""}));
    }
}
