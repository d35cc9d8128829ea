//! The text of a path, step by step.

use serde_json::Value;

use super::{Operator, Path, Slice, Step, Test};

/// A text that is no path, and why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoPath {
    /// More than any column needs.
    #[error("a path has at most {TEXT_MAX} characters")]
    TooLong,
    /// Filters within filters within filters.
    #[error("filters and unions nest at most {NESTED_MAX} deep")]
    TooDeep,
    /// A bracket, quote or filter that does not end.
    #[error("{0} is not closed")]
    Unclosed(&'static str),
    /// A character that no step starts with.
    #[error("unexpected {0:?}")]
    Unexpected(char),
    /// An index, slice or number that is none.
    #[error("{0:?} is not an index")]
    NoIndex(String),
    /// A comparison that is not known.
    #[error("{0:?} does not compare")]
    NoOperator(String),
    /// `....`
    #[error("`..` cannot follow itself")]
    TwiceBelow,
}

/// Long enough for every path in use; a path is parsed by a recursive function.
const TEXT_MAX: usize = 1024;
const NESTED_MAX: usize = 4;

pub(super) fn path(text: &str) -> Result<Path, NoPath> {
    if text.len() > TEXT_MAX {
        return Err(NoPath::TooLong);
    }
    let text = text.trim();
    let bare = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(text);
    steps(bare, NESTED_MAX)
}

fn steps(text: &str, nested: usize) -> Result<Path, NoPath> {
    let Some(nested) = nested.checked_sub(1) else {
        return Err(NoPath::TooDeep);
    };
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = if let Some(filter) = rest.strip_prefix("[?(") {
            let (step, after) = where_step(filter, nested)?;
            steps.push(step);
            after
        } else if let Some(after) = rest.strip_prefix("..") {
            if steps.last() == Some(&Step::Below) {
                return Err(NoPath::TwiceBelow);
            }
            steps.push(Step::Below);
            match after.starts_with(['.', '[']) || after.is_empty() {
                true => after,
                false => field(after, &mut steps),
            }
        } else {
            let after = &rest[first.len_utf8()..];
            match first {
                ' ' | '@' | '$' => after,
                '.' => field(after, &mut steps),
                '[' => bracket(after, nested, &mut steps)?,
                '"' | '\'' => quoted(after, first, &mut steps)?,
                '0'..='9' | '+' | '-' => number(rest, &mut steps)?,
                _ => fixed(rest, &mut steps).ok_or(NoPath::Unexpected(first))?,
            }
        };
    }
    Ok(Path(steps))
}

/// A field's name up to the next step. A backslash takes the next character as it is.
fn field<'t>(text: &'t str, steps: &mut Vec<Step>) -> &'t str {
    let (mut name, mut escaped, mut end) = (String::new(), false, text.len());
    for (at, c) in text.char_indices() {
        match c {
            '\\' if !escaped => escaped = true,
            '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' | ' ' | '\t' | '\r' | '\n'
                if !escaped =>
            {
                end = at;
                break;
            }
            c => {
                name.push(c);
                escaped = false;
            }
        }
    }
    steps.push(match name.as_str() {
        "*" => Step::Every,
        _ => Step::Field(name),
    });
    &text[end..]
}

/// What stands between brackets: an index, a slice, a quoted field, or several of them.
fn bracket<'t>(text: &'t str, nested: usize, out: &mut Vec<Step>) -> Result<&'t str, NoPath> {
    let (inside, after) = text.split_once(']').ok_or(NoPath::Unclosed("["))?;
    let quoted = |text: &str| text.len() > 1 && text.starts_with('\'') && text.ends_with('\'');
    if quoted(inside) && inside.matches('\'').count() == 2 {
        // As Kubernetes does, the quoted text is read as a path: `['a.b']` needs `['a\.b']`.
        let mut rest = &inside[1..inside.len() - 1];
        loop {
            rest = field(rest, out);
            match rest.strip_prefix('.') {
                Some(next) => rest = next,
                None if rest.is_empty() => return Ok(after),
                None => return Err(NoPath::Unexpected(rest.chars().next().unwrap_or('\''))),
            }
        }
    }
    if inside.contains(',') {
        let paths = inside
            .split(',')
            .map(|one| steps(&format!("[{}]", one.trim()), nested));
        out.push(Step::Any(paths.collect::<Result<_, _>>()?));
        return Ok(after);
    }
    out.push(Step::Slice(slice(inside)?));
    Ok(after)
}

fn slice(text: &str) -> Result<Slice, NoPath> {
    let wrong = || NoPath::NoIndex(text.to_owned());
    let index = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| wrong()),
    };
    let everything = Slice {
        from: None,
        to: None,
        step: 1,
        single: false,
    };
    if text == "*" {
        return Ok(everything);
    }
    match text.split(':').collect::<Vec<_>>().as_slice() {
        [one] => Ok(Slice {
            from: Some(index(one)?.ok_or_else(wrong)?),
            single: true,
            ..everything
        }),
        [from, to] => Ok(Slice {
            from: index(from)?,
            to: index(to)?,
            ..everything
        }),
        [from, to, step] => {
            let step = usize::try_from(index(step)?.unwrap_or(1)).map_err(|_| wrong())?;
            if step == 0 {
                return Err(wrong());
            }
            Ok(Slice {
                from: index(from)?,
                to: index(to)?,
                step,
                ..everything
            })
        }
        _ => Err(wrong()),
    }
}

/// A filter, from behind its opening bracket.
fn where_step(text: &str, nested: usize) -> Result<(Step, &str), NoPath> {
    let (inside, after) = filter_end(text)?;
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let Some(start) = inside.find(is_operator).filter(|start| *start > 0) else {
        return Ok((Step::Where(steps(inside, nested)?, Test::Exists), after));
    };
    let (left, rest) = inside.split_at(start);
    let end = rest
        .find(|c| !is_operator(c))
        .ok_or(NoPath::Unclosed("a comparison"))?;
    let (operator, right) = rest.split_at(end);
    let operator = match operator {
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        other => return Err(NoPath::NoOperator(other.to_owned())),
    };
    let test = Test::Compare(operator, steps(right, nested)?);
    Ok((Step::Where(steps(left, nested)?, test), after))
}

/// Splits at the `)]` that ends a filter; one inside quotes does not.
fn filter_end(text: &str) -> Result<(&str, &str), NoPath> {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, ')') => {
                let after = text[at + 1..]
                    .strip_prefix(']')
                    .ok_or(NoPath::Unclosed("["))?;
                return Ok((&text[..at], after));
            }
            _ => {}
        }
    }
    Err(NoPath::Unclosed("a filter"))
}

fn quoted<'t>(text: &'t str, quote: char, steps: &mut Vec<Step>) -> Result<&'t str, NoPath> {
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in text.char_indices() {
        match c {
            '\\' if !escaped => escaped = true,
            c if c == quote && !escaped => {
                steps.push(Step::Fixed(Value::from(value)));
                return Ok(&text[at + c.len_utf8()..]);
            }
            c => {
                value.push(c);
                escaped = false;
            }
        }
    }
    Err(NoPath::Unclosed("a quoted text"))
}

fn number<'t>(text: &'t str, steps: &mut Vec<Step>) -> Result<&'t str, NoPath> {
    let digits = text
        .trim_start_matches(['+', '-'])
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let (number, rest) = text.split_at(text.len() - digits.len());
    let value = match (number.parse::<i64>(), number.parse::<f64>()) {
        (Ok(whole), _) => Value::from(whole),
        (_, Ok(number)) => Value::from(number),
        _ => return Err(NoPath::NoIndex(number.to_owned())),
    };
    steps.push(Step::Fixed(value));
    Ok(rest)
}

fn fixed<'t>(text: &'t str, steps: &mut Vec<Step>) -> Option<&'t str> {
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    steps.push(Step::Fixed(Value::from(word.parse::<bool>().ok()?)));
    Some(rest)
}
