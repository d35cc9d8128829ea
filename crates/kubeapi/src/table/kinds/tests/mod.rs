//! Tables of realistic objects, cell by cell.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::subject::{Keep, Subject};
use super::printer;

mod networks;
mod others;
mod pods;
mod workloads;

/// When all tables of these tests are made.
const NOW: &str = "2026-03-01T12:00:00Z";
const FIVE_MINUTES_AGO: &str = "2026-03-01T11:55:00Z";
const THREE_DAYS_AGO: &str = "2026-02-26T12:00:00Z";

/// The cells of an object, as kubectl's wide table would show them.
fn cells(group: &str, kind: &str, object: &Value) -> Vec<String> {
    let printer = printer(group, kind);
    let bytes = object.to_string();
    let now = NOW.parse().unwrap();
    let subject = Subject::read(bytes.as_bytes(), Keep::Parts(printer.keep), now).unwrap();
    let cells = (printer.cells)(&subject);
    assert_eq!(
        cells.len(),
        printer.columns.len(),
        "every column of {kind} has a cell"
    );
    let shown = |cell: &Value| {
        cell.as_str()
            .map_or_else(|| cell.to_string(), str::to_owned)
    };
    cells.iter().map(shown).collect()
}

/// Metadata of an object that was made three days ago.
fn meta(name: &str) -> Value {
    json!({"name": name, "creationTimestamp": THREE_DAYS_AGO})
}

/// `spec` and `status` under the usual metadata.
fn object(name: &str, spec: Value, status: Value) -> Value {
    json!({"metadata": meta(name), "spec": spec, "status": status})
}

fn golden() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = include_str!("columns.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (kind, columns) = line.split_once(": ").unwrap();
        let (group, kind) = kind.split_once(' ').unwrap();
        (if group == "core" { "" } else { group }, kind, columns)
    })
}

#[test]
fn every_kind_has_the_columns_of_kubernetes() {
    let mut seen = 0;
    for (group, kind, expected) in golden() {
        let columns = printer(group, kind).columns.iter().map(|column| {
            let mark = match column.kind {
                "string" => "",
                "integer" => "#",
                "boolean" => "?",
                "date" => "@",
                other => panic!("{other} is no type of a column"),
            };
            let format = if column.format == "name" { "!" } else { "" };
            let wide = if column.priority > 0 { "+" } else { "" };
            assert!(
                !column.description.is_empty(),
                "{} of {kind} is described",
                column.name
            );
            format!("{}{mark}{format}{wide}", column.name)
        });
        let columns = columns.collect::<Vec<_>>().join(", ");
        assert_eq!(columns, expected, "{group} {kind}");
        seen += 1;
    }
    assert!(seen > 60, "all kinds are listed");
}

#[test]
fn an_object_with_nothing_in_it_still_has_a_row() {
    for (group, kind, _) in golden() {
        let cells = cells(group, kind, &json!({}));
        assert!(cells.iter().all(|cell| cell != "null"), "{kind}: {cells:?}");
    }
}

/// Values of any shape, with the fields that printers look for.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!("2026-01-01T00:00:00Z")),
        "[a-z:/.0-9]{0,6}".prop_map(Value::from),
    ];
    let fields = prop_oneof![
        Just("spec"),
        Just("status"),
        Just("conditions"),
        Just("containers"),
        Just("ports"),
        Just("containerStatuses"),
        Just("state"),
        Just("terminated"),
        Just("metrics"),
        Just("rules"),
        Just("subsets"),
        Just("addresses"),
        Just("metadata"),
        Just("hard"),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((fields.clone(), inner), 0..5).prop_map(|fields| fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_makes_a_printer_panic(spec in anything(), status in anything(),
        other in anything()) {
        let object = json!({
            "metadata": meta("x"), "spec": spec, "status": status, "subsets": other, "ports": other,
            "endpoints": other, "subjects": other, "template": other, "conditions": other,
            "webhooks": other, "series": other,
        });
        for (group, kind, _) in golden() {
            let _ = cells(group, kind, &object);
        }
    }
}
