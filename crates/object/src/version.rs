//! A resourceVersion as Kubernetes 1.35 defines it: a decimal number of any size, compared by
//! length and then by digits.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Digits that a version may have. A real one has at most 20; the rest is room, the bound keeps a
/// hostile one small.
pub const VERSION_DIGITS_MAX: usize = 64;

/// A version of an object or of a collection. Never zero: "0" is a question ("any version"), not
/// an answer.
///
/// Versions of different resources, or of one resource in different epochs, must not be compared;
/// the type cannot know that.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(Digits);

/// Almost every version fits in a machine word; one that does not is kept as its digits. A value
/// has one representation only, so the derived equality and hash are right.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Digits {
    Word(u64),
    Long(Arc<str>),
}

/// Why a string is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a resource version is a decimal number without leading zeros, of at most 64 digits")]
pub struct NotAVersion;

impl Version {
    /// The first version of a history that starts with us.
    pub const FIRST: Self = Self(Digits::Word(1));

    /// The version after this one. Only an authority, which mints versions, has a use for it.
    pub fn next(&self) -> Self {
        match &self.0 {
            Digits::Word(word) if *word < u64::MAX => Self(Digits::Word(word + 1)),
            Digits::Word(_) => Self(Digits::Long("18446744073709551616".into())),
            Digits::Long(digits) => Self(Digits::Long(increment(digits).into())),
        }
    }
}

impl From<std::num::NonZeroU64> for Version {
    fn from(number: std::num::NonZeroU64) -> Self {
        Self(Digits::Word(number.get()))
    }
}

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
        if text.is_empty()
            || text.len() > VERSION_DIGITS_MAX
            || !digits_only
            || text.starts_with('0')
        {
            return Err(NotAVersion);
        }
        match text.parse::<u64>() {
            Ok(word) => Ok(Self(Digits::Word(word))),
            Err(_) => Ok(Self(Digits::Long(text.into()))),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Digits::Word(word) => word.fmt(f),
            Digits::Long(digits) => digits.fmt(f),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Digits::Word(a), Digits::Word(b)) => a.cmp(b),
            (Digits::Word(_), Digits::Long(_)) => Ordering::Less,
            (Digits::Long(_), Digits::Word(_)) => Ordering::Greater,
            (Digits::Long(a), Digits::Long(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn increment(digits: &str) -> String {
    let mut bytes = digits.as_bytes().to_vec();
    for byte in bytes.iter_mut().rev() {
        if *byte < b'9' {
            *byte += 1;
            return String::from_utf8(bytes).expect("digits are ASCII");
        }
        *byte = b'0';
    }
    bytes.insert(0, b'1');
    String::from_utf8(bytes).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn only_decimal_numbers_without_leading_zeros_are_versions() {
        let wrong = [
            "", "0", "-1", "01", "1e9", "NaN", " 1", "1 ", "+1", "٣", "1.0", "0x1",
        ];
        for text in wrong {
            assert_eq!(text.parse::<Version>(), Err(NotAVersion), "{text:?}");
        }
        assert!("9".repeat(64).parse::<Version>().is_ok());
        assert!("9".repeat(65).parse::<Version>().is_err());
    }

    #[test]
    fn longer_is_greater_whatever_the_digits_are() {
        assert!(version("9") < version("10"));
        assert!(version("18446744073709551615") < version("18446744073709551616"));
        assert!(version("18446744073709551616") < version("18446744073709551617"));
        assert!(version(&"9".repeat(40)) < version(&"1".repeat(41)));
    }

    #[test]
    fn the_next_version_crosses_the_machine_word() {
        let last_word = version("18446744073709551615");
        assert_eq!(last_word.next().to_string(), "18446744073709551616");
        assert_eq!(
            version("99999999999999999999").next().to_string(),
            "100000000000000000000"
        );
    }

    proptest! {
        #[test]
        fn order_is_by_length_then_digits(a in "[1-9][0-9]{0,30}", b in "[1-9][0-9]{0,30}") {
            let expected = a.len().cmp(&b.len()).then_with(|| a.cmp(&b));
            prop_assert_eq!(version(&a).cmp(&version(&b)), expected);
            prop_assert_eq!(version(&a).to_string(), a.clone());
            prop_assert!(version(&a).next() > version(&a));
        }
    }
}
