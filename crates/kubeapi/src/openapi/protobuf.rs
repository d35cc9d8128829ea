//! The v2 document as gnostic's `openapi.v2.Document` message.
//!
//! The numbers are those of `openapiv2/OpenAPIv2.proto` in github.com/google/gnostic-models. Only
//! what our documents say is written.

use serde_json::{Map, Value};

/// The whole document, from the same pieces that the JSON form is made of.
pub(super) fn document(
    info: &Value,
    paths: impl Iterator<Item = (String, Value)>,
    definitions: impl Iterator<Item = (String, Value)>,
) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, "2.0");
    out.message(2, |message| {
        message.text_of(1, info.get("title"));
        message.text_of(2, info.get("version"));
    });
    out.message(8, |message| {
        for (path, item) in paths {
            message.named(2, &path, |message| path_item(message, &item));
        }
    });
    out.message(9, |message| {
        for (name, definition) in definitions {
            message.named(1, &name, |message| schema(message, &definition));
        }
    });
    out.bytes
}

fn path_item(out: &mut Message, item: &Value) {
    let methods = [
        ("get", 2),
        ("put", 3),
        ("post", 4),
        ("delete", 5),
        ("patch", 8),
    ];
    for (method, number) in methods {
        if let Some(described) = item.get(method) {
            out.message(number, |message| operation(message, described));
        }
    }
    for described in list(item, "parameters") {
        out.message(9, |message| parameter(message, described));
    }
}

fn operation(out: &mut Message, operation: &Value) {
    out.texts(1, list(operation, "tags"));
    out.text_of(5, operation.get("operationId"));
    out.texts(7, list(operation, "consumes"));
    for described in list(operation, "parameters") {
        out.message(8, |message| parameter(message, described));
    }
    let responses = operation.get("responses").and_then(Value::as_object);
    out.message(9, |message| {
        for (code, response) in responses.into_iter().flatten() {
            message.named(1, code, |message| {
                message.message(1, |message| {
                    message.text_of(1, response.get("description"));
                    if let Some(given) = response.get("schema") {
                        message.message(2, |message| {
                            message.message(1, |message| schema(message, given));
                        });
                    }
                });
            });
        }
    });
    extensions(out, 13, operation);
}

/// ParametersItem: a parameter in place, of the body or not.
fn parameter(out: &mut Message, described: &Value) {
    let place = described
        .get("in")
        .and_then(Value::as_str)
        .unwrap_or("query");
    out.message(1, |message| {
        if place == "body" {
            message.message(1, |message| {
                message.text_of(2, described.get("name"));
                message.text(3, place);
                if let Some(taken) = described.get("schema") {
                    message.message(5, |message| schema(message, taken));
                }
            });
            return;
        }
        // The numbers of the type differ by one, because a query parameter may be empty.
        let (number, type_number) = if place == "path" { (4, 5) } else { (3, 6) };
        message.message(2, |message| {
            message.message(number, |message| {
                message.flag(1, described.get("required") == Some(&Value::Bool(true)));
                message.text(2, place);
                message.text_of(4, described.get("name"));
                message.text_of(type_number, described.get("type"));
            });
        });
    });
}

fn schema(out: &mut Message, schema_value: &Value) {
    let said = |keyword: &str| schema_value.get(keyword);
    out.text_of(1, said("$ref"));
    out.text_of(2, said("format"));
    out.text_of(4, said("description"));
    if let Some(default) = said("default") {
        out.message(5, |message| message.text(2, &default.to_string()));
    }
    for (number, keyword) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        out.double_of(number, said(keyword));
    }
    for (number, keyword) in [
        (8, "exclusiveMaximum"),
        (10, "exclusiveMinimum"),
        (16, "uniqueItems"),
    ] {
        out.flag(number, said(keyword) == Some(&Value::Bool(true)));
    }
    out.number_of(11, said("maxLength"));
    out.number_of(12, said("minLength"));
    out.text_of(13, said("pattern"));
    out.number_of(14, said("maxItems"));
    out.number_of(15, said("minItems"));
    out.number_of(17, said("maxProperties"));
    out.number_of(18, said("minProperties"));
    out.texts(19, list(schema_value, "required"));
    for allowed in list(schema_value, "enum") {
        out.message(20, |message| message.text(2, &allowed.to_string()));
    }
    if let Some(free) = said("additionalProperties") {
        out.message(21, |message| {
            message.message(1, |message| schema(message, free))
        });
    }
    if let Some(name) = said("type").and_then(Value::as_str) {
        out.message(22, |message| message.text(1, name));
    }
    if let Some(items) = said("items") {
        out.message(23, |message| {
            message.message(1, |message| schema(message, items))
        });
    }
    if let Some(properties) = said("properties").and_then(Value::as_object) {
        out.message(25, |message| {
            for (name, property) in properties {
                message.named(1, name, |message| schema(message, property));
            }
        });
    }
    extensions(out, 31, schema_value);
}

/// NamedAny for each `x-…`; the value is YAML, and JSON is YAML.
fn extensions(out: &mut Message, number: u32, owner: &Value) {
    let none = Map::new();
    for (name, value) in owner.as_object().unwrap_or(&none) {
        if name.starts_with("x-") {
            let text = value.to_string();
            out.named(number, name, |message| message.text(2, &text));
        }
    }
}

fn list<'a>(owner: &'a Value, keyword: &str) -> &'a [Value] {
    owner
        .get(keyword)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The fields of a message, in the order they were written. Fields of no value are left out.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn tag(&mut self, number: u32, wire: u32) {
        self.varint(u64::from(number << 3 | wire));
    }

    fn text(&mut self, number: u32, text: &str) {
        self.tag(number, LENGTH);
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn text_of(&mut self, number: u32, value: Option<&Value>) {
        if let Some(text) = value.and_then(Value::as_str) {
            self.text(number, text);
        }
    }

    fn texts(&mut self, number: u32, values: &[Value]) {
        for value in values {
            self.text_of(number, Some(value));
        }
    }

    fn flag(&mut self, number: u32, flag: bool) {
        if flag {
            self.tag(number, VARINT);
            self.varint(1);
        }
    }

    fn number_of(&mut self, number: u32, value: Option<&Value>) {
        if let Some(value) = value.and_then(Value::as_u64) {
            self.tag(number, VARINT);
            self.varint(value);
        }
    }

    fn double_of(&mut self, number: u32, value: Option<&Value>) {
        if let Some(value) = value.and_then(Value::as_f64) {
            self.tag(number, FIXED_64);
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn message(&mut self, number: u32, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.tag(number, LENGTH);
        self.varint(inner.bytes.len() as u64);
        self.bytes.append(&mut inner.bytes);
    }

    /// NamedSchema, NamedPathItem, NamedAny and the like: a name and a value.
    fn named(&mut self, number: u32, name: &str, write: impl FnOnce(&mut Message)) {
        self.message(number, |message| {
            message.text(1, name);
            message.message(2, write);
        });
    }
}
