//! What is wrong with an object, field by field, in the words that Kubernetes uses and its clients
//! show.

use std::fmt;

use serde_json::Value;

use crate::Status;
use crate::catalog::Kind;
use crate::status::Cause;

/// The path of a field: `spec.containers[0].name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// A field at the top.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The field `name` below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        match self.0.as_str() {
            "" => Self(name.to_owned()),
            path => Self(format!("{path}.{name}")),
        }
    }

    /// The item `index` of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The entry `key` of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is wrong with one object. Of more than [`FAULTS_MAX`] faults the first are kept: who has so
/// many does not need the rest.
#[derive(Debug, Default)]
pub struct Faults(Vec<Cause>);

/// How many faults of one object are told.
pub const FAULTS_MAX: usize = 256;
/// How much they may say together.
const BYTES_MAX: usize = 512 * 1024;

impl Faults {
    /// A field that must be there is not.
    pub fn required(&mut self, path: &Path, detail: &str) {
        self.add(
            "FieldValueRequired",
            path,
            with_detail("Required value".into(), detail),
        );
    }

    /// A field has a value that cannot be.
    pub fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl AsRef<str>) {
        let body = format!("Invalid value: {}", shown(&value.into()));
        self.add(
            "FieldValueInvalid",
            path,
            with_detail(body, detail.as_ref()),
        );
    }

    /// One `invalid` for each of `details`.
    pub fn invalid_each(&mut self, path: &Path, value: &str, details: Vec<String>) {
        for detail in details {
            self.invalid(path, value, detail);
        }
    }

    /// A field has a value outside of the few that are known.
    pub fn unsupported(&mut self, path: &Path, value: impl Into<Value>, supported: &[&str]) {
        let quoted: Vec<String> = supported.iter().map(|word| format!("{word:?}")).collect();
        let body = format!("Unsupported value: {}", shown(&value.into()));
        let detail = format!("supported values: {}", quoted.join(", "));
        self.add("FieldValueNotSupported", path, with_detail(body, &detail));
    }

    /// A value that must be there once is there twice.
    pub fn duplicate(&mut self, path: &Path, value: impl Into<Value>) {
        let body = format!("Duplicate value: {}", shown(&value.into()));
        self.add("FieldValueDuplicate", path, body);
    }

    /// A field may not be set here.
    pub fn forbidden(&mut self, path: &Path, detail: impl AsRef<str>) {
        let body = with_detail("Forbidden".into(), detail.as_ref());
        self.add("FieldValueForbidden", path, body);
    }

    /// A field names something that is not there.
    pub fn not_found(&mut self, path: &Path, value: impl Into<Value>) {
        let body = format!("Not found: {}", shown(&value.into()));
        self.add("FieldValueNotFound", path, body);
    }

    /// A field is longer than `bytes_max`.
    pub fn too_long(&mut self, path: &Path, bytes_max: usize) {
        let body = format!("Too long: may not be more than {bytes_max} bytes");
        self.add("FieldValueTooLong", path, body);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what a schema found.
    pub(super) fn extend(&mut self, causes: Vec<Cause>) {
        causes.into_iter().for_each(|cause| self.push(cause));
    }

    /// Puts these before others.
    pub(super) fn lead_with(&mut self, mut found: Faults) {
        found.extend(std::mem::take(&mut self.0));
        *self = found;
    }

    /// Every fault as a cause of a refusal.
    pub fn causes(self) -> Vec<Cause> {
        self.0
    }

    /// The 422 that names every fault, or nothing where there is none.
    pub fn refuse(self, kind: &Kind, name: &str) -> Result<(), Status> {
        if self.0.is_empty() {
            return Ok(());
        }
        // Both APIs of events are one to Kubernetes where it finds something wrong.
        let group = if kind.is_event_view() {
            ""
        } else {
            &kind.group
        };
        Err(Status::invalid(group, &kind.kind, name, self.0))
    }

    fn add(&mut self, reason: &'static str, path: &Path, message: String) {
        self.push(Cause::new(reason, path.to_string(), message));
    }

    /// The same fault found twice is told once.
    fn push(&mut self, cause: Cause) {
        let bytes: usize = self.0.iter().map(|cause| cause.message.len()).sum();
        let full = self.0.len() >= FAULTS_MAX || bytes > BYTES_MAX;
        if !full && !self.0.contains(&cause) {
            self.0.push(cause);
        }
    }

    /// The faults as causes.
    #[cfg(test)]
    pub(crate) fn told(&self) -> Vec<String> {
        let tell = |cause: &Cause| format!("{}: {}", cause.field, cause.message);
        self.0.iter().map(tell).collect()
    }
}

fn with_detail(body: String, detail: &str) -> String {
    match detail {
        "" => body,
        detail => format!("{body}: {detail}"),
    }
}

/// Strings are quoted, everything else is JSON. A value that would drown the message is cut.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => quoted(text),
        other => in_order(other.clone()).to_string(),
    };
    if text.len() <= SHOWN_BYTES_MAX {
        return text;
    }
    let mut end = SHOWN_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}

/// Maps of strings, such as labels, by their keys: Go writes maps so.
fn in_order(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_map = fields.values().all(Value::is_string);
            let mut fields: Vec<_> = fields.into_iter().collect();
            if is_map {
                fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            }
            let fields = fields.into_iter();
            let fields = fields.map(|(key, value)| (key, in_order(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(in_order).collect()),
        other => other,
    }
}

/// A string in quotes, with the escapes of Go.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            letter if letter.is_ascii_control() => {
                quoted.push_str(&format!("\\x{:02x}", u32::from(letter)));
            }
            letter if letter.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Most of a wrong value that a refusal repeats. A pod spec fits; a hostile megabyte does not.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn faults_read_as_kubernetes_words_them() {
        let mut faults = Faults::default();
        let path = Path::new("spec").child("containers").index(0).child("name");
        faults.required(&path, "");
        faults.invalid(&path, "A", "must be lower");
        faults.invalid(&Path::new("spec").child("n"), 3, "too big");
        faults.unsupported(&path, "x", &["a", "b"]);
        faults.duplicate(&Path::new("data").key("k"), json!({"a": 1}));
        faults.too_long(&path, 10);
        assert_eq!(
            faults.told(),
            [
                "spec.containers[0].name: Required value",
                "spec.containers[0].name: Invalid value: \"A\": must be lower",
                "spec.n: Invalid value: 3: too big",
                "spec.containers[0].name: Unsupported value: \"x\": supported values: \"a\", \"b\"",
                "data[k]: Duplicate value: {\"a\":1}",
                "spec.containers[0].name: Too long: may not be more than 10 bytes",
            ]
        );
    }

    #[test]
    fn a_huge_value_is_cut_between_characters() {
        let mut faults = Faults::default();
        faults.invalid(&Path::new("a"), "ä".repeat(20_000), "no");
        assert!(faults.told()[0].len() < 17_000);
    }

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        assert_eq!(
            quoted("a\"b\\c\n\0\u{7f}\u{85}ä"),
            "\"a\\\"b\\\\c\\n\\x00\\x7f\\u0085ä\""
        );
    }

    #[test]
    fn of_very_many_faults_the_first_are_told() {
        let mut faults = Faults::default();
        for index in 0..100_000 {
            faults.required(&Path::new("a").index(index), "");
        }
        assert_eq!(faults.told().len(), FAULTS_MAX);
        let mut faults = Faults::default();
        for index in 0..1_000 {
            faults.invalid(&Path::new("a").index(index), "x".repeat(20_000), "no");
        }
        let bytes: usize = faults.told().iter().map(String::len).sum();
        assert!(bytes < BYTES_MAX + 20_000, "{bytes}");
    }

    #[test]
    fn the_same_fault_is_told_once() {
        let mut faults = Faults::default();
        faults.required(&Path::new("a"), "");
        faults.required(&Path::new("a"), "");
        assert_eq!(faults.told().len(), 1);
    }
}
