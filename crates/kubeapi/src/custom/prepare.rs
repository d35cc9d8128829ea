//! Defaults of a definition, and what a writer cannot set: its status, on one side, and all else,
//! on the other.

use serde_json::{Map, Value, json};

/// Fills in defaults and starts the status afresh.
pub(super) fn for_create(object: &mut Value) {
    fill(object);
    if let Some(fields) = object.as_object_mut() {
        let unnamed = json!({"plural": "", "kind": ""});
        let status = json!({"conditions": null, "acceptedNames": unnamed, "storedVersions": null});
        fields.insert("status".to_owned(), status);
    }
    record_storage_version(object);
}

/// Fills in defaults and keeps the status of the old definition, with the version that objects are
/// stored in from now on.
pub(super) fn for_update(object: &mut Value, old: &Value) {
    fill(object);
    if let Some(fields) = object.as_object_mut() {
        let status = old.get("status").filter(|status| status.is_object());
        fields.insert(
            "status".to_owned(),
            status.cloned().unwrap_or_else(|| json!({})),
        );
    }
    record_storage_version(object);
}

/// Takes the status alone.
pub(super) fn for_status_update(object: &mut Value, old: &Value) {
    if let (Some(fields), Some(spec)) = (object.as_object_mut(), old.get("spec")) {
        fields.insert("spec".to_owned(), spec.clone());
    }
}

/// The names that follow from the kind, and conversion by name only.
fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = names
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if !kind.is_empty() {
        fill_name(names, "singular", kind.to_lowercase());
        fill_name(names, "listKind", format!("{kind}List"));
    }
}

fn fill_name(names: &mut Map<String, Value>, field: &str, name: String) {
    let missing = names
        .get(field)
        .is_none_or(|found| found.is_null() || found == "");
    if missing {
        names.insert(field.to_owned(), name.into());
    }
}

/// Objects may from now on be found in the version that is marked for storage.
fn record_storage_version(object: &mut Value) {
    let versions = object.pointer("/spec/versions").and_then(Value::as_array);
    let mut versions = versions.into_iter().flatten();
    let storage = versions.find(|version| version["storage"] == true);
    let Some(name) = storage.and_then(|version| version.get("name")).cloned() else {
        return;
    };
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    let stored = status.entry("storedVersions").or_insert(Value::Null);
    match stored {
        Value::Array(stored) if stored.contains(&name) => {}
        Value::Array(stored) => stored.push(name),
        other => *other = json!([name]),
    }
}
