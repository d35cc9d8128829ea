//! Uids and versions, numbered on each side by what stands in the same place on both sides.
//!
//! A pair that does not fit what was paired before gets no number, nor does what only one side
//! shows: one difference would otherwise shift all numbers after it, and be told many times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex_lite::{Captures, Regex};
use serde_json::{Map, Value};

use super::Pair;

/// Numbers the uids and versions of both sides. What the conversation said itself is kept.
pub(super) fn number(pair: &mut Pair, said: &str) {
    let mut learned = Learned::default();
    for (real, ours) in pair.real.iter().zip(&pair.ours) {
        learned.learn(real, ours, Within::Anything);
    }
    let sides = [
        (learned.real, &mut pair.real),
        (learned.ours, &mut pair.ours),
    ];
    for (names, answers) in sides {
        for answer in answers {
            names.rename(answer, Within::Anything, said);
        }
    }
}

/// What stands in the same places.
#[derive(Default)]
struct Learned {
    real: Names,
    ours: Names,
    uids: usize,
}

/// What one side's uids and versions are called.
#[derive(Default)]
struct Names {
    /// Each with its number, by first appearance.
    uids: BTreeMap<String, usize>,
    /// Of objects; one's number is its rank.
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

impl Learned {
    /// Learns what both have in the same place. Keys are taken in the same order each time.
    fn learn(&mut self, real: &Value, ours: &Value, within: Within) {
        match (real, ours) {
            (Value::Object(left), Value::Object(right)) => {
                let both = (version(left, within), version(right, within));
                if let (Some(Version::Change(real)), Some(Version::Change(ours))) = both {
                    self.learn_version(real, ours);
                }
                let sorted: BTreeMap<_, _> = left.iter().collect();
                for (key, real) in sorted {
                    if let Some(ours) = right.get(key.as_str()) {
                        self.learn(real, ours, below(left, key, within));
                    }
                }
            }
            (Value::Array(left), Value::Array(right)) => {
                for (real, ours) in left.iter().zip(right) {
                    self.learn(real, ours, within);
                }
            }
            (Value::String(left), Value::String(right)) => {
                for (real, ours) in UID.find_iter(left).zip(UID.find_iter(right)) {
                    self.learn_uid(real.as_str(), ours.as_str());
                }
            }
            _ => {}
        }
    }

    fn learn_version(&mut self, real: u128, ours: u128) {
        let fits = !self.real.versions.contains(&real) && !self.ours.versions.contains(&ours);
        if fits {
            self.real.versions.insert(real);
            self.ours.versions.insert(ours);
        }
    }

    fn learn_uid(&mut self, real: &str, ours: &str) {
        let fits = !self.real.uids.contains_key(real) && !self.ours.uids.contains_key(ours);
        if fits {
            self.uids += 1;
            self.real.uids.insert(real.to_owned(), self.uids);
            self.ours.uids.insert(ours.to_owned(), self.uids);
        }
    }
}

impl Names {
    fn rename(&self, value: &mut Value, within: Within, said: &str) {
        match value {
            Value::Object(fields) => {
                let keys: Vec<String> = fields.keys().cloned().collect();
                let version = version(fields, within);
                for key in keys {
                    let below = below(fields, &key, within);
                    if let Some(value) = fields.get_mut(&key) {
                        self.rename(value, below, said);
                    }
                }
                if let (Some(version), Some(Value::Object(metadata))) =
                    (version, fields.get_mut("metadata"))
                {
                    metadata["resourceVersion"] = Value::String(self.rank(version));
                }
            }
            Value::Array(items) => {
                let items = items.iter_mut();
                items.for_each(|item| self.rename(item, within, said));
            }
            Value::String(text) if UID.is_match(text) => {
                let renamed = |found: &Captures<'_>| self.uid(&found[0], said);
                *text = UID.replace_all(text, renamed).into_owned();
            }
            _ => {}
        }
    }

    fn uid(&self, uid: &str, said: &str) -> String {
        match self.uids.get(uid) {
            _ if said.contains(uid) => uid.to_owned(),
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

/// Only its event says that something is a bookmark, with all that is in it.
fn below(fields: &Map<String, Value>, key: &str, within: Within) -> Within {
    let bookmark = fields.get("type").and_then(Value::as_str) == Some("BOOKMARK");
    match bookmark && key == "object" {
        true => Within::Bookmark,
        false => within,
    }
}

static UID: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    Regex::new(pattern).expect("a pattern of ours")
});
