//! Label selectors: what they are, when they match, and their canonical text.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use super::syntax::{label_key_faults, label_value_faults, quoted};
use super::{BadRequirement, BadSelector, Invalid, SELECTOR_TERMS_MAX, check_length, lex};
use crate::Pairs;

/// A label selector: requirements of which every one must hold. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Sorted by key.
    requirements: Vec<Requirement>,
    reach: Reach,
}

/// Whether anything can match at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Reach {
    #[default]
    Everything,
    Nothing,
}

/// One term of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    /// Sorted, each once.
    values: Vec<Box<str>>,
}

/// How a term relates a label to its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `key=value`, also written `key==value`.
    Equals,
    /// `key!=value`; holds where there is no such label.
    NotEquals,
    /// `key in (a,b)`.
    In,
    /// `key notin (a,b)`; holds where there is no such label.
    NotIn,
    /// `key`.
    Exists,
    /// `!key`.
    DoesNotExist,
    /// `key>7`: both are whole numbers.
    Greater,
    /// `key<7`.
    Less,
}

impl LabelSelector {
    /// Parses the text of a selector: `app=web,tier in (front,back),!canary`.
    pub fn parse(text: &str) -> Result<Self, BadSelector> {
        check_length(text)?;
        Ok(Self::of(lex::requirements(text)?))
    }

    /// The selector that a `metav1.LabelSelector` describes (matchLabels and matchExpressions). An
    /// empty one selects everything; null, as in Kubernetes, selects nothing.
    pub fn from_json(selector: &Value) -> Result<Self, BadSelector> {
        let wrong = |reason: String| BadSelector::NotASelector(reason);
        let structured = match selector {
            Value::Null => return Ok(Self::nothing()),
            Value::Object(_) => Structured::deserialize(selector),
            _ => return Err(wrong("expected an object".to_owned())),
        };
        let structured = structured.map_err(|error| wrong(error.to_string()))?;
        structured.requirements().map(Self::of)
    }

    /// The selector that matches nothing at all.
    pub fn nothing() -> Self {
        Self {
            requirements: Vec::new(),
            reach: Reach::Nothing,
        }
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &Pairs) -> bool {
        self.reach == Reach::Everything
            && self
                .requirements
                .iter()
                .all(|requirement| requirement.matches(labels))
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.reach == Reach::Everything && self.requirements.is_empty()
    }

    /// The value that a label must have, where the selector names exactly one.
    pub fn exact(&self, key: &str) -> Option<&str> {
        let mut named = self
            .requirements
            .iter()
            .filter(|requirement| &*requirement.key == key);
        named.find_map(Requirement::exact)
    }

    /// The terms, by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self {
            requirements,
            reach: Reach::Everything,
        }
    }
}

impl fmt::Display for LabelSelector {
    /// The canonical text, which parses back to the same selector. The selector of nothing has no
    /// text in Kubernetes; here it is one that no label selector can have.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reach == Reach::Nothing {
            return f.write_str("!");
        }
        for (at, requirement) in self.requirements.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl Requirement {
    /// A term, if its key and values are ones that labels and this operator can have. `key_path`
    /// is the name of the key in errors.
    pub(super) fn new(
        key: &str,
        operator: Operator,
        mut values: Vec<Box<str>>,
        key_path: &str,
    ) -> Result<Self, BadRequirement> {
        let mut faults = Vec::new();
        check_key(key, key_path, &mut faults);
        check_count(operator, &values, &mut faults);
        for (at, value) in values.iter().enumerate() {
            let wrong = label_value_faults(value);
            if !wrong.is_empty() {
                let path = format!("values[{at}][{key}]");
                faults.push(Invalid {
                    path,
                    value: quoted(value),
                    detail: wrong.join("; "),
                });
            }
        }
        if !faults.is_empty() {
            return Err(BadRequirement::Invalid(faults));
        }
        values.sort();
        values.dedup();
        Ok(Self {
            key: key.into(),
            operator,
            values,
        })
    }

    /// The label that this is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How it relates to the values.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, sorted; none for [`Operator::Exists`] and [`Operator::DoesNotExist`].
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| &**value)
    }

    /// Whether labels meet this requirement.
    pub fn matches(&self, labels: &Pairs) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::Equals | Operator::In => value.is_some_and(|value| self.has(value)),
            Operator::NotEquals | Operator::NotIn => !value.is_some_and(|value| self.has(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Greater => self.compares(value, |label, bound| label > bound),
            Operator::Less => self.compares(value, |label, bound| label < bound),
        }
    }

    fn has(&self, value: &str) -> bool {
        self.values
            .binary_search_by(|candidate| (**candidate).cmp(value))
            .is_ok()
    }

    fn compares(&self, label: Option<&str>, holds: impl FnOnce(i64, i64) -> bool) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(|bound| number(bound));
        label
            .and_then(number)
            .zip(bound)
            .is_some_and(|(label, bound)| holds(label, bound))
    }

    fn exact(&self) -> Option<&str> {
        match (self.operator, &*self.values) {
            (Operator::Equals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            operator,
            values,
        } = self;
        let (before, between, after) = match operator {
            Operator::Exists => ("", "", ""),
            Operator::DoesNotExist => ("!", "", ""),
            Operator::Equals => ("", "=", ""),
            Operator::NotEquals => ("", "!=", ""),
            Operator::Greater => ("", ">", ""),
            Operator::Less => ("", "<", ""),
            Operator::In => ("", " in (", ")"),
            Operator::NotIn => ("", " notin (", ")"),
        };
        write!(f, "{before}{key}{between}")?;
        for (at, value) in values.iter().enumerate() {
            write!(f, "{}{value}", if at == 0 { "" } else { "," })?;
        }
        f.write_str(after)
    }
}

pub(super) fn check_key(key: &str, path: &str, faults: &mut Vec<Invalid>) {
    let wrong = label_key_faults(key);
    if !wrong.is_empty() {
        let (path, value) = (path.to_owned(), quoted(key));
        faults.push(Invalid {
            path,
            value,
            detail: wrong.join("; "),
        });
    }
}

fn check_count(operator: Operator, values: &[Box<str>], faults: &mut Vec<Invalid>) {
    let (wrong, detail) = match operator {
        Operator::In | Operator::NotIn => (
            values.is_empty(),
            "for 'in', 'notin' operators, values set can't be empty",
        ),
        Operator::Equals | Operator::NotEquals => (
            values.len() != 1,
            "exact-match compatibility requires one single value",
        ),
        Operator::Exists | Operator::DoesNotExist => (
            !values.is_empty(),
            "values set must be empty for exists and does not exist",
        ),
        Operator::Greater | Operator::Less => (
            values.len() != 1,
            "for 'Gt', 'Lt' operators, exactly one value is required",
        ),
    };
    if wrong {
        let value = serde_json::to_string(values).unwrap_or_default();
        faults.push(Invalid {
            path: "values".to_owned(),
            value,
            detail: detail.to_owned(),
        });
    }
    if matches!(operator, Operator::Greater | Operator::Less) {
        let whole = values
            .iter()
            .enumerate()
            .filter(|(_, value)| value.parse::<i64>().is_err());
        faults.extend(whole.map(|(at, value)| Invalid {
            path: format!("values[{at}]"),
            value: quoted(value),
            detail: "for 'Gt', 'Lt' operators, the value must be an integer".to_owned(),
        }));
    }
}

/// A `metav1.LabelSelector` as JSON has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Structured {
    match_labels: Option<std::collections::BTreeMap<Box<str>, Box<str>>>,
    match_expressions: Option<Vec<Expression>>,
}

#[derive(Deserialize)]
struct Expression {
    key: Box<str>,
    operator: Box<str>,
    values: Option<Vec<Box<str>>>,
}

impl Structured {
    fn requirements(self) -> Result<Vec<Requirement>, BadSelector> {
        let labels = self.match_labels.unwrap_or_default();
        let expressions = self.match_expressions.unwrap_or_default();
        if labels.len() + expressions.len() > SELECTOR_TERMS_MAX {
            return Err(BadSelector::TooManyTerms);
        }
        let mut requirements = Vec::new();
        for (key, value) in labels {
            let term = Requirement::new(&key, Operator::Equals, vec![value], "key");
            requirements.push(term.map_err(BadSelector::Expression)?);
        }
        for expression in expressions {
            requirements.push(expression.requirement()?);
        }
        Ok(requirements)
    }
}

impl Expression {
    fn requirement(self) -> Result<Requirement, BadSelector> {
        let operator = match &*self.operator {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => return Err(BadSelector::Operator(other.to_owned())),
        };
        let values = self.values.unwrap_or_default();
        if values.len() > SELECTOR_TERMS_MAX {
            return Err(BadSelector::TooManyTerms);
        }
        Requirement::new(&self.key, operator, values, "key").map_err(BadSelector::Expression)
    }
}
