//! Strategic merge patch: a merge patch that knows how the lists of a kind merge.
//!
//! Objects merge key by key and null takes a key away, as in a merge patch. Whether a list is
//! replaced or merged, and by which key its entries are told apart, comes from the kind's schema
//! through [`MergeRules`]. Directives in the patch say the rest:
//!
//! - `$patch: replace` in an object: the object takes the place of the old one; as an entry of a
//!   list: the patch's list takes the place of the old one. `$patch: delete` in an object empties
//!   it; in an entry of a list it takes away all entries with that key.
//! - `$retainKeys: [..]`: keys of the old object that are not listed go.
//! - `$deleteFromPrimitiveList/f: [..]`: these values go from the list `f`.
//! - `$setElementOrder/f: [..]`: the order that entries of `f` shall have. Entries that only the
//!   old object has keep their places among each other, and stand before the listed entry that they
//!   stood before.
//!
//! Without an order the entries of the patch come in the patch's order and the others as they
//! were, new ones first; that is where Kubernetes puts them. No directive and no null of a patch
//! ever ends up in the object.
//!
//! Where upstream's outcome depends on chance or on its sorting, ours is settled: a value that a
//! patch both deletes from a list and adds to it is in the list; entries that an order does not
//! mention keep their places; and an order for a list that is empty is no error. A merge takes
//! time in proportion to the lists, not to their product.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Fault;

mod composed; // two patches -> one
mod difference; // two objects -> a patch
mod list; // lists: merge, delete, order

pub use composed::composed;
pub use difference::difference;

/// What a kind's schema says about merging, as a cursor: a value of this type stands at one place
/// of the schema and goes on to the places below it.
pub trait MergeRules: Sized {
    /// The rules for the value of a field; none where the kind has no such field. A map with free
    /// keys has all of them.
    fn field(&self, name: &str) -> Option<Self>;

    /// The rules for the entries of a list; none where the value is no list.
    fn items(&self) -> Option<Self>;

    /// How the value here merges with an old one.
    fn strategy(&self) -> Strategy<'_>;
}

/// How a value merges with the one it meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy<'a> {
    /// Nothing is said: objects merge, lists are replaced.
    #[default]
    Default,
    /// Entries of a list merge: those of objects by the value of this key, plain values by being
    /// the same (then the key is empty). Objects merge anyway.
    Merge {
        /// The key that tells entries apart; empty for lists of plain values.
        key: &'a str,
    },
    /// The object or list is replaced as a whole.
    Replace,
}

impl<'a> Strategy<'a> {
    fn key(self) -> &'a str {
        match self {
            Strategy::Merge { key } => key,
            Strategy::Default | Strategy::Replace => "",
        }
    }
}

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadStrategicPatch {
    /// The patch, or the document, is not an object.
    #[error("invalid JSON document")]
    NotAnObject,
    /// `$deleteFromPrimitiveList` without a field, or with something other than values.
    #[error("invalid patch format of primitive list")]
    BadPrimitiveList,
    /// `$retainKeys` that is no list, or leaves out a key that the patch sets.
    #[error("invalid patch format of retainKeys")]
    BadRetainKeys,
    /// `$setElementOrder` without a field, or that is no list.
    #[error("invalid patch format of setElementOrder list")]
    BadElementOrder,
    /// The patch has entries that `$setElementOrder` does not list, or in another order.
    #[error("the order in the patch list {field:?} doesn't match its $setElementOrder list")]
    OrderMismatch {
        /// The list.
        field: String,
    },
    /// A list of lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// A list with entries of different types.
    #[error("list element types are not identical")]
    MixedList,
    /// A list that merges but has no key to merge by.
    #[error("cannot merge lists without merge key")]
    NoListKey,
    /// An entry of a list lacks the key that it is told apart by, or has something else than a
    /// plain value there.
    #[error("map: {entry} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The keys that the entry has instead.
        entry: String,
        /// The key.
        key: String,
    },
    /// A `$patch` that says something else.
    #[error("unknown patch type: {0}")]
    UnknownDirective(String),
    /// `$patch: merge` in a list.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirective,
    /// A field that the kind does not have.
    #[error("unable to find api field \"{0}\"")]
    UnknownField(String),
    /// A value that must be a list and is not.
    #[error("expected a list in the field {0:?}")]
    NotAList(String),
}

impl BadStrategicPatch {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NotAnObject
            | Self::BadPrimitiveList
            | Self::BadRetainKeys
            | Self::BadElementOrder => Fault::Malformed,
            Self::OrderMismatch { .. }
            | Self::ListOfLists
            | Self::MixedList
            | Self::NoListKey
            | Self::NoMergeKey { .. }
            | Self::UnknownDirective(_)
            | Self::MergeDirective
            | Self::UnknownField(_)
            | Self::NotAList(_) => Fault::Inapplicable,
        }
    }
}

/// The document with the patch applied, by the rules of its kind.
pub fn apply<R: MergeRules>(
    document: Value,
    patch: Value,
    rules: &R,
) -> Result<Value, BadStrategicPatch> {
    match (document, patch) {
        (Value::Object(document), Value::Object(patch)) => {
            merge_object(document, patch, rules).map(Value::Object)
        }
        _ => Err(BadStrategicPatch::NotAnObject),
    }
}

type Object = Map<String, Value>;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

fn merge_object<R: MergeRules>(
    mut original: Object,
    mut patch: Object,
    rules: &R,
) -> Result<Object, BadStrategicPatch> {
    match patch.get(PATCH) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => return Ok(taken_object(patch)),
        Some(Value::String(directive)) if directive == "delete" => return Ok(Object::new()),
        Some(other) => return Err(unknown_directive(other)),
    }
    retain_keys(&mut original, &mut patch)?;
    set_element_orders(&mut original, &mut patch, rules)?;
    remove_nulls(&mut original, &patch)?;
    let (deletions, changes): (Vec<_>, Vec<_>) = patch
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .partition(|(key, _)| key.starts_with(DELETE_FROM_LIST));
    // First what goes, then what comes: of a value that is both deleted and added, upstream keeps
    // now one and now the other.
    for (key, gone) in deletions {
        let field = directed_field(&key, BadStrategicPatch::BadPrimitiveList)?;
        delete_values(&mut original, field, gone)?;
    }
    for (key, value) in changes {
        merge_field(&mut original, key, value, rules)?;
    }
    Ok(original)
}

/// Keys that the patch sets to null go, all at once: one by one each would move the rest.
fn remove_nulls(original: &mut Object, patch: &Object) -> Result<(), BadStrategicPatch> {
    let mut nulls = HashSet::new();
    for (key, _) in patch.iter().filter(|(_, value)| value.is_null()) {
        nulls.insert(match key.starts_with(DELETE_FROM_LIST) {
            true => directed_field(key, BadStrategicPatch::BadPrimitiveList)?,
            false => key.as_str(),
        });
    }
    if !nulls.is_empty() {
        original.retain(|key, _| !nulls.contains(key.as_str()));
    }
    Ok(())
}

fn merge_field<R: MergeRules>(
    original: &mut Object,
    key: String,
    value: Value,
    rules: &R,
) -> Result<(), BadStrategicPatch> {
    let merged = match (original.get_mut(&key).map(Value::take), value) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            let below = field_rules(rules, &key)?;
            match below.strategy() {
                Strategy::Replace => Some(Value::Object(taken_object(new))),
                _ => Some(Value::Object(merge_object(old, new, &below)?)),
            }
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            let below = field_rules(rules, &key)?;
            match below.strategy() {
                Strategy::Merge { key } => Some(list::merge(old, new, key, &below)?.into()),
                _ => Some(Value::Array(new.into_iter().map(taken).collect())),
            }
        }
        (_, value) => taken_unless_directive(value),
    };
    match merged {
        Some(merged) => {
            original.insert(key, merged);
        }
        None => {
            original.shift_remove(&key);
        }
    }
    Ok(())
}

fn field_rules<R: MergeRules>(rules: &R, key: &str) -> Result<R, BadStrategicPatch> {
    rules
        .field(key)
        .ok_or_else(|| BadStrategicPatch::UnknownField(key.to_owned()))
}

/// `$deleteFromPrimitiveList`: a list that is not there has nothing to lose.
fn delete_values(original: &mut Object, field: &str, gone: Value) -> Result<(), BadStrategicPatch> {
    let Value::Array(gone) = gone else {
        return Err(BadStrategicPatch::BadPrimitiveList);
    };
    if let Some(Value::Array(items)) = original.get_mut(field) {
        list::delete(items, &gone)?;
    }
    Ok(())
}

/// `$retainKeys`: a patch that sets a key must list it.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), BadStrategicPatch> {
    let Some(retained) = patch.shift_remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(retained) = retained else {
        return Err(BadStrategicPatch::BadRetainKeys);
    };
    let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    for (key, value) in patch.iter() {
        let directive = key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
        if !value.is_null() && !directive && !retained.contains(key.as_str()) {
            return Err(BadStrategicPatch::BadRetainKeys);
        }
    }
    original.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

/// `$setElementOrder`: merges the lists that have one, and takes both out of the patch.
fn set_element_orders<R: MergeRules>(
    original: &mut Object,
    patch: &mut Object,
    rules: &R,
) -> Result<(), BadStrategicPatch> {
    let is_order = |key: &&String| key.starts_with(ELEMENT_ORDER);
    let orders: Vec<String> = patch.keys().filter(is_order).cloned().collect();
    let mut merged_fields = HashSet::new();
    for order_key in &orders {
        let field = directed_field(order_key, BadStrategicPatch::BadElementOrder)?;
        let order = list_of(patch, order_key)?.unwrap_or_default();
        let old = list_of(original, field)?;
        let new = list_of(patch, field)?;
        if old.is_none() && new.is_none() {
            continue;
        }
        if new.is_some() {
            merged_fields.insert(field);
        }
        let below = field_rules(rules, field)?;
        let merged = list::merge_in_order(
            list::Ordered {
                field,
                old,
                new,
                order,
            },
            &below,
        )?;
        original.insert(field.to_owned(), Value::Array(merged));
    }
    patch.retain(|key, _| !key.starts_with(ELEMENT_ORDER) && !merged_fields.contains(key.as_str()));
    Ok(())
}

/// Takes the list out of a field. Null is as good as no list.
fn list_of(object: &mut Object, field: &str) -> Result<Option<Vec<Value>>, BadStrategicPatch> {
    match object.get_mut(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(std::mem::take(items))),
        Some(_) => Err(BadStrategicPatch::NotAList(field.to_owned())),
    }
}

/// The field that a directive such as `$setElementOrder/containers` is about.
fn directed_field(key: &str, otherwise: BadStrategicPatch) -> Result<&str, BadStrategicPatch> {
    match key.split_once('/') {
        Some((DELETE_FROM_LIST | ELEMENT_ORDER, field)) => Ok(field),
        _ => Err(otherwise),
    }
}

fn unknown_directive(directive: &Value) -> BadStrategicPatch {
    match directive {
        Value::String(text) => BadStrategicPatch::UnknownDirective(text.clone()),
        other => BadStrategicPatch::UnknownDirective(other.to_string()),
    }
}

/// A value of the patch that becomes part of the object as it is, unless a directive says that it
/// is about something to take away.
fn taken_unless_directive(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let kept = members
                .into_iter()
                .filter(|(key, value)| is_kept(key, value));
            let kept = kept.filter_map(|(key, value)| Some((key, taken_unless_directive(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(
            items
                .into_iter()
                .filter_map(taken_unless_directive)
                .collect(),
        ),
        plain => Some(plain),
    }
}

/// A value of the patch that becomes part of the object, whatever directives are in it.
fn taken(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(taken_object(members)),
        Value::Array(items) => items.into_iter().map(taken).collect(),
        plain => plain,
    }
}

fn taken_object(members: Object) -> Object {
    let kept = members
        .into_iter()
        .filter(|(key, value)| is_kept(key, value));
    kept.map(|(key, value)| (key, taken(value))).collect()
}

/// Directives and nulls are words to us, not content.
fn is_kept(key: &str, value: &Value) -> bool {
    let directive = matches!(key, PATCH | RETAIN_KEYS)
        || [DELETE_FROM_LIST, ELEMENT_ORDER]
            .iter()
            .any(|directive| key.starts_with(directive));
    !value.is_null() && !directive
}

#[cfg(test)]
mod tests;
