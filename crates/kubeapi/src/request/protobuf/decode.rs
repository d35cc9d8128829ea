//! A message becomes an object: its numbers say which fields, the schema of its kind says of which shape.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Number, Value};

use super::Fault;
use super::numbers::{self, Lists, Meaning, Zero};
use super::special::Special;
use super::wire::{Fields, Wire};
use crate::schema::{DEPTH_MAX, Schema, SchemaRef, Shape, builtin};

/// Where the decoder is: a message of a type, in an object of a shape.
pub(super) struct Place<'a> {
    /// The type whose numbers are used.
    name: &'a str,
    /// The shape of the object in JSON: the type's own, or its owner's if it is inlined there.
    schema: Option<&'a Schema>,
    depth: usize,
}

impl<'a> Place<'a> {
    pub(super) fn of(name: &'a str, depth: usize) -> Self {
        let schema = builtin::definition(name);
        Self {
            name,
            schema,
            depth,
        }
    }
}

/// Reads messages, and counts what it reads.
pub(super) struct Decoder {
    values_left: usize,
}

impl Decoder {
    pub(super) fn new(values_left: usize) -> Self {
        Self { values_left }
    }

    /// Reads the fields of a message into an object.
    pub(super) fn message(
        &mut self,
        place: &Place<'_>,
        bytes: &[u8],
        object: &mut Map<String, Value>,
    ) -> Result<(), Fault> {
        if place.depth > DEPTH_MAX {
            return Err(Fault::TooDeep);
        }
        let Some(meanings) = numbers::of(place.name) else {
            return Ok(()); // A type without fields.
        };
        let mut fields = Fields(bytes);
        while let Some((number, value)) = fields.next()? {
            self.count()?;
            match meanings.get(&number) {
                None => {} // From a newer client: left out, as the real server does.
                Some(Meaning::Inlined(name)) => {
                    let place = Place {
                        name,
                        schema: place.schema,
                        depth: place.depth + 1,
                    };
                    self.message(&place, bytes_of(value, "")?, object)?;
                }
                Some(Meaning::Field { name, zero, lists }) => {
                    let Some(shape) = property(place.schema, name) else {
                        continue;
                    };
                    let field = Field {
                        name,
                        lists: *lists,
                        depth: place.depth + 1,
                    };
                    self.field(field, *zero, (shape, value), object)?;
                }
            }
        }
        Ok(())
    }
}

/// A field that is being read.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    lists: Lists,
    pub(super) depth: usize,
}

/// A value of a field, and the shape that it has in JSON.
type Typed<'a> = (&'a SchemaRef, Wire<'a>);

impl Decoder {
    /// Reads a field into the object that has it: one entry of a list or a map, or the value.
    fn field(
        &mut self,
        field: Field,
        zero: Zero,
        (shape, value): Typed<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), Fault> {
        match &shape.schema().shape {
            Shape::Array(items) if field.lists == Lists::Plain => {
                let list = object
                    .entry(field.name)
                    .or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(list) = list else {
                    return Err(Fault::WrongType(field.name));
                };
                self.entries(field, (items, value), list)
            }
            Shape::Map(values) => {
                let (key, value) = self.pair(field, (values, value))?;
                let map = object
                    .entry(field.name)
                    .or_insert_with(|| Value::Object(Map::new()));
                let Value::Object(map) = map else {
                    return Err(Fault::WrongType(field.name));
                };
                map.insert(key, value);
                Ok(())
            }
            _ => {
                let value = self.value(field, (shape, value))?;
                if !(value.is_null() || zero == Zero::Unset && is_zero(&value)) {
                    object.insert(field.name.to_owned(), value);
                }
                Ok(())
            }
        }
    }

    /// One entry of a list, or several numbers that are packed together.
    fn entries(
        &mut self,
        field: Field,
        (items, value): Typed<'_>,
        list: &mut Vec<Value>,
    ) -> Result<(), Fault> {
        let numeric = matches!(items.schema().shape, Shape::Integer | Shape::Boolean);
        let (true, Wire::Bytes(packed)) = (numeric, value) else {
            list.push(self.value(field, (items, value))?);
            return Ok(());
        };
        let mut packed = Fields(packed);
        while !packed.0.is_empty() {
            self.count()?;
            let number = Wire::Varint(packed.varint()?);
            list.push(self.value(field, (items, number))?);
        }
        Ok(())
    }

    /// One entry of a map: a message with the key in field 1 and the value in field 2.
    fn pair(&mut self, field: Field, (values, value): Typed<'_>) -> Result<(String, Value), Fault> {
        let mut key = String::new();
        let mut found = None;
        let mut fields = Fields(bytes_of(value, field.name)?);
        while let Some((number, value)) = fields.next()? {
            self.count()?;
            match number {
                1 => key = text(value, field.name)?,
                2 => found = Some(self.value(field, (values, value))?),
                _ => {}
            }
        }
        // What is not there is empty, and of all values in maps only text and messages can be.
        let empty = || self.value(field, (values, Wire::Bytes(&[])));
        Ok((key, found.map_or_else(empty, Ok)?))
    }

    /// A single value.
    fn value(&mut self, field: Field, (shape, value): Typed<'_>) -> Result<Value, Fault> {
        let name = field.name;
        if let SchemaRef::Named(type_name) = shape
            && let Some(special) = Special::of(type_name)
        {
            return self.special(special, field, bytes_of(value, name)?);
        }
        match &shape.schema().shape {
            Shape::String if &*shape.schema().format == "byte" => {
                Ok(BASE64_STANDARD.encode(bytes_of(value, name)?).into())
            }
            Shape::String => text(value, name).map(Value::from),
            Shape::Integer => Ok(signed(value, name)?.into()),
            Shape::Boolean => Ok((signed(value, name)? != 0).into()),
            Shape::Number => match value {
                Wire::Fixed64(bits) => Ok(Number::from_f64(f64::from_bits(bits)).into()),
                _ => Err(Fault::WrongType(name)),
            },
            Shape::Array(items) => self.wrapped(field, (items, value)),
            Shape::Object { .. } => {
                let SchemaRef::Named(type_name) = shape else {
                    return Err(Fault::WrongType(name));
                };
                let mut object = Map::new();
                let place = Place::of(type_name, field.depth);
                self.message(&place, bytes_of(value, name)?, &mut object)?;
                Ok(Value::Object(object))
            }
            Shape::Any | Shape::Map(_) | Shape::IntOrString | Shape::Quantity => {
                Err(Fault::WrongType(name))
            }
        }
    }

    /// A list in a message of its own.
    fn wrapped(&mut self, field: Field, (items, value): Typed<'_>) -> Result<Value, Fault> {
        let mut list = Vec::new();
        let mut fields = Fields(bytes_of(value, field.name)?);
        while let Some((number, value)) = fields.next()? {
            self.count()?;
            if number == 1 {
                self.entries(field, (items, value), &mut list)?;
            }
        }
        Ok(Value::Array(list))
    }

    pub(super) fn count(&mut self) -> Result<(), Fault> {
        self.values_left = self.values_left.checked_sub(1).ok_or(Fault::TooMany)?;
        Ok(())
    }
}

/// The shape of a field of an object.
fn property<'a>(schema: Option<&'a Schema>, name: &str) -> Option<&'a SchemaRef> {
    match &schema?.shape {
        Shape::Object { properties, .. } => properties.get(name),
        _ => None,
    }
}

/// Whether Go's JSON would leave the value out as empty.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

pub(super) fn bytes_of<'a>(value: Wire<'a>, name: &'static str) -> Result<&'a [u8], Fault> {
    match value {
        Wire::Bytes(bytes) => Ok(bytes),
        _ => Err(Fault::WrongType(name)),
    }
}

pub(super) fn text(value: Wire<'_>, name: &'static str) -> Result<String, Fault> {
    let text = std::str::from_utf8(bytes_of(value, name)?);
    text.map(str::to_owned).map_err(|_| Fault::NotText(name))
}

/// A whole number; negative ones come as the unsigned number with the same 64 bits.
pub(super) fn signed(value: Wire<'_>, name: &'static str) -> Result<i64, Fault> {
    match value {
        Wire::Varint(number) => Ok(number.cast_signed()),
        _ => Err(Fault::WrongType(name)),
    }
}
