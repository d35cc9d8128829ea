//! The replica count of an object, read and written on its own through the subresource `scale`.

use serde_json::{Value, json};

use super::{Target, field, meta};
use crate::Status;

/// The Scale that tells of `object`.
pub fn of(object: &Value) -> Value {
    let metadata = field::child(object, "metadata");
    let mut shown = json!({});
    for key in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        field::copy(&mut shown, metadata, key);
    }
    let mut status = json!({
        "replicas": field::at(object, &["status", "replicas"]).as_i64().unwrap_or_default()
    });
    let selector = selector_text(field::at(object, &["spec", "selector"]));
    if !selector.is_empty() {
        field::set(&mut status, "selector", selector);
    }
    let replicas = field::at(object, &["spec", "replicas"])
        .as_i64()
        .unwrap_or_default();
    let mut spec = json!({});
    if replicas != 0 {
        field::set(&mut spec, "replicas", replicas);
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec,
        "status": status
    })
}

/// `object` with the replica count that `scale` asks for, ready to be put in the object's place.
pub fn applied(target: &Target, object: &Value, scale: &Value) -> Result<Value, Status> {
    let name = meta::name(scale);
    if name != target.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    let replicas = field::at(scale, &["spec", "replicas"]);
    let count = match replicas {
        Value::Null => 0,
        number => number.as_i64().unwrap_or(-1),
    };
    if !(0..=i32::MAX.into()).contains(&count) {
        let mut faults = super::fault::Faults::default();
        let path = super::fault::Path::new("spec").child("replicas");
        faults.invalid(
            &path,
            replicas.clone(),
            "must be greater than or equal to 0",
        );
        return Err(Status::invalid(
            "autoscaling",
            "Scale",
            name,
            faults.causes(),
        ));
    }
    let mut scaled = object.clone();
    field::set(field::object_mut(&mut scaled, "spec"), "replicas", count);
    let metadata = field::object_mut(&mut scaled, "metadata");
    let asked = field::child(scale, "metadata");
    for key in ["uid", "resourceVersion"] {
        if !field::is_empty(field::child(asked, key)) {
            field::copy(metadata, asked, key);
        }
    }
    Ok(scaled)
}

/// A selector as one line of text.
fn selector_text(selector: &Value) -> String {
    let labels = match selector.get("matchLabels") {
        Some(labels) => labels,
        None if selector.get("matchExpressions").is_some() => &Value::Null,
        None => selector,
    };
    let pairs = labels.as_object().into_iter().flatten();
    let mut parts: Vec<String> = pairs
        .filter_map(|(key, value)| value.as_str().map(|value| format!("{key}={value}")))
        .collect();
    for expression in field::list(selector, "matchExpressions") {
        let key = field::text(expression, "key");
        let values = field::texts(expression, "values").join(",");
        match field::text(expression, "operator") {
            "In" => parts.push(format!("{key} in ({values})")),
            "NotIn" => parts.push(format!("{key} notin ({values})")),
            "Exists" => parts.push(key.to_owned()),
            "DoesNotExist" => parts.push(format!("!{key}")),
            _ => {}
        }
    }
    parts.sort();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::testing;

    fn deployment() -> Value {
        json!({
            "kind": "Deployment", "metadata": {"name": "web", "namespace": "n", "uid": "u"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"b": "2", "a": "1"}}},
            "status": {"replicas": 2}
        })
    }

    #[test]
    fn a_scale_tells_what_is_wanted_and_what_is_there() {
        let scale = of(&deployment());
        assert_eq!(scale["spec"], json!({"replicas": 3}));
        assert_eq!(
            scale["status"],
            json!({"replicas": 2, "selector": "a=1,b=2"})
        );
    }

    #[test]
    fn writing_a_scale_changes_the_count_alone() {
        let kind = testing::kind("apps/v1", "Deployment", "deployments");
        let target = Target {
            kind: &kind,
            namespace: "n",
            name: "web",
        };
        let mut scale = of(&deployment());
        scale["spec"]["replicas"] = json!(5);
        let mut expected = deployment();
        expected["spec"]["replicas"] = json!(5);
        assert_eq!(applied(&target, &deployment(), &scale).unwrap(), expected);
        scale["spec"]["replicas"] = json!(-1);
        assert_eq!(
            applied(&target, &deployment(), &scale).unwrap_err().code,
            422
        );
        scale["metadata"]["name"] = json!("other");
        assert_eq!(
            applied(&target, &deployment(), &scale).unwrap_err().code,
            400
        );
    }
}
