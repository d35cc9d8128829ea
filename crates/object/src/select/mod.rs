//! Label and field selectors over a header.
//!
//! A selector is parsed once and then asked about many headers, without allocating. Its text form
//! is canonical (sorted, one spelling for each meaning of an operator), so that two requests that
//! select alike have the same text; continue tokens rely on that. The words of the errors are
//! those of Kubernetes, because people and clients know them.

use std::fmt;

use crate::fields::{Origin, UnsupportedField};
use crate::{Header, Resource};

pub mod syntax; // what a label's key and value may look like
pub mod label; // environment in (a,b), !tier
mod lex; // text -> label requirements
pub mod field; // metadata.name=x, status.phase!=Running

pub use field::FieldSelector;
pub use label::LabelSelector;

/// Bytes that the text of a selector may have. A request line is far shorter; selectors that come
/// in a body have the same right to be refused.
pub const SELECTOR_BYTES_MAX: usize = 64 * 1024;

/// Terms that a selector may have, and values that one of its terms may list. Each term costs a
/// lookup for each object of a list, so the bound is what keeps one request from costing as much
/// as a thousand.
pub const SELECTOR_TERMS_MAX: usize = 1_000;

/// Why a text is not a selector. The caller's fault: 400, with this text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSelector {
    /// More text than any honest selector has.
    #[error("the selector has {bytes} bytes, the most is {SELECTOR_BYTES_MAX}")]
    TooLong {
        /// How many there are.
        bytes: usize,
    },
    /// More terms, or more values in a term, than we would look up for each object.
    #[error("the selector has more than {SELECTOR_TERMS_MAX} terms or values")]
    TooManyTerms,
    /// A label selector that breaks off or goes on where it must not.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// What stood there.
        found: String,
        /// What might have.
        expected: &'static str,
    },
    /// A term of a label selector that is wrong in itself.
    #[error("unable to parse requirement: {0}")]
    Requirement(BadRequirement),
    /// A structured label selector (matchLabels, matchExpressions) with a wrong term.
    #[error("{0}")]
    Expression(BadRequirement),
    /// A structured label selector with an operator that there is not.
    #[error("{0:?} is not a valid label selector operator")]
    Operator(String),
    /// A structured label selector that is none: a field of the wrong type.
    #[error("not a label selector: {0}")]
    NotASelector(String),
    /// A term of a field selector without an operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NoOperator {
        /// The whole selector.
        selector: String,
        /// The term.
        term: String,
    },
    /// A backslash before something that needs none.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    BadEscape(String),
    /// A comma or an equals sign that needs a backslash. Kubernetes prints the character's number.
    #[error("invalid field selector: unescaped character in value: {0}")]
    Unescaped(u32),
}

/// Why a term of a label selector is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRequirement {
    /// Something else was expected here.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// What stood there.
        found: String,
        /// What might have.
        expected: &'static str,
    },
    /// `in` without its list.
    #[error("found '{found}' expected: '('")]
    NoList {
        /// What stood there.
        found: String,
    },
    /// A key or values that the term cannot have.
    #[error("{}", Aggregate(.0))]
    Invalid(Vec<Invalid>),
}

/// One thing that is wrong with a term.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: Invalid value: {value}: {detail}")]
pub struct Invalid {
    /// Where: `values[0][app]`.
    pub path: String,
    /// The value, as JSON would write it.
    pub value: String,
    /// What is wrong with it.
    pub detail: String,
}

/// One error stands alone, several stand in brackets.
struct Aggregate<'a>(&'a [Invalid]);

impl fmt::Display for Aggregate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [one] => one.fmt(f),
            several => {
                let texts: Vec<String> = several.iter().map(Invalid::to_string).collect();
                write!(f, "[{}]", texts.join(", "))
            }
        }
    }
}

/// What a list or a watch selects by: labels and fields, both of which must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// By label.
    pub labels: LabelSelector,
    /// By field.
    pub fields: FieldSelector,
}

impl Selector {
    /// Parses the two texts of a request; an empty one selects everything. The names of fields are
    /// as the request has them: [`Selector::resolve`] comes before matching.
    pub fn parse(labels: &str, fields: &str) -> Result<Self, BadSelector> {
        Ok(Self {
            labels: LabelSelector::parse(labels)?,
            fields: FieldSelector::parse(fields)?,
        })
    }

    /// Checks that the resource can be selected on these fields, and names them as headers do.
    pub fn resolve(
        self,
        resource: &Resource,
        origin: Origin<'_>,
    ) -> Result<Self, UnsupportedField> {
        Ok(Self {
            labels: self.labels,
            fields: self.fields.resolve(resource, origin)?,
        })
    }

    /// Whether an object is selected.
    pub fn matches(&self, header: &Header) -> bool {
        self.labels.matches(&header.labels) && self.fields.matches(header)
    }

    /// Whether every object is selected, whatever it is.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }
}

impl fmt::Display for Selector {
    /// Both texts as a query would have them, but not percent-encoded: no label can contain `&`,
    /// so no two selectors have the same text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "labelSelector={}&fieldSelector={}",
            self.labels, self.fields
        )
    }
}

fn check_length(text: &str) -> Result<(), BadSelector> {
    match text.len() {
        bytes if bytes > SELECTOR_BYTES_MAX => Err(BadSelector::TooLong { bytes }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
