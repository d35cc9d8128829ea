//! Paths into an object, in the part of Kubernetes' JSONPath that columns of custom kinds use:
//! `.spec.a`, `['a']`, `[0]`, `[1:3]`, `[*]`, `[?(@.type=="Ready")]`, `..name`.

use serde_json::{Number, Value};

mod parse;
#[cfg(test)]
mod tests;

pub use parse::NoPath;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct Path(Vec<Step>);

/// One step of a path, from the values so far to the next ones.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// A field of an object.
    Field(String),
    /// Every value of an object or a list.
    Every,
    /// The value and everything below it.
    Below,
    /// A part of a list.
    Slice(Slice),
    /// The entries of a list for which something holds.
    Where(Path, Test),
    /// What any of these paths finds.
    Any(Vec<Path>),
    /// A fixed value, only within a filter.
    Fixed(Value),
}

#[derive(Debug, Clone, PartialEq)]
struct Slice {
    from: Option<i64>,
    to: Option<i64>,
    step: usize,
    /// `[n]`: one entry, which may be counted from the end.
    single: bool,
}

/// What is asked of an entry of a list.
#[derive(Debug, Clone, PartialEq)]
enum Test {
    Exists,
    Compare(Operator, Path),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Values that a path may find on its way. `..` twice over a deep object multiplies; no column
/// needs it.
const FOUND_MAX: usize = 10_000;
/// How deep `..` looks.
const DEPTH_MAX: usize = 64;

/// A path that leads nowhere in this object: an index out of bounds, or a filter over what is no
/// list.
struct Lost;

impl Path {
    /// Parses a path; with or without the braces of a template.
    pub fn parse(text: &str) -> Result<Self, NoPath> {
        parse::path(text)
    }

    /// The first value that the path finds.
    pub fn first<'v>(&'v self, root: &'v Value) -> Option<&'v Value> {
        self.find(vec![root]).ok()?.first().copied()
    }

    fn find<'v>(&'v self, mut values: Vec<&'v Value>) -> Result<Vec<&'v Value>, Lost> {
        for step in &self.0 {
            values = step.take(&values)?;
            if values.len() > FOUND_MAX {
                return Err(Lost);
            }
        }
        Ok(values)
    }
}

impl Step {
    fn take<'v>(&'v self, values: &[&'v Value]) -> Result<Vec<&'v Value>, Lost> {
        let mut found = Vec::new();
        // Null has no fields and no entries, and is no mistake.
        let present = values.iter().copied().filter(|value| !value.is_null());
        match self {
            Self::Field(name) => found.extend(present.filter_map(|value| value.get(name))),
            Self::Every => present.for_each(|value| found.extend(children(value))),
            Self::Below => {
                for value in present {
                    below(value, DEPTH_MAX, &mut found)?;
                }
            }
            Self::Slice(slice) => {
                for value in present {
                    found.extend(slice.of(value.as_array().ok_or(Lost)?)?);
                }
            }
            Self::Where(left, test) => {
                for value in values {
                    for entry in value.as_array().ok_or(Lost)? {
                        if test.holds(left, entry)? {
                            found.push(entry);
                        }
                    }
                }
            }
            Self::Any(paths) => {
                for path in paths {
                    found.extend(path.find(values.to_vec())?);
                }
            }
            Self::Fixed(value) => found.extend(values.iter().map(|_| value)),
        }
        Ok(found)
    }
}

impl Slice {
    fn of<'v>(&self, list: &'v [Value]) -> Result<Vec<&'v Value>, Lost> {
        let length = i64::try_from(list.len()).map_err(|_| Lost)?;
        let from_end = |index: i64| {
            if index < 0 {
                index.saturating_add(length)
            } else {
                index
            }
        };
        let from = from_end(self.from.unwrap_or(0));
        let to = match (self.single, self.to) {
            (true, _) => from.saturating_add(1),
            (false, to) => from_end(to.unwrap_or(length)),
        };
        if from == to {
            return Ok(Vec::new());
        }
        if from < 0 || from >= length || to < 0 || to > length || from > to {
            return Err(Lost);
        }
        let (from, to) = (usize::try_from(from), usize::try_from(to));
        let (Ok(from), Ok(to)) = (from, to) else {
            return Err(Lost);
        };
        Ok(list[from..to].iter().step_by(self.step).collect())
    }
}

impl Test {
    fn holds(&self, left: &Path, entry: &Value) -> Result<bool, Lost> {
        match self {
            Self::Exists => Ok(left.find(vec![entry]).is_ok_and(|found| !found.is_empty())),
            Self::Compare(operator, right) => {
                let (left, right) = (left.find(vec![entry])?, right.find(vec![entry])?);
                match (left.as_slice(), right.as_slice()) {
                    ([], _) | (_, []) => Ok(false),
                    ([left], [right]) => operator.holds(left, right),
                    _ => Err(Lost),
                }
            }
        }
    }
}

impl Operator {
    fn holds(self, left: &Value, right: &Value) -> Result<bool, Lost> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => left.cmp(right),
            (Value::Number(left), Value::Number(right)) => compare(left, right)?,
            (Value::Bool(left), Value::Bool(right)) => match (self, left == right) {
                (Self::Equal | Self::NotEqual, true) => Equal,
                (Self::Equal | Self::NotEqual, false) => Less,
                _ => return Err(Lost),
            },
            _ => return Err(Lost),
        };
        Ok(match self {
            Self::Equal => order == Equal,
            Self::NotEqual => order != Equal,
            Self::Less => order == Less,
            Self::LessOrEqual => order != Greater,
            Self::Greater => order == Greater,
            Self::GreaterOrEqual => order != Less,
        })
    }
}

fn compare(left: &Number, right: &Number) -> Result<std::cmp::Ordering, Lost> {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => Ok(left.cmp(&right)),
        _ => {
            let (left, right) = (left.as_f64(), right.as_f64());
            left.partial_cmp(&right).ok_or(Lost)
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(entries) => entries.iter().collect(),
        _ => Vec::new(),
    }
}

/// The value and what is below it, parents first; values without anything below are left out, as
/// Kubernetes does: they have no field that a next step could take.
fn below<'v>(value: &'v Value, depth: usize, found: &mut Vec<&'v Value>) -> Result<(), Lost> {
    let children = children(value);
    if children.is_empty() {
        return Ok(());
    }
    if depth == 0 || found.len() > FOUND_MAX {
        return Err(Lost);
    }
    found.push(value);
    children
        .into_iter()
        .try_for_each(|child| below(child, depth - 1, found))
}
