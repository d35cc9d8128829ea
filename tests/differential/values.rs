//! What stands between `{{` and `}}`: values that are only known while a conversation is played.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The most letters that one `{{fill N}}` stands for: more than any server takes.
const FILL_MAX: usize = 16 * 1024 * 1024;

/// Text with values in it.
#[derive(Debug, Clone)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Value(Reference),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reference {
    /// The conversation's own namespace.
    Namespace,
    /// Which time this is of a repeated step.
    Turn,
    /// A letter so many times.
    Fill(usize),
    /// A field of an earlier answer, and what is added to it.
    Field {
        answer: String,
        plus: i64,
        path: String,
    },
}

/// What has a name so far in a file.
#[derive(Debug, Default)]
pub(crate) struct Names {
    answers: BTreeSet<String>,
    streams: BTreeSet<String>,
}

/// What is known so far while a conversation is played.
#[derive(Debug)]
pub(crate) struct Known {
    /// The conversation's own namespace.
    pub(crate) namespace: String,
    /// Which time this is of a repeated step, from 1.
    pub(crate) turn: u32,
    /// Answers by their names.
    pub(crate) answers: BTreeMap<String, Value>,
}

impl Names {
    /// An answer that later steps may use.
    pub(crate) fn add_answer(&mut self, name: &str) -> Result<(), String> {
        match self.answers.insert(name.to_owned()) {
            true => Ok(()),
            false => Err(format!("{name} is the name of an earlier answer")),
        }
    }

    /// A stream that later steps may read.
    pub(crate) fn add_stream(&mut self, name: &str) -> Result<(), String> {
        match self.streams.insert(name.to_owned()) {
            true => Ok(()),
            false => Err(format!("{name} is the name of an earlier watch")),
        }
    }

    /// Whether a step before opens this stream.
    pub(crate) fn has_stream(&self, name: &str) -> bool {
        self.streams.contains(name)
    }
}

impl Template {
    /// Finds the values in a text. All must be known by then.
    pub(crate) fn parse(text: &str, names: &Names) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let inside = after.split_once("}}");
            let (inside, after) = inside.ok_or_else(|| "{{ without }}".to_owned())?;
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Value(Reference::parse(inside.trim(), names)?));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// The text with its values. What an answer lacks is said.
    pub(crate) fn fill(&self, known: &Known) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Value(reference) => text.push_str(&reference.value(known)?),
            }
        }
        Ok(text)
    }
}

impl Reference {
    fn parse(inside: &str, names: &Names) -> Result<Self, String> {
        match inside {
            "ns" => return Ok(Self::Namespace),
            "i" => return Ok(Self::Turn),
            _ => {}
        }
        if let Some(count) = inside.strip_prefix("fill ") {
            let count = count.trim().parse().ok().filter(|count| *count <= FILL_MAX);
            let count = count.ok_or_else(|| format!("{{{{{inside}}}}}: not a count"))?;
            return Ok(Self::Fill(count));
        }
        let (head, path) = inside.split_once('.').unwrap_or((inside, ""));
        // A name may have a dash in it.
        let sign = head
            .rfind(['+', '-'])
            .filter(|_| !names.answers.contains(head));
        let (answer, plus) = head.split_at(sign.unwrap_or(head.len()));
        if !names.answers.contains(answer) {
            return Err(format!(
                "{{{{{inside}}}}}: no step before this one has # @name {answer}"
            ));
        }
        let plus = match plus {
            "" => 0,
            plus => plus
                .parse()
                .map_err(|_| format!("{{{{{inside}}}}}: {plus} is not a number"))?,
        };
        Ok(Self::Field {
            answer: answer.to_owned(),
            plus,
            path: path.to_owned(),
        })
    }

    fn value(&self, known: &Known) -> Result<String, String> {
        match self {
            Self::Namespace => Ok(known.namespace.clone()),
            Self::Turn => Ok(known.turn.to_string()),
            Self::Fill(count) => Ok("x".repeat(*count)),
            Self::Field { answer, plus, path } => {
                let found = known.answers.get(answer).and_then(|body| at(body, path));
                let found = found.ok_or_else(|| format!("the answer {answer} has no {path}"))?;
                let text = text_of(found);
                match plus {
                    0 => Ok(text),
                    plus => {
                        let number: Option<i128> = text.parse().ok();
                        let sum = number.and_then(|number| number.checked_add((*plus).into()));
                        let sum = sum.ok_or_else(|| format!("{answer}.{path} is not a number"))?;
                        Ok(sum.to_string())
                    }
                }
            }
        }
    }
}

/// A value as it is written into a request.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What is at a path. Keys may have dots in them: the shortest that fits is taken.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    if let Value::Array(items) = value {
        let (index, rest) = path.split_once('.').unwrap_or((path, ""));
        let index: usize = index.parse().ok()?;
        return at(items.get(index)?, rest);
    }
    let fields = value.as_object()?;
    let ends = path.match_indices('.').map(|(end, _)| end);
    for end in ends.chain([path.len()]) {
        let rest = path[end..].trim_start_matches('.');
        if let Some(found) = fields.get(&path[..end]).and_then(|inner| at(inner, rest)) {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn known() -> Known {
        let made = json!({"metadata": {"resourceVersion": "41", "annotations": {"a.b/c": "d"}},
            "items": [{"n": 7}]});
        Known {
            namespace: "here".to_owned(),
            turn: 3,
            answers: BTreeMap::from([("made".to_owned(), made)]),
        }
    }

    fn filled(text: &str) -> Result<String, String> {
        let mut names = Names::default();
        names.add_answer("made").unwrap();
        names.add_answer("made-1").unwrap();
        Template::parse(text, &names)?.fill(&known())
    }

    #[test]
    fn values_are_put_where_they_are_named() {
        assert_eq!(filled("/{{ns}}/x-{{i}}").unwrap(), "/here/x-3");
        assert_eq!(
            filled("v={{made.metadata.resourceVersion}}").unwrap(),
            "v=41"
        );
        assert_eq!(filled("{{made+2.metadata.resourceVersion}}").unwrap(), "43");
        assert_eq!(filled("{{made-2.metadata.resourceVersion}}").unwrap(), "39");
        assert_eq!(filled("{{made.items.0.n}}").unwrap(), "7");
        assert_eq!(
            filled(r#"{"a":{"b":"{{fill 3}}"}}"#).unwrap(),
            r#"{"a":{"b":"xxx"}}"#
        );
    }

    #[test]
    fn keys_with_dots_are_found() {
        assert_eq!(filled("{{made.metadata.annotations.a.b/c}}").unwrap(), "d");
    }

    #[test]
    fn a_dash_in_a_name_takes_nothing_away() {
        let missing = filled("{{made-1.metadata.resourceVersion}}").unwrap_err();
        assert_eq!(missing, "the answer made-1 has no metadata.resourceVersion");
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let missing = filled("{{made.metadata.uid}}").unwrap_err();
        assert_eq!(missing, "the answer made has no metadata.uid");
        assert!(filled("{{other.x}}").unwrap_err().contains("@name other"));
        assert!(filled("{{made.x").unwrap_err().contains("without }}"));
        assert!(filled("{{fill many}}").unwrap_err().contains("not a count"));
        let text = filled("{{made+1.metadata.annotations}}").unwrap_err();
        assert!(text.contains("is not a number"), "{text}");
    }
}
