//! Events: one object, two APIs. They are stored as the core group's `events`; `events.k8s.io` is a
//! view of the same.

use std::borrow::Cow;

use serde_json::Value;

use crate::write::fault::{Faults, Path};
use crate::write::{field, meta, names};

/// Field by field: the core group's name, and that of `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// An event as the core group says it.
pub fn to_core(event: Value) -> Value {
    renamed(event, "v1", |key| {
        NAMES
            .iter()
            .find(|(_, new)| *new == key)
            .map(|(core, _)| *core)
    })
}

/// An event as `events.k8s.io/v1` says it.
pub fn from_core(event: Value) -> Value {
    let find = |key: &str| {
        NAMES
            .iter()
            .find(|(core, _)| *core == key)
            .map(|(_, new)| *new)
    };
    renamed(event, "events.k8s.io/v1", find)
}

pub(super) fn check(event: &Value, faults: &mut Faults) {
    let newer = is_view(event);
    let core = as_core(event);
    let timed = !field::text(&core, "eventTime").is_empty();
    check_place(&core, timed, faults);
    if timed {
        let controller = match newer {
            true => "reportingController",
            false => "reportingComponent",
        };
        let given = field::text(&core, "reportingComponent");
        let path = Path::new(controller);
        if given.is_empty() {
            faults.required(&path, "");
        }
        faults.invalid_each(&path, given, names::label_key_faults(given));
        for key in ["reportingInstance", "action", "reason"] {
            check_words(&core, key, Needed::Yes, 128, faults);
        }
        check_words(&core, "message", Needed::No, 1024, faults);
    }
}

/// What only the newer API asks of a new event.
pub(super) fn check_new(event: &Value, faults: &mut Faults) {
    let core = to_core(event.clone());
    check_series(&core, faults);
    if field::text(&core, "eventTime").is_empty() {
        faults.required(&Path::new("eventTime"), "");
    }
    let kind = field::text(&core, "type");
    if !matches!(kind, "Normal" | "Warning") {
        let why = format!("has invalid value: {kind}");
        faults.invalid(&Path::new("type"), "", why);
    }
    let zero = |value: &Value| field::is_empty(value) || value.as_i64() == Some(0);
    for key in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        if !zero(field::child(&core, key)) {
            faults.invalid(&Path::new(key), "", "needs to be unset");
        }
    }
}

/// By the newer API only the series of an event changes.
pub(super) fn check_update(new: &Value, old: &Value, faults: &mut Faults) {
    let (new, old) = (to_core(new.clone()), to_core(old.clone()));
    if !field::same(field::child(&new, "series"), field::child(&old, "series")) {
        check_series(&new, faults);
    }
    for (key, told) in [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let now = field::child(&new, key);
        if !field::same(now, field::child(&old, key)) {
            faults.invalid(&Path::new(told), now.clone(), "field is immutable");
        }
    }
}

/// Whether a word must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Yes,
    No,
}

/// An event with the core group's names, which most have already.
fn as_core(event: &Value) -> Cow<'_, Value> {
    match is_view(event) {
        true => Cow::Owned(to_core(event.clone())),
        false => Cow::Borrowed(event),
    }
}

fn is_view(event: &Value) -> bool {
    field::text(event, "apiVersion") == "events.k8s.io/v1"
}

/// An event lives where its object lives; one about something without a namespace in one that
/// always exists.
fn check_place(core: &Value, timed: bool, faults: &mut Faults) {
    let about = field::text(field::child(core, "involvedObject"), "namespace");
    let inside = meta::namespace(core);
    let fits = match about {
        "" if timed => matches!(inside, "default" | "kube-system"),
        "" => inside == "default",
        about => timed || about == inside,
    };
    if !fits {
        let path = Path::new("involvedObject").child("namespace");
        faults.invalid(&path, about, "does not match event.namespace");
    }
}

fn check_words(core: &Value, key: &str, needed: Needed, length_max: usize, faults: &mut Faults) {
    let words = field::text(core, key);
    let path = Path::new(key);
    if words.is_empty() && needed == Needed::Yes {
        faults.required(&path, "");
    }
    if words.len() > length_max {
        let why = format!("can have at most {length_max} characters");
        faults.invalid(&path, "", why);
    }
}

fn check_series(core: &Value, faults: &mut Faults) {
    let series = field::child(core, "series");
    if series.is_null() {
        return;
    }
    if field::number(series, "count").unwrap_or_default() < 2 {
        faults.invalid(&Path::new("series.count"), "", "should be at least 2");
    }
    if field::text(series, "lastObservedTime").is_empty() {
        faults.required(&Path::new("series.lastObservedTime"), "");
    }
}

fn renamed(event: Value, version: &str, rename: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(fields) = event else {
        return event;
    };
    let fields = fields.into_iter().map(|(key, value)| {
        let value = if key == "apiVersion" {
            Value::from(version)
        } else {
            value
        };
        (rename(&key).map_or(key, str::to_owned), value)
    });
    Value::Object(fields.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_two_apis_show_one_event() {
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"},
            "involvedObject": {"kind": "Pod"}, "reason": "Started", "message": "it started",
            "source": {"component": "kubelet"}, "firstTimestamp": "t1", "lastTimestamp": "t2",
            "count": 3, "type": "Normal", "eventTime": null, "reportingComponent": "kubelet",
            "reportingInstance": "node"
        });
        let newer = from_core(core.clone());
        assert_eq!(newer["apiVersion"], "events.k8s.io/v1");
        assert_eq!(newer["regarding"], json!({"kind": "Pod"}));
        assert_eq!(newer["note"], "it started");
        assert_eq!(newer["deprecatedCount"], 3);
        assert_eq!(newer["reportingController"], "kubelet");
        assert_eq!(newer.get("message"), None);
        assert_eq!(to_core(newer), core);
    }

    #[test]
    fn an_event_lives_where_its_object_lives() {
        let told = |namespace: &str, about: &str| {
            let mut faults = Faults::default();
            let event = json!({
                "metadata": {"namespace": namespace}, "involvedObject": {"namespace": about}
            });
            check(&event, &mut faults);
            faults.told().len()
        };
        assert_eq!(told("a", "a"), 0);
        assert_eq!(told("default", ""), 0);
        assert_eq!(told("a", ""), 1);
        assert_eq!(told("a", "b"), 1);
    }
}
