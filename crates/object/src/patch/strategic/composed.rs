//! Two strategic merge patches that follow each other -> one that does what both do.
//!
//! It also does so where the first was applied already: whatever the first one names, this one
//! names too, with what the second makes of it. So it can take the place of a patch of which
//! nobody knows whether it arrived. One thing it cannot do: where a whole object, or a list of
//! plain values, was taken away and is there again, what the old one had stays if the first patch
//! never arrived. Nor is it exact for lists that merge within entries of lists that merge, which no
//! status has.

use serde_json::{Value, json};

use super::{DELETE_FROM_LIST, MergeRules, Object, PATCH, Strategy, list};

/// One patch for two.
pub fn composed<R: MergeRules>(first: &Value, second: &Value, rules: &R) -> Value {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => object(first, second, Some(rules)).into(),
        (_, second) => second.clone(),
    }
}

fn object<R: MergeRules>(first: &Object, second: &Object, rules: Option<&R>) -> Object {
    if second.contains_key(PATCH) {
        return second.clone();
    }
    let mut both = first.clone();
    for (key, value) in second {
        if key.starts_with(DELETE_FROM_LIST) {
            continue;
        }
        let below = rules.and_then(|rules| rules.field(key));
        let made = match first.get(key) {
            Some(old) => field(old, value, below.as_ref()),
            None => value.clone(),
        };
        both.insert(key.clone(), made);
    }
    for (key, gone) in second {
        if let Some((DELETE_FROM_LIST, field)) = key.split_once('/') {
            values(&mut both, (key, field), gone, second);
        }
    }
    both
}

fn field<R: MergeRules>(old: &Value, new: &Value, rules: Option<&R>) -> Value {
    let strategy = rules.map(MergeRules::strategy);
    match (old, new, strategy) {
        (_, _, Some(Strategy::Replace)) => new.clone(),
        (Value::Object(old), Value::Object(new), _) => object(old, new, rules).into(),
        // It was taken away, and is there anew.
        (Value::Null, Value::Array(new), Some(Strategy::Merge { key })) if !key.is_empty() => {
            let replaced = [json!({PATCH: "replace"})].into_iter();
            replaced.chain(new.iter().cloned()).collect()
        }
        (Value::Array(old), Value::Array(new), Some(Strategy::Merge { key })) => match key {
            "" => union(old, new),
            key => entries((old, new), key, rules),
        },
        _ => new.clone(),
    }
}

/// Entries that are told apart by a key.
fn entries<R: MergeRules>((old, new): (&[Value], &[Value]), key: &str, rules: Option<&R>) -> Value {
    let replaces = |item: &Value| item.get(PATCH).is_some_and(|it| it == "replace");
    if new.iter().any(replaces) {
        return new.into();
    }
    if old.iter().any(replaces) {
        return onto_whole((old, new), key, rules);
    }
    let items = rules.and_then(MergeRules::items);
    let goes = |item: &Value| item.get(PATCH).is_some();
    let mut both: Vec<Value> = old.to_vec();
    for item in new {
        let same = |it: &Value| it.get(key) == item.get(key);
        if goes(item) {
            both.retain(|it| !same(it));
            both.push(item.clone());
            continue;
        }
        // Beside one that goes, another one with its key is a new one.
        let before = both.iter_mut().find(|it| same(it) && !goes(it));
        match (before, item) {
            (Some(Value::Object(before)), Value::Object(item)) => {
                *before = object(before, item, items.as_ref());
            }
            _ => both.push(item.clone()),
        }
    }
    both.into()
}

/// A list that takes the place of what is there, and what is changed in it then.
fn onto_whole<R: MergeRules>(
    (old, new): (&[Value], &[Value]),
    key: &str,
    rules: Option<&R>,
) -> Value {
    let plain = |item: &&Value| item.get(PATCH).is_none();
    let whole: Vec<Value> = old.iter().filter(plain).cloned().collect();
    let merged = rules.and_then(|it| list::merge(whole.clone(), new.to_vec(), key, it).ok());
    let replaced = [json!({PATCH: "replace"})].into_iter();
    replaced.chain(merged.unwrap_or(whole)).collect()
}

/// Plain values that are added by either.
fn union(old: &[Value], new: &[Value]) -> Value {
    let added = new.iter().filter(|item| !old.contains(item));
    old.iter().chain(added).cloned().collect()
}

/// Plain values that go: they are not added any more, unless the second adds them.
fn values(both: &mut Object, (key, field): (&str, &str), gone: &Value, second: &Object) {
    let none = Vec::new();
    let gone = gone.as_array().unwrap_or(&none);
    let added = second.get(field).and_then(Value::as_array);
    if let Some(Value::Array(items)) = both.get_mut(field) {
        let stays = |it: &Value| !gone.contains(it) || added.is_some_and(|all| all.contains(it));
        items.retain(stays);
    }
    let before = both.get(key).and_then(Value::as_array).unwrap_or(&none);
    let all = union(before, gone);
    both.insert(key.to_owned(), all);
}
