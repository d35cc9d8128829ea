//! Label selectors that stand in a spec: whether they are right, and whether they match.

use serde_json::Value;

use crate::write::fault::{Faults, Path};
use crate::write::{field, names};

/// Checks a selector of `matchLabels` and `matchExpressions`.
pub(super) fn check(selector: &Value, path: &Path, faults: &mut Faults) {
    let labels = field::child(selector, "matchLabels");
    names::check_labels(labels, &path.child("matchLabels"), faults);
    for (index, expression) in field::list(selector, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        let values = field::texts(expression, "values");
        match field::text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                faults.required(&path.child("values"), why);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                faults.forbidden(&path.child("values"), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                faults.invalid(
                    &path.child("operator"),
                    other,
                    "not a valid selector operator",
                );
            }
        }
        let key = field::text(expression, "key");
        faults.invalid_each(&path.child("key"), key, names::label_key_faults(key));
        for (at, value) in values.into_iter().enumerate() {
            let wrong = names::label_value_faults(value);
            faults.invalid_each(&path.child("values").index(at), value, wrong);
        }
    }
}

/// Whether a selector says nothing, and so matches everything.
pub(super) fn is_empty(selector: &Value) -> bool {
    field::is_empty(field::child(selector, "matchLabels"))
        && field::list(selector, "matchExpressions").is_empty()
}

/// Whether a selector matches `labels`.
pub(in crate::write) fn matches(selector: &Value, labels: &Value) -> bool {
    let equal = |(key, value): (&String, &Value)| {
        value.as_str().is_some() && labels.get(key).and_then(Value::as_str) == value.as_str()
    };
    let holds = |expression: &Value| {
        let value = labels
            .get(field::text(expression, "key"))
            .and_then(Value::as_str);
        let listed = value.is_some_and(|value| field::texts(expression, "values").contains(&value));
        match field::text(expression, "operator") {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    field::entries(selector, "matchLabels").all(equal)
        && field::list(selector, "matchExpressions").iter().all(holds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_part_of_a_selector_must_hold() {
        let labels = json!({"app": "web", "tier": "front"});
        let expression = |operator: &str, values: &[&str]| {
            let values = json!(values);
            json!({"key": "tier", "operator": operator, "values": values})
        };
        let selector =
            |parts: Value| json!({"matchLabels": {"app": "web"}, "matchExpressions": parts});
        assert!(matches(&selector(json!([])), &labels));
        assert!(matches(
            &selector(json!([expression("In", &["front"])])),
            &labels
        ));
        assert!(!matches(
            &selector(json!([expression("NotIn", &["front"])])),
            &labels
        ));
        assert!(matches(
            &selector(json!([expression("Exists", &[])])),
            &labels
        ));
        assert!(!matches(
            &selector(json!([expression("DoesNotExist", &[])])),
            &labels
        ));
        assert!(!matches(&json!({"matchLabels": {"app": "db"}}), &labels));
    }

    #[test]
    fn wrong_operators_and_values_are_named() {
        let wrong = json!({"matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["b"]},
            {"key": "a", "operator": "Like", "values": ["b"]},
        ]});
        let mut faults = Faults::default();
        check(&wrong, &Path::new("selector"), &mut faults);
        assert_eq!(
            faults.told(),
            [
                "selector.matchExpressions[0].values: Required value: must be specified when \
                 `operator` is 'In' or 'NotIn'",
                "selector.matchExpressions[1].values: Forbidden: may not be specified when \
                 `operator` is 'Exists' or 'DoesNotExist'",
                "selector.matchExpressions[2].operator: Invalid value: \"Like\": not a valid \
                 selector operator",
            ]
        );
    }
}
