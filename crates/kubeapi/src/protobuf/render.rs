//! A message -> JSON, as Go writes the same object.
//!
//! Strings are the exception: Go also escapes a few characters that JSON allows, so that it can
//! stand in HTML. Who reads the JSON finds the same text.

use std::collections::BTreeMap;

use super::facts::{Empty, Facts, Field, Form, Message, Shape};
use super::fault::Fault;
use super::plain::{self, Out, fields, literal};
use super::wire::{Content, varint};
use crate::schema::DEPTH_MAX;

/// JSON in the making, and how much of it there may be.
pub(super) struct Renderer<'f> {
    facts: &'f Facts,
    out: Out,
    bytes_max: usize,
}

/// Where in a message we are.
#[derive(Clone, Copy)]
struct Depth(usize);

impl<'f> Renderer<'f> {
    pub(super) fn new(facts: &'f Facts, bytes_max: usize) -> Self {
        Self {
            facts,
            out: Out::new(),
            bytes_max,
        }
    }

    /// Writes a whole object of this kind.
    pub(super) fn object(
        mut self,
        (api_version, kind): (&str, &str),
        message: &Message,
        bytes: &[u8],
    ) -> Result<Out, Fault> {
        literal(&mut self.out, "{\"kind\":");
        plain::text(&mut self.out, kind);
        literal(&mut self.out, ",\"apiVersion\":");
        plain::text(&mut self.out, api_version);
        self.fields(message, &[Content::Bytes(bytes)], Depth(0))?;
        self.out.push(b'}');
        self.check_size()?;
        Ok(self.out)
    }

    /// Writes a message that came in these pieces.
    fn message(
        &mut self,
        message: &Message,
        pieces: &[Content<'_>],
        depth: Depth,
    ) -> Result<(), Fault> {
        self.out.push(b'{');
        self.fields(message, pieces, depth)?;
        self.out.push(b'}');
        Ok(())
    }

    fn fields(
        &mut self,
        message: &Message,
        pieces: &[Content<'_>],
        depth: Depth,
    ) -> Result<(), Fault> {
        let depth = depth.below()?;
        let (places, found) = sorted(message, pieces)?;
        let (mut places, mut found) = (places.as_slice(), found.as_slice());
        for (place, field) in message.fields.iter().enumerate() {
            let count = places
                .iter()
                .take_while(|of| usize::from(**of) == place)
                .count();
            let (contents, rest) = found.split_at(count);
            (places, found) = (&places[count..], rest);
            self.field(field, contents, depth)
                .map_err(|fault| fault.in_field(field.name))?;
            self.check_size()?;
        }
        Ok(())
    }

    /// Writes a field with its name, or leaves it out.
    fn field(
        &mut self,
        field: &Field,
        contents: &[Content<'_>],
        depth: Depth,
    ) -> Result<(), Fault> {
        let before = self.out.len();
        if let (Shape::Inline, Form::Message(place)) = (field.shape, field.form) {
            return self.fields(self.facts.message(place), contents, depth);
        }
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        literal(&mut self.out, format_args!("\"{}\":", field.name));
        let start = self.out.len();
        match field.shape {
            Shape::List => self.list(field.form, contents, depth)?,
            Shape::Map => self.map(field.form, contents, depth)?,
            Shape::Optional if contents.is_empty() => literal(&mut self.out, "null"),
            Shape::Optional => {
                // Zero is a value here, and is written whatever the field does with nothing.
                return self.value(field.form, contents, depth);
            }
            Shape::Value | Shape::Inline => self.value(field.form, contents, depth)?,
        }
        let nothing = matches!(&self.out[start..], b"null" | b"\"\"" | b"0" | b"false");
        if nothing && field.empty == Empty::LeftOut {
            self.out.truncate(before);
        }
        Ok(())
    }

    /// Writes a list. Protobuf does not tell an empty one from none; it is null.
    fn list(&mut self, form: Form, contents: &[Content<'_>], depth: Depth) -> Result<(), Fault> {
        let before = self.out.len();
        for content in contents {
            let packed = matches!(form, Form::Int32 | Form::Int64 | Form::Flag);
            if let (true, Content::Bytes(mut numbers)) = (packed, *content) {
                while !numbers.is_empty() {
                    let number = Content::Number(varint(&mut numbers)?);
                    self.item(before, form, number, depth)?;
                }
            } else {
                self.item(before, form, *content, depth)?;
            }
        }
        let end = if self.out.len() == before {
            "null"
        } else {
            "]"
        };
        literal(&mut self.out, end);
        Ok(())
    }

    fn item(
        &mut self,
        list: usize,
        form: Form,
        content: Content<'_>,
        depth: Depth,
    ) -> Result<(), Fault> {
        self.out
            .push(if self.out.len() == list { b'[' } else { b',' });
        self.value(form, &[content], depth)?;
        self.check_size()
    }

    /// Writes a map in the order of its keys, the last of each. An empty one is null.
    fn map(&mut self, form: Form, contents: &[Content<'_>], depth: Depth) -> Result<(), Fault> {
        if contents.is_empty() {
            literal(&mut self.out, "null");
            return Ok(());
        }
        let mut entries = BTreeMap::new();
        for content in contents {
            // A value that is absent is still there, and bytes that are there are not null.
            let mut value = (form == Form::Bytes).then_some(Content::Bytes(b""));
            let mut key = "";
            for field in fields(&[*content]) {
                match field? {
                    (1, content) => key = content.text()?,
                    (2, content) => value = Some(content),
                    _ => {}
                }
            }
            entries.insert(key, value);
        }
        let mut separator = b'{';
        for (key, value) in entries {
            self.out.push(separator);
            separator = b',';
            plain::text(&mut self.out, key);
            self.out.push(b':');
            self.value(form, value.as_slice(), depth)?;
            self.check_size()?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Writes one value. Of plain ones the last that came counts; a message is all that came of it.
    fn value(&mut self, form: Form, contents: &[Content<'_>], depth: Depth) -> Result<(), Fault> {
        let out = &mut self.out;
        let number = || last(contents, Content::number).map(Option::unwrap_or_default);
        match form {
            Form::Text => plain::text(out, last(contents, Content::text)?.unwrap_or_default()),
            Form::Bytes => match last(contents, Content::bytes)? {
                Some(bytes) => plain::base64(out, bytes),
                None => literal(out, "null"),
            },
            Form::Flag => literal(out, number()? != 0),
            Form::Int32 => literal(out, plain::int32(number()?)),
            Form::Int64 => literal(out, plain::int64(number()?)),
            Form::Double => {
                plain::double(out, last(contents, Content::double)?.unwrap_or_default())?;
            }
            Form::Time => plain::time(out, last(contents, Content::bytes)?.unwrap_or_default())?,
            Form::MicroTime => {
                plain::micro_time(out, last(contents, Content::bytes)?.unwrap_or_default())?;
            }
            Form::Texts => plain::texts(out, contents)?,
            Form::Quantity => plain::quantity(out, contents)?,
            Form::IntOrString => plain::int_or_string(out, contents)?,
            Form::Raw => plain::raw(out, contents)?,
            Form::SchemaOrFlag => self.schema_or_flag(contents, depth)?,
            Form::SchemaOrList => {
                self.schema_or_many(contents, Form::Message(self.facts.schema), depth)?
            }
            Form::SchemaOrTexts => self.schema_or_many(contents, Form::Text, depth)?,
            Form::Message(place) => self.message(self.facts.message(place), contents, depth)?,
        }
        Ok(())
    }

    /// JSONSchemaPropsOrBool: field 1 is the flag, field 2 the schema, which comes first.
    fn schema_or_flag(&mut self, contents: &[Content<'_>], depth: Depth) -> Result<(), Fault> {
        let (mut flag, mut schema) = (0, Vec::new());
        for field in fields(contents) {
            match field? {
                (1, content) => flag = content.number()?,
                (2, content) => schema.push(content),
                _ => {}
            }
        }
        if schema.is_empty() {
            literal(&mut self.out, flag != 0);
            return Ok(());
        }
        self.value(Form::Message(self.facts.schema), &schema, depth)
    }

    /// JSONSchemaPropsOrArray and …OrStringArray: field 1 is the schema, field 2 the list, which
    /// comes first.
    fn schema_or_many(
        &mut self,
        contents: &[Content<'_>],
        many: Form,
        depth: Depth,
    ) -> Result<(), Fault> {
        let (mut schema, mut list) = (Vec::new(), Vec::new());
        for field in fields(contents) {
            match field? {
                (1, content) => schema.push(content),
                (2, content) => list.push(content),
                _ => {}
            }
        }
        if schema.is_empty() || !list.is_empty() {
            return self.list(many, &list, depth);
        }
        self.value(Form::Message(self.facts.schema), &schema, depth)
    }

    fn check_size(&self) -> Result<(), Fault> {
        match self.out.len() > self.bytes_max {
            true => Err(Fault::Size(self.bytes_max)),
            false => Ok(()),
        }
    }
}

impl Depth {
    fn below(self) -> Result<Self, Fault> {
        match self.0 < DEPTH_MAX {
            true => Ok(Self(self.0 + 1)),
            false => Err(Fault::Depth),
        }
    }
}

/// What a message holds in the order of its fields, and of which field each is. Fields that it does
/// not have are skipped.
fn sorted<'a>(
    message: &Message,
    pieces: &[Content<'a>],
) -> Result<(Vec<u8>, Vec<Content<'a>>), Fault> {
    let mut found = Vec::new();
    for field in fields(pieces) {
        let (number, content) = field?;
        let known = (0_u8..)
            .zip(&message.fields)
            .find(|(_, one)| u64::from(one.number) == number);
        found.extend(known.map(|(place, _)| (place, content)));
    }
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().unzip())
}

/// The last of all, each of which must be of the right kind.
fn last<'a, T>(
    contents: &[Content<'a>],
    read: impl Fn(Content<'a>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    contents
        .iter()
        .try_fold(None, |_, content| read(*content).map(Some))
}
