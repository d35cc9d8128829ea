//! Two states of an object -> the smallest strategic merge patch from one to the other.
//!
//! It names nothing that is the same in both, so what somebody else changed meanwhile stays. The
//! order of lists that merge is left as it is.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{DELETE_FROM_LIST, MergeRules, Object, PATCH, Strategy};

/// The patch that makes `after` of `before`; nothing if they are the same.
pub fn difference<R: MergeRules>(before: &Value, after: &Value, rules: &R) -> Option<Value> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let patch = object(before, after, Some(rules));
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        _ => (before != after).then(|| after.clone()),
    }
}

fn object<R: MergeRules>(before: &Object, after: &Object, rules: Option<&R>) -> Object {
    let mut patch = Object::new();
    let there = |object: &Object, key: &str| object.get(key).is_some_and(|it| !it.is_null());
    for (key, _) in before.iter().filter(|(_, value)| !value.is_null()) {
        if !there(after, key) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    for (key, value) in after.iter().filter(|(_, value)| !value.is_null()) {
        match before.get(key).filter(|old| !old.is_null()) {
            Some(old) if old == value => {}
            Some(old) => field(&mut patch, key, (old, value), rules),
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    patch
}

fn field<R: MergeRules>(
    patch: &mut Object,
    key: &str,
    (old, new): (&Value, &Value),
    rules: Option<&R>,
) {
    let below = rules.and_then(|rules| rules.field(key));
    let strategy = below.as_ref().map(MergeRules::strategy);
    match (old, new, strategy) {
        (_, _, Some(Strategy::Replace)) => {
            patch.insert(key.to_owned(), new.clone());
        }
        (Value::Object(old), Value::Object(new), _) => {
            let inner = object(old, new, below.as_ref());
            if !inner.is_empty() {
                patch.insert(key.to_owned(), inner.into());
            }
        }
        (Value::Array(old), Value::Array(new), Some(Strategy::Merge { key: "" })) => {
            values(patch, key, (old, new));
        }
        (Value::Array(old), Value::Array(new), Some(Strategy::Merge { key: name })) => {
            let items = below.as_ref().and_then(MergeRules::items);
            let list = entries((old, new), name, items.as_ref());
            let list = list.unwrap_or_else(|| whole(new));
            if !list.is_empty() {
                patch.insert(key.to_owned(), list.into());
            }
        }
        _ => {
            patch.insert(key.to_owned(), new.clone());
        }
    }
}

/// A list of plain values that merges.
fn values(patch: &mut Object, key: &str, (old, new): (&[Value], &[Value])) {
    let lacks = |list: &[Value], item: &Value| !list.contains(item);
    let gone: Vec<Value> = old.iter().filter(|it| lacks(new, it)).cloned().collect();
    let added: Vec<Value> = new.iter().filter(|it| lacks(old, it)).cloned().collect();
    if !gone.is_empty() {
        patch.insert(format!("{DELETE_FROM_LIST}/{key}"), gone.into());
    }
    if !added.is_empty() {
        patch.insert(key.to_owned(), added.into());
    }
}

/// A list of objects that are told apart by a key; nothing where it does not tell them apart.
fn entries<R: MergeRules>(
    (old, new): (&[Value], &[Value]),
    name: &str,
    items: Option<&R>,
) -> Option<Vec<Value>> {
    let (before, after) = (by_key(old, name)?, by_key(new, name)?);
    let mut list = Vec::new();
    for item in new.iter().filter_map(Value::as_object) {
        let Some(old) = before.get(&item[name].to_string()) else {
            list.push(item.clone().into());
            continue;
        };
        let mut changed = object(old, item, items);
        if !changed.is_empty() {
            changed.insert(name.to_owned(), item[name].clone());
            list.push(changed.into());
        }
    }
    for (_, gone) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
        list.push(json!({PATCH: "delete", name: gone[name]}));
    }
    Some(list)
}

fn by_key<'a>(list: &'a [Value], name: &str) -> Option<BTreeMap<String, &'a Object>> {
    let mut all = BTreeMap::new();
    for item in list {
        let item = item.as_object()?;
        let key = item.get(name).filter(|key| !key.is_null())?;
        if all.insert(key.to_string(), item).is_some() {
            return None;
        }
    }
    Some(all)
}

/// A list that takes the place of the old one.
fn whole(new: &[Value]) -> Vec<Value> {
    let mut list = vec![json!({PATCH: "replace"})];
    list.extend_from_slice(new);
    list
}
