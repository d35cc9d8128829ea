//! The metadata of custom objects: the same for every kind, whatever a schema says.

use serde_json::Value;

use crate::Status;

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
