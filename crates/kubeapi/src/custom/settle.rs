//! The names and conditions of a definition, as the controllers of a real cluster would set them,
//! at once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::definition::{Definition, Names};
use super::{approval, stamp};
use crate::Status;

/// A condition to set.
#[derive(Debug, Clone)]
pub(super) struct NewCondition {
    pub(super) kind: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Whether settling changed a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Its status is another now and must be written.
    Changed,
    /// Nothing to do.
    Unchanged,
}

/// Gives a definition the names that are free in its group, and establishes it when it has them
/// all. `others` are the accepted names of the other definitions in the group.
///
/// To be called for a definition that is written, and for the others of its group when names become
/// free.
pub fn settle(object: &mut Value, others: &[Names], now: Timestamp) -> Result<Settled, Status> {
    let definition = Definition::read(object)?;
    let before = object.get("status").cloned();
    let (accepted, naming) = accept(&definition, others);
    set_accepted(object, &accepted);
    let established = match (definition.has_condition("Established"), naming.status) {
        (true, _) => None,
        (false, "True") => Some(NewCondition {
            kind: "Established",
            status: "True",
            reason: "InitialNamesAccepted",
            message: "the initial names have been accepted".to_owned(),
        }),
        (false, _) => Some(NewCondition {
            kind: "Established",
            status: "False",
            reason: "NotAccepted",
            message: "not all names are accepted".to_owned(),
        }),
    };
    let conditions = [Some(naming), established, approval::condition(&definition)];
    for condition in conditions.into_iter().flatten() {
        set_condition(object, &condition, now);
    }
    Ok(match object.get("status") == before.as_ref() {
        true => Settled::Unchanged,
        false => Settled::Changed,
    })
}

/// Sets a condition. The time is that of the last change of its status.
pub(super) fn set_condition(object: &mut Value, new: &NewCondition, now: Timestamp) {
    let conditions = status(object).entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else {
        return;
    };
    let place = conditions
        .iter()
        .position(|condition| condition["type"] == new.kind);
    let since = match place.map(|place| &conditions[place]) {
        Some(old) if old["status"] == new.status && old["lastTransitionTime"].is_string() => {
            old["lastTransitionTime"].clone()
        }
        _ => stamp(now),
    };
    let condition = json!({
        "type": new.kind,
        "status": new.status,
        "lastTransitionTime": since,
        "reason": new.reason,
        "message": new.message,
    });
    match place {
        Some(place) => conditions[place] = condition,
        None => conditions.push(condition),
    }
}

/// The status as an object, made where there is none.
fn status(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    object["status"]
        .as_object_mut()
        .expect("it was made an object in the lines above")
}

/// A name that another definition has: the reason of the condition, and its words.
type Conflict = (&'static str, String);

/// The names that a definition gets, and the condition that says whether these are all it wants.
fn accept(definition: &Definition, others: &[Names]) -> (Names, NewCondition) {
    let (wanted, held) = (&definition.spec.names, &definition.status.accepted_names);
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for names in others.iter().chain([held]) {
        resources.extend([names.plural.as_str(), names.singular.as_str()]);
        resources.extend(names.short_names.iter().map(String::as_str));
        kinds.extend([names.kind.as_str(), names.list_kind.as_str()]);
    }
    let mut got = held.clone();
    got.categories.clone_from(&wanted.categories);
    // Of several conflicts the last one is told.
    let conflicts = [
        take(&wanted.plural, &mut got.plural, &resources).map(|why| ("PluralConflict", why)),
        take(&wanted.singular, &mut got.singular, &resources).map(|why| ("SingularConflict", why)),
        take_short(wanted, &mut got, &resources).map(|why| ("ShortNamesConflict", why)),
        take(&wanted.kind, &mut got.kind, &kinds).map(|why| ("KindConflict", why)),
        take(&wanted.list_kind, &mut got.list_kind, &kinds).map(|why| ("ListKindConflict", why)),
    ];
    (got, naming(conflicts.into_iter().flatten().next_back()))
}

/// Takes a name unless another definition has it.
fn take(wanted: &str, got: &mut String, taken: &BTreeSet<&str>) -> Option<String> {
    if wanted != got && taken.contains(wanted) {
        return Some(format!("{wanted:?} is already in use"));
    }
    wanted.clone_into(got);
    None
}

/// Takes the short names, all or none of them.
fn take_short(wanted: &Names, got: &mut Names, taken: &BTreeSet<&str>) -> Option<String> {
    let new = wanted
        .short_names
        .iter()
        .filter(|name| !got.short_names.contains(name));
    let in_use = new.filter(|name| taken.contains(name.as_str()));
    let in_use: Vec<String> = in_use
        .map(|name| format!("{name:?} is already in use"))
        .collect();
    match in_use.as_slice() {
        [] => {
            got.short_names.clone_from(&wanted.short_names);
            None
        }
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

fn naming(conflict: Option<Conflict>) -> NewCondition {
    let (status, (reason, message)) = match conflict {
        Some(conflict) => ("False", conflict),
        None => ("True", ("NoConflicts", "no conflicts found".to_owned())),
    };
    NewCondition {
        kind: "NamesAccepted",
        status,
        reason,
        message,
    }
}

/// Writes the names that a definition has into its status.
fn set_accepted(object: &mut Value, names: &Names) {
    let mut accepted = Map::new();
    let words = [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ];
    for (field, name) in words {
        // Kubernetes writes plural and kind even where they are empty.
        if !name.is_empty() || matches!(field, "plural" | "kind") {
            accepted.insert(field.to_owned(), name.as_str().into());
        }
    }
    for (field, list) in [
        ("shortNames", &names.short_names),
        ("categories", &names.categories),
    ] {
        if !list.is_empty() {
            accepted.insert(field.to_owned(), list.as_slice().into());
        }
    }
    status(object).insert("acceptedNames".to_owned(), Value::Object(accepted));
}
