//! Built-in kinds: values of the wrong JSON type, and fields that must be there.
//!
//! A real server decodes into Go structs, and its refusals name them; clients and people know those
//! words, so they are ours too. Where Go has a type of its own for a string (`v1.PullPolicy`) we
//! say `string`: OpenAPI does not tell.

mod text; // quantities, times, base64

use std::sync::LazyLock;

use serde_json::{Map, Number, Value};

use super::path::Path;
use super::{DEPTH_MAX, Native, Schema, SchemaRef, Shape, too_deep};
use crate::Status;
use crate::status::Cause;

pub(crate) use text::is_rfc3339;

/// Refuses (400) an object that cannot be what it says it is. The kind and version are its own.
pub fn check(object: &Value, schema: &SchemaRef, kind: (&str, &str)) -> Result<(), Status> {
    let fault = if too_deep(object) {
        Err(format!("nested deeper than {DEPTH_MAX} levels"))
    } else {
        let place = Place {
            owner: "",
            path: String::new(),
        };
        decode(object, schema, &place, 0)
    };
    fault.map_err(|fault| {
        let (kind, version) = kind;
        Status::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: {fault}"
        ))
    })
}

/// The fields that an object of a built-in kind must have and has not (422). Its status is not
/// looked at: controllers write it bit by bit.
pub fn missing(object: &Value, schema: &SchemaRef) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Shape::Object { properties, .. } = &schema.schema().shape else {
        return causes;
    };
    if let Some(native) = schema.schema().native.as_deref() {
        require(object, native, &Path::ROOT, &mut causes);
    }
    for (name, property) in properties {
        if &**name != "status" {
            let here = Path::ROOT.field(name);
            let value = present(object, schema.schema(), name);
            walk_missing(value, property.schema(), (&here, 1), &mut causes);
        }
    }
    causes
}

/// Where Go would be: in a field of a struct, at a path that has no indices.
struct Place<'a> {
    owner: &'a str,
    path: String,
}

fn decode(
    value: &Value,
    reference: &SchemaRef,
    place: &Place<'_>,
    depth: usize,
) -> Result<(), String> {
    let schema = reference.schema();
    if value.is_null() || depth > DEPTH_MAX {
        return Ok(());
    }
    match (&schema.shape, value) {
        (Shape::Any, _) | (Shape::Boolean, Value::Bool(_)) => Ok(()),
        (Shape::String, Value::String(text)) if go_name(reference) == "MicroTime" => {
            text::micro_time(text)
        }
        (Shape::String, Value::String(text)) => text::check(text, &schema.format),
        (Shape::String, other) if &*schema.format == "date-time" => {
            let found = found(other);
            Err(format!(
                "json: cannot unmarshal {found} into Go value of type string"
            ))
        }
        (Shape::Integer, Value::Number(number)) if fits(number, &schema.format) => Ok(()),
        (Shape::Number, Value::Number(_)) => Ok(()),
        (Shape::IntOrString, Value::String(_)) => Ok(()),
        (Shape::IntOrString, Value::Number(number)) if fits(number, "int32") => Ok(()),
        (Shape::IntOrString, other) => {
            let found = found(other);
            Err(format!(
                "json: cannot unmarshal {found} into Go value of type int32"
            ))
        }
        (Shape::Quantity, Value::String(text)) => text::quantity(text),
        (Shape::Quantity, Value::Number(number)) => text::quantity(&number.to_string()),
        (Shape::Quantity, _) => text::quantity(""),
        (Shape::Array(items), Value::Array(values)) => values
            .iter()
            .try_for_each(|value| decode(value, items, place, depth + 1)),
        (Shape::Map(shape), Value::Object(fields)) => fields
            .values()
            .try_for_each(|value| decode(value, shape, place, depth + 1)),
        (Shape::Object { properties, .. }, Value::Object(fields)) => {
            let owner = go_name(reference);
            for (name, value) in fields {
                if let Some(property) = properties.get(name.as_str()) {
                    let path = match place.path.as_str() {
                        "" => name.clone(),
                        path => format!("{path}.{name}"),
                    };
                    decode(value, property, &Place { owner, path }, depth + 1)?;
                }
            }
            Ok(())
        }
        (_, other) => Err(mismatch(other, reference, place)),
    }
}

fn mismatch(value: &Value, reference: &SchemaRef, place: &Place<'_>) -> String {
    let (found, wanted) = (found(value), go_type(reference));
    match place.path.as_str() {
        "" => format!("json: cannot unmarshal {found} into Go value of type {wanted}"),
        path => format!(
            "json: cannot unmarshal {found} into Go struct field {}.{path} of type {wanted}",
            place.owner
        ),
    }
}

/// What Go calls the value that it found.
fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
        Value::Number(number) => format!("number {number}"),
    }
}

/// What Go calls the type that it wanted.
fn go_type(reference: &SchemaRef) -> String {
    let schema = reference.schema();
    match &schema.shape {
        Shape::Any => "interface {}".to_owned(),
        Shape::String if &*schema.format == "byte" => "[]uint8".to_owned(),
        Shape::String => "string".to_owned(),
        Shape::Integer if schema.format.is_empty() => "int".to_owned(),
        Shape::Integer => schema.format.to_string(),
        Shape::Number => "float64".to_owned(),
        Shape::Boolean => "bool".to_owned(),
        Shape::IntOrString => "intstr.IntOrString".to_owned(),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::Array(items) => format!("[]{}", go_type(items)),
        Shape::Map(values) => format!("map[string]{}", go_type(values)),
        Shape::Object { .. } => match reference {
            SchemaRef::Named(name) => {
                let package = name.rsplit('.').nth(1).unwrap_or("v1");
                format!("{package}.{}", go_name(reference))
            }
            SchemaRef::Inline(_) => "map[string]interface {}".to_owned(),
        },
    }
}

/// `io.k8s.api.apps.v1.DeploymentSpec` -> `DeploymentSpec`
fn go_name(reference: &SchemaRef) -> &str {
    match reference {
        SchemaRef::Named(name) => name.rsplit('.').next().unwrap_or(name),
        SchemaRef::Inline(_) => "",
    }
}

fn fits(number: &Number, format: &str) -> bool {
    match (number.as_i64(), format) {
        (Some(number), "int32") => i32::try_from(number).is_ok(),
        (Some(_), _) => true,
        (None, _) => false,
    }
}

fn walk_missing(
    value: Option<&Value>,
    schema: &Schema,
    (path, depth): (&Path<'_>, usize),
    causes: &mut Vec<Cause>,
) {
    if depth > DEPTH_MAX {
        return;
    }
    match (&schema.shape, value) {
        (Shape::Array(items), Some(Value::Array(values))) => {
            for (index, value) in values.iter().enumerate() {
                let here = (&path.index(index), depth + 1);
                walk_missing(Some(value), items.schema(), here, causes);
            }
        }
        (Shape::Map(values), Some(Value::Object(fields))) => {
            for (name, value) in fields {
                let here = (&path.key(name), depth + 1);
                walk_missing(Some(value), values.schema(), here, causes);
            }
        }
        (Shape::Object { properties, .. }, Some(object @ Value::Object(_))) => {
            if let Some(native) = schema.native.as_deref() {
                require(object, native, path, causes);
            }
            for (name, property) in properties {
                let value = present(object, schema, name);
                let here = (&path.field(name), depth + 1);
                walk_missing(value, property.schema(), here, causes);
            }
        }
        _ => {}
    }
}

/// The value of a field; a struct that Go never leaves out is there even if it is not written.
fn present<'a>(object: &'a Value, schema: &Schema, name: &str) -> Option<&'a Value> {
    let value = object.get(name).filter(|value| !value.is_null());
    let native = schema.native.as_deref();
    let is_value = native.is_some_and(|native| native.values.iter().any(|held| &**held == name));
    match value {
        None if is_value => Some(&EMPTY),
        value => value,
    }
}

static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

fn require(object: &Value, native: &Native, path: &Path<'_>, causes: &mut Vec<Cause>) {
    for name in &native.enforced {
        let empty = match object.get(&**name) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            Some(_) => false,
        };
        if empty {
            let field = path.field(name).to_string();
            causes.push(Cause::new("FieldValueRequired", field, "Required value"));
        }
    }
}

#[cfg(test)]
mod tests;
