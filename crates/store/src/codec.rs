//! How small things are written into records: varints, and bytes with their length before them.

use object::{ObjectName, Version};

/// A record's content does not say what it should: damage that its checksum did not show, or a bug.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a record's content is not what its kind demands")]
pub(crate) struct Malformed;

/// Appends `number` in as few bytes as it needs, seven bits each.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends `text` with its length before it.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a version, or an empty text where there is none.
pub(crate) fn put_version(out: &mut Vec<u8>, version: Option<&Version>) {
    match version {
        Some(version) => put_text(out, &version.to_string()),
        None => put_text(out, ""),
    }
}

/// Takes things out of a record in the order in which they were put in.
pub(crate) struct Taker<'a> {
    rest: &'a [u8],
}

impl<'a> Taker<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
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

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (&byte, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(byte)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        if length > self.rest.len() {
            return Err(Malformed);
        }
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    pub(crate) fn version(&mut self) -> Result<Option<Version>, Malformed> {
        match self.text()? {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| Malformed),
        }
    }

    pub(crate) fn name(&mut self) -> Result<ObjectName, Malformed> {
        self.text().map(ObjectName::from_path)
    }

    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }
}
