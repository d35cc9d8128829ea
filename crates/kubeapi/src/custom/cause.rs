//! What can be wrong with a field, in the words that Kubernetes has for it.

use std::fmt::Display;

use serde_json::Value;

use crate::status::Cause;

/// A field that must be there is not.
pub(super) fn required(field: impl Into<String>, detail: &str) -> Cause {
    Cause::new("FieldValueRequired", field, body("Required value", detail))
}

/// A field has a value that it cannot have.
pub(super) fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: &str) -> Cause {
    let words = format!("Invalid value: {}", value.into());
    Cause::new("FieldValueInvalid", field, body(&words, detail))
}

/// A field has none of the values that it can have.
pub(super) fn not_supported(field: impl Into<String>, value: &str, supported: &[&str]) -> Cause {
    let supported: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
    let detail = format!("supported values: {}", supported.join(", "));
    let words = format!("Unsupported value: {}", Value::from(value));
    Cause::new("FieldValueNotSupported", field, body(&words, &detail))
}

/// A field must not be there.
pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> Cause {
    Cause::new("FieldValueForbidden", field, body("Forbidden", detail))
}

/// A value stands twice where it may stand once.
pub(super) fn duplicate(field: impl Into<String>, value: &str) -> Cause {
    let words = format!("Duplicate value: {}", Value::from(value));
    Cause::new("FieldValueDuplicate", field, words)
}

/// A list has too many entries.
pub(super) fn too_many(field: impl Into<String>, found: usize, most: impl Display) -> Cause {
    let words = format!("Too many: {found}: must have at most {most} items");
    Cause::new("FieldValueTooMany", field, words)
}

fn body(words: &str, detail: &str) -> String {
    match detail {
        "" => words.to_owned(),
        detail => format!("{words}: {detail}"),
    }
}
