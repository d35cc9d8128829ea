//! The short form of a header, kept beside an object's bytes.
//!
//! A byte for the format; then name, uid and version as strings, the generation, labels, fields,
//! and the lifecycle. A string is its length and its bytes, a list its count and its items, a
//! number a varint of seven bits a byte, the generation first folded so that small negative
//! numbers stay short.

use super::read::is_name;
use super::{Header, Lifecycle, OBJECT_BYTES_MAX, Owner, Pairs};
use crate::ObjectName;

/// The format that this release writes, and the only one it reads.
const FORMAT: u8 = 1;

/// Bytes that a short form may have. Whatever is in it stood in an object, and nothing is kept
/// more than twice (an event's reporter is also its source).
const HEADER_BYTES_MAX: usize = 2 * OBJECT_BYTES_MAX;

/// Why bytes are not a header. Whoever stored them, or the disk, is at fault: the object's own
/// bytes are the truth and the header can be read from them again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// The first byte names no format that we know.
    #[error("the header is of an unknown format")]
    UnknownFormat,
    /// The bytes end before the header does.
    #[error("the header is cut short")]
    CutShort,
    /// There are bytes behind the header, or more than any header has.
    #[error("the header has bytes behind its end")]
    TooLong,
    /// A value that no encoder writes.
    #[error("the header is damaged in its {0}")]
    Damaged(&'static str),
}

pub(super) fn encode(header: &Header, out: &mut Vec<u8>) {
    out.push(FORMAT);
    push_text(out, header.name.as_str());
    push_text(out, &header.uid);
    push_text(out, &header.version.to_string());
    push_number(out, fold(header.generation));
    push_pairs(out, &header.labels);
    push_pairs(out, &header.fields);
    let none = Lifecycle::default();
    let lifecycle = header.lifecycle.as_deref().unwrap_or(&none);
    push_text(
        out,
        lifecycle.deletion_timestamp.as_deref().unwrap_or_default(),
    );
    push_number(out, lifecycle.finalizers.len() as u64);
    for finalizer in &lifecycle.finalizers {
        push_text(out, finalizer);
    }
    push_number(out, lifecycle.owners.len() as u64);
    for owner in &lifecycle.owners {
        for text in [&owner.api_version, &owner.kind, &owner.name, &owner.uid] {
            push_text(out, text);
        }
    }
}

pub(super) fn decode(bytes: &[u8]) -> Result<Header, BadHeader> {
    if bytes.len() > HEADER_BYTES_MAX {
        return Err(BadHeader::TooLong);
    }
    let (format, rest) = bytes.split_first().ok_or(BadHeader::CutShort)?;
    if *format != FORMAT {
        return Err(BadHeader::UnknownFormat);
    }
    let mut input = Input { rest };
    let header = Header {
        name: input.name()?,
        uid: input.uid()?,
        version: input
            .text("version")?
            .parse()
            .map_err(|_| BadHeader::Damaged("version"))?,
        generation: unfold(input.number()?),
        labels: input.pairs("labels")?,
        fields: input.pairs("fields")?,
        lifecycle: input.lifecycle()?,
    };
    if !input.rest.is_empty() {
        return Err(BadHeader::TooLong);
    }
    Ok(header)
}

/// What is left to decode.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn name(&mut self) -> Result<ObjectName, BadHeader> {
        let path = self.text("name")?;
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        let rooted = path.len() == name.len();
        if !is_name(name) || !(rooted || is_name(namespace)) {
            return Err(BadHeader::Damaged("name"));
        }
        Ok(ObjectName::from_path(path))
    }

    fn uid(&mut self) -> Result<Box<str>, BadHeader> {
        let uid = self.text("uid")?;
        if !is_name(uid) {
            return Err(BadHeader::Damaged("uid"));
        }
        Ok(uid.into())
    }

    /// A number has one encoding: a last byte of zero, which adds nothing, is refused.
    fn number(&mut self) -> Result<u64, BadHeader> {
        let mut number = 0u64;
        for at in 0..10 {
            let (byte, rest) = self.rest.split_first().ok_or(BadHeader::CutShort)?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if (at == 9 && bits > 1) || (at > 0 && *byte == 0) {
                return Err(BadHeader::Damaged("numbers"));
            }
            number |= bits << (7 * at);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BadHeader::Damaged("numbers"))
    }

    fn text(&mut self, part: &'static str) -> Result<&'a str, BadHeader> {
        let length = usize::try_from(self.number()?).map_err(|_| BadHeader::CutShort)?;
        let (text, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(BadHeader::CutShort)?;
        self.rest = rest;
        std::str::from_utf8(text).map_err(|_| BadHeader::Damaged(part))
    }

    /// A count of items of which each takes at least one byte, so it cannot reserve more than
    /// there is.
    fn count(&mut self) -> Result<usize, BadHeader> {
        let count = usize::try_from(self.number()?).map_err(|_| BadHeader::CutShort)?;
        if count > self.rest.len() {
            return Err(BadHeader::CutShort);
        }
        Ok(count)
    }

    fn pairs(&mut self, part: &'static str) -> Result<Pairs, BadHeader> {
        let count = self.count()?;
        let mut pairs: Vec<(&str, &str)> = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            let pair = (self.text(part)?, self.text(part)?);
            if pairs.last().is_some_and(|(before, _)| *before >= pair.0) {
                return Err(BadHeader::Damaged(part));
            }
            pairs.push(pair);
        }
        Ok(Pairs::pack(pairs.into_iter()))
    }

    fn lifecycle(&mut self) -> Result<Option<Box<Lifecycle>>, BadHeader> {
        const PART: &str = "lifecycle";
        let mut lifecycle = Lifecycle::default();
        let deletion_timestamp = self.text(PART)?;
        if !deletion_timestamp.is_empty() {
            lifecycle.deletion_timestamp = Some(deletion_timestamp.into());
        }
        for _ in 0..self.count()? {
            lifecycle.finalizers.push(self.text(PART)?.into());
        }
        for _ in 0..self.count()? {
            lifecycle.owners.push(Owner {
                api_version: self.text(PART)?.into(),
                kind: self.text(PART)?.into(),
                name: self.text(PART)?.into(),
                uid: self.text(PART)?.into(),
            });
        }
        Ok((lifecycle != Lifecycle::default()).then(|| Box::new(lifecycle)))
    }
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    out.push(number as u8);
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn push_pairs(out: &mut Vec<u8>, pairs: &Pairs) {
    push_number(out, pairs.len() as u64);
    for (key, value) in pairs {
        push_text(out, key);
        push_text(out, value);
    }
}

/// Numbers near zero, of either sign, become small.
fn fold(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unfold(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
