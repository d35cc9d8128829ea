//! Small edits of an object's bytes, without decoding them.
//!
//! Each edit scans the text for where values begin and end, cuts and pastes there, and leaves
//! every other byte as it came: numbers keep their digits, strings their escapes, keys their
//! order. The text should have been read by [`crate::Header::parse`] before, which is what says
//! that it is JSON; on any other text an edit ends with an error or with a text that is no better,
//! but never in a panic.
//!
//! A key that an edit is about must not stand twice, however it is escaped: which of two counts is
//! a matter of the reader's taste, and an edit that changed one of them would change the object
//! for some readers only. Keys that no edit is about may stand as often as they like.

use std::ops::Range;

use bytes::Bytes;

use crate::Version;

pub(crate) mod scan; // where values begin and end

use scan::{Member, member, members};

/// Why bytes cannot be edited. They are not an object as we keep them: the sender's fault, or a
/// caller's that did not read them first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSplice {
    /// The text is not JSON, or not an object where one must be.
    #[error("not JSON, or not an object where one must be, at byte {at}")]
    NotJson {
        /// Where the scanner stopped.
        at: usize,
    },
    /// The text nests deeper than objects may.
    #[error("nested too deep")]
    TooDeep,
    /// A key that the edit is about stands twice, and which one counts is a matter of taste.
    #[error("the key {0:?} stands twice")]
    Twice(&'static str),
}

/// Where the value of metadata stands, if there is one.
pub fn metadata_range(bytes: &[u8]) -> Result<Option<Range<usize>>, BadSplice> {
    let top = members(bytes, 0..bytes.len())?;
    Ok(member(bytes, &top, METADATA)?.map(|metadata| metadata.value.clone()))
}

/// The object with another metadata.resourceVersion, in the place of the old one or, where there
/// was none, at the end of its metadata.
pub fn with_version(bytes: &Bytes, version: &Version) -> Result<Bytes, BadSplice> {
    let quoted = format!("\"{version}\"");
    let top = members(bytes, 0..bytes.len())?;
    let Some(metadata) = member(bytes, &top, METADATA)? else {
        let added = format!("\"metadata\":{{\"resourceVersion\":{quoted}}}");
        return Ok(insert_last(bytes, 0..bytes.len(), &top, &added));
    };
    let inner = members(bytes, metadata.value.clone())?;
    match member(bytes, &inner, RESOURCE_VERSION)? {
        Some(old) if bytes[old.value.clone()] == *quoted.as_bytes() => Ok(bytes.clone()),
        Some(old) => Ok(replace(bytes, old.value.clone(), &quoted)),
        None => {
            let added = format!("\"resourceVersion\":{quoted}");
            Ok(insert_last(bytes, metadata.value.clone(), &inner, &added))
        }
    }
}

/// The object without metadata.managedFields; the same bytes where there are none.
pub fn without_managed_fields(bytes: &Bytes) -> Result<Bytes, BadSplice> {
    let Some(metadata) = metadata_range(bytes)? else {
        return Ok(bytes.clone());
    };
    if bytes[metadata.clone()] == *b"null" {
        return Ok(bytes.clone());
    }
    let inner = members(bytes, metadata)?;
    match member(bytes, &inner, MANAGED_FIELDS)? {
        Some(managed) => Ok(replace(bytes, removal(&inner, managed), "")),
        None => Ok(bytes.clone()),
    }
}

/// The object as it is kept: apiVersion and kind first, metadata.managedFields left out, no white
/// space between values; otherwise as it came. Canonical bytes stay as they are.
pub fn canonical(bytes: &Bytes) -> Result<Bytes, BadSplice> {
    canonical_text(bytes, None)
}

/// As [`canonical`], with apiVersion and kind filled in where the object has none: the items of a
/// list come without.
pub fn canonical_as(bytes: &Bytes, api_version: &str, kind: &str) -> Result<Bytes, BadSplice> {
    canonical_text(bytes, Some([api_version, kind]))
}

/// An object of another kind with this object's metadata and nothing else: a
/// PartialObjectMetadata, for the callers who asked for that.
pub fn metadata_only(bytes: &[u8], api_version: &str, kind: &str) -> Result<Bytes, BadSplice> {
    let metadata = metadata_range(bytes)?.map_or(&b"{}"[..], |range| &bytes[range]);
    let mut out = Vec::with_capacity(metadata.len() + api_version.len() + kind.len() + 48);
    out.extend_from_slice(b"{\"kind\":");
    push_string(&mut out, kind);
    out.extend_from_slice(b",\"apiVersion\":");
    push_string(&mut out, api_version);
    out.extend_from_slice(b",\"metadata\":");
    out.extend_from_slice(metadata);
    out.push(b'}');
    Ok(out.into())
}

const METADATA: &str = "metadata";
const RESOURCE_VERSION: &str = "resourceVersion";
const MANAGED_FIELDS: &str = "managedFields";
const TYPE_KEYS: [&str; 2] = ["apiVersion", "kind"];

fn canonical_text(bytes: &Bytes, types: Option<[&str; 2]>) -> Result<Bytes, BadSplice> {
    let top = members(bytes, 0..bytes.len())?;
    member(bytes, &top, METADATA)?;
    let mut out = Vec::with_capacity(bytes.len() + 64);
    out.push(b'{');
    for (at, key) in TYPE_KEYS.into_iter().enumerate() {
        match (member(bytes, &top, key)?, types) {
            (Some(found), _) => push_member(&mut out, bytes, found),
            (None, Some(types)) => {
                push_comma(&mut out);
                push_string(&mut out, key);
                out.push(b':');
                push_string(&mut out, types[at]);
            }
            (None, None) => {}
        }
    }
    for found in &top {
        if TYPE_KEYS.iter().any(|key| found.is(bytes, key)) {
            continue;
        }
        match found.is(bytes, METADATA) && bytes[found.value.start] == b'{' {
            true => push_metadata(&mut out, bytes, found)?,
            false => push_member(&mut out, bytes, found),
        }
    }
    out.push(b'}');
    match out == *bytes {
        true => Ok(bytes.clone()),
        false => Ok(out.into()),
    }
}

fn push_metadata(out: &mut Vec<u8>, text: &[u8], metadata: &Member) -> Result<(), BadSplice> {
    let inner = members(text, metadata.value.clone())?;
    member(text, &inner, MANAGED_FIELDS)?;
    push_comma(out);
    out.extend_from_slice(&text[metadata.key.clone()]);
    out.extend_from_slice(b":{");
    for found in inner.iter().filter(|found| !found.is(text, MANAGED_FIELDS)) {
        push_member(out, text, found);
    }
    out.push(b'}');
    Ok(())
}

fn push_member(out: &mut Vec<u8>, text: &[u8], member: &Member) {
    push_comma(out);
    out.extend_from_slice(&text[member.key.clone()]);
    out.push(b':');
    push_compact(out, &text[member.value.clone()]);
}

/// A comma, unless this is the first member of its object.
fn push_comma(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

/// Copies a value without the white space that stands outside its strings.
fn push_compact(out: &mut Vec<u8>, value: &[u8]) {
    let mut at = 0;
    while at < value.len() {
        let start = scan::space_end(value, at);
        let strings_and_signs = |end: usize| match value.get(end) {
            Some(b'"') => Some(scan::string_end(value, end + 1).unwrap_or(value.len())),
            Some(b' ' | b'\t' | b'\n' | b'\r') | None => None,
            Some(_) => Some(end + 1),
        };
        let mut end = start;
        while let Some(next) = strings_and_signs(end) {
            end = next;
        }
        out.extend_from_slice(&value[start..end]);
        at = end.max(at + 1);
    }
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
}

/// The range that takes a member away with the comma that then stands for nothing.
fn removal(members: &[Member], gone: &Member) -> Range<usize> {
    let at = members
        .iter()
        .position(|member| member == gone)
        .unwrap_or_default();
    match (
        at.checked_sub(1).map(|before| &members[before]),
        members.get(at + 1),
    ) {
        (_, Some(next)) => gone.key.start..next.key.start,
        (Some(before), None) => before.value.end..gone.value.end,
        (None, None) => gone.key.start..gone.value.end,
    }
}

/// Adds a member behind the last one of the object in `range`.
fn insert_last(text: &[u8], range: Range<usize>, members: &[Member], added: &str) -> Bytes {
    match members.last() {
        Some(last) => replace(text, last.value.end..last.value.end, &format!(",{added}")),
        None => {
            let inside = scan::space_end(text, range.start) + 1;
            replace(text, inside..inside, added)
        }
    }
}

fn replace(text: &[u8], range: Range<usize>, by: &str) -> Bytes {
    [&text[..range.start], by.as_bytes(), &text[range.end..]]
        .concat()
        .into()
}

#[cfg(test)]
mod tests;
