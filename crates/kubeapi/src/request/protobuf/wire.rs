//! The outermost layer of protobuf: numbered fields, one after the other.

use super::Fault;

/// What a field holds, as far as it can be told without knowing its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    /// A whole number, a boolean or an enumeration.
    Varint(u64),
    /// Eight bytes, little end first.
    Fixed64(u64),
    /// Four bytes, little end first.
    Fixed32(u32),
    /// Text, bytes, a message, or numbers packed together.
    Bytes(&'a [u8]),
}

/// The fields of a message in the order in which they stand.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// The next field with its number; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>, Fault> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Fault::Truncated)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(Fault::WireType(other)),
        };
        Ok(Some((tag >> 3, value)))
    }

    /// Seven bits a byte, the lowest first, the last byte without its highest bit.
    pub(super) fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Fault::LongNumber);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Fault::LongNumber)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Fault::Truncated)?;
        self.0 = rest;
        Ok(*array)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Fault::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ten_bytes_are_read_and_longer_ones_refused() {
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Fields(&most).varint(), Ok(u64::MAX));
        let mut above = most;
        above[9] = 0x02;
        assert_eq!(Fields(&above).varint(), Err(Fault::LongNumber));
        assert_eq!(Fields(&[0x80; 11]).varint(), Err(Fault::LongNumber));
        assert_eq!(Fields(&[0x80]).varint(), Err(Fault::Truncated));
    }

    #[test]
    fn fields_that_promise_more_than_there_is_are_refused() {
        assert_eq!(Fields(&[0x0a, 2, 1]).next(), Err(Fault::Truncated));
        let endless = [
            0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        assert_eq!(Fields(&endless).next(), Err(Fault::Truncated));
        assert_eq!(Fields(&[0x09, 1, 2]).next(), Err(Fault::Truncated));
        assert_eq!(Fields(&[0x0b]).next(), Err(Fault::WireType(3)));
    }
}
