//! What a write makes of an object's status, and what of that is reported. Without I/O.

use kubeapi::Status;
use kubeapi::catalog::Kind;
use kubeapi::write::patch::{self, Patch};
use serde_json::{Map, Value, json};

/// A write of a status.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// A difference.
    Patch(Patch),
    /// The whole object, of which the status counts.
    Put(Value),
}

/// The object after a write: its status, labels and annotations may be others, and nothing else.
/// As on an API server, a uid or a version that is named must be that of the object.
pub(super) fn changed(kind: &Kind, shown: &Value, change: &Change) -> Result<Value, Status> {
    let schema = kind.schema.as_ref().map(|schema| schema.schema());
    let wanted = match change {
        Change::Patch(patch) => patch.applied_to_any(shown.clone(), schema)?,
        Change::Put(object) => object.clone(),
    };
    for part in ["name", "uid", "resourceVersion"] {
        let (named, there) = (
            text(&wanted["metadata"], part),
            text(&shown["metadata"], part),
        );
        if named.is_empty() || named == there {
            continue;
        }
        let name = text(&shown["metadata"], "name");
        let why = format!("{part} is {there}, and {named} was given");
        return Err(match part {
            "name" => Status::bad_request(why),
            _ => Status::conflict(&kind.group, &kind.plural, name, &why),
        });
    }
    let mut object = shown.clone();
    for key in ["labels", "annotations"] {
        put(&mut object["metadata"], key, &wanted["metadata"][key]);
    }
    put(&mut object, "status", &wanted["status"]);
    Ok(object)
}

/// What is reported: the difference that a write made, on top of what waits already. It names what
/// was changed here and nothing else, so conditions and annotations of others stay as they are.
/// Nothing, if nothing changed.
pub(super) fn folded(
    kind: &Kind,
    waiting: Option<&Value>,
    (before, after): (&Value, &Value),
) -> Option<Value> {
    let news = patch::difference(kind, &parts(before), &parts(after))?;
    Some(match waiting {
        Some(waiting) => patch::composed(kind, waiting, &news),
        None => news,
    })
}

/// A stored object with what was written here.
pub(super) fn shown(kind: &Kind, stored: Value, waiting: &Value) -> Result<Value, Status> {
    let schema = kind.schema.as_ref().map(|schema| schema.schema());
    Patch::Strategic(waiting.clone()).applied_to_any(stored, schema)
}

/// What of an object may change.
fn parts(object: &Value) -> Value {
    let mut metadata = Map::new();
    for key in ["labels", "annotations"] {
        if let Some(value) = object["metadata"].get(key) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    json!({"metadata": metadata, "status": object["status"]})
}

fn put(object: &mut Value, key: &str, value: &Value) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    match value {
        Value::Null => {
            object.shift_remove(key);
        }
        value => {
            object.insert(key.to_owned(), value.clone());
        }
    }
}

pub(super) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kubeapi::catalog::Catalog;

    use super::*;

    fn kind() -> Arc<Kind> {
        Catalog::new().find("", "v1", "nodes").unwrap()
    }

    fn node() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "n", "uid": "u", "resourceVersion": "7", "labels": {"a": "1"}},
            "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {"conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "NetworkUnavailable", "status": "False"}
            ]}
        })
    }

    fn strategic(patch: &Value) -> Change {
        let media = "application/strategic-merge-patch+json";
        let body = patch.to_string();
        Change::Patch(Patch::parse(&kind(), media, body.as_bytes()).unwrap())
    }

    fn written(change: &Change) -> Value {
        changed(&kind(), &node(), change).unwrap()
    }

    #[test]
    fn a_status_changes_and_a_spec_does_not() {
        let patch = json!({"status": {"phase": "Running"}, "spec": {"podCIDR": "x"}});
        let object = written(&strategic(&patch));
        assert_eq!(object["status"]["phase"], "Running");
        assert_eq!(object["spec"], node()["spec"]);
        let mut whole = node();
        whole["status"] = json!({"phase": "Pending"});
        whole["spec"] = json!({});
        let object = written(&Change::Put(whole));
        assert_eq!(object["status"], json!({"phase": "Pending"}));
        assert_eq!(object["spec"], node()["spec"]);
    }

    /// A cluster of a later release has fields that are not known here.
    #[test]
    fn what_is_newer_than_we_are_is_written_and_shown_all_the_same() {
        let mut stored = node();
        stored["status"]["brandNew"] = json!({"old": 1, "list": [1, 2]});
        let patch = json!({"status": {"brandNew": {"new": 2, "list": [3]}}});
        let object = changed(&kind(), &stored, &strategic(&patch)).unwrap();
        let expected = json!({"old": 1, "new": 2, "list": [3]});
        assert_eq!(object["status"]["brandNew"], expected);
        let reported = folded(&kind(), None, (&stored, &object)).unwrap();
        let seen = shown(&kind(), stored, &reported).unwrap();
        assert_eq!(seen["status"]["brandNew"], expected);
    }

    #[test]
    fn another_uid_or_version_is_a_conflict() {
        for metadata in [json!({"uid": "v"}), json!({"resourceVersion": "6"})] {
            let change = strategic(&json!({"metadata": metadata}));
            let refused = changed(&kind(), &node(), &change).unwrap_err();
            assert_eq!(refused.code, 409, "{metadata}");
        }
        let same = json!({"metadata": {"uid": "u", "resourceVersion": "7"}});
        assert_eq!(written(&strategic(&same)), node());
    }

    #[test]
    fn what_is_reported_names_what_was_changed_here_alone() {
        let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        let object = written(&strategic(&patch));
        let reported = folded(&kind(), None, (&node(), &object));
        assert_eq!(reported, Some(patch));
        assert_eq!(folded(&kind(), None, (&node(), &node())), None);
    }

    #[test]
    fn what_was_changed_and_changed_back_is_reported_for_the_first_may_have_arrived() {
        let ready =
            |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        let once = written(&strategic(&ready("False")));
        let first = folded(&kind(), None, (&node(), &once)).unwrap();
        let back = changed(&kind(), &once, &strategic(&ready("True"))).unwrap();
        let both = folded(&kind(), Some(&first), (&once, &back)).unwrap();
        assert_eq!(both, ready("True"));
        assert_eq!(
            shown(&kind(), once, &both).unwrap()["status"],
            node()["status"]
        );
    }
}
