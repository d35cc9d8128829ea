//! Finds where the values of a JSON text begin and end, without decoding them and without
//! recursion.
//!
//! The scanner checks brackets, strings and commas, and what comes between them only loosely: it
//! is meant for text that was read as JSON once before. On anything else it ends with an error or
//! with ranges that mean nothing, but never outside the text, never in a panic and never in more
//! than one pass.

use std::ops::Range;

use super::BadSplice;
use crate::header::DEPTH_MAX;

/// A key and its value, by where they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// The key with its quotes.
    pub(crate) key: Range<usize>,
    /// The value.
    pub(crate) value: Range<usize>,
}

impl Member {
    /// Whether the key, its escapes resolved, is `name`.
    pub(crate) fn is(&self, text: &[u8], name: &str) -> bool {
        let quoted = &text[self.key.clone()];
        let inner = &quoted[1..quoted.len() - 1];
        match inner.contains(&b'\\') {
            false => inner == name.as_bytes(),
            true => serde_json::from_slice::<String>(quoted).is_ok_and(|key| key == name),
        }
    }
}

/// How deep the brackets of a text nest. Of a text that is not JSON it is some number.
pub(crate) fn depth(text: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut deepest = 0;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = string_end(text, at).unwrap_or(text.len()),
            _ => {}
        }
    }
    deepest
}

/// The members of the JSON object that is the value in `range`, white space around it allowed.
pub(crate) fn members(text: &[u8], range: Range<usize>) -> Result<Vec<Member>, BadSplice> {
    let mut at = space_end(text, range.start);
    expect(text, at, b'{')?;
    at = space_end(text, at + 1);
    let mut members = Vec::new();
    if text.get(at) == Some(&b'}') {
        end_of_range(text, at + 1, range.end)?;
        return Ok(members);
    }
    loop {
        expect(text, at, b'"')?;
        let key = at..string_end(text, at + 1)?;
        at = space_end(text, key.end);
        expect(text, at, b':')?;
        let value_start = space_end(text, at + 1);
        let value = value_start..value_end(text, value_start)?;
        at = space_end(text, value.end);
        members.push(Member { key, value });
        match text.get(at) {
            Some(b',') => at = space_end(text, at + 1),
            Some(b'}') => break,
            _ => return Err(BadSplice::NotJson { at }),
        }
    }
    end_of_range(text, at + 1, range.end)?;
    Ok(members)
}

/// The one member with this key.
pub(crate) fn member<'m>(
    text: &[u8],
    members: &'m [Member],
    name: &'static str,
) -> Result<Option<&'m Member>, BadSplice> {
    let mut named = members.iter().filter(|member| member.is(text, name));
    match (named.next(), named.next()) {
        (_, Some(_)) => Err(BadSplice::Twice(name)),
        (found, None) => Ok(found),
    }
}

/// Where white space that starts at `at` ends.
pub(crate) fn space_end(text: &[u8], at: usize) -> usize {
    let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    at + text
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(space)
        .count()
}

/// Where a string ends, behind its quote; `at` is behind the quote that opens it.
pub(crate) fn string_end(text: &[u8], mut at: usize) -> Result<usize, BadSplice> {
    loop {
        match text.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
            None => return Err(BadSplice::NotJson { at: text.len() }),
        }
    }
}

/// Where the value that starts at `at` ends.
fn value_end(text: &[u8], at: usize) -> Result<usize, BadSplice> {
    match text.get(at) {
        Some(b'"') => string_end(text, at + 1),
        Some(b'{' | b'[') => nested_end(text, at),
        _ => scalar_end(text, at),
    }
}

/// Numbers, true, false and null.
fn scalar_end(text: &[u8], at: usize) -> Result<usize, BadSplice> {
    let scalar = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let length = text
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(scalar)
        .count();
    if length == 0 {
        return Err(BadSplice::NotJson { at });
    }
    Ok(at + length)
}

/// Where the object or array that opens at `at` closes. The kinds of open brackets are the bits of
/// a number, so no depth of nesting costs more than another.
fn nested_end(text: &[u8], mut at: usize) -> Result<usize, BadSplice> {
    const { assert!(DEPTH_MAX < 128, "an open bracket is a bit of a u128") };
    let mut objects = 0u128;
    let mut depth = 0usize;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => at = string_end(text, at)?,
            b'{' | b'[' => {
                if depth == DEPTH_MAX {
                    return Err(BadSplice::TooDeep);
                }
                depth += 1;
                objects = objects << 1 | u128::from(*byte == b'{');
            }
            b'}' | b']' => {
                if (objects & 1 == 1) != (*byte == b'}') {
                    return Err(BadSplice::NotJson { at: at - 1 });
                }
                depth -= 1;
                objects >>= 1;
                if depth == 0 {
                    return Ok(at);
                }
            }
            _ => {}
        }
    }
    Err(BadSplice::NotJson { at })
}

fn expect(text: &[u8], at: usize, byte: u8) -> Result<(), BadSplice> {
    match text.get(at) {
        Some(found) if *found == byte => Ok(()),
        _ => Err(BadSplice::NotJson { at }),
    }
}

/// Nothing but white space may follow the value in its range.
fn end_of_range(text: &[u8], at: usize, end: usize) -> Result<(), BadSplice> {
    match space_end(text, at) >= end {
        true => Ok(()),
        false => Err(BadSplice::NotJson { at }),
    }
}
