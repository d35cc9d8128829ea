//! Single values in JSON, spelled as Go spells them.

use std::fmt::Display;
use std::io::Write;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, civil};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::fault::Fault;
use super::wire::{Content, Fields};
use crate::write::quantity::{Quantity, canonical};

/// JSON in the making. Writing to it cannot fail.
pub(super) type Out = Vec<u8>;

pub(super) fn literal(out: &mut Out, literal: impl Display) {
    write!(out, "{literal}").expect("a vector takes all that is written");
}

pub(super) fn text(out: &mut Out, text: &str) {
    serde_json::to_writer(out, text).expect("a vector takes all that is written, and so does JSON");
}

pub(super) fn base64(out: &mut Out, bytes: &[u8]) {
    literal(
        out,
        format_args!("\"{}\"", Base64Display::new(bytes, &STANDARD)),
    );
}

/// Go writes very small and very large numbers with an exponent, and no empty fraction.
pub(super) fn double(out: &mut Out, number: f64) -> Result<(), Fault> {
    let size = number.abs();
    if !number.is_finite() {
        return Err(Fault::Double);
    }
    if size != 0.0 && size < 1e-6 {
        literal(out, format_args!("{number:e}"));
    } else if size >= 1e21 {
        literal(out, format!("{number:e}").replace('e', "e+"));
    } else {
        literal(out, number);
    }
    Ok(())
}

/// A time of which only the seconds count; the time zero of Go is null.
pub(super) fn time(out: &mut Out, bytes: &[u8]) -> Result<(), Fault> {
    let (seconds, _) = timestamp(bytes)?;
    if seconds == ZERO_SECOND {
        literal(out, "null");
        return Ok(());
    }
    literal(out, format_args!("\"{}Z\"", date(seconds)?));
    Ok(())
}

/// A time to the microsecond; the time zero of Go is null.
pub(super) fn micro_time(out: &mut Out, bytes: &[u8]) -> Result<(), Fault> {
    let (seconds, nanos) = timestamp(bytes)?;
    let micros = nanos / 1000;
    let seconds = seconds.checked_add(i64::from(micros.div_euclid(1_000_000)));
    let (seconds, micros) = (seconds.ok_or(Fault::Time)?, micros.rem_euclid(1_000_000));
    if (seconds, micros) == (ZERO_SECOND, 0) {
        literal(out, "null");
        return Ok(());
    }
    literal(out, format_args!("\"{}.{micros:06}Z\"", date(seconds)?));
    Ok(())
}

/// Seconds and nanoseconds. No bytes at all are the time zero.
fn timestamp(bytes: &[u8]) -> Result<(i64, i32), Fault> {
    let (mut seconds, mut nanos) = (0, 0);
    if bytes.is_empty() {
        return Ok((ZERO_SECOND, 0));
    }
    for field in Fields::of(bytes) {
        match field? {
            (1, content) => seconds = int64(content.number()?),
            (2, content) => nanos = int32(content.number()?),
            _ => {}
        }
    }
    Ok((seconds, nanos))
}

fn date(seconds: i64) -> Result<impl Display, Fault> {
    if seconds < ZERO_SECOND {
        return Err(Fault::Time);
    }
    let epoch = civil::date(1970, 1, 1).at(0, 0, 0, 0);
    let time = epoch.checked_add(SignedDuration::from_secs(seconds));
    Ok(time.map_err(|_| Fault::Time)?.strftime("%Y-%m-%dT%H:%M:%S"))
}

/// An amount, in the one spelling that it has in JSON.
pub(super) fn quantity(out: &mut Out, pieces: &[Content<'_>]) -> Result<(), Fault> {
    let mut found = "0";
    for field in fields(pieces) {
        if let (1, content) = field? {
            found = content.text()?;
            Quantity::parse(found).ok_or(Fault::Quantity)?;
        }
    }
    let spelled = canonical(&Value::from(found));
    text(out, spelled.as_deref().unwrap_or(found));
    Ok(())
}

pub(super) fn int_or_string(out: &mut Out, pieces: &[Content<'_>]) -> Result<(), Fault> {
    let (mut which, mut number, mut word) = (0, 0, "");
    for field in fields(pieces) {
        match field? {
            (1, content) => which = int64(content.number()?),
            (2, content) => number = int32(content.number()?),
            (3, content) => word = content.text()?,
            _ => {}
        }
    }
    match which {
        0 => literal(out, number),
        1 => text(out, word),
        _ => return Err(Fault::IntOrString),
    }
    Ok(())
}

/// JSON that is carried as it is, without its white space. None at all is null.
pub(super) fn raw(out: &mut Out, pieces: &[Content<'_>]) -> Result<(), Fault> {
    let mut found = "";
    for field in fields(pieces) {
        if let (1, content) = field? {
            found = content.text()?;
        }
    }
    if found.is_empty() {
        literal(out, "null");
        return Ok(());
    }
    serde_json::from_str::<IgnoredAny>(found).map_err(|error| Fault::Json(error.to_string()))?;
    let (mut quoted, mut escaped) = (false, false);
    for byte in found.bytes() {
        if quoted || !byte.is_ascii_whitespace() {
            out.push(byte);
        }
        quoted ^= byte == b'"' && !escaped;
        escaped = byte == b'\\' && quoted && !escaped;
    }
    Ok(())
}

/// A list in a message of its own. Where the message is there, so is the list, even an empty one.
pub(super) fn texts(out: &mut Out, pieces: &[Content<'_>]) -> Result<(), Fault> {
    out.push(b'[');
    for field in fields(pieces) {
        if let (1, content) = field? {
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            text(out, content.text()?);
        }
    }
    out.push(b']');
    Ok(())
}

/// The fields of a message that may have come in pieces: protobuf says that these are merged, and
/// merging is the same as reading one after the other.
pub(super) fn fields<'a>(
    pieces: &[Content<'a>],
) -> impl Iterator<Item = Result<(u64, Content<'a>), Fault>> {
    pieces.iter().flat_map(|piece| {
        let (bytes, wrong) = match piece.bytes() {
            Ok(bytes) => (bytes, None),
            Err(fault) => (&[][..], Some(Err(fault))),
        };
        wrong.into_iter().chain(Fields::of(bytes))
    })
}

/// Protobuf sends negative numbers as the positive ones with the same bits.
pub(super) fn int64(number: u64) -> i64 {
    number.cast_signed()
}

/// Only the lower bits count, as protobuf says.
pub(super) fn int32(number: u64) -> i32 {
    number as i32
}

/// The first second of the year 1, which Go takes for no time at all.
const ZERO_SECOND: i64 = -62_135_596_800;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Out) -> Result<(), Fault>) -> Result<String, Fault> {
        let mut out = Out::new();
        write(&mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn numbers_are_spelled_as_go_spells_them() {
        let spelled = [
            (0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-2.5e300, "-2.5e+300"),
        ];
        for (number, expected) in spelled {
            assert_eq!(written(|out| double(out, number)).as_deref(), Ok(expected));
        }
        assert_eq!(written(|out| double(out, f64::NAN)), Err(Fault::Double));
    }

    #[test]
    fn times_are_spelled_as_go_spells_them() {
        let at = |seconds: i64, nanos: i32| {
            let mut bytes = vec![0x08];
            push_varint(&mut bytes, seconds.cast_unsigned());
            bytes.push(0x10);
            push_varint(&mut bytes, i64::from(nanos).cast_unsigned());
            bytes
        };
        let whole = |bytes: &[u8]| written(|out| time(out, bytes));
        let micro = |bytes: &[u8]| written(|out| micro_time(out, bytes));
        assert_eq!(
            whole(&at(0, 999)).as_deref(),
            Ok("\"1970-01-01T00:00:00Z\"")
        );
        assert_eq!(
            micro(&at(0, 1999)).as_deref(),
            Ok("\"1970-01-01T00:00:00.000001Z\"")
        );
        assert_eq!(
            micro(&at(0, -1999)).as_deref(),
            Ok("\"1969-12-31T23:59:59.999999Z\"")
        );
        assert_eq!(whole(b"").as_deref(), Ok("null"));
        assert_eq!(whole(&at(ZERO_SECOND, 0)).as_deref(), Ok("null"));
        assert_eq!(
            whole(&at(ZERO_SECOND + 1, 0)).as_deref(),
            Ok("\"0001-01-01T00:00:01Z\"")
        );
        assert_eq!(
            micro(&at(ZERO_SECOND, 1000)).as_deref(),
            Ok("\"0001-01-01T00:00:00.000001Z\"")
        );
        assert_eq!(
            whole(&at(253_402_300_799, 0)).as_deref(),
            Ok("\"9999-12-31T23:59:59Z\"")
        );
        assert_eq!(whole(&at(253_402_300_800, 0)), Err(Fault::Time));
        assert_eq!(whole(&at(ZERO_SECOND - 1, 0)), Err(Fault::Time));
        assert_eq!(micro(&at(i64::MIN, -1)), Err(Fault::Time));
    }

    fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }

    #[test]
    fn carried_json_loses_its_white_space_and_nothing_else() {
        let carried = |text: &str| {
            let mut bytes = vec![0x0a, u8::try_from(text.len()).unwrap()];
            bytes.extend_from_slice(text.as_bytes());
            written(|out| raw(out, &[Content::Bytes(&bytes)]))
        };
        let spaced = "{ \"a b\\\\\" :\n [1.0,\t\" \\\" \" ] }";
        assert_eq!(
            carried(spaced).as_deref(),
            Ok("{\"a b\\\\\":[1.0,\" \\\" \"]}")
        );
        assert_eq!(carried("").as_deref(), Ok("null"));
        assert!(matches!(carried("{"), Err(Fault::Json(_))));
        assert!(matches!(carried("1 2"), Err(Fault::Json(_))));
    }
}
