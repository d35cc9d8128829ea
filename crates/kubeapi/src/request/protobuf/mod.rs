//! A body in protobuf, as Go clients send built-in kinds, becomes the JSON that they would have sent.
//!
//! Everything behind this module knows JSON only. Answers are JSON always: every client that sends
//! protobuf also takes JSON.

mod wire; // bytes -> numbered fields
mod numbers; // a number -> the field it means
mod decode; // a message and its type -> an object
mod special; // messages that are something else in JSON

use serde_json::{Map, Value};

use crate::schema::{SchemaRef, builtin};
use decode::{Decoder, Place, text};
use wire::{Fields, Wire};

/// The media type of such a body.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Why a body is refused. The sender has to send something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The four bytes at the beginning of every such body are not there.
    #[error("the body does not begin as Kubernetes protobuf does")]
    NoPrefix,
    /// The kind is not a built-in one: its clients must send JSON.
    #[error("{kind} of {api_version} cannot be sent as protobuf")]
    UnknownKind {
        /// The group and version that the body names.
        api_version: String,
        /// The kind that it names.
        kind: String,
    },
    /// A field ends beyond the end of the body.
    #[error("unexpected end of the protobuf message")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("a protobuf number is too long")]
    LongNumber,
    /// An old or unknown way of writing a field.
    #[error("protobuf wire type {0} is not supported")]
    WireType(u64),
    /// The value does not fit the type of its field.
    #[error("protobuf field {0} is of the wrong type")]
    WrongType(&'static str),
    /// Text is not UTF-8, or embedded JSON is not JSON.
    #[error("protobuf field {0} cannot be read as text")]
    NotText(&'static str),
    /// Messages nest deeper than any object does.
    #[error("the protobuf message nests too deep")]
    TooDeep,
    /// More values than any object has: what takes two bytes here takes a hundred in memory.
    #[error("the protobuf message has more than {VALUES_MAX} values")]
    TooMany,
}

/// The object in a body, with its `apiVersion` and `kind`.
pub fn object(body: &[u8]) -> Result<Value, Fault> {
    let Some(envelope) = body.strip_prefix(PREFIX) else {
        return Err(Fault::NoPrefix);
    };
    let (mut kind_bytes, mut raw) = (&[][..], &[][..]);
    let mut fields = Fields(envelope);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Wire::Bytes(bytes)) => kind_bytes = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    let mut fields = Fields(kind_bytes);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => api_version = text(value, "apiVersion")?,
            2 => kind = text(value, "kind")?,
            _ => {}
        }
    }
    let Some(name) = type_name(&api_version, &kind) else {
        return Err(Fault::UnknownKind { api_version, kind });
    };
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Decoder::new(VALUES_MAX).message(&Place::of(&name, 1), raw, &mut object)?;
    Ok(Value::Object(object))
}

/// The type of a whole body. Options of a deletion are of one type under every group's name.
fn type_name(api_version: &str, kind: &str) -> Option<String> {
    if kind == "DeleteOptions" {
        return Some(format!("{META}DeleteOptions"));
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    match builtin::type_of(group, version, kind)? {
        SchemaRef::Named(name) => Some(name.to_string()),
        SchemaRef::Inline(_) => None,
    }
}

/// What every body begins with.
const PREFIX: &[u8] = b"k8s\0";

/// More fields and entries than an object of the greatest size that is stored can have.
const VALUES_MAX: usize = 500_000;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

#[cfg(test)]
mod tests;
