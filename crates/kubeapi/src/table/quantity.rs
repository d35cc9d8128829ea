//! A resource quantity as a cell: `1024Mi` is `1Gi`, nothing is `0`.

use serde_json::Value;

use crate::write::quantity;

/// The canonical text of a quantity in an object; `0` where there is none, and the text itself
/// where it is no quantity, or one too large to be exact.
pub fn canonical(value: &Value) -> String {
    match (value, quantity::canonical(value)) {
        (Value::Null, _) => "0".to_owned(),
        (_, Some(canonical)) => canonical,
        (Value::String(text), None) => text.clone(),
        (other, None) => other.to_string(),
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
