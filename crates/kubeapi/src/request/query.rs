//! The query of a URL -> options. Unknown names are ignored, as Kubernetes does; wrong values are
//! refused.

use std::num::{IntErrorKind, ParseIntError};

use super::percent;
use crate::Status;

/// Names and values that a query may have.
const PAIRS_MAX: usize = 256;

/// The options of a request, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Takes the part of a URL after its question mark apart.
    pub fn parse(query: &str) -> Result<Self, Status> {
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            if pairs.len() == PAIRS_MAX {
                return Err(Status::bad_request("the query has too many parameters"));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(Self { pairs })
    }

    /// The value of an option: of several the first, as Kubernetes takes it. Nothing if it is
    /// absent.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The value of an option, empty if it is absent.
    pub fn text(&self, name: &str) -> &str {
        self.value(name).unwrap_or("")
    }

    /// All values of an option that may stand several times.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// A switch. A name alone switches on; anything but "false" and "0" does.
    pub fn switch(&self, name: &str) -> bool {
        self.optional_switch(name).unwrap_or(false)
    }

    /// A switch that may also be absent.
    pub fn optional_switch(&self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        Some(!(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        self.value(name).map(number).transpose()
    }

    /// A truth, as Go reads one; nothing where the text is none.
    pub fn truth(&self, name: &str) -> Option<bool> {
        match self.text(name) {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
            _ => None,
        }
    }
}

fn decode(text: &str) -> Result<String, Status> {
    // In a query a plus sign is a space; one that is meant comes as a percent sign and digits.
    let decoded = percent::decode(&text.replace('+', " "));
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| Status::bad_request("the query is not well formed"))
}

/// A whole number. The words are those of Go, which say nothing of the parameter.
pub(crate) fn number(text: &str) -> Result<i64, Status> {
    let why = match text.parse().map_err(|error: ParseIntError| *error.kind()) {
        Ok(number) => return Ok(number),
        Err(IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => "value out of range",
        Err(_) => "invalid syntax",
    };
    let message = format!("strconv.ParseInt: parsing {text:?}: {why}");
    Err(Status::bad_request(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_kubernetes_reads_them() {
        let query = Query::parse("watch&limit=5&a=1&a=2&x=%41+b&allow=false&zero=0&n=").unwrap();
        assert!(query.switch("watch"));
        assert!(!query.switch("allow") && !query.switch("zero") && !query.switch("absent"));
        assert_eq!(query.number("limit").unwrap(), Some(5));
        assert_eq!(query.number("absent").unwrap(), None);
        assert_eq!(query.truth("a"), Some(true));
        assert_eq!(query.truth("allow"), Some(false));
        assert_eq!(query.truth("limit"), None);
        assert_eq!(query.text("a"), "1");
        assert_eq!(query.values("a").count(), 2);
        assert_eq!(query.text("x"), "A b");
        assert_eq!(query.optional_switch("absent"), None);
    }

    #[test]
    fn a_wrong_number_or_escape_is_refused() {
        for (wrong, why) in [
            ("ten", "invalid syntax"),
            ("", "invalid syntax"),
            ("9223372036854775808", "value out of range"),
            ("-9223372036854775809", "value out of range"),
        ] {
            let query = Query::parse(&format!("limit={wrong}")).unwrap();
            let refused = query.number("limit").unwrap_err();
            assert_eq!(refused.code, 400);
            let words = format!("strconv.ParseInt: parsing {wrong:?}: {why}");
            assert_eq!(refused.message, words);
        }
        for wrong in ["a=%", "a=%2", "a=%zz", "a=%ff"] {
            assert_eq!(Query::parse(wrong).unwrap_err().code, 400, "{wrong}");
        }
        let many = "a&".repeat(PAIRS_MAX + 1);
        assert!(Query::parse(&many).is_err());
    }
}
