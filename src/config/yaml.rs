//! Bytes -> text with places: the YAML of a configuration file, before its values mean anything.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde_saphyr::{Error, MessageFormatter, Spanned, UserMessageFormatter};

use super::Problem;
use super::value::Wrong;

/// A whole file. Every value is text still.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Document {
    pub(super) data_dir: Option<Setting>,
    pub(super) listen: Option<Setting>,
    pub(super) ephemeral: Option<Setting>,
    pub(super) server_names: Option<Vec<Setting>>,
    pub(super) shutdown_grace: Option<Setting>,
    pub(super) history: Option<Setting>,
    pub(super) nodes: Option<Setting>,
    pub(super) hub_listen: Option<Setting>,
    pub(super) limits: Option<Limits>,
    pub(super) log: Option<Log>,
}

/// Bounds of what clients may hold open.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Limits {
    pub(super) connections: Option<Setting>,
}

/// How the log looks.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Log {
    pub(super) format: Option<Setting>,
    pub(super) level: Option<Setting>,
}

/// A value and where it stands.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Setting(Spanned<String>);

impl Setting {
    /// The value as what it means.
    pub(super) fn parse<T: FromStr<Err = Wrong>>(&self, key: &'static str) -> Result<T, Problem> {
        self.0
            .value
            .parse()
            .map_err(|wrong: Wrong| self.problem(key, &wrong.to_string()))
    }

    /// Something is wrong with this value.
    pub(super) fn problem(&self, key: &'static str, message: &str) -> Problem {
        let place = Place::from(self.0.referenced);
        Problem {
            place,
            key: Some(key.to_owned()),
            message: message.to_owned(),
        }
    }
}

/// A place in a file, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    line: u64,
    column: u64,
}

impl From<serde_saphyr::Location> for Place {
    fn from(location: serde_saphyr::Location) -> Self {
        Self {
            line: location.line().max(1),
            column: location.column().max(1),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The text of a file, or why it has none that could be YAML.
pub(super) fn text(bytes: &[u8]) -> Result<&str, &'static str> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err("starts with a byte order mark; save it as UTF-8 without one");
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err("is UTF-16; save it as UTF-8");
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8 text")?;
    let control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if text.contains(control) {
        return Err("holds control characters; is it a binary file?");
    }
    let has_content = |line: &str| !matches!(line.trim(), "" | "---" | "...");
    let is_comment = |line: &str| line.trim_start().starts_with('#');
    if !text
        .lines()
        .any(|line| has_content(line) && !is_comment(line))
    {
        return Err("is empty; leave out --config to run with the defaults");
    }
    Ok(text)
}

/// Parses a file. Anchors, aliases and merge keys are refused: settings this small do not need
/// them, and they are how a short file becomes an endless one.
pub(super) fn parse(text: &str) -> Result<Document, Problem> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 16,
            max_nodes: 10_000,
            max_events: 50_000,
            max_anchors: 0,
            max_aliases: 0,
            max_documents: 2, // the second is refused with a message of its own
        },
        merge_keys: serde_saphyr::MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| problem(&error, text))
}

fn problem(error: &Error, text: &str) -> Problem {
    let error = error.without_snippet();
    let place = error
        .location()
        .map_or(Place { line: 1, column: 1 }, Place::from);
    let (key, message) = match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => {
            let known = expected.join(", ");
            (
                Some(field.clone()),
                format!("unknown key; known here: {known}"),
            )
        }
        Error::DuplicateMappingKey { key, .. } => {
            (key.clone(), "this key is there twice".to_owned())
        }
        Error::Budget { .. } => (
            None,
            "too large, too deep, or with anchors; settings need none of it".to_owned(),
        ),
        Error::MultipleDocuments { .. } => (
            None,
            "a second document begins here; one file holds one".to_owned(),
        ),
        other => (
            key_at(text, place),
            UserMessageFormatter.format_message(other).into_owned(),
        ),
    };
    Problem {
        place,
        key,
        message,
    }
}

/// The key on the line of a place, for errors that do not name it.
fn key_at(text: &str, place: Place) -> Option<String> {
    let index = usize::try_from(place.line.checked_sub(1)?).ok()?;
    let (before, _) = text.lines().nth(index)?.split_once(':')?;
    let key = before.trim_start_matches(['-', ' ', '{']).trim();
    let is_name = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then(|| key.to_owned())
}
