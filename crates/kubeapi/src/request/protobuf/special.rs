//! Types that are messages in protobuf and something else in JSON: times, quantities, JSON itself.

use serde_json::{Map, Value};

use super::decode::{Decoder, Field, Place, bytes_of, signed, text};
use super::wire::{Fields, Wire};
use super::{Fault, META};

/// A type that is a message in protobuf and something else in JSON.
#[derive(Clone, Copy)]
pub(super) enum Special {
    /// Seconds and nanoseconds; text to the second.
    Time,
    /// The same; text to the microsecond.
    MicroTime,
    /// Text in field 1.
    Quantity,
    /// A number in field 2 or text in field 3, as field 1 says.
    IntOrString,
    /// The bytes of JSON in field 1.
    Json,
    /// A schema in field 1, or several in field 2.
    SchemaOrList,
    /// A boolean in field 1, or a schema in field 2.
    SchemaOrBool,
    /// A schema in field 1, or names in field 2.
    SchemaOrNames,
}

impl Special {
    pub(super) fn of(type_name: &str) -> Option<Self> {
        if let Some(name) = type_name.strip_prefix(META) {
            return match name {
                "Time" => Some(Self::Time),
                "MicroTime" => Some(Self::MicroTime),
                "FieldsV1" => Some(Self::Json),
                _ => None,
            };
        }
        match type_name.rsplit('.').next()? {
            "Quantity" => Some(Self::Quantity),
            "IntOrString" => Some(Self::IntOrString),
            "RawExtension" | "JSON" => Some(Self::Json),
            "JSONSchemaPropsOrArray" => Some(Self::SchemaOrList),
            "JSONSchemaPropsOrBool" => Some(Self::SchemaOrBool),
            "JSONSchemaPropsOrStringArray" => Some(Self::SchemaOrNames),
            _ => None,
        }
    }
}

impl Decoder {
    pub(super) fn special(
        &mut self,
        special: Special,
        field: Field,
        bytes: &[u8],
    ) -> Result<Value, Fault> {
        let name = field.name;
        match special {
            Special::Time => time(bytes, name, "%Y-%m-%dT%H:%M:%SZ"),
            Special::MicroTime => time(bytes, name, "%Y-%m-%dT%H:%M:%S.%6fZ"),
            Special::Quantity => match last(bytes, 1)? {
                Some(value) => text(value, name).map(Value::from),
                None => Ok("0".into()),
            },
            Special::IntOrString => match last(bytes, 1)? {
                Some(Wire::Varint(1)) => match last(bytes, 3)? {
                    Some(value) => text(value, name).map(Value::from),
                    None => Ok("".into()),
                },
                _ => {
                    let number = last(bytes, 2)?.unwrap_or(Wire::Varint(0));
                    Ok(signed(number, name)?.into())
                }
            },
            Special::Json => match last(bytes, 1)? {
                Some(value) => json(bytes_of(value, name)?, name),
                None => Ok(Value::Null),
            },
            Special::SchemaOrBool => match (last(bytes, 2)?, last(bytes, 1)?) {
                (Some(schema), _) => self.json_schema(field, schema),
                (None, Some(allowed)) => Ok((signed(allowed, name)? != 0).into()),
                (None, None) => Ok(false.into()),
            },
            Special::SchemaOrList | Special::SchemaOrNames => match last(bytes, 1)? {
                Some(schema) => self.json_schema(field, schema),
                None => self.alternatives(special, field, bytes),
            },
        }
    }

    fn json_schema(&mut self, field: Field, value: Wire<'_>) -> Result<Value, Fault> {
        let mut object = Map::new();
        let place = Place::of(JSON_SCHEMA, field.depth);
        self.message(&place, bytes_of(value, field.name)?, &mut object)?;
        Ok(Value::Object(object))
    }

    /// The several schemas or names in field 2.
    fn alternatives(
        &mut self,
        special: Special,
        field: Field,
        bytes: &[u8],
    ) -> Result<Value, Fault> {
        let mut list = Vec::new();
        let mut fields = Fields(bytes);
        while let Some((number, value)) = fields.next()? {
            self.count()?;
            if number == 2 {
                list.push(match special {
                    Special::SchemaOrNames => text(value, field.name)?.into(),
                    _ => self.json_schema(field, value)?,
                });
            }
        }
        Ok(Value::Array(list))
    }
}

/// The last value of a field, which is the one that counts.
fn last(bytes: &[u8], wanted: u64) -> Result<Option<Wire<'_>>, Fault> {
    let mut found = None;
    let mut fields = Fields(bytes);
    while let Some((number, value)) = fields.next()? {
        if number == wanted {
            found = Some(value);
        }
    }
    Ok(found)
}

/// Seconds in field 1 and nanoseconds in field 2, as text. A time that was never set is empty.
fn time(bytes: &[u8], name: &'static str, format: &str) -> Result<Value, Fault> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let part = |number| signed(last(bytes, number)?.unwrap_or(Wire::Varint(0)), name);
    let nanoseconds = i32::try_from(part(2)?).map_err(|_| Fault::WrongType(name))?;
    let time = jiff::Timestamp::new(part(1)?, nanoseconds).map_err(|_| Fault::WrongType(name))?;
    Ok(time.strftime(format).to_string().into())
}

fn json(bytes: &[u8], name: &'static str) -> Result<Value, Fault> {
    match bytes {
        [] => Ok(Value::Null),
        bytes => serde_json::from_slice(bytes).map_err(|_| Fault::NotText(name)),
    }
}

const JSON_SCHEMA: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
