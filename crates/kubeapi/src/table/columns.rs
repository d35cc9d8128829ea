//! The columns of custom kinds: a name, then what additionalPrinterColumns says.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::path::Path;
use super::subject::Subject;
use super::{Column, age, kinds};
use crate::catalog::PrinterColumn;

/// Columns with their paths parsed.
#[derive(Debug)]
pub struct CustomColumns<'k> {
    columns: Vec<Column<'k>>,
    /// The path of each column but the first; none where the text is no path.
    paths: Vec<Option<Path>>,
}

/// A kind whose definition names no columns has this one.
const AGE: Column<'static> = Column {
    name: "Age",
    kind: "date",
    format: "",
    description: "How long ago the object was made.",
    priority: 0,
};
const AGE_PATH: &str = ".metadata.creationTimestamp";

impl<'k> CustomColumns<'k> {
    /// Prepares the columns of a definition.
    pub fn new(definition: &'k [PrinterColumn]) -> Self {
        let mut columns = vec![kinds::NAME];
        if definition.is_empty() {
            columns.push(AGE);
            return Self {
                columns,
                paths: vec![Path::parse(AGE_PATH).ok()],
            };
        }
        columns.extend(definition.iter().map(|column| Column {
            name: &column.name,
            kind: &column.kind,
            format: &column.format,
            description: &column.description,
            priority: column.priority,
        }));
        let paths = definition
            .iter()
            .map(|column| Path::parse(&column.json_path).ok())
            .collect();
        Self { columns, paths }
    }

    /// The columns.
    pub fn columns(&self) -> &[Column<'k>] {
        &self.columns
    }

    pub(super) fn into_columns(self) -> Vec<Column<'k>> {
        self.columns
    }

    pub(super) fn cells(&self, subject: Subject<'_>) -> Vec<Value> {
        let mut cells = vec![Value::from(subject.name())];
        let now = subject.now;
        let whole = subject.whole();
        cells.extend(
            self.columns
                .iter()
                .skip(1)
                .zip(&self.paths)
                .map(|(column, path)| {
                    let found = path.as_ref().and_then(|path| path.first(&whole));
                    found.map_or(Value::Null, |value| cell(column.kind, value, now))
                }),
        );
        cells
    }
}

/// A value as a cell of a column of this type; null where it is of another type.
fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", value) => Value::from(text(value)),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::from(whole),
            // A float that fits is cut off; as casts go, one that does not becomes the nearest
            // limit.
            (None, Some(float)) => Value::from(float as i64),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) if text.is_empty() => Value::from("<unknown>"),
        ("date", Value::String(_)) => match age::parse(value) {
            Some(moment) => Value::from(age::since(moment, now)),
            None => Value::from("<invalid>"),
        },
        _ => Value::Null,
    }
}

/// Any value as text: strings bare, the rest as JSON with sorted keys.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(_) | Value::Array(_) => sorted(value).to_string(),
        other => other.to_string(),
    }
}

/// The same value with the keys of its objects in order. An object was parsed with a depth limit,
/// so the recursion has one.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(entries) => entries.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            let fields = fields
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::subject::Keep;
    use super::*;

    fn column(name: &str, kind: &str, json_path: &str) -> PrinterColumn {
        PrinterColumn {
            name: name.into(),
            kind: kind.into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            json_path: json_path.into(),
        }
    }

    fn cells(columns: &[PrinterColumn], object: &Value) -> Vec<Value> {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let bytes = object.to_string();
        let subject = Subject::read(bytes.as_bytes(), Keep::Everything, now).unwrap();
        CustomColumns::new(columns).cells(subject)
    }

    fn cell_of(kind: &str, value: Value) -> Value {
        cells(&[column("X", kind, ".x")], &json!({"x": value})).remove(1)
    }

    #[test]
    fn a_definition_without_columns_shows_name_and_age() {
        let object =
            json!({"metadata": {"name": "a", "creationTimestamp": "2025-12-31T23:58:00Z"}});
        assert_eq!(cells(&[], &object), [json!("a"), json!("2m")]);
        let columns = CustomColumns::new(&[]).into_columns();
        assert_eq!(
            columns.iter().map(|column| column.name).collect::<Vec<_>>(),
            ["Name", "Age"]
        );
    }

    #[test]
    fn a_value_of_another_type_than_its_column_is_an_empty_cell() {
        assert_eq!(cell_of("integer", json!(3)), json!(3));
        assert_eq!(cell_of("integer", json!(3.9)), json!(3));
        assert_eq!(cell_of("integer", json!("3")), Value::Null);
        assert_eq!(cell_of("number", json!(2.5)), json!(2.5));
        assert_eq!(cell_of("number", json!(true)), Value::Null);
        assert_eq!(cell_of("boolean", json!(true)), json!(true));
        assert_eq!(cell_of("boolean", json!("true")), Value::Null);
        assert_eq!(cell_of("date", json!(7)), Value::Null);
        assert_eq!(cell_of("integer", Value::Null), Value::Null);
    }

    #[test]
    fn a_string_column_shows_any_value_as_text() {
        assert_eq!(cell_of("string", json!("a")), json!("a"));
        assert_eq!(cell_of("string", json!(3)), json!("3"));
        assert_eq!(cell_of("string", json!(false)), json!("false"));
        assert_eq!(cell_of("string", json!(["a", 1])), json!("[\"a\",1]"));
        assert_eq!(
            cell_of("string", json!({"b": {"z": 1, "y": 2}, "a": 2})),
            json!("{\"a\":2,\"b\":{\"y\":2,\"z\":1}}")
        );
    }

    #[test]
    fn a_date_column_shows_an_age() {
        assert_eq!(cell_of("date", json!("2025-12-31T00:00:00Z")), json!("24h"));
        assert_eq!(cell_of("date", json!("soon")), json!("<invalid>"));
        assert_eq!(cell_of("date", json!("")), json!("<unknown>"));
    }

    #[test]
    fn a_bad_path_and_a_missing_value_are_empty_cells() {
        let columns = [
            column("Bad", "string", ".spec[?("),
            column("Missing", "string", ".spec.nothing"),
            column("Good", "string", ".metadata.labels.app"),
        ];
        let object = json!({"metadata": {"name": "a", "labels": {"app": "web"}}, "spec": {}});
        assert_eq!(
            cells(&columns, &object),
            [json!("a"), Value::Null, Value::Null, json!("web")]
        );
    }
}
