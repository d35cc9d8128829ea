//! How small things are written into records and frames: varints, and bytes with their length
//! before them.

use crate::{ObjectName, Version};

/// Bytes do not say what they should: damage that a checksum did not show, a hostile peer, or a
/// bug.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not what their kind demands")]
pub struct Malformed;

/// Appends `number` in as few bytes as it needs, seven bits each.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends `text` with its length before it.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// Appends `bytes` with their length before them.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a version, or an empty text where there is none.
pub fn put_version(out: &mut Vec<u8>, version: Option<&Version>) {
    match version {
        Some(version) => put_text(out, &version.to_string()),
        None => put_text(out, ""),
    }
}

/// Takes things out in the order in which they were put in. Nothing is allocated for a length that
/// is only claimed.
pub struct Taker<'a> {
    rest: &'a [u8],
}

impl<'a> Taker<'a> {
    /// Takes from these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// A number.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Malformed);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (&byte, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(byte)
    }

    /// Bytes that have their length before them.
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        if length > self.rest.len() {
            return Err(Malformed);
        }
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(taken)
    }

    /// Text that has its length before it.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    /// A version, or none where an empty text stands.
    pub fn version(&mut self) -> Result<Option<Version>, Malformed> {
        match self.text()? {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| Malformed),
        }
    }

    /// An object's name, as it stands there.
    pub fn name(&mut self) -> Result<ObjectName, Malformed> {
        self.text().map(ObjectName::from_path)
    }

    /// So many bytes as they are.
    pub fn exactly<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Whether everything was taken.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Refuses what is left.
    pub fn end(self) -> Result<(), Malformed> {
        match self.rest {
            [] => Ok(()),
            _ => Err(Malformed),
        }
    }
}
