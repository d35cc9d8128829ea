//! Strings that mean something: quantities, times, base64.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};
use jiff::Timestamp;

/// Refuses a string that is not of its format, in Go's words. Other formats say nothing.
pub(super) fn check(text: &str, format: &str) -> Result<(), String> {
    match format {
        "byte" => base64(text),
        "date-time" => time(text),
        _ => Ok(()),
    }
}

/// Refuses what is not a quantity: a decimal number and a suffix.
pub(super) fn quantity(text: &str) -> Result<(), String> {
    const WRONG: &str = "quantities must match the regular expression \
                         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let dots = digits.bytes().filter(|byte| *byte == b'.').count();
    if digits.is_empty() || dots > 1 || digits.len() == dots {
        return Err(WRONG.to_owned());
    }
    let known = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    if known.contains(&suffix) || is_exponent(suffix) {
        return Ok(());
    }
    let wording = suffix
        .bytes()
        .all(|byte| b"eEinumkKMGTP+-0123456789".contains(&byte));
    match wording {
        true => Err("unable to parse quantity's suffix".to_owned()),
        false => Err(WRONG.to_owned()),
    }
}

fn is_exponent(suffix: &str) -> bool {
    let Some(number) = suffix.strip_prefix(['e', 'E']) else {
        return false;
    };
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn base64(text: &str) -> Result<(), String> {
    // Go skips line breaks in base64.
    let joined: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    match STANDARD.decode(joined.as_bytes()) {
        Ok(_) => Ok(()),
        Err(DecodeError::InvalidByte(place, _) | DecodeError::InvalidLastSymbol(place, _)) => {
            Err(format!("illegal base64 data at input byte {place}"))
        }
        Err(_) => Err(format!(
            "illegal base64 data at input byte {}",
            joined.len() / 4 * 4
        )),
    }
}

fn time(text: &str) -> Result<(), String> {
    if is_rfc3339(text) && text.parse::<Timestamp>().is_ok() {
        return Ok(());
    }
    let layout = "2006-01-02T15:04:05Z07:00";
    Err(format!(
        "parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""
    ))
}

/// A time to the microsecond is written to the microsecond.
pub(super) fn micro_time(text: &str) -> Result<(), String> {
    let (head, rest) = text.split_at_checked(SECONDS_LENGTH).unwrap_or(("", text));
    let digits = rest.strip_prefix('.').unwrap_or_default().bytes();
    let digits = digits.take_while(u8::is_ascii_digit).count();
    let whole = is_rfc3339(text) && text.parse::<Timestamp>().is_ok();
    if whole && digits == 6 {
        return Ok(());
    }
    let (rest, wanted) = match whole && !head.is_empty() {
        true => (rest, ".000000"),
        false => (text, "2006"),
    };
    let layout = "2006-01-02T15:04:05.000000Z07:00";
    Err(format!(
        "parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {wanted:?}"
    ))
}

/// How long a time is up to its seconds.
const SECONDS_LENGTH: usize = 19;

/// `2006-01-02T15:04:05Z`, with a fraction or an offset if need be. The parser takes more.
pub(crate) fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let Some((head, rest)) = bytes.split_at_checked(19) else {
        return false;
    };
    let pattern = b"dddd-dd-ddTdd:dd:dd";
    let shaped = head.iter().zip(pattern).all(|(byte, wanted)| match wanted {
        b'd' => byte.is_ascii_digit(),
        exact => byte == exact,
    });
    let zone = match rest.strip_prefix(b".") {
        Some(fraction) => {
            let digits = fraction
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        None => rest,
    };
    shaped
        && match zone {
            b"Z" => true,
            [b'+' | b'-', a, b, b':', c, d] => {
                [a, b, c, d].iter().all(|byte| byte.is_ascii_digit())
            }
            _ => false,
        }
}
