//! Lists in a strategic merge patch: how entries find each other, and in which order they end up.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    BadStrategicPatch, MergeRules, Object, PATCH, Strategy, merge_object, taken, taken_object,
    taken_unless_directive, unknown_directive,
};

/// What makes an entry the same as another: the value of its key, or a plain entry itself, as text.
type Identity = String;

/// Where an entry stands in a list.
type Positions = HashMap<Identity, usize>;

/// Merges the entries of two lists; `rules` stand at the list.
pub(super) fn merge<R: MergeRules>(
    old: Vec<Value>,
    new: Vec<Value>,
    key: &str,
    rules: &R,
) -> Result<Vec<Value>, BadStrategicPatch> {
    match entry_type(old.iter().chain(&new))? {
        None => Ok(old),
        Some(Entries::Plain) => Ok(merge_plain(old, new)),
        Some(Entries::Objects) if key.is_empty() => Err(BadStrategicPatch::NoListKey),
        Some(Entries::Objects) => merge_objects(old, new, key, rules),
    }
}

/// Takes values out of a list of plain values.
pub(super) fn delete(items: &mut Vec<Value>, gone: &[Value]) -> Result<(), BadStrategicPatch> {
    if gone
        .iter()
        .any(|value| value.is_object() || value.is_array())
    {
        return Err(BadStrategicPatch::BadPrimitiveList);
    }
    let gone: HashSet<Identity> = gone.iter().map(Value::to_string).collect();
    items.retain(|item| !gone.contains(&item.to_string()));
    Ok(())
}

/// A list that has a `$setElementOrder`.
pub(super) struct Ordered<'a> {
    pub(super) field: &'a str,
    pub(super) old: Option<Vec<Value>>,
    pub(super) new: Option<Vec<Value>>,
    pub(super) order: Vec<Value>,
}

/// Merges a list and brings it into the order that the patch asks for.
pub(super) fn merge_in_order<R: MergeRules>(
    list: Ordered<'_>,
    rules: &R,
) -> Result<Vec<Value>, BadStrategicPatch> {
    let key = rules.strategy().key();
    list.check(key)?;
    let old_identities = identities(list.old.as_deref().unwrap_or_default(), key)?;
    let merged: Vec<Value> = match (list.old, list.new, rules.strategy()) {
        (Some(old), None, _) => old,
        (None, new, _) => new
            .unwrap_or_default()
            .into_iter()
            .filter_map(taken_unless_directive)
            .collect(),
        (Some(old), Some(new), Strategy::Merge { key }) => merge(old, new, key, rules)?,
        (Some(_), Some(new), _) => new.into_iter().map(taken).collect(),
    };
    let listed = positions(identities(&list.order, key)?);
    let identified: Vec<Identity> = identities(&merged, key)?;
    let entries = identified.into_iter().zip(merged).collect();
    Ok(arrange(entries, &listed, &positions(old_identities)))
}

impl Ordered<'_> {
    /// What the patch changes must be in the order that it asks for.
    fn check(&self, key: &str) -> Result<(), BadStrategicPatch> {
        let marked = |item: &Value| item.get(PATCH).is_some();
        let new = self.new.iter().flatten().filter(|item| !marked(item));
        let order = identities(&self.order, key)?;
        let mut order = order.into_iter();
        if self.order.is_empty() {
            return Ok(());
        }
        for item in new {
            let wanted = identity(item, key)?;
            if !order.any(|listed| listed == wanted) {
                return Err(BadStrategicPatch::OrderMismatch {
                    field: self.field.to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// What the entries of a list are. All must be of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entries {
    Objects,
    Plain,
}

fn entry_type<'a>(
    items: impl Iterator<Item = &'a Value>,
) -> Result<Option<Entries>, BadStrategicPatch> {
    let mut first = None;
    for item in items {
        let kind = std::mem::discriminant(item);
        match item {
            Value::Array(_) => return Err(BadStrategicPatch::ListOfLists),
            Value::Null => return Err(BadStrategicPatch::MixedList),
            _ => {}
        }
        match first {
            None => first = Some((kind, item)),
            Some((expected, _)) if expected != kind => return Err(BadStrategicPatch::MixedList),
            Some(_) => {}
        }
    }
    Ok(first.map(|(_, item)| match item.is_object() {
        true => Entries::Objects,
        false => Entries::Plain,
    }))
}

fn merge_plain(old: Vec<Value>, new: Vec<Value>) -> Vec<Value> {
    let text = |items: &[Value]| items.iter().map(Value::to_string).collect::<Vec<_>>();
    let (server, listed) = (positions(text(&old)), positions(text(&new)));
    let mut seen = HashSet::new();
    let all = old
        .into_iter()
        .chain(new)
        .map(|item| (item.to_string(), item));
    let once = all
        .filter(|(identity, _)| seen.insert(identity.clone()))
        .collect();
    arrange(once, &listed, &server)
}

fn merge_objects<R: MergeRules>(
    old: Vec<Value>,
    new: Vec<Value>,
    key: &str,
    rules: &R,
) -> Result<Vec<Value>, BadStrategicPatch> {
    let directed = Directed::read(new, key)?;
    if directed.replace {
        let entries = directed
            .kept
            .into_iter()
            .map(|(_, item)| Value::Object(taken_object(item)));
        return Ok(entries.collect());
    }
    let mut entries = identified(old, key)?;
    entries.retain(|(identity, _)| !directed.gone.contains(identity));
    let new = directed.kept;
    let server = positions(entries.iter().map(|(identity, _)| identity.clone()));
    let listed = positions(new.iter().map(|(identity, _)| identity.clone()));
    let below = rules.items().ok_or(BadStrategicPatch::NoListKey)?;
    let mut places = server.clone();
    for (identity, item) in new {
        match places.get(&identity) {
            Some(at) => {
                let old = std::mem::take(&mut entries[*at].1);
                let merged = merge_object(old, item, &below)?;
                // A $retainKeys may have taken the key itself.
                if !merged.contains_key(key) {
                    return Err(no_key(&merged, key));
                }
                entries[*at].1 = merged;
            }
            None => {
                places.insert(identity.clone(), entries.len());
                entries.push((identity, taken_object(item)));
            }
        }
    }
    let entries = entries
        .into_iter()
        .map(|(identity, item)| (identity, Value::Object(item)));
    Ok(arrange(entries.collect(), &listed, &server))
}

/// The entries of a patch's list, with what their `$patch` says.
struct Directed {
    /// Entries without a directive.
    kept: Vec<(Identity, Object)>,
    /// Entries to take away.
    gone: HashSet<Identity>,
    /// The kept entries take the place of all that were there.
    replace: bool,
}

impl Directed {
    fn read(items: Vec<Value>, key: &str) -> Result<Self, BadStrategicPatch> {
        let mut directed = Self {
            kept: Vec::new(),
            gone: HashSet::new(),
            replace: false,
        };
        for item in items {
            let Value::Object(item) = item else {
                return Err(BadStrategicPatch::MixedList);
            };
            match item.get(PATCH) {
                None => directed.kept.push((object_identity(&item, key)?, item)),
                Some(Value::String(directive)) if directive == "delete" => {
                    directed.gone.insert(object_identity(&item, key)?);
                }
                Some(Value::String(directive)) if directive == "replace" => {
                    directed.replace = true;
                }
                Some(Value::String(directive)) if directive == "merge" => {
                    return Err(BadStrategicPatch::MergeDirective);
                }
                Some(other) => return Err(unknown_directive(other)),
            }
        }
        Ok(directed)
    }
}

/// Entries with what tells them apart.
fn identified(items: Vec<Value>, key: &str) -> Result<Vec<(Identity, Object)>, BadStrategicPatch> {
    let identified = |item: Value| match item {
        Value::Object(item) => Ok((object_identity(&item, key)?, item)),
        _ => Err(BadStrategicPatch::MixedList),
    };
    items.into_iter().map(identified).collect()
}

fn identities(items: &[Value], key: &str) -> Result<Vec<Identity>, BadStrategicPatch> {
    items.iter().map(|item| identity(item, key)).collect()
}

fn identity(item: &Value, key: &str) -> Result<Identity, BadStrategicPatch> {
    match item {
        Value::Object(_) if key.is_empty() => Err(BadStrategicPatch::NoListKey),
        Value::Object(item) => object_identity(item, key),
        Value::Array(_) => Err(BadStrategicPatch::ListOfLists),
        _ if !key.is_empty() => Err(BadStrategicPatch::MixedList),
        plain => Ok(plain.to_string()),
    }
}

fn object_identity(item: &Object, key: &str) -> Result<Identity, BadStrategicPatch> {
    match item.get(key) {
        Some(plain @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => {
            Ok(plain.to_string())
        }
        _ => Err(no_key(item, key)),
    }
}

fn no_key(item: &Object, key: &str) -> BadStrategicPatch {
    // The keys are enough to find the entry; its values may be secrets.
    let keys: Vec<&str> = item.keys().map(String::as_str).take(10).collect();
    BadStrategicPatch::NoMergeKey {
        entry: format!("[{}]", keys.join(" ")),
        key: key.to_owned(),
    }
}

/// Of two entries with one identity the first has the place.
fn positions(identities: impl IntoIterator<Item = Identity>) -> Positions {
    let mut positions = Positions::new();
    for (at, identity) in identities.into_iter().enumerate() {
        positions.entry(identity).or_insert(at);
    }
    positions
}

/// Brings listed entries into the order of the list and the others into the order that the server
/// had, then lays the others between: each goes before the first listed entry that it stood before
/// on the server.
fn arrange(entries: Vec<(Identity, Value)>, listed: &Positions, server: &Positions) -> Vec<Value> {
    let (mut patch, mut rest): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .partition(|(identity, _)| listed.contains_key(identity));
    let place = |positions: &Positions, identity: &str| {
        positions.get(identity).copied().unwrap_or(usize::MAX)
    };
    patch.sort_by_key(|(identity, _)| place(listed, identity));
    rest.sort_by_key(|(identity, _)| place(server, identity));
    let mut arranged = Vec::with_capacity(patch.len() + rest.len());
    let (mut patch, mut rest) = (patch.into_iter().peekable(), rest.into_iter().peekable());
    loop {
        let rest_first = match (rest.peek(), patch.peek()) {
            (Some((left, _)), Some((right, _))) => {
                let both = server.get(left).zip(server.get(right));
                both.is_some_and(|(left, right)| left < right)
            }
            (Some(_), None) => true,
            (None, _) => false,
        };
        let next = if rest_first {
            rest.next()
        } else {
            patch.next()
        };
        match next {
            Some((_, item)) => arranged.push(item),
            None => return arranged,
        }
    }
}
