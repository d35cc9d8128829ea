//! What a format demands of a string. A format that Kubernetes does not know demands nothing.

use std::net::{IpAddr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::Date;

use super::super::decode::is_rfc3339;

/// Whether a custom kind's schema may name this format and have it checked.
pub(crate) fn is_known(format: &str) -> bool {
    KNOWN.contains(&normal(format).as_str())
}

/// Whether a string is of this format.
pub(super) fn holds(format: &str, text: &str) -> bool {
    if format.is_empty() {
        return true;
    }
    match normal(format).as_str() {
        "byte" => STANDARD.decode(text).is_ok(),
        "date" => text.len() == 10 && text.parse::<Date>().is_ok(),
        "datetime" => is_rfc3339(text) && text.parse::<jiff::Timestamp>().is_ok(),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.parse::<IpAddr>().is_ok() && text.contains('.'),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uri" => is_uri(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some(b'3')),
        "uuid4" => is_uuid(text, Some(b'4')),
        "uuid5" => is_uuid(text, Some(b'5')),
        "hexcolor" => is_hex_colour(text),
        "rgbcolor" => is_rgb_colour(text),
        "ssn" => is_social_security_number(text),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_credit_card(text),
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "k8sshortname" => text.len() <= 63 && is_label(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_label),
        _ => true,
    }
}

const KNOWN: [&str; 26] = [
    "byte",
    "date",
    "datetime",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "hexcolor",
    "rgbcolor",
    "ssn",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "bsonobjectid",
    "password",
    "k8sshortname",
    "k8slongname",
];

/// Formats are named with or without dashes.
fn normal(format: &str) -> String {
    format.chars().filter(|c| *c != '-').collect()
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Numbers with units: `1h30m`, `-1.5s`, or as Scala writes them, `22 ns`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 24] = [
        "ns",
        "us",
        "µs",
        "μs",
        "ms",
        "s",
        "m",
        "h",
        "d",
        "w",
        "nanosecond",
        "nanoseconds",
        "microsecond",
        "microseconds",
        "millisecond",
        "milliseconds",
        "second",
        "seconds",
        "minute",
        "minutes",
        "hour",
        "hours",
        "day",
        "days",
    ];
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, unit) = rest.split_at(end);
        let unit = unit.trim_start();
        let end = unit
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(unit.len());
        let (unit, next) = unit.split_at(end);
        if number.parse::<f64>().is_err() || !UNITS.contains(&unit.trim_end()) {
            return false;
        }
        parts += 1;
        rest = next;
    }
    parts > 0
}

/// `name@domain`, or `Name <name@domain>`.
fn is_email(text: &str) -> bool {
    let address = match (text.find('<'), text.strip_suffix('>')) {
        (Some(start), Some(_)) => &text[start + 1..text.len() - 1],
        (None, None) => text,
        _ => return false,
    };
    let odd = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '(' | ')' | ',' | ';' | ':');
    match address.rsplit_once('@') {
        Some((name, domain)) => {
            let dots = name.starts_with('.') || name.ends_with('.') || name.contains("..");
            !name.is_empty()
                && !domain.is_empty()
                && !dots
                && !address.contains(odd)
                && !name.contains('@')
                && domain.split('.').all(|label| !label.is_empty())
        }
        None => false,
    }
}

fn is_hostname(text: &str) -> bool {
    let labels: Vec<&str> = text.split('.').collect();
    let word = |c: char| c.is_alphanumeric() || !c.is_ascii();
    let label_holds = |label: &&str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|c| word(c) || c == '-')
            && label.starts_with(word)
            && label.ends_with(word)
    };
    let top_holds =
        |label: &&str| label.chars().count() >= 2 && label.chars().all(|c| c.is_alphabetic());
    text.len() <= 255
        && labels.iter().all(label_holds)
        && (labels.len() == 1 || labels.last().is_some_and(top_holds))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    digits && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// Six, eight or twenty octets, as `00:11:…`, `00-11-…` or `0011.2233.…`.
fn is_mac(text: &str) -> bool {
    for (separator, digits) in [(':', 2), ('-', 2), ('.', 4)] {
        let parts: Vec<&str> = text.split(separator).collect();
        let shaped = parts
            .iter()
            .all(|part| part.len() == digits && is_hex(part));
        if parts.len() > 1 && shaped && [6, 8, 20].contains(&(parts.len() * digits / 2)) {
            return true;
        }
    }
    false
}

/// An absolute URI or an absolute path, as Go's `ParseRequestURI` takes it.
fn is_uri(text: &str) -> bool {
    let plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    let scheme = text.split_once(':').is_some_and(|(scheme, rest)| {
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(letters)
            && !rest.is_empty()
    });
    plain && (text.starts_with('/') || scheme)
}

/// 32 hexadecimal digits, with dashes in the usual places or without.
fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text;
    for (place, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if place > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((part, after)) = rest.split_at_checked(length) else {
            return false;
        };
        let first = part.as_bytes()[0].to_ascii_lowercase();
        let wrong_version = place == 2 && version.is_some_and(|version| version != first);
        let checked = matches!(version, Some(b'4' | b'5'));
        if !is_hex(part) || wrong_version || (place == 3 && checked && !b"89ab".contains(&first)) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn is_hex_colour(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

fn is_rgb_colour(text: &str) -> bool {
    let inside = text
        .strip_prefix("rgb(")
        .and_then(|rest| rest.strip_suffix(')'));
    let Some(inside) = inside else {
        return false;
    };
    let parts: Vec<&str> = inside.split(',').map(str::trim).collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u8>().is_ok())
}

fn is_social_security_number(text: &str) -> bool {
    let digits: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    digits.len() == 9 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = without_separators(text);
    let values = digits.bytes().enumerate().map(|(place, byte)| match byte {
        b'0'..=b'9' => Some(u32::from(byte - b'0')),
        b'X' if place == 9 => Some(10),
        _ => None,
    });
    let weighted = values
        .zip(1_u32..)
        .map(|(value, weight)| value.map(|value| value * weight));
    digits.len() == 10
        && weighted
            .sum::<Option<u32>>()
            .is_some_and(|sum| sum % 11 == 0)
}

fn is_isbn13(text: &str) -> bool {
    let digits = without_separators(text);
    if digits.len() != 13 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = digits
        .bytes()
        .zip(weights)
        .map(|(b, weight)| u32::from(b - b'0') * weight)
        .sum();
    sum.is_multiple_of(10)
}

/// Digits of a card's length whose check digit is right.
fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match place % 2 {
            0 => *digit,
            _ if *digit > 4 => digit * 2 - 9,
            _ => digit * 2,
        })
        .sum();
    (13..=16).contains(&digits.len()) && sum.is_multiple_of(10)
}

fn is_label(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    ends.is_some_and(|(first, last)| word(*first) && word(*last))
        && bytes.iter().all(|byte| word(*byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_takes_what_it_means_and_nothing_else() {
        let cases = [
            ("date", "2024-02-29", "2023-02-29"),
            ("date-time", "2024-01-01T00:00:00Z", "2024-01-01"),
            ("datetime", "2024-01-01T00:00:00.5+01:00", "soon"),
            ("duration", "1h30m", "1x"),
            ("duration", "22 ns", "h"),
            ("email", "a@b.example", "a@"),
            ("hostname", "a.example", "-a.example"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "fd00::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("cidr", "fd00::/64", "fd00::/+6"),
            ("mac", "00:11:22:33:44:55", "00:11:22:33:44"),
            ("mac", "0011.2233.4455", "0011-2233-4455"),
            ("uri", "https://a.example/b", "no uri"),
            ("uuid", "01234567-89ab-CDEF-0123-456789abcdef", "01234567"),
            (
                "uuid4",
                "01234567-89ab-4def-8123-456789abcdef",
                "01234567-89ab-3def-8123-456789abcdef",
            ),
            ("hexcolor", "#fff", "#ffff"),
            ("rgbcolor", "rgb(1, 2, 255)", "rgb(1,2,256)"),
            ("ssn", "123-45-6789", "123-45-678"),
            ("isbn10", "0321751043", "0321751044"),
            ("isbn13", "978-0321751041", "978-0321751042"),
            ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
            ("byte", "aGk=", "aGk"),
            ("k8s-short-name", "a-b", "a.b"),
            ("k8s-long-name", "a.b-c", "a..b"),
        ];
        for (format, good, bad) in cases {
            assert!(is_known(format), "{format}");
            assert!(holds(format, good), "{format} takes {good}");
            assert!(!holds(format, bad), "{format} does not take {bad}");
        }
        assert!(!is_known("colour") && holds("colour", "anything"));
    }
}
