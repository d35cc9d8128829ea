//! The times of a cron job: five fields, or a word such as `@hourly`.

/// Why a schedule is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotASchedule {
    /// Not five fields.
    #[error("expected exactly 5 fields, found {found}: [{fields}]")]
    Fields {
        /// How many there are.
        found: usize,
        /// Which.
        fields: String,
    },
    /// A number that is none.
    #[error("failed to parse int from {0}: strconv.Atoi: parsing \"{0}\": invalid syntax")]
    Number(String),
    /// Below the least.
    #[error("beginning of range ({0}) below minimum ({1}): {2}")]
    Below(u32, u32, String),
    /// Above the most.
    #[error("end of range ({0}) above maximum ({1}): {2}")]
    Above(u32, u32, String),
    /// A range that ends before it begins.
    #[error("beginning of range ({0}) beyond end of range ({1}): {2}")]
    Backwards(u32, u32, String),
    /// A step of zero.
    #[error("step of range should be a positive number: {0}")]
    Step(String),
    /// Too many dashes or slashes.
    #[error("too many {0}: {1}")]
    TooMany(&'static str, String),
    /// A word that is not known.
    #[error("unrecognized descriptor: {0}")]
    Word(String),
}

/// Whether `text` says when.
pub fn check(text: &str) -> Result<(), NotASchedule> {
    let text = match text.split_once(' ') {
        Some((zone, rest)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => {
            rest.trim()
        }
        _ => text,
    };
    if text.starts_with('@') {
        return check_word(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else {
        let fields_text = fields.join(" ");
        return Err(NotASchedule::Fields {
            found: fields.len(),
            fields: fields_text,
        });
    };
    check_field(minute, 0, 59, &[])?;
    check_field(hour, 0, 23, &[])?;
    check_field(day, 1, 31, &[])?;
    check_field(month, 1, 12, &MONTHS)?;
    check_field(weekday, 0, 6, &WEEKDAYS)
}

fn check_word(text: &str) -> Result<(), NotASchedule> {
    let known = [
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
    ];
    let every = text.strip_prefix("@every ").is_some_and(is_duration);
    match known.contains(&text) || every {
        true => Ok(()),
        false => Err(NotASchedule::Word(text.into())),
    }
}

/// A duration such as `1h30m`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
            .count();
        let units = ["ns", "us", "ms", "s", "m", "h"];
        let after = &rest[digits..];
        match units.iter().find_map(|unit| after.strip_prefix(unit)) {
            Some(next) if digits > 0 => rest = next,
            _ => return false,
        }
    }
    !text.is_empty()
}

fn check_field(text: &str, least: u32, most: u32, words: &[&str]) -> Result<(), NotASchedule> {
    text.split(',')
        .try_for_each(|part| check_part(part, least, most, words))
}

fn check_part(part: &str, least: u32, most: u32, words: &[&str]) -> Result<(), NotASchedule> {
    let slashes: Vec<&str> = part.split('/').collect();
    let range = slashes[0];
    let dashes: Vec<&str> = range.split('-').collect();
    let (first, last) = match dashes.as_slice() {
        ["*" | "?"] => (least, most),
        [one] => {
            let one = number(one, least, words)?;
            (one, if slashes.len() == 2 { most } else { one })
        }
        [first, last] => (number(first, least, words)?, number(last, least, words)?),
        _ => return Err(NotASchedule::TooMany("hyphens", part.into())),
    };
    let step = match slashes.as_slice() {
        [_] => 1,
        [_, step] => number(step, 0, &[])?,
        _ => return Err(NotASchedule::TooMany("slashes", part.into())),
    };
    match () {
        () if first < least => Err(NotASchedule::Below(first, least, part.into())),
        () if last > most => Err(NotASchedule::Above(last, most, part.into())),
        () if first > last => Err(NotASchedule::Backwards(first, last, part.into())),
        () if step == 0 => Err(NotASchedule::Step(part.into())),
        () => Ok(()),
    }
}

fn number(text: &str, least: u32, words: &[&str]) -> Result<u32, NotASchedule> {
    let lower = text.to_lowercase();
    if let Some(position) = words.iter().position(|word| *word == lower) {
        return Ok(least + u32::try_from(position).unwrap_or(u32::MAX - least));
    }
    text.parse().map_err(|_| NotASchedule::Number(text.into()))
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_that_people_write_are_right() {
        for right in [
            "* * * * *",
            "*/5 * * * *",
            "0 0 1 jan SUN",
            "1-5,7 9-17/2 ? * 1-5",
            "@hourly",
            "@every 1h30m",
            "5/15 * * * *",
            "TZ=UTC 0 0 * * *",
        ] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_kubernetes() {
        let told = |text: &str| check(text).unwrap_err().to_string();
        assert_eq!(
            told("* * * *"),
            "expected exactly 5 fields, found 4: [* * * *]"
        );
        assert_eq!(
            told("60 * * * *"),
            "end of range (60) above maximum (59): 60"
        );
        assert_eq!(
            told("* * 0 * *"),
            "beginning of range (0) below minimum (1): 0"
        );
        assert_eq!(
            told("5-1 * * * *"),
            "beginning of range (5) beyond end of range (1): 5-1"
        );
        assert_eq!(
            told("*/0 * * * *"),
            "step of range should be a positive number: */0"
        );
        assert_eq!(told("@often"), "unrecognized descriptor: @often");
        assert_eq!(told("1-2-3 * * * *"), "too many hyphens: 1-2-3");
        assert!(told("a * * * *").starts_with("failed to parse int from a"));
        assert!(check("@every soon").is_err());
        assert!(check("").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,40}") {
            let _ = check(&text);
        }
    }
}
