//! Labels and label selectors as text.

use serde_json::Value;

/// `a=1,b=2` by key, `<none>` where there is none.
pub fn format_labels(labels: &Value) -> String {
    match joined_labels(labels) {
        text if text.is_empty() => "<none>".to_owned(),
        text => text,
    }
}

/// `a=1,b=2` by key, empty where there is none.
pub fn joined_labels(labels: &Value) -> String {
    let mut pairs: Vec<(&str, &str)> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(",")
}

/// A LabelSelector in an object as a cell: `<none>` where it selects by nothing, `<error>` where it
/// is none.
pub fn format_selector(selector: &Value) -> String {
    match selector_text(selector) {
        Ok(text) if text.is_empty() => "<none>".to_owned(),
        Ok(text) => text,
        Err(NoSelector(_)) => "<error>".to_owned(),
    }
}

/// A LabelSelector that cannot be one, and why.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct NoSelector(String);

/// A LabelSelector in the form that a label query takes: `app=web,tier in (a,b),!old`.
///
/// A missing selector selects nothing and an empty one everything; both are the empty text.
pub fn selector_text(selector: &Value) -> Result<String, NoSelector> {
    let mut terms: Vec<(&str, String)> = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| {
            (
                key.as_str(),
                format!("{key}={}", value.as_str().unwrap_or_default()),
            )
        })
        .collect();
    for expression in selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
    {
        terms.push((
            expression["key"].as_str().unwrap_or_default(),
            term(expression)?,
        ));
    }
    terms.sort_by(|one, other| one.0.cmp(other.0));
    let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
    Ok(terms.join(","))
}

fn term(expression: &Value) -> Result<String, NoSelector> {
    let key = expression["key"].as_str().unwrap_or_default();
    let operator = expression["operator"].as_str().unwrap_or_default();
    let mut values: Vec<&str> = expression["values"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    values.sort_unstable();
    match (operator, values.is_empty()) {
        ("In", false) => Ok(format!("{key} in ({})", values.join(","))),
        ("NotIn", false) => Ok(format!("{key} notin ({})", values.join(","))),
        ("Exists", true) => Ok(key.to_owned()),
        ("DoesNotExist", true) => Ok(format!("!{key}")),
        ("In" | "NotIn", true) => Err(NoSelector(format!(
            "{operator} of {key:?} needs at least one value"
        ))),
        ("Exists" | "DoesNotExist", false) => {
            Err(NoSelector(format!("{operator} of {key:?} takes no values")))
        }
        _ => Err(NoSelector(format!(
            "{operator:?} is not a valid label selector operator"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_listed_by_key() {
        assert_eq!(format_labels(&json!({"b": "2", "a": "1"})), "a=1,b=2");
        assert_eq!(format_labels(&json!({})), "<none>");
        assert_eq!(format_labels(&Value::Null), "<none>");
    }

    #[test]
    fn a_selector_is_written_as_a_query() {
        let selector = json!({
            "matchLabels": {"tier": "front", "app": "web"},
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["b", "a"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "env", "operator": "NotIn", "values": ["test"]},
                {"key": "keep", "operator": "Exists"},
            ],
        });
        assert_eq!(
            format_selector(&selector),
            "app=web,env notin (test),keep,!old,tier=front,zone in (a,b)"
        );
    }

    #[test]
    fn a_selector_that_cannot_be_one_is_an_error() {
        for (operator, values) in [
            ("In", json!([])),
            ("Exists", json!(["a"])),
            ("Like", json!(["a"])),
        ] {
            let expression = json!({"key": "a", "operator": operator, "values": values});
            let selector = json!({"matchExpressions": [expression]});
            assert_eq!(format_selector(&selector), "<error>", "{operator}");
        }
        assert_eq!(format_selector(&Value::Null), "<none>");
    }
}
