//! Amounts of resources as Kubernetes writes them: `100m`, `1.5`, `2Gi`, `1e3`.

use std::cmp::Ordering;

use serde_json::Value;

/// Digits that an amount may have. No amount of anything needs more.
const DIGITS_MAX: usize = 64;

/// An amount, exact to a thousandth of a millionth: larger fractions are rounded up, as Kubernetes
/// does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    nanos: i128,
}

/// Why text is not an amount, in Kubernetes' words.
pub const NOT_A_QUANTITY: &str = "quantities must match the regular expression \
                                  '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

impl Quantity {
    /// Reads an amount from a string or a number.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Reads an amount. What is too large to count is counted as the most there is.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, unsigned) = match text.as_bytes().first()? {
            b'-' => (-1, &text[1..]),
            b'+' => (1, &text[1..]),
            _ => (1, text),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (digits, unit) = unsigned.split_at(end.unwrap_or(unsigned.len()));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let any = !whole.is_empty() || !fraction.is_empty();
        if !any || fraction.contains('.') || digits.len() > DIGITS_MAX {
            return None;
        }
        let nanos = scaled(whole, fraction, Scale::parse(unit)?);
        Some(Self {
            nanos: nanos.saturating_mul(sign),
        })
    }

    /// Whether it is less than nothing.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is a whole number.
    pub fn is_whole(self) -> bool {
        self.nanos % NANOS == 0
    }
}

/// Whether two fields hold the same amount, however they are written.
pub fn same(a: &Value, b: &Value) -> bool {
    let both = Quantity::from_value(a).zip(Quantity::from_value(b));
    both.is_some_and(|(a, b)| a.cmp(&b) == Ordering::Equal)
}

/// The amount as Kubernetes writes it back: no fraction, the largest unit that leaves a whole
/// number. Nothing where it is no amount, or too large to be exact.
pub fn canonical(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let Quantity { nanos } = Quantity::parse(&text)?;
    if nanos == 0 {
        return Some("0".into());
    }
    if nanos.unsigned_abs() >= i128::MAX.unsigned_abs() {
        return None;
    }
    let exponent = text.contains(['e', 'E']) && !text.ends_with(['E', 'i']);
    match text.ends_with('i') && nanos.abs() >= 1024 * NANOS {
        true => Some(binary(nanos)),
        false => Some(decimal(nanos, exponent)),
    }
}

fn binary(nanos: i128) -> String {
    let mut number = nanos / NANOS + i128::from(nanos % NANOS != 0);
    let mut unit = 0;
    while unit < BINARY_UNITS.len() - 1 && number % 1024 == 0 {
        number /= 1024;
        unit += 1;
    }
    format!("{number}{}", BINARY_UNITS[unit])
}

fn decimal(nanos: i128, exponent: bool) -> String {
    let mut number = nanos;
    let mut unit = 0;
    while unit < DECIMAL_UNITS.len() - 1 && number % 1000 == 0 {
        number /= 1000;
        unit += 1;
    }
    match (exponent, DECIMAL_UNITS[unit]) {
        (true, (power, _)) if power != 0 => format!("{number}e{power}"),
        (_, (_, suffix)) => format!("{number}{suffix}"),
    }
}

const BINARY_UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL_UNITS: [(i32, &str); 10] = [
    (-9, "n"),
    (-6, "u"),
    (-3, "m"),
    (0, ""),
    (3, "k"),
    (6, "M"),
    (9, "G"),
    (12, "T"),
    (15, "P"),
    (18, "E"),
];

/// What a unit multiplies by: a power of two or of ten.
#[derive(Clone, Copy)]
enum Scale {
    Binary(u32),
    Decimal(i32),
}

impl Scale {
    fn parse(unit: &str) -> Option<Self> {
        let scale = match unit {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            exponent => {
                let power = exponent.strip_prefix(['e', 'E'])?;
                let power: i32 = power.parse().ok()?;
                Self::Decimal(power.clamp(-200, 200))
            }
        };
        Some(scale)
    }
}

/// The number `whole.fraction` times the scale, in nanos, rounded up.
fn scaled(whole: &str, fraction: &str, scale: Scale) -> i128 {
    let digits = whole.bytes().chain(fraction.bytes());
    let mut mantissa: i128 = 0;
    for digit in digits {
        let shifted = mantissa.saturating_mul(10);
        mantissa = shifted.saturating_add(i128::from(digit - b'0'));
    }
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let (mantissa, exponent) = match scale {
        Scale::Decimal(power) => (mantissa, power - places + 9),
        Scale::Binary(bits) => (mantissa.saturating_mul(1 << bits), 9 - places),
    };
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    match (exponent >= 0, power) {
        (true, Some(power)) => mantissa.saturating_mul(power),
        (true, None) if mantissa == 0 => 0,
        (true, None) => i128::MAX,
        (false, Some(power)) => mantissa / power + i128::from(mantissa % power != 0),
        (false, None) => i128::from(mantissa != 0),
    }
}

const NANOS: i128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn the_same_amount_has_many_forms() {
        for (a, b) in [
            ("1", "1000m"),
            ("1Ki", "1024"),
            ("1.5", "1500m"),
            ("1e3", "1k"),
            ("0.5Gi", "512Mi"),
        ] {
            assert_eq!(quantity(a), quantity(b), "{a} {b}");
        }
        assert!(same(&json!(1), &json!("1")));
        assert!(!same(&json!("1"), &json!("2")));
        assert!(quantity("1Gi") > quantity("1G"));
        assert!(quantity("-1").is_negative());
        assert!(!quantity("100m").is_whole());
    }

    #[test]
    fn amounts_are_written_back_in_the_largest_whole_unit() {
        let forms = [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000", "1k"),
            ("512Ki", "512Ki"),
            ("100Mi", "100Mi"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("0", "0"),
            ("0.0", "0"),
            ("1500", "1500"),
            ("0.1Ki", "102400m"),
            ("-1", "-1"),
            ("1E", "1E"),
        ];
        for (given, written) in forms {
            assert_eq!(
                canonical(&json!(given)).as_deref(),
                Some(written),
                "{given}"
            );
        }
        assert_eq!(canonical(&json!(2)).as_deref(), Some("2"));
        assert_eq!(canonical(&json!("many")), None);
        assert_eq!(canonical(&json!(format!("{}E", "9".repeat(60)))), None);
    }

    #[test]
    fn what_is_no_amount_is_told_apart() {
        for wrong in [
            "", "abc", "1 Gi", "1gi", "1.2.3", "Gi", "1mm", "--1", "1e", ".", "1KI", "1i",
        ] {
            assert_eq!(Quantity::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Quantity::parse(&"9".repeat(65)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[+-]?[0-9.]{0,70}[a-zA-Z]{0,3}[0-9+-]{0,12}") {
            let _ = Quantity::parse(&text);
        }

        #[test]
        fn the_canonical_form_is_the_same_amount(
            number in 0_u64..1 << 50, unit in "(|m|k|M|G|Ki|Mi|Gi|e3)",
        ) {
            let text = format!("{number}{unit}");
            let written = canonical(&json!(text)).unwrap();
            prop_assert_eq!(quantity(&written), quantity(&text));
            prop_assert_eq!(canonical(&json!(written.clone())), Some(written));
        }

        #[test]
        fn order_is_that_of_numbers(a in 0_u32.., b in 0_u32..) {
            let ordered = quantity(&format!("{a}m")).cmp(&quantity(&format!("{b}m")));
            prop_assert_eq!(ordered, a.cmp(&b));
        }
    }
}
