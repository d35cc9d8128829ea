//! Objects of custom kinds: the version they are asked for in, their metadata, and the status apart
//! from the rest.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::Status;

/// Whether the status of a kind is read and written on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusPart {
    /// It has a `status` subresource.
    Separate,
    /// It is a field like any other.
    Plain,
}

/// The fields of the metadata, and what each holds.
const METADATA: [(&str, Holds); 15] = [
    ("name", Holds::Text),
    ("generateName", Holds::Text),
    ("namespace", Holds::Text),
    ("selfLink", Holds::Text),
    ("uid", Holds::Text),
    ("resourceVersion", Holds::Text),
    ("generation", Holds::Number),
    ("creationTimestamp", Holds::Text),
    ("deletionTimestamp", Holds::Text),
    ("deletionGracePeriodSeconds", Holds::Number),
    ("labels", Holds::Texts),
    ("annotations", Holds::Texts),
    ("ownerReferences", Holds::Objects),
    ("finalizers", Holds::List),
    ("managedFields", Holds::Objects),
];

/// What a field of the metadata holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Holds {
    Text,
    Number,
    /// A map from text to text.
    Texts,
    /// A list of texts.
    List,
    Objects,
}

/// A custom object in another of its versions. Without conversion webhooks all versions have the
/// same fields, so only the name of the version changes.
pub fn in_version<'b>(object: &'b [u8], api_version: &str) -> serde_json::Result<Cow<'b, [u8]>> {
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(borrow, rename = "apiVersion")]
        api_version: Option<&'a RawValue>,
    }
    let written = serde_json::to_string(api_version)?;
    let found = serde_json::from_slice::<Outer<'_>>(object)?
        .api_version
        .map(RawValue::get);
    let Some(found) = found.filter(|found| *found != written) else {
        return Ok(Cow::Borrowed(object));
    };
    // The text that was found is a part of the object's bytes: the distance of the two is its
    // place.
    let start = found.as_ptr().addr() - object.as_ptr().addr();
    let mut changed = Vec::with_capacity(object.len() + written.len());
    changed.extend_from_slice(&object[..start]);
    changed.extend_from_slice(written.as_bytes());
    changed.extend_from_slice(&object[start + found.len()..]);
    Ok(Cow::Owned(changed))
}

/// Gives the metadata the form that every kind has, whatever a schema says: unknown fields go, and
/// fields of the wrong type are refused. Returns the names of the fields that went.
pub fn coerce_metadata(object: &mut Value) -> Result<Vec<String>, Status> {
    let metadata = match object.get_mut("metadata") {
        None => return Ok(Vec::new()),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => return Err(Status::bad_request("metadata must be an object")),
    };
    let mut dropped = Vec::new();
    let mut wrong = None;
    metadata.retain(|name, value| {
        let known = METADATA.iter().find(|(field, _)| field == name);
        match known {
            // null is the same as nothing.
            Some(_) if value.is_null() => return false,
            Some((_, holds)) if !holds.fits(value) => {
                wrong.get_or_insert(format!("metadata.{name} must be {}", holds.words()));
            }
            Some(_) => {}
            None => dropped.push(format!("metadata.{name}")),
        }
        known.is_some()
    });
    match wrong {
        Some(words) => Err(Status::bad_request(words)),
        None => Ok(dropped),
    }
}

/// A new object: it has no status yet where that stands on its own, and its generation is the
/// first.
pub fn prepare_create(object: &mut Value, status: StatusPart) {
    if let (StatusPart::Separate, Some(fields)) = (status, object.as_object_mut()) {
        fields.shift_remove("status");
    }
    set_generation(object, 1);
}

/// An object that replaces another: the status stays where it stands on its own, and anything new
/// outside of the metadata makes a new generation.
pub fn prepare_update(object: &mut Value, old: &Value, status: StatusPart) {
    if let (StatusPart::Separate, Some(fields)) = (status, object.as_object_mut()) {
        match old.get("status") {
            Some(status) => drop(fields.insert("status".to_owned(), status.clone())),
            None => drop(fields.shift_remove("status")),
        }
    }
    let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
    let generation = generation.saturating_add(i64::from(!same_but_metadata(object, old)));
    set_generation(object, generation);
}

/// A write to the status alone: everything else is that of the old object.
pub fn prepare_status_update(object: &mut Value, old: &Value) {
    let status = object
        .as_object_mut()
        .and_then(|fields| fields.shift_remove("status"));
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let managed = metadata.and_then(|fields| fields.shift_remove("managedFields"));
    object.clone_from(old);
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("status");
        fields.extend(status.map(|status| ("status".to_owned(), status)));
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
        metadata.extend(managed.map(|managed| ("managedFields".to_owned(), managed)));
    }
}

/// Whether two objects differ in nothing but their metadata.
fn same_but_metadata(one: &Value, other: &Value) -> bool {
    let rest = |object: &Value| -> Map<String, Value> {
        let fields = object.as_object().into_iter().flatten();
        let rest = fields.filter(|(name, _)| *name != "metadata" && *name != "apiVersion");
        rest.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    rest(one) == rest(other)
}

fn set_generation(object: &mut Value, generation: i64) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("generation".to_owned(), generation.into());
    }
}

impl Holds {
    fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text, value) => value.is_string(),
            (Self::Number, value) => value.is_i64(),
            (Self::Texts, Value::Object(fields)) => fields.values().all(Value::is_string),
            (Self::List, Value::Array(entries)) => entries.iter().all(Value::is_string),
            (Self::Objects, Value::Array(entries)) => entries.iter().all(Value::is_object),
            (Self::Texts | Self::List | Self::Objects, _) => false,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Number => "a whole number",
            Self::Texts => "a map of strings",
            Self::List => "a list of strings",
            Self::Objects => "a list of objects",
        }
    }
}
