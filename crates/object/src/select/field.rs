//! Field selectors: exact matches of fields, and their negation.

use std::fmt;

use super::{BadSelector, SELECTOR_TERMS_MAX, check_length};
use crate::fields::{self, Origin, UnsupportedField};
use crate::{Header, Resource};

/// A field selector: terms of which every one must hold. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// Sorted, each once.
    terms: Vec<Term>,
}

/// One term of a field selector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// The field: `spec.nodeName`.
    pub field: Box<str>,
    /// Whether the value is wanted or not.
    pub operator: Operator,
    /// The value.
    pub value: Box<str>,
}

/// How a term relates a field to its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// `field=value`, also written `field==value`.
    Is,
    /// `field!=value`.
    IsNot,
}

impl FieldSelector {
    /// Parses the text of a selector: `metadata.name=a,status.phase!=Running`. In values, a comma,
    /// an equals sign and a backslash stand behind a backslash.
    pub fn parse(text: &str) -> Result<Self, BadSelector> {
        check_length(text)?;
        let mut texts: Vec<&str> = split_terms(text).filter(|term| !term.is_empty()).collect();
        if texts.len() > SELECTOR_TERMS_MAX {
            return Err(BadSelector::TooManyTerms);
        }
        // Of several wrong terms the first in this order is the one that Kubernetes complains
        // about.
        texts.sort_unstable();
        let terms = texts.into_iter().map(|term| Term::parse(text, term));
        let mut terms = terms.collect::<Result<Vec<_>, _>>()?;
        // A term of nothing at all (`=` or `!=`) is no term, as upstream.
        terms.retain(|term| !(term.field.is_empty() && term.value.is_empty()));
        Ok(Self::of(terms))
    }

    /// The selector that asks for one value of one field.
    pub fn exactly(field: &str, value: &str) -> Self {
        let (field, value) = (field.into(), value.into());
        Self {
            terms: vec![Term {
                field,
                operator: Operator::Is,
                value,
            }],
        }
    }

    /// Checks that the resource can be selected on these fields, and names them as headers do.
    pub fn resolve(
        self,
        resource: &Resource,
        origin: Origin<'_>,
    ) -> Result<Self, UnsupportedField> {
        let resolved = self.terms.into_iter().map(|term| {
            let field = fields::canonical_label(resource, origin, &term.field)?.into();
            Ok(Term { field, ..term })
        });
        Ok(Self::of(resolved.collect::<Result<_, _>>()?))
    }

    /// Whether an object is selected. A field that it does not have has the empty value.
    pub fn matches(&self, header: &Header) -> bool {
        self.terms.iter().all(|term| {
            let same = header.field(&term.field) == &*term.value;
            same == (term.operator == Operator::Is)
        })
    }

    /// The value that a field must have, where the selector names one: `exact("spec.nodeName")`
    /// tells the authorizer which node a request is about, and the read path which part of an
    /// index to read.
    pub fn exact(&self, field: &str) -> Option<&str> {
        let wanted = |term: &&Term| term.operator == Operator::Is && &*term.field == field;
        self.terms.iter().find(wanted).map(|term| &*term.value)
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms, sorted.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    fn of(mut terms: Vec<Term>) -> Self {
        terms.sort();
        terms.dedup();
        Self { terms }
    }
}

impl fmt::Display for FieldSelector {
    /// The canonical text, which parses back to the same selector.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            term.fmt(f)?;
        }
        Ok(())
    }
}

impl Term {
    fn parse(selector: &str, term: &str) -> Result<Self, BadSelector> {
        let Some((at, operator, sign)) = find_operator(term) else {
            let (selector, term) = (selector.to_owned(), term.to_owned());
            return Err(BadSelector::NoOperator { selector, term });
        };
        let value = unescape(&term[at + sign.len()..])?;
        Ok(Self {
            field: term[..at].into(),
            operator,
            value,
        })
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.operator {
            Operator::Is => "=",
            Operator::IsNot => "!=",
        };
        write!(f, "{}{sign}", self.field)?;
        for char in self.value.chars() {
            if matches!(char, '\\' | ',' | '=') {
                f.write_str("\\")?;
            }
            write!(f, "{char}")?;
        }
        Ok(())
    }
}

/// Splits at commas that stand behind no backslash.
fn split_terms(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |char| {
        let plain = !escaped;
        escaped = plain && char == '\\';
        plain && char == ','
    })
}

fn find_operator(term: &str) -> Option<(usize, Operator, &'static str)> {
    let at = term
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| term[*at..].starts_with('=') || term[*at..].starts_with("!="))?;
    let signs = [
        ("!=", Operator::IsNot),
        ("==", Operator::Is),
        ("=", Operator::Is),
    ];
    let (sign, operator) = signs
        .into_iter()
        .find(|(sign, _)| term[at..].starts_with(sign))?;
    Some((at, operator, sign))
}

fn unescape(value: &str) -> Result<Box<str>, BadSelector> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                Some(other) => return Err(BadSelector::BadEscape(format!("\\{other}"))),
                None => return Err(BadSelector::BadEscape("\\".to_owned())),
            },
            ',' | '=' => return Err(BadSelector::Unescaped(char.into())),
            char => plain.push(char),
        }
    }
    Ok(plain.into())
}
