//! Events: one object, two APIs. They are stored as the core group's `events`; `events.k8s.io` is a
//! view of the same.

use serde_json::Value;

use crate::write::fault::{Faults, Path};
use crate::write::{field, meta};

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
    let key = match field::text(event, "apiVersion") {
        "events.k8s.io/v1" => "regarding",
        _ => "involvedObject",
    };
    let about = field::text(field::child(event, key), "namespace");
    let inside = meta::namespace(event);
    let path = Path::new(key).child("namespace");
    match about {
        // An event about something without a namespace lives in one that always exists.
        "" if matches!(inside, "default" | "kube-system") => {}
        "" => faults.invalid(&path, about, "does not match event.namespace"),
        about if about == inside => {}
        about => faults.invalid(&path, about, "does not match event.namespace"),
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
