//! Causes in the words of Kubernetes.

use serde_json::Value;

use super::super::DEPTH_MAX;
use super::super::path::Path;
use crate::status::Cause;

/// `spec.a: Required value`
pub(super) fn required(path: &Path<'_>) -> Cause {
    Cause::new("FieldValueRequired", path.to_string(), "Required value")
}

/// The value's JSON type is not the schema's.
pub(super) fn wrong_type(path: &Path<'_>, wanted: &str, found: &str) -> Cause {
    let message =
        format!("Invalid value: \"{found}\": {path} in body must be of type {wanted}: \"{found}\"");
    Cause::new("FieldValueTypeInvalid", path.to_string(), message)
}

/// The string is not of its format.
pub(super) fn wrong_format(path: &Path<'_>, format: &str, text: &str) -> Cause {
    let text = Value::from(text);
    let message = format!("Invalid value: {text}: {path} in body must be of type {format}: {text}");
    Cause::new("FieldValueTypeInvalid", path.to_string(), message)
}

/// A bound that the value breaks.
pub(super) fn invalid(path: &Path<'_>, value: &Value, detail: &str) -> Cause {
    let message = format!("Invalid value: {value}: {path} in body {detail}");
    Cause::new("FieldValueInvalid", path.to_string(), message)
}

/// A fault that is not one of the schema's bounds.
pub(super) fn plainly_invalid(path: &Path<'_>, value: &Value, detail: &str) -> Cause {
    let message = format!("Invalid value: {value}: {detail}");
    Cause::new("FieldValueInvalid", path.to_string(), message)
}

/// Not one of the values that are allowed.
pub(super) fn unsupported(path: &Path<'_>, value: &Value, allowed: &[Value]) -> Cause {
    let quoted: Vec<String> = allowed
        .iter()
        .map(|value| match value {
            Value::String(_) => value.to_string(),
            other => Value::from(other.to_string()).to_string(),
        })
        .collect();
    let message = format!(
        "Unsupported value: {value}: supported values: {}",
        quoted.join(", ")
    );
    Cause::new("FieldValueNotSupported", path.to_string(), message)
}

/// More characters than allowed. The value is not repeated.
pub(super) fn too_long(path: &Path<'_>, most: u64) -> Cause {
    let unit = if most == 1 { "byte" } else { "bytes" };
    let message = format!("Too long: may not be more than {most} {unit}");
    Cause::new("FieldValueTooLong", path.to_string(), message)
}

/// More items or fields than allowed.
pub(super) fn too_many(path: &Path<'_>, count: u64, most: u64) -> Cause {
    let unit = if most == 1 { "item" } else { "items" };
    let message = format!("Too many: {count}: must have at most {most} {unit}");
    Cause::new("FieldValueTooMany", path.to_string(), message)
}

/// An item stands twice in a list that is a set or a map.
pub(super) fn duplicate(path: &Path<'_>, value: &Value) -> Cause {
    let message = format!("Duplicate value: {value}");
    Cause::new("FieldValueDuplicate", path.to_string(), message)
}

/// The number is larger than its format holds.
pub(super) fn out_of_range(path: &Path<'_>, format: &str) -> Cause {
    let format = match format {
        "" => "(default format)".to_owned(),
        format => format!("with format {format}"),
    };
    whole(format!(
        "Checked value must be of type integer {format} in {path}"
    ))
}

/// No alternative of anyOf holds.
pub(super) fn no_alternative(path: &Path<'_>) -> Cause {
    whole(format!(
        "\"{path}\" must validate at least one schema (anyOf)"
    ))
}

/// None, or more than one, of oneOf holds.
pub(super) fn not_exactly_one(path: &Path<'_>, valid: usize) -> Cause {
    let found = match valid {
        0 => "Found none valid".to_owned(),
        valid => format!("Found {valid} valid alternatives"),
    };
    whole(format!(
        "\"{path}\" must validate one and only one schema (oneOf). {found}"
    ))
}

/// Some of allOf does not hold.
pub(super) fn not_all(path: &Path<'_>, valid: usize) -> Cause {
    let none = if valid == 0 { ". None validated" } else { "" };
    whole(format!(
        "\"{path}\" must validate all the schemas (allOf){none}"
    ))
}

/// What must not hold does.
pub(super) fn must_not(path: &Path<'_>) -> Cause {
    whole(format!("\"{path}\" must not validate the schema (not)"))
}

/// The object nests too deep to be looked at.
pub(super) fn too_deep() -> Cause {
    whole(format!("nested deeper than {DEPTH_MAX} levels"))
}

/// A real server loses the field of these causes and writes it so; its users know the sight.
fn whole(detail: String) -> Cause {
    Cause::new(
        "FieldValueInvalid",
        "<nil>",
        format!("Invalid value: \"\": {detail}"),
    )
}
