//! Custom kinds: everything that their schema says about a value.
//!
//! The order of the checks and the words are those of a real server, which tests of operators match
//! on. Where alternatives fail, the causes of the one that came closest are given.

mod format; // what a format demands of a string
mod unique; // lists that are sets or maps
mod words; // causes in the words of Kubernetes

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use regex_lite::Regex;
use serde_json::{Map, Value};

use super::path::Path;
use super::{Bounds, DEPTH_MAX, Schema, Shape, too_deep};
use crate::status::Cause;

pub(crate) use format::is_known as is_known_format;

/// Causes that are reported; an object with more faults has been told enough.
pub const CAUSES_MAX: usize = 100;

/// Everything that is wrong with an object of a custom kind; nothing if it is right.
pub fn validate(object: &Value, schema: &Schema) -> Vec<Cause> {
    if too_deep(object) {
        return vec![words::too_deep()];
    }
    let mut causes = check(object, schema, (&Path::ROOT, 0));
    unique::check(object, schema, (&Path::ROOT, 0), &mut causes);
    causes.truncate(CAUSES_MAX);
    causes
}

/// Where a walk is, and how deep.
type Place<'a> = (&'a Path<'a>, usize);

fn check(value: &Value, schema: &Schema, place: Place<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    if place.1 <= DEPTH_MAX {
        check_value(value, schema, place, &mut causes);
    }
    causes
}

fn check_value(value: &Value, schema: &Schema, place: Place<'_>, causes: &mut Vec<Cause>) {
    let path = place.0;
    check_type(value, schema, path, causes);
    if !value.is_null() {
        let none = &Bounds::default();
        let bounds = schema.bounds.as_deref().unwrap_or(none);
        check_logic(value, bounds, place, causes);
        match value {
            Value::String(text) => check_string(text, schema, bounds, path, causes),
            Value::Number(_) => check_number(value, schema, bounds, path, causes),
            Value::Array(items) => check_list(items, schema, bounds, place, causes),
            _ => {}
        }
    }
    let allowed = schema.allowed.iter().any(|allowed| same(allowed, value));
    if !schema.allowed.is_empty() && !allowed {
        causes.push(words::unsupported(path, value, &schema.allowed));
    }
    if let Value::Object(fields) = value {
        check_object(fields, schema, place, causes);
    }
}

/// The JSON type or types that a shape asks for.
fn type_name(schema: &Schema) -> Option<&'static str> {
    match schema.shape {
        Shape::Any | Shape::Quantity => None,
        Shape::Object { .. } | Shape::Map(_) => Some("object"),
        Shape::Array(_) => Some("array"),
        Shape::String => Some("string"),
        Shape::Integer => Some("integer"),
        Shape::Number => Some("number"),
        Shape::Boolean => Some("boolean"),
        Shape::IntOrString => Some("integer,string"),
    }
}

fn check_type(value: &Value, schema: &Schema, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let Some(wanted) = type_name(schema).filter(|_| !schema.untyped) else {
        return;
    };
    let found = match value {
        Value::Null if schema.nullable => return,
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(_) if is_whole(value) => "integer",
        Value::Number(_) => "number",
    };
    let whole_number = found == "integer" && wanted == "number";
    if !wanted.split(',').any(|wanted| wanted == found) && !whole_number {
        causes.push(words::wrong_type(path, wanted, found));
    }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn check_logic(value: &Value, bounds: &Bounds, place: Place<'_>, causes: &mut Vec<Cause>) {
    let (path, depth) = place;
    let attempt = |schema: &Schema| check(value, schema, (path, depth + 1));
    if !bounds.any_of.is_empty()
        && let Some(closest) = closest(bounds.any_of.iter().map(attempt))
    {
        causes.push(words::no_alternative(path));
        causes.extend(closest);
    }
    if !bounds.one_of.is_empty() {
        let results: Vec<Vec<Cause>> = bounds.one_of.iter().map(attempt).collect();
        let valid = results.iter().filter(|causes| causes.is_empty()).count();
        if valid != 1 {
            causes.push(words::not_exactly_one(path, valid));
            causes.extend(closest(results.into_iter()).unwrap_or_default());
        }
    }
    if !bounds.all_of.is_empty() {
        let results: Vec<Vec<Cause>> = bounds.all_of.iter().map(attempt).collect();
        let valid = results.iter().filter(|causes| causes.is_empty()).count();
        let all = results.len();
        causes.extend(results.into_iter().flatten());
        if valid != all {
            causes.push(words::not_all(path, valid));
        }
    }
    if let Some(not) = &bounds.not
        && attempt(not).is_empty()
    {
        causes.push(words::must_not(path));
    }
}

/// The fewest causes of several attempts; none if one of them succeeded.
fn closest(attempts: impl Iterator<Item = Vec<Cause>>) -> Option<Vec<Cause>> {
    let fewest = attempts.min_by_key(Vec::len);
    fewest.filter(|causes| !causes.is_empty())
}

fn check_string(
    text: &str,
    schema: &Schema,
    bounds: &Bounds,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    let length = text.chars().count() as u64;
    // Of a string's length and pattern only the first fault is told.
    if let Some(most) = bounds.length_max.filter(|most| length > *most) {
        causes.push(words::too_long(path, most));
    } else if let Some(least) = bounds.length_min.filter(|least| length < *least) {
        let detail = format!("should be at least {least} chars long");
        causes.push(words::invalid(path, &text.into(), &detail));
    } else if let Some(pattern) = &bounds.pattern
        && !matches(pattern, text)
    {
        let detail = format!("should match '{pattern}'");
        causes.push(words::invalid(path, &text.into(), &detail));
    }
    if !format::holds(&schema.format, text) {
        causes.push(words::wrong_format(path, &schema.format, text));
    }
}

fn check_number(
    value: &Value,
    schema: &Schema,
    bounds: &Bounds,
    path: &Path<'_>,
    causes: &mut Vec<Cause>,
) {
    let Some(number) = value.as_f64() else {
        return;
    };
    let range = match (&schema.shape, &*schema.format) {
        (Shape::Integer, "int32") => f64::from(i32::MIN)..=f64::from(i32::MAX),
        (Shape::Integer, _) => -9_223_372_036_854_775_808.0..=9_223_372_036_854_775_807.0,
        _ => f64::MIN..=f64::MAX,
    };
    let whole = !matches!(schema.shape, Shape::Integer) || is_whole(value);
    if !whole || !range.contains(&number) {
        causes.push(words::out_of_range(path, &schema.format));
    }
    if let Some(factor) = bounds.multiple_of
        && (factor <= 0.0 || (number / factor).fract() != 0.0)
    {
        let detail = format!("should be a multiple of {factor}");
        causes.push(words::invalid(path, value, &detail));
    }
    if let Some(least) = bounds.minimum {
        let exclusive = bounds.exclusive_minimum;
        if number < least || (exclusive && number == least) {
            let detail = match exclusive {
                true => format!("should be greater than {least}"),
                false => format!("should be greater than or equal to {least}"),
            };
            causes.push(words::invalid(path, value, &detail));
        }
    }
    if let Some(most) = bounds.maximum {
        let exclusive = bounds.exclusive_maximum;
        if number > most || (exclusive && number == most) {
            let detail = match exclusive {
                true => format!("should be less than {most}"),
                false => format!("should be less than or equal to {most}"),
            };
            causes.push(words::invalid(path, value, &detail));
        }
    }
}

fn check_list(
    items: &[Value],
    schema: &Schema,
    bounds: &Bounds,
    (path, depth): Place<'_>,
    causes: &mut Vec<Cause>,
) {
    if let Some(item_schema) = schema.items() {
        for (index, item) in items.iter().enumerate() {
            if causes.len() > CAUSES_MAX {
                return;
            }
            causes.extend(check(item, item_schema, (&path.index(index), depth + 1)));
        }
    }
    let count = items.len() as u64;
    if let Some(least) = bounds.items_min.filter(|least| count < *least) {
        let detail = format!("should have at least {least} items");
        causes.push(words::invalid(path, &count.into(), &detail));
    }
    if let Some(most) = bounds.items_max.filter(|most| count > *most) {
        causes.push(words::too_many(path, count, most));
    }
    if bounds.unique_items && unique::has_repeats(items) {
        causes.push(words::invalid(
            path,
            &"".into(),
            "shouldn't contain duplicates",
        ));
    }
}

fn check_object(
    fields: &Map<String, Value>,
    schema: &Schema,
    (path, depth): Place<'_>,
    causes: &mut Vec<Cause>,
) {
    let none = &Bounds::default();
    let bounds = schema.bounds.as_deref().unwrap_or(none);
    let count = fields.len() as u64;
    if let Some(least) = bounds.properties_min.filter(|least| count < *least) {
        let detail = format!("should have at least {least} properties");
        causes.push(words::invalid(path, &count.into(), &detail));
    }
    if let Some(most) = bounds.properties_max.filter(|most| count > *most) {
        causes.push(words::too_many(path, count, most));
    }
    for (name, value) in fields {
        if causes.len() > CAUSES_MAX {
            return;
        }
        if let Some(field) = schema.field(name) {
            causes.extend(check(value, field, (&path.field(name), depth + 1)));
        }
    }
    if let Shape::Object { required, .. } = &schema.shape {
        let missing = required
            .iter()
            .filter(|name| !fields.contains_key(&***name));
        causes.extend(missing.map(|name| words::required(&path.field(name))));
    }
    if schema.embedded_object {
        check_head(fields, path, causes);
    }
}

/// An object within an object says what it is.
fn check_head(fields: &Map<String, Value>, path: &Path<'_>, causes: &mut Vec<Cause>) {
    for name in ["apiVersion", "kind"] {
        let here = path.field(name);
        match fields.get(name) {
            None => causes.push(words::required(&here)),
            Some(Value::String(text)) if text.is_empty() => {
                causes.push(words::plainly_invalid(
                    &here,
                    &"".into(),
                    "must not be empty",
                ));
            }
            Some(Value::String(_)) => {}
            Some(other) => causes.push(words::plainly_invalid(&here, other, "must be a string")),
        }
    }
}

/// Equal as JSON Schema means it: 1 and 1.0 are the same.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (left, right) => left == right,
    }
}

/// Compiled patterns, so that a list of a thousand strings compiles its pattern once. A definition
/// can name any number of them, so it is emptied when it is full.
static PATTERNS: LazyLock<Mutex<HashMap<Box<str>, Arc<Regex>>>> = LazyLock::new(Mutex::default);

/// Compiled patterns that are kept.
const PATTERNS_MAX: usize = 128;

/// A pattern that does not compile matches nothing; structural schemas have none such.
fn matches(pattern: &str, text: &str) -> bool {
    if let Some(compiled) = PATTERNS.lock().get(pattern).cloned() {
        return compiled.is_match(text);
    }
    let Ok(compiled) = Regex::new(pattern) else {
        return false;
    };
    let compiled = Arc::new(compiled);
    let mut patterns = PATTERNS.lock();
    if patterns.len() >= PATTERNS_MAX {
        patterns.clear();
    }
    patterns.insert(pattern.into(), compiled.clone());
    drop(patterns);
    compiled.is_match(text)
}

#[cfg(test)]
mod tests;
