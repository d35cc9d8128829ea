//! The schema of a CustomResourceDefinition (`openAPIV3Schema`) -> ours, or why not.
//!
//! [`check`] says what a real server would refuse; [`parse`] then takes what is left. CEL rules
//! (`x-kubernetes-validations`) are kept in the definition but not evaluated: [`unheeded`] says so.

mod check; // what a real server refuses
mod nested; // what is allowed inside allOf, anyOf, oneOf and not

use serde_json::{Map, Value};

use super::{Bounds, DEPTH_MAX, ListKind, Schema, SchemaRef, Shape, validate};

pub use check::check;

/// A schema that nests deeper than [`DEPTH_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the schema nests deeper than {DEPTH_MAX} levels")]
pub struct TooDeep;

/// Reads a JSONSchemaProps. Keywords that it does not know say nothing.
pub fn parse(schema: &Value) -> Result<Schema, TooDeep> {
    read(schema, 0)
}

/// The places at which a schema asks for what this server does not do, as warnings to its author.
/// `base` is where the schema stands in its definition.
pub fn unheeded(schema: &Value, base: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut waiting = vec![(base.to_owned(), schema, 0_usize)];
    while let Some((path, schema, depth)) = waiting.pop() {
        let rules = schema
            .get("x-kubernetes-validations")
            .and_then(Value::as_array);
        if rules.is_some_and(|rules| !rules.is_empty()) {
            warnings.push(format!(
                "{path}.x-kubernetes-validations: kept, but CEL rules are not evaluated here"
            ));
        }
        let format = text(schema, "format");
        let of_strings = matches!(text(schema, "type"), "" | "string");
        if of_strings && !format.is_empty() && !validate::is_known_format(format) {
            warnings.push(format!("{path}.format: unrecognized format {format:?}"));
        }
        if depth < DEPTH_MAX {
            let parts =
                parts(schema).map(|(name, part)| (format!("{path}.{name}"), part, depth + 1));
            waiting.extend(parts);
        }
    }
    warnings.sort();
    warnings
}

/// The schemas within a schema that describe parts of the value, and how they are reached.
fn parts(schema: &Value) -> impl Iterator<Item = (String, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let named = properties.into_iter().flatten();
    let named = named.map(|(name, part)| (format!("properties[{name}]"), part));
    let single = ["items", "additionalProperties"]
        .into_iter()
        .filter_map(|keyword| {
            let part = schema.get(keyword).filter(|part| part.is_object())?;
            Some((keyword.to_owned(), part))
        });
    named.chain(single)
}

fn read(schema: &Value, depth: usize) -> Result<Schema, TooDeep> {
    if depth >= DEPTH_MAX {
        return Err(TooDeep);
    }
    let mut read_schema = Schema::of(read_shape(schema, depth)?);
    let any = matches!(read_schema.shape, Shape::Any | Shape::IntOrString);
    read_schema.untyped = text(schema, "type").is_empty() && !any;
    read_schema.format = text(schema, "format").into();
    read_schema.description = text(schema, "description").into();
    read_schema.nullable = flag(schema, "nullable");
    read_schema.default = schema
        .get("default")
        .filter(|value| !value.is_null())
        .cloned();
    read_schema.allowed = list(schema, "enum").to_vec();
    // Beside properties, additionalProperties can only be true.
    read_schema.preserve_unknown = flag(schema, "x-kubernetes-preserve-unknown-fields")
        || (flag(schema, "additionalProperties")
            && matches!(read_schema.shape, Shape::Object { .. }));
    read_schema.embedded_object = flag(schema, "x-kubernetes-embedded-resource");
    read_schema.list = read_list_kind(schema);
    let bounds = read_bounds(schema, depth)?;
    if bounds != Bounds::default() {
        read_schema.bounds = Some(Box::new(bounds));
    }
    Ok(read_schema)
}

fn read_shape(schema: &Value, depth: usize) -> Result<Shape, TooDeep> {
    if flag(schema, "x-kubernetes-int-or-string") {
        return Ok(Shape::IntOrString);
    }
    let said = |keyword: &str| schema.get(keyword).is_some_and(|value| !value.is_null());
    Ok(match text(schema, "type") {
        "string" => Shape::String,
        "integer" => Shape::Integer,
        "number" => Shape::Number,
        "boolean" => Shape::Boolean,
        "array" => Shape::Array(read_part(schema, "items", depth)?),
        "object" => read_object(schema, depth)?,
        // Without a type the keywords tell what the schema is about.
        _ if said("properties") || said("required") || said("additionalProperties") => {
            read_object(schema, depth)?
        }
        _ if said("items") => Shape::Array(read_part(schema, "items", depth)?),
        _ => Shape::Any,
    })
}

fn read_object(schema: &Value, depth: usize) -> Result<Shape, TooDeep> {
    let free = schema.get("additionalProperties");
    let empty = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    if properties.is_empty() && free.is_some_and(|free| free.is_object() || *free == true) {
        return Ok(Shape::Map(read_part(
            schema,
            "additionalProperties",
            depth,
        )?));
    }
    let read_property = |(name, property): (&String, &Value)| {
        let property = SchemaRef::inline(read(property, depth + 1)?);
        Ok((Box::from(name.as_str()), property))
    };
    Ok(Shape::Object {
        properties: properties
            .iter()
            .map(read_property)
            .collect::<Result<_, TooDeep>>()?,
        required: strings(schema, "required"),
    })
}

fn read_part(schema: &Value, keyword: &str, depth: usize) -> Result<SchemaRef, TooDeep> {
    Ok(match schema.get(keyword).filter(|part| part.is_object()) {
        Some(part) => SchemaRef::inline(read(part, depth + 1)?),
        None => SchemaRef::inline(Schema::default()),
    })
}

fn read_list_kind(schema: &Value) -> ListKind {
    match (
        text(schema, "x-kubernetes-list-type"),
        text(schema, "x-kubernetes-map-type"),
    ) {
        ("set", _) => ListKind::Set,
        ("map", _) => ListKind::Map(strings(schema, "x-kubernetes-list-map-keys")),
        ("atomic", _) | (_, "atomic") => ListKind::Atomic,
        (_, "granular") => ListKind::Granular,
        _ => ListKind::Unset,
    }
}

fn read_bounds(schema: &Value, depth: usize) -> Result<Bounds, TooDeep> {
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let count = |keyword: &str| schema.get(keyword).and_then(Value::as_u64);
    let several = |keyword: &str| {
        let schemas = list(schema, keyword).iter();
        schemas
            .map(|schema| read(schema, depth + 1))
            .collect::<Result<Vec<_>, _>>()
    };
    Ok(Bounds {
        minimum: number("minimum"),
        maximum: number("maximum"),
        exclusive_minimum: flag(schema, "exclusiveMinimum"),
        exclusive_maximum: flag(schema, "exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        length_min: count("minLength"),
        length_max: count("maxLength"),
        items_min: count("minItems"),
        items_max: count("maxItems"),
        properties_min: count("minProperties"),
        properties_max: count("maxProperties"),
        pattern: Some(text(schema, "pattern"))
            .filter(|text| !text.is_empty())
            .map(Box::from),
        unique_items: flag(schema, "uniqueItems"),
        all_of: several("allOf")?,
        any_of: several("anyOf")?,
        one_of: several("oneOf")?,
        not: match schema.get("not").filter(|not| not.is_object()) {
            Some(not) => Some(Box::new(read(not, depth + 1)?)),
            None => None,
        },
    })
}

fn text<'a>(schema: &'a Value, keyword: &str) -> &'a str {
    schema.get(keyword).and_then(Value::as_str).unwrap_or("")
}

fn flag(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

fn list<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    schema
        .get(keyword)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn strings(schema: &Value, keyword: &str) -> Vec<Box<str>> {
    list(schema, keyword)
        .iter()
        .filter_map(Value::as_str)
        .map(Box::from)
        .collect()
}

#[cfg(test)]
mod tests;
