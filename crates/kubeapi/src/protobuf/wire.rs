//! Bytes -> the numbered fields of a protobuf message. Nothing is copied, nothing is allocated.

use super::fault::Fault;

/// The fields of a message one after the other, until the bytes end or make no sense.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

/// What stands in a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Content<'a> {
    /// Numbers and flags.
    Number(u64),
    /// Floating-point numbers, as their bits.
    Double(u64),
    /// Four bytes. No message that we know has them.
    Word,
    /// Text, bytes, messages, and lists of numbers.
    Bytes(&'a [u8]),
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn field(&mut self) -> Result<(u64, Content<'a>), Fault> {
        let tag = varint(&mut self.rest)?;
        let number = tag >> 3;
        if number == 0 || number > NUMBER_MAX {
            return Err(Fault::Tag(number));
        }
        let content = match tag & 7 {
            0 => Content::Number(varint(&mut self.rest)?),
            1 => {
                let (bits, rest) = self.rest.split_first_chunk().ok_or(Fault::Truncated)?;
                self.rest = rest;
                Content::Double(u64::from_le_bytes(*bits))
            }
            2 => {
                let length = varint(&mut self.rest)?;
                let length = usize::try_from(length).map_err(|_| Fault::Truncated)?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Fault::Truncated)?;
                self.rest = rest;
                Content::Bytes(bytes)
            }
            5 => {
                self.rest = self.rest.get(4..).ok_or(Fault::Truncated)?;
                Content::Word
            }
            wire => return Err(Fault::Group(wire)),
        };
        Ok((number, content))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Content<'a>), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'a> Content<'a> {
    pub(super) fn number(self) -> Result<u64, Fault> {
        match self {
            Self::Number(number) => Ok(number),
            other => Err(other.misplaced()),
        }
    }

    pub(super) fn double(self) -> Result<f64, Fault> {
        match self {
            Self::Double(bits) => Ok(f64::from_bits(bits)),
            other => Err(other.misplaced()),
        }
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], Fault> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.misplaced()),
        }
    }

    pub(super) fn text(self) -> Result<&'a str, Fault> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Fault::Text)
    }

    fn misplaced(self) -> Fault {
        Fault::WireType(match self {
            Self::Number(_) => 0,
            Self::Double(_) => 1,
            Self::Bytes(_) => 2,
            Self::Word => 5,
        })
    }
}

/// Takes a number of one to ten bytes.
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, Fault> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(Fault::Truncated)?;
        *rest = after;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return Err(Fault::Overflow);
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Fault::Overflow)
}

/// The largest number that protobuf allows a field to have.
const NUMBER_MAX: u64 = (1 << 29) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u64, Content<'_>)>, Fault> {
        Fields::of(bytes).collect()
    }

    #[test]
    fn fields_of_every_width_are_told_apart() {
        let bytes = b"\x08\x96\x01\x11\0\0\0\0\0\0\xf0\x3f\x1a\x02hi\x25\x01\x02\x03\x04";
        let expected = [
            (1, Content::Number(150)),
            (2, Content::Double(1.0_f64.to_bits())),
            (3, Content::Bytes(b"hi")),
            (4, Content::Word),
        ];
        assert_eq!(fields(bytes), Ok(expected.to_vec()));
    }

    #[test]
    fn whatever_ends_too_early_is_refused() {
        for bytes in [
            &b"\x08"[..],
            b"\x08\x80",
            b"\x11\0\0",
            b"\x1a\x05hi",
            b"\x25\0",
            b"\x80",
        ] {
            assert_eq!(fields(bytes), Err(Fault::Truncated), "{bytes:x?}");
        }
        let endless = b"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
        assert_eq!(fields(endless), Err(Fault::Truncated));
    }

    #[test]
    fn a_number_has_at_most_64_bits() {
        let largest = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(fields(largest), Ok(vec![(1, Content::Number(u64::MAX))]));
        let more = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
        assert_eq!(fields(more), Err(Fault::Overflow));
        let longer = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00";
        assert_eq!(fields(longer), Err(Fault::Overflow));
    }

    #[test]
    fn groups_and_impossible_tags_are_refused() {
        assert_eq!(fields(b"\x0b\x0c"), Err(Fault::Group(3)));
        assert_eq!(fields(b"\x0c"), Err(Fault::Group(4)));
        assert_eq!(fields(b"\x0e"), Err(Fault::Group(6)));
        assert_eq!(fields(b"\x00\x00"), Err(Fault::Tag(0)));
        assert_eq!(
            fields(b"\x80\x80\x80\x80\x10\x00"),
            Err(Fault::Tag(1 << 29))
        );
    }

    #[test]
    fn nothing_follows_a_fault() {
        let mut broken = Fields::of(b"\x0b\x08\x01");
        assert!(broken.next().is_some_and(|field| field.is_err()));
        assert_eq!(broken.next(), None);
    }
}
