//! Which messages there are: the fields of the built-in kinds in protobuf and in JSON.
//!
//! The facts are 83 KB of text in the program. They are read as a whole when they are
//! first needed, such as for the first write, and take less than 64 KB then.

use std::collections::HashMap;
use std::sync::LazyLock;

/// All messages.
pub(super) struct Facts {
    messages: Vec<Message>,
    /// By apiVersion and kind.
    kinds: HashMap<(&'static str, &'static str), u16>,
    /// JSONSchemaProps, which types with a JSON of their own refer to.
    pub(super) schema: u16,
}

/// The fields of a message in the order in which JSON has them.
pub(super) struct Message {
    pub(super) fields: Box<[Field]>,
}

/// A field of a message.
pub(super) struct Field {
    /// In JSON.
    pub(super) name: &'static str,
    pub(super) form: Form,
    /// In protobuf.
    pub(super) number: u8,
    pub(super) shape: Shape,
    pub(super) empty: Empty,
}

/// How many there are of what a field holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape {
    /// One, which is zero where it is absent.
    Value,
    /// One or none.
    Optional,
    /// Many.
    List,
    /// Many, by name.
    Map,
    /// One message whose fields stand among those of its owner.
    Inline,
}

/// What becomes of a field that is absent, zero, false, null, or has nothing in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Empty {
    LeftOut,
    Written,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    Text,
    Bytes,
    Flag,
    Int32,
    Int64,
    Double,
    /// A message whose only field is a list of text; in JSON only the list.
    Texts,
    /// To the second.
    Time,
    /// To the microsecond.
    MicroTime,
    Quantity,
    IntOrString,
    /// A message whose only field is JSON.
    Raw,
    SchemaOrList,
    SchemaOrFlag,
    SchemaOrTexts,
    /// A message by its place among all.
    Message(u16),
}

impl Facts {
    /// The message of a kind.
    pub(super) fn message_of(&self, api_version: &str, kind: &str) -> Option<&Message> {
        let exact = self.kinds.get(&(api_version, kind));
        let place = exact.or_else(|| self.kinds.get(&("*", kind)))?;
        Some(self.message(*place))
    }

    /// The message at this place.
    pub(super) fn message(&self, place: u16) -> &Message {
        &self.messages[usize::from(place)]
    }

    fn parse(text: &'static str) -> Option<Self> {
        let blocks = || {
            text.split("\n\n")
                .filter_map(|block| block.strip_prefix("message "))
        };
        let mut places = HashMap::new();
        for (place, block) in (0..).zip(blocks()) {
            places.insert(block.lines().next()?, place);
        }
        let messages = blocks().map(|block| {
            let fields = block
                .lines()
                .skip(1)
                .map(|line| Field::parse(line, &places));
            Some(Message {
                fields: fields.collect::<Option<_>>()?,
            })
        });
        let messages = messages.collect::<Option<_>>()?;
        let mut kinds = HashMap::new();
        for line in text.lines().filter_map(|line| line.strip_prefix("kind ")) {
            let words: Vec<&str> = line.split(' ').collect();
            let [version, kind, message] = words[..] else {
                return None;
            };
            kinds.insert((version, kind), *places.get(message)?);
        }
        let schema = *places.get("apiextensions.v1.JSONSchemaProps")?;
        Some(Self {
            messages,
            kinds,
            schema,
        })
    }
}

impl Field {
    fn parse(line: &'static str, places: &HashMap<&str, u16>) -> Option<Self> {
        let words: Vec<&'static str> = line.trim_start().split(' ').collect();
        let (number, name, kind, empty) = match words[..] {
            [number, name, kind] => (number, name, kind, Empty::Written),
            [number, name, kind, "empty"] => (number, name, kind, Empty::LeftOut),
            _ => return None,
        };
        let shapes = [
            ("*", Shape::Optional),
            ("[]", Shape::List),
            ("{}", Shape::Map),
        ];
        let marked = |(mark, shape)| kind.strip_prefix(mark).map(|form| (form, shape));
        let (form, shape) = match name {
            "=" => (kind, Shape::Inline),
            _ => shapes
                .into_iter()
                .find_map(marked)
                .unwrap_or((kind, Shape::Value)),
        };
        let form = Form::parse(form).or_else(|| Some(Form::Message(*places.get(form)?)))?;
        Some(Self {
            name,
            form,
            number: number.parse().ok()?,
            shape,
            empty,
        })
    }
}

impl Form {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "string" => Self::Text,
            "bytes" => Self::Bytes,
            "bool" => Self::Flag,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "double" => Self::Double,
            "strings" => Self::Texts,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "quantity" => Self::Quantity,
            "intorstring" => Self::IntOrString,
            "raw" => Self::Raw,
            "schemaorlist" => Self::SchemaOrList,
            "schemaorbool" => Self::SchemaOrFlag,
            "schemaorstrings" => Self::SchemaOrTexts,
            _ => return None,
        })
    }
}

pub(super) static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    Facts::parse(TEXT).expect("the text is part of the program, and a test reads all of it")
});

/// The file that `data/wire/main.go` makes and explains.
const TEXT: &str = include_str!("../../data/wire.txt");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn every_built_in_kind_and_every_kind_of_a_part_has_its_message() {
        for kind in Catalog::new().snapshot().kinds() {
            let version = kind.api_version();
            assert!(
                FACTS.message_of(&version, &kind.kind).is_some(),
                "{version} {}",
                kind.kind
            );
            for part in &kind.subresources {
                let version = match &*part.group {
                    "" => part.version.to_string(),
                    group => format!("{group}/{}", part.version),
                };
                assert!(
                    FACTS.message_of(&version, &part.kind).is_some(),
                    "{}",
                    part.kind
                );
            }
        }
    }

    #[test]
    fn the_facts_are_small() {
        let fields: usize = FACTS
            .messages
            .iter()
            .map(|message| message.fields.len())
            .sum();
        let messages = FACTS.messages.len() * size_of::<Message>();
        let kinds = FACTS.kinds.capacity() * size_of::<((&str, &str), u16)>();
        let bytes = fields * size_of::<Field>() + messages + kinds;
        assert!(
            fields > 1500 && bytes < 64 * 1024,
            "{fields} fields, {bytes} bytes"
        );
    }

    #[test]
    fn a_kind_is_known_only_in_its_versions_but_options_in_all() {
        assert!(FACTS.message_of("apps/v1", "Deployment").is_some());
        assert!(FACTS.message_of("apps/v2", "Deployment").is_none());
        assert!(FACTS.message_of("apps/v2", "DeleteOptions").is_some());
    }
}
