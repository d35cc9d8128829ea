//! Columns, selectable fields and the scale: what is a path and what is none.

use super::validation::{assert_refused, refused};
use super::*;

#[test]
fn columns_have_a_name_a_type_and_a_path() {
    let columns = |columns: Value| {
        move |object: &mut Value| {
            object["spec"]["versions"][0]["additionalPrinterColumns"] = columns
        }
    };
    let good = json!([
        {"name": "Cron", "type": "string", "jsonPath": ".spec.cron"},
        {"name": "Ready", "type": "string",
            "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Age", "type": "date", "format": "date-time",
            "jsonPath": ".metadata.creationTimestamp"},
    ]);
    assert_eq!(refused(columns(good)), Vec::<String>::new());
    let base = "spec.additionalPrinterColumns";
    assert_refused(
        columns(json!([{}])),
        &[
            &format!("{base}[0].name: Required value"),
            &format!(
                "{base}[0].type: Required value: must be one of boolean,date,integer,number,string"
            ),
            &format!("{base}[0].JSONPath: Required value"),
        ],
    );
    let odd = json!([{"name": "A", "type": "object", "format": "hex", "jsonPath": "spec.a"}]);
    assert_refused(
        columns(odd),
        &[
            &format!("{base}[0].type: Invalid value: \"object\": must be one of boolean,date"),
            &format!(
                "{base}[0].format: Invalid value: \"hex\": must be one of \
                 byte,date,date-time,double"
            ),
            &format!(
                "{base}[0].JSONPath: Invalid value: \"spec.a\": must be a simple json path \
                 starting with ."
            ),
        ],
    );
}

#[test]
fn selectable_fields_are_plain_fields_of_the_schema() {
    let fields = |paths: Vec<String>| {
        let fields: Vec<Value> = paths.iter().map(|path| json!({"jsonPath": path})).collect();
        move |object: &mut Value| object["spec"]["versions"][0]["selectableFields"] = json!(fields)
    };
    let one = |path: &str| fields(vec![path.to_owned()]);
    for good in [
        ".spec.cron",
        ".spec.replicas",
        ".spec.on",
        ".spec.sizes.any",
    ] {
        assert_eq!(refused(one(good)), Vec::<String>::new(), "{good}");
    }
    let at = "spec.selectableFields[0].jsonPath";
    assert_refused(one(""), &[&format!("{at}: Required value")]);
    assert_refused(
        one(".spec.nothing"),
        &[&format!(
            "{at}: Invalid value: \".spec.nothing\": is an invalid path: does not refer to a \
             valid field"
        )],
    );
    assert_refused(
        one(".spec.list[0]"),
        &[&format!(
            "{at}: Invalid value: \".spec.list[0]\": is an invalid path: array notation is not \
             allowed"
        )],
    );
    assert_refused(
        one(".spec.list"),
        &[&format!(
            "{at}: Invalid value: \".spec.list\": must point to a field of type string, boolean \
             or integer"
        )],
    );
    let twice = fields(vec![".spec.cron".to_owned(), ".spec.cron".to_owned()]);
    assert_refused(
        twice,
        &["spec.selectableFields[1].jsonPath: Duplicate value: \".spec.cron\""],
    );
    let many = fields((0..9).map(|at| format!(".spec.sizes.s{at}")).collect());
    assert_refused(
        many,
        &["spec.selectableFields: Too many: 9: must have at most 8 items"],
    );
}

#[test]
fn replicas_stand_in_the_spec_and_in_the_status() {
    let scale = |scale: Value| {
        move |object: &mut Value| {
            object["spec"]["versions"][0]["subresources"] = json!({"scale": scale})
        }
    };
    let good = json!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    });
    assert_eq!(refused(scale(good)), Vec::<String>::new());
    let base = "spec.subresources.scale";
    assert_refused(
        scale(json!({})),
        &[
            &format!("{base}.specReplicasPath: Required value"),
            &format!("{base}.statusReplicasPath: Required value"),
        ],
    );
    let odd = json!({
        "specReplicasPath": ".status.replicas", "statusReplicasPath": "status.replicas",
        "labelSelectorPath": ".metadata.labels",
    });
    assert_refused(
        scale(odd),
        &[
            &format!(
                "{base}.specReplicasPath: Invalid value: \".status.replicas\": should be a json \
                 path under .spec"
            ),
            &format!(
                "{base}.statusReplicasPath: Invalid value: \"status.replicas\": must be a simple \
                 json path starting with ."
            ),
            &format!(
                "{base}.labelSelectorPath: Invalid value: \".metadata.labels\": should be a json \
                 path under either .spec or .status"
            ),
        ],
    );
}
