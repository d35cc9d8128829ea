//! The parts of an object that its row needs, read out of its bytes; the rest is skipped, not
//! decoded.

use std::fmt;

use jiff::Timestamp;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::age;

/// A part of an object, beside its metadata, that a row is made of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// A top-level field as it is.
    Whole(&'static str),
    /// How many entries a top-level object has: secrets are counted, not copied.
    Count(&'static str),
}

/// Which parts are read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep {
    /// These and no more.
    Parts(&'static [Part]),
    /// All, for paths that may lead anywhere.
    Everything,
}

/// An object as far as its row is concerned.
pub(super) struct Subject<'a> {
    /// metadata as it stands in the bytes.
    pub(super) raw_metadata: Option<&'a RawValue>,
    /// What the printers use of the metadata, or all of it.
    metadata: Value,
    /// The parts that were asked for.
    body: Value,
    /// When the row is made.
    pub(super) now: Timestamp,
}

/// What any printer uses of the metadata. managedFields, often the larger part, is not in it.
const METADATA: [Part; 7] = [
    Part::Whole("name"),
    Part::Whole("resourceVersion"),
    Part::Whole("creationTimestamp"),
    Part::Whole("deletionTimestamp"),
    Part::Whole("labels"),
    Part::Whole("annotations"),
    Part::Whole("ownerReferences"),
];

static NOTHING: Value = Value::Null;

impl<'a> Subject<'a> {
    /// Reads an object.
    pub(super) fn read(bytes: &'a [u8], keep: Keep, now: Timestamp) -> serde_json::Result<Self> {
        let (raw_metadata, body) = pick(bytes, keep)?;
        let metadata = match raw_metadata {
            Some(raw) => {
                let keep = match keep {
                    Keep::Parts(_) => Keep::Parts(&METADATA),
                    Keep::Everything => Keep::Everything,
                };
                pick(raw.get().as_bytes(), keep)?.1
            }
            None => Value::Null,
        };
        Ok(Self {
            raw_metadata,
            metadata,
            body,
            now,
        })
    }

    /// metadata.name.
    pub(super) fn name(&self) -> &str {
        self.meta("name").as_str().unwrap_or_default()
    }

    /// A field of the metadata.
    pub(super) fn meta(&self, field: &str) -> &Value {
        self.metadata.get(field).unwrap_or(&NOTHING)
    }

    /// All that was read, as one object: what a path of a custom column is looked up in.
    pub(super) fn whole(self) -> Value {
        let mut whole = self.body;
        if let Value::Object(fields) = &mut whole {
            fields.insert("metadata".to_owned(), self.metadata);
        }
        whole
    }

    /// The age of the object.
    pub(super) fn age(&self) -> String {
        self.since(self.meta("creationTimestamp"))
    }

    /// How long ago a moment was.
    pub(super) fn since(&self, moment: &Value) -> String {
        age::since_text(moment, self.now)
    }

    /// Whether the end of the object has begun.
    pub(super) fn is_terminating(&self) -> bool {
        !self.meta("deletionTimestamp").is_null()
    }

    /// The value at a JSON pointer, null where there is none.
    pub(super) fn at(&self, pointer: &str) -> &Value {
        self.body.pointer(pointer).unwrap_or(&NOTHING)
    }

    /// The text at a JSON pointer, empty where there is none.
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    /// The text at a JSON pointer, or what stands for a missing one. An empty text is not missing.
    pub(super) fn text_or<'s>(&'s self, pointer: &str, missing: &'s str) -> &'s str {
        self.at(pointer).as_str().unwrap_or(missing)
    }

    /// The number at a JSON pointer, 0 where there is none.
    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_default()
    }

    /// true or false at a JSON pointer.
    pub(super) fn flag(&self, pointer: &str, missing: bool) -> bool {
        self.at(pointer).as_bool().unwrap_or(missing)
    }

    /// The list at a JSON pointer, empty where there is none.
    pub(super) fn list(&self, pointer: &str) -> &[Value] {
        self.at(pointer).as_array().map_or(&[], Vec::as_slice)
    }

    /// The entry of status.conditions with this type.
    pub(super) fn condition(&self, kind: &str) -> Option<&Value> {
        self.list("/status/conditions")
            .iter()
            .find(|condition| word(condition, "type") == kind)
    }

    /// Whether the condition of this type is True.
    pub(super) fn has_condition(&self, kind: &str) -> bool {
        self.condition(kind)
            .is_some_and(|condition| word(condition, "status") == "True")
    }
}

/// The text of a field, empty where there is none.
pub(super) fn word<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The texts in a list of them.
pub(super) fn words(list: &[Value]) -> Vec<&str> {
    list.iter().filter_map(Value::as_str).collect()
}

fn pick(bytes: &[u8], keep: Keep) -> serde_json::Result<(Option<&RawValue>, Value)> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let picked = Pick { keep }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(picked)
}

/// Reads the fields of one JSON object that are to be kept.
struct Pick {
    keep: Keep,
}

impl<'de> DeserializeSeed<'de> for Pick {
    type Value = (Option<&'de RawValue>, Value);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pick {
    type Value = (Option<&'de RawValue>, Value);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut metadata, mut fields) = (None, Map::new());
        while let Some(key) = map.next_key::<String>()? {
            if key == "metadata" {
                metadata = map.next_value::<Option<&RawValue>>()?;
                continue;
            }
            match self.part(&key) {
                Wanted::Whole => drop(fields.insert(key, map.next_value()?)),
                Wanted::Count => {
                    let entries: Option<Entries> = map.next_value()?;
                    drop(fields.insert(key, entries.map_or(0, |entries| entries.0).into()));
                }
                Wanted::Not => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok((metadata, Value::Object(fields)))
    }
}

enum Wanted {
    Whole,
    Count,
    Not,
}

impl Pick {
    fn part(&self, key: &str) -> Wanted {
        let Keep::Parts(parts) = self.keep else {
            return Wanted::Whole;
        };
        for part in parts {
            match part {
                Part::Whole(field) if *field == key => return Wanted::Whole,
                Part::Count(field) if *field == key => return Wanted::Count,
                Part::Whole(_) | Part::Count(_) => {}
            }
        }
        Wanted::Not
    }
}

/// How many entries an object has.
struct Entries(u64);

impl<'de> serde::Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counting;
        impl<'de> Visitor<'de> for Counting {
            type Value = Entries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = 0;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    entries += 1;
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Counting)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn only_the_parts_that_are_asked_for_are_read() {
        let bytes =
            br#"{"metadata":{"name":"a","managedFields":[{}]},"data":{"x":"1","y":"2"},"spec":{}}"#;
        let subject = Subject::read(bytes, Keep::Parts(&[Part::Count("data")]), now()).unwrap();
        assert_eq!(subject.name(), "a");
        assert_eq!(subject.number("/data"), 2);
        assert!(subject.at("/spec").is_null());
        assert!(subject.meta("managedFields").is_null());
    }

    #[test]
    fn everything_includes_all_of_the_metadata() {
        let bytes = br#"{"metadata":{"name":"a","managedFields":[7]},"x":{"y":1}}"#;
        let subject = Subject::read(bytes, Keep::Everything, now()).unwrap();
        let whole = subject.whole();
        assert_eq!(
            whole,
            json!({"x": {"y": 1}, "metadata": {"name": "a", "managedFields": [7]}})
        );
    }

    #[test]
    fn null_and_missing_counts_are_zero() {
        let keep = Keep::Parts(&[Part::Count("data")]);
        for bytes in [&br#"{"data":null}"#[..], b"{}"] {
            assert_eq!(
                Subject::read(bytes, keep, now()).unwrap().number("/data"),
                0
            );
        }
    }

    #[test]
    fn what_is_not_an_object_is_refused() {
        for bytes in [&b""[..], b"[]", b"{", b"{} x", br#"{"metadata":7}"#] {
            let read = Subject::read(bytes, Keep::Everything, now());
            assert!(read.is_err(), "{}", String::from_utf8_lossy(bytes));
        }
    }
}
