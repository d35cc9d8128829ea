//! A resource quantity in its canonical form: `1024Mi` is `1Gi`, `0.5` is `500m`.

use serde_json::Value;

/// The canonical text of a quantity in an object; `0` where there is none, and the text itself
/// where it is none of the forms that fit our arithmetic.
pub fn canonical(quantity: &Value) -> String {
    let text = match quantity {
        Value::Null => return "0".to_owned(),
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    match Quantity::parse(&text) {
        Some(quantity) => quantity.to_text().unwrap_or(text),
        None => text,
    }
}

/// A number and the family of suffixes it is written with.
struct Quantity {
    /// The amount in units of 10^-9.
    nanos: i128,
    family: Family,
}

#[derive(Clone, Copy, PartialEq)]
enum Family {
    Binary,
    Decimal,
    Exponent,
}

/// One of a quantity, in our units.
const ONE: i128 = 1_000_000_000;
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// From 10^-9 up, in steps of a thousand.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

impl Quantity {
    fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let (family, factor, shift) = scale(suffix)?;
        let exponent = shift.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let nanos = raise(digits.checked_mul(factor)?, exponent.checked_add(9)?)?;
        let nanos = if negative { -nanos } else { nanos };
        Some(Self { nanos, family })
    }

    fn to_text(&self) -> Option<String> {
        if self.nanos == 0 {
            return Some("0".to_owned());
        }
        // A binary quantity below 1024 is written in decimal; above, a fraction rounds away from
        // zero.
        if self.family == Family::Binary && self.nanos.abs() >= 1024 * ONE {
            let rest = i128::from(self.nanos % ONE != 0) * self.nanos.signum();
            return Some(binary(self.nanos / ONE + rest));
        }
        let (mut amount, mut step) = (self.nanos, 0);
        while amount % 1000 == 0 && step < DECIMAL.len() - 1 {
            amount /= 1000;
            step += 1;
        }
        match self.family {
            Family::Exponent => {
                let power = i32::try_from(step).ok()? * 3 - 9;
                Some(match power {
                    0 => amount.to_string(),
                    _ => format!("{amount}e{power}"),
                })
            }
            Family::Binary | Family::Decimal => Some(format!("{amount}{}", DECIMAL[step])),
        }
    }
}

fn binary(mut amount: i128) -> String {
    let mut step = 0;
    while amount % 1024 == 0 && step < BINARY.len() - 1 {
        amount /= 1024;
        step += 1;
    }
    format!("{amount}{}", BINARY[step])
}

/// Which family a suffix is of, what it multiplies by, and by which power of ten besides.
fn scale(suffix: &str) -> Option<(Family, i128, i32)> {
    if let Some(step) = BINARY.iter().skip(1).position(|known| *known == suffix) {
        return Some((
            Family::Binary,
            1024_i128.pow(u32::try_from(step + 1).ok()?),
            0,
        ));
    }
    if let Some(step) = DECIMAL.iter().position(|known| *known == suffix) {
        return Some((Family::Decimal, 1, i32::try_from(step).ok()? * 3 - 9));
    }
    let power = suffix.strip_prefix(['e', 'E'])?;
    Some((Family::Exponent, 1, power.parse().ok()?))
}

/// `amount` times ten to the power; below our smallest unit it rounds up, as Kubernetes does.
fn raise(amount: i128, power: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    match (power < 0, factor) {
        (false, Some(factor)) => amount.checked_mul(factor),
        (false, None) => None,
        (true, Some(factor)) => Some(amount / factor + i128::from(amount % factor > 0)),
        (true, None) => Some(i128::from(amount > 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_written_with_the_largest_suffix_that_loses_nothing() {
        let cases = [
            ("10Gi", "10Gi"),
            ("1024Mi", "1Gi"),
            ("1536Mi", "1536Mi"),
            ("1000Ki", "1000Ki"),
            ("512Ki", "512Ki"),
            ("0.5Gi", "512Mi"),
            ("0.5Ki", "512"),
            ("1.0001Ki", "1025"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("100m", "100m"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("5000000000", "5G"),
            ("1e3", "1e3"),
            ("12E6", "12e6"),
            ("-500m", "-500m"),
            ("+2", "2"),
            ("0", "0"),
            ("0Gi", "0"),
            ("0.0000000001", "1n"),
            (".5", "500m"),
            ("5.", "5"),
        ];
        for (given, expected) in cases {
            assert_eq!(canonical(&Value::from(given)), expected, "{given}");
        }
    }

    #[test]
    fn a_number_is_a_quantity_and_nothing_is_zero() {
        assert_eq!(canonical(&Value::from(3)), "3");
        assert_eq!(canonical(&Value::Null), "0");
    }

    #[test]
    fn what_does_not_fit_stays_as_it_is() {
        for odd in [
            "",
            "Gi",
            "1.2.3",
            "ten",
            "1e99999999999",
            "99999999999999999999999999999999999999E",
        ] {
            assert_eq!(canonical(&Value::from(odd)), odd);
        }
    }
}
