//! A JSON object -> the same object as a typed server writes it.
//!
//! Kubernetes reads a built-in object into its own types and writes those. What it answers with
//! therefore has fields that nobody sent (a struct that is never absent, a number that is always
//! written) and lacks others (an empty list that is left out when it is empty). Clients see the
//! difference, and so does whoever asks whether an update changes anything.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::facts::{Empty, FACTS, Field, Form, Message, Shape};
use crate::schema::DEPTH_MAX;
use crate::write::quantity;

/// Writes `object` as the type of this kind is written. A kind that has no type stays as it is.
pub(crate) fn settle((api_version, kind): (&str, &str), object: &mut Value) {
    let Some(message) = FACTS.message_of(api_version, kind) else {
        return;
    };
    let Value::Object(fields) = object else {
        return;
    };
    let mut sent = std::mem::take(fields);
    let mut written = Map::with_capacity(sent.len());
    for name in ["apiVersion", "kind"] {
        written.extend(sent.swap_remove(name).map(|value| (name.to_owned(), value)));
    }
    move_fields(message, &mut sent, &mut written, 0);
    // What the type does not have was judged before; it is not lost here.
    written.extend(sent);
    *fields = written;
}

/// Moves the fields of a message from what was sent to what is written, in its order.
fn move_fields(
    message: &Message,
    sent: &mut Map<String, Value>,
    written: &mut Map<String, Value>,
    depth: usize,
) {
    for field in &message.fields {
        match (field.shape, field.form) {
            (Shape::Inline, Form::Message(place)) => {
                move_fields(FACTS.message(place), sent, written, depth);
            }
            _ => {
                let sent = sent.swap_remove_entry(field.name);
                let (name, value) =
                    sent.map_or((None, Value::Null), |(name, value)| (Some(name), value));
                if let Some(value) = settled(field, value, depth) {
                    let name = name.unwrap_or_else(|| field.name.to_owned());
                    written.insert(name, value);
                }
            }
        }
    }
}

/// A field's value as it is written; nothing where it is left out.
fn settled(field: &Field, value: Value, depth: usize) -> Option<Value> {
    let value = match (field.shape, value) {
        // Zero is a value here, and is written whatever the field does with nothing.
        (Shape::Optional, value) if !value.is_null() => {
            return Some(single(field.form, value, depth));
        }
        (Shape::Optional, _) => Value::Null,
        // Lists and maps are stored in a way that does not tell empty from absent.
        (Shape::List, Value::Array(items)) if !items.is_empty() => {
            let items = items.into_iter();
            Value::Array(items.map(|item| single(field.form, item, depth)).collect())
        }
        (Shape::Map, Value::Object(entries)) if !entries.is_empty() => {
            let entries = entries.into_iter();
            let entries = entries.map(|(key, value)| (key, single(field.form, value, depth)));
            Value::Object(entries.collect())
        }
        (Shape::List, Value::Array(_)) | (Shape::Map, Value::Object(_)) => Value::Null,
        (Shape::List | Shape::Map, other) => other,
        (Shape::Value | Shape::Inline, value) => single(field.form, value, depth),
    };
    let left_out = field.empty == Empty::LeftOut && is_nothing(&value);
    (!left_out).then_some(value)
}

/// One value. Null is the zero of its type. What is of another type than it should be was refused
/// before, or is none of our business; it stays.
fn single(form: Form, value: Value, depth: usize) -> Value {
    match (form, value) {
        (Form::Message(place), Value::Object(mut sent)) if depth < DEPTH_MAX => {
            let mut written = Map::with_capacity(sent.len());
            move_fields(FACTS.message(place), &mut sent, &mut written, depth + 1);
            written.extend(sent);
            Value::Object(written)
        }
        (Form::Message(_), Value::Null) if depth < DEPTH_MAX => {
            single(form, Value::Object(Map::new()), depth)
        }
        (Form::SchemaOrFlag | Form::SchemaOrList | Form::SchemaOrTexts, value) => {
            schema_or(value, depth)
        }
        (Form::Quantity, value) => {
            let value = if value.is_null() { "0".into() } else { value };
            quantity::canonical(&value).map_or(value, Value::String)
        }
        (Form::Time, Value::String(text)) => time(text, "%Y-%m-%dT%H:%M:%SZ"),
        (Form::MicroTime, Value::String(text)) => time(text, "%Y-%m-%dT%H:%M:%S%.6fZ"),
        (Form::Text, Value::Null) => "".into(),
        (Form::Flag, Value::Null) => false.into(),
        (Form::Int32 | Form::Int64 | Form::Double | Form::IntOrString, Value::Null) => 0.into(),
        (_, value) => value,
    }
}

/// A schema, or a list of them, or a flag or words, which stay.
fn schema_or(value: Value, depth: usize) -> Value {
    match value {
        Value::Object(_) => single(Form::Message(FACTS.schema), value, depth),
        Value::Array(items) => {
            let items = items.into_iter();
            Value::Array(items.map(|item| schema_or(item, depth + 1)).collect())
        }
        other => other,
    }
}

/// A time in UTC, as precise as its type is.
fn time(text: String, format: &str) -> Value {
    match text.parse::<Timestamp>() {
        Ok(time) => Value::String(time.strftime(format).to_string()),
        Err(_) => Value::String(text),
    }
}

/// Whether a field that may be left out is. An empty struct is something.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settled(kind: (&str, &str), mut object: Value) -> Value {
        settle(kind, &mut object);
        object
    }

    #[test]
    fn structs_are_always_there_and_numbers_where_the_type_writes_them() {
        let set = settled(("apps/v1", "DaemonSet"), json!({"metadata": {"name": "a"}}));
        assert_eq!(set["status"]["numberReady"], 0);
        assert_eq!(set["spec"]["template"]["metadata"], json!({}));
        assert_eq!(
            set["spec"]["template"]["spec"],
            json!({"containers": Value::Null})
        );
        let role = settled(("rbac.authorization.k8s.io/v1", "Role"), json!({}));
        assert_eq!(role, json!({"metadata": {}, "rules": null}));
    }

    #[test]
    fn what_is_empty_is_left_out_but_zero_behind_a_pointer_is_a_value() {
        let sent = json!({"metadata": {"labels": {}}, "spec": {
            "clusterIP": "", "ports": [{"port": 80, "nodePort": 0}], "externalIPs": [],
            "allocateLoadBalancerNodePorts": false, "publishNotReadyAddresses": false}});
        let wanted = json!({"metadata": {}, "spec": {
            "ports": [{"port": 80, "targetPort": 0}], "allocateLoadBalancerNodePorts": false},
            "status": {"loadBalancer": {}}});
        assert_eq!(settled(("v1", "Service"), sent), wanted);
    }

    #[test]
    fn times_and_amounts_have_one_spelling() {
        let sent = json!({"spec": {
            "acquireTime": "2024-01-02T03:04:05+01:00", "renewTime": "2024-01-02T03:04:05.6789Z"}});
        let spec = &settled(("coordination.k8s.io/v1", "Lease"), sent)["spec"];
        assert_eq!(spec["acquireTime"], "2024-01-02T02:04:05.000000Z");
        assert_eq!(spec["renewTime"], "2024-01-02T03:04:05.678900Z");
        let sent = json!({"spec": {"hard": {"cpu": "1000m"}}});
        let quota = settled(("v1", "ResourceQuota"), sent);
        assert_eq!(quota["spec"]["hard"]["cpu"], "1");
    }

    #[test]
    fn a_free_form_stays_as_it_is() {
        let sent = json!({"metadata": {}, "data": {"a": null, "b": [null, ""]}, "revision": 1});
        assert_eq!(
            settled(("apps/v1", "ControllerRevision"), sent.clone()),
            sent
        );
        let unknown = json!({"a": null});
        assert_eq!(
            settled(("example.com/v1", "Widget"), unknown.clone()),
            unknown
        );
    }

    #[test]
    fn writing_twice_changes_nothing_more() {
        let sent = json!({"spec": {"containers": [{"name": "c", "env": [{"name": "A"}]}]}});
        let once = settled(("v1", "Pod"), sent);
        assert_eq!(settled(("v1", "Pod"), once.clone()), once);
    }
}
