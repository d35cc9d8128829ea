//! Printer columns, selectable fields, and the simple paths that both are made of.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::cause::{duplicate, invalid, required, too_many};
use super::super::definition::{PrinterColumn, Version};
use crate::status::Cause;

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];
/// Fields that a list of one kind can be narrowed by.
const SELECTABLE_MAX: usize = 8;

/// What is wrong with the columns of a version.
pub(super) fn check(version: &Version, base: &str) -> Vec<Cause> {
    let columns = version.additional_printer_columns.iter().enumerate();
    columns
        .flat_map(|(at, column)| check_column(column, &format!("{base}[{at}]")))
        .collect()
}

fn check_column(column: &PrinterColumn, base: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if column.name.is_empty() {
        causes.push(required(format!("{base}.name"), ""));
    }
    let types = format!("must be one of {}", TYPES.join(","));
    match column.r#type.as_str() {
        "" => causes.push(required(format!("{base}.type"), &types)),
        known if TYPES.contains(&known) => {}
        other => causes.push(invalid(format!("{base}.type"), other, &types)),
    }
    let format = column.format.as_str();
    if !format.is_empty() && !FORMATS.contains(&format) {
        let words = format!("must be one of {}", FORMATS.join(","));
        causes.push(invalid(format!("{base}.format"), format, &words));
    }
    match column.json_path.as_str() {
        "" => causes.push(required(format!("{base}.JSONPath"), "")),
        path => causes.extend(check_path(path, format!("{base}.JSONPath"), &[], "")),
    }
    causes
}

/// What is wrong with a simple path that must start with one of `prefixes`, if any are given.
pub(super) fn check_path(
    path: &str,
    field: String,
    prefixes: &[&str],
    place: &str,
) -> Option<Cause> {
    if !path.starts_with('.') {
        return Some(invalid(
            field,
            path,
            "must be a simple json path starting with .",
        ));
    }
    let placed = prefixes.is_empty() || prefixes.iter().any(|prefix| path.starts_with(prefix));
    (!placed).then(|| invalid(field, path, &format!("should be a json path under {place}")))
}

/// What is wrong with the selectable fields of a version.
pub(super) fn check_selectable(version: &Version, base: &str) -> Vec<Cause> {
    let fields = &version.selectable_fields;
    let Some(schema) = version.schema() else {
        let words = "may only be set when `version.schema.openAPIV3Schema` is not included";
        return Vec::from_iter((!fields.is_empty()).then(|| invalid(base, "", words)));
    };
    let (mut causes, mut seen) = (Vec::new(), BTreeSet::new());
    for (at, field) in fields.iter().enumerate() {
        let (here, path) = (format!("{base}[{at}].jsonPath"), field.json_path.as_str());
        if path.is_empty() {
            causes.push(required(here, ""));
            continue;
        }
        let found = match selected(path, schema) {
            Ok(found) => found,
            Err(why) => {
                causes.push(invalid(here, path, &format!("is an invalid path: {why}")));
                continue;
            }
        };
        if path == ".metadata" || path.starts_with(".metadata.") {
            causes.push(invalid(
                here.as_str(),
                path,
                "must not point to fields in metadata",
            ));
        }
        if !matches!(
            found["type"].as_str(),
            Some("string" | "boolean" | "integer")
        ) {
            let words = "must point to a field of type string, boolean or integer. Enum string \
                         fields and strings with formats are allowed.";
            causes.push(invalid(here.as_str(), path, words));
        }
        if !seen.insert(path) {
            causes.push(duplicate(here, path));
        }
    }
    if seen.len() > SELECTABLE_MAX {
        causes.push(too_many(base, seen.len(), SELECTABLE_MAX));
    }
    causes
}

/// The schema of the field at a path.
fn selected<'s>(path: &str, schema: &'s Value) -> Result<&'s Value, String> {
    if path.contains(['[', ']']) {
        return Err("array notation is not allowed".to_owned());
    }
    let rest = path
        .strip_prefix('.')
        .ok_or_else(|| format!("expected [ or . but got: {path}"))?;
    let mut here = schema;
    for name in rest.split('.') {
        here = match (&here["properties"], &here["additionalProperties"]) {
            _ if name.is_empty() => return Err("unexpected end of JSON path".to_owned()),
            (Value::Object(properties), _) => properties
                .get(name)
                .ok_or("does not refer to a valid field")?,
            (_, values @ Value::Object(_)) => values,
            _ => return Err("does not refer to a valid field".to_owned()),
        };
    }
    Ok(here)
}
