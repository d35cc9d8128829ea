//! Uids and versions, numbered on each side by what stands in the same place on both sides.
//!
//! Something that only one side shows gets no number of its own: one difference would otherwise
//! shift all numbers after it, and be told many times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex_lite::{Captures, Regex};
use serde_json::{Map, Value};

use super::Pair;

/// Numbers the uids and versions of both sides. What the conversation said itself is kept.
pub(super) fn number(pair: &mut Pair, said: &str) {
    let (mut real, mut ours) = (Side::new(said), Side::new(said));
    for (left, right) in pair.real.iter().zip(&pair.ours) {
        real.learn(left, right, Within::Anything);
        ours.learn(right, left, Within::Anything);
    }
    let rename = |side: &Side<'_>, answers: &mut [Value]| {
        for answer in answers {
            side.rename(answer, Within::Anything);
        }
    };
    rename(&real, &mut pair.real);
    rename(&ours, &mut pair.ours);
}

/// What one side's uids and versions are called.
struct Side<'a> {
    said: &'a str,
    /// Each with its number, by first appearance.
    uids: BTreeMap<String, usize>,
    /// Of objects.
    versions: BTreeSet<u128>,
}

/// Where a value stands, as far as that says what its version means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Anything,
    Bookmark,
}

/// A version, by what it is the version of.
#[derive(Clone, Copy)]
enum Version {
    /// Of an object's last change.
    Change(u128),
    /// Of the moment of a list or a bookmark. It lies somewhere between those of objects: a real
    /// server writes things of its own meanwhile.
    Moment(u128),
}

impl<'a> Side<'a> {
    fn new(said: &'a str) -> Self {
        Self {
            said,
            uids: BTreeMap::new(),
            versions: BTreeSet::new(),
        }
    }

    /// Learns what the other side has something in the same place for. Keys are taken in their
    /// order, which is the same for both.
    fn learn(&mut self, value: &Value, other: &Value, within: Within) {
        match (value, other) {
            (Value::Object(fields), Value::Object(others)) => {
                let both = (version(fields, within), version(others, within));
                if let (Some(Version::Change(version)), Some(Version::Change(_))) = both {
                    self.versions.insert(version);
                }
                let sorted: BTreeMap<_, _> = fields.iter().collect();
                for (key, value) in sorted {
                    if let Some(other) = others.get(key.as_str()) {
                        self.learn(value, other, below(fields, key));
                    }
                }
            }
            (Value::Array(items), Value::Array(others)) => {
                for (item, other) in items.iter().zip(others) {
                    self.learn(item, other, within);
                }
            }
            (Value::String(text), Value::String(other)) => {
                let both = UID.find_iter(text).zip(UID.find_iter(other));
                for (uid, _) in both {
                    let next = self.uids.len() + 1;
                    self.uids.entry(uid.as_str().to_owned()).or_insert(next);
                }
            }
            _ => {}
        }
    }

    fn rename(&self, value: &mut Value, within: Within) {
        match value {
            Value::Object(fields) => {
                let keys: Vec<String> = fields.keys().cloned().collect();
                let version = version(fields, within);
                for key in keys {
                    let below = below(fields, &key);
                    if let Some(value) = fields.get_mut(&key) {
                        self.rename(value, below);
                    }
                }
                if let (Some(version), Some(Value::Object(metadata))) =
                    (version, fields.get_mut("metadata"))
                {
                    metadata["resourceVersion"] = Value::String(self.rank(version));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename(item, within)),
            Value::String(text) if UID.is_match(text) => {
                let renamed = UID.replace_all(text, |found: &Captures<'_>| self.uid(&found[0]));
                *text = renamed.into_owned();
            }
            _ => {}
        }
    }

    fn uid(&self, uid: &str) -> String {
        match self.uids.get(uid) {
            _ if self.said.contains(uid) => uid.to_owned(),
            Some(number) => format!("<uid {number}>"),
            None => "<uid>".to_owned(),
        }
    }

    fn rank(&self, version: Version) -> String {
        let rank = |version| self.versions.range(..=version).count();
        match version {
            Version::Moment(version) => format!("<at v {}>", rank(version)),
            Version::Change(version) if self.versions.contains(&version) => {
                format!("<v {}>", rank(version))
            }
            Version::Change(version) => format!("<after v {}>", rank(version)),
        }
    }
}

/// The version in an object's, a list's or a bookmark's metadata. Zero is no version.
fn version(fields: &Map<String, Value>, within: Within) -> Option<Version> {
    let version = fields.get("metadata")?.get("resourceVersion")?.as_str()?;
    let version = version.parse().ok().filter(|version| *version > 0)?;
    let kind = fields
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let list = fields.contains_key("items") || kind.ends_with("List") || kind == "Table";
    match list || within == Within::Bookmark {
        true => Some(Version::Moment(version)),
        false => Some(Version::Change(version)),
    }
}

/// Only its event says that something is a bookmark.
fn below(fields: &Map<String, Value>, key: &str) -> Within {
    let bookmark = fields.get("type").and_then(Value::as_str) == Some("BOOKMARK");
    match bookmark && key == "object" {
        true => Within::Bookmark,
        false => Within::Anything,
    }
}

static UID: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    Regex::new(pattern).expect("a pattern of ours")
});
