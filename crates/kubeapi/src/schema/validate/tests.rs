//! Tests of validating custom objects.

use serde_json::json;

use super::super::structural;
use super::*;

fn faults(spec: Value, value: Value) -> Vec<String> {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let schema = structural::parse(&schema).unwrap();
    let causes = validate(&json!({ "spec": value }), &schema);
    causes
        .into_iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect()
}

#[test]
fn types_are_checked_in_the_words_of_kubernetes() {
    let spec = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    assert_eq!(
        faults(spec.clone(), json!({"replicas": "three"})),
        [
            "spec.replicas: Invalid value: \"string\": spec.replicas in body must be of type \
             integer: \"string\""
        ]
    );
    assert_eq!(
        faults(spec.clone(), json!({"replicas": 3.0})),
        Vec::<String>::new()
    );
    assert_eq!(
        faults(spec.clone(), json!({"replicas": 3.5}))[1],
        "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in \
         spec.replicas"
    );
    assert_eq!(
        faults(spec, json!({"replicas": null})),
        [
            "spec.replicas: Invalid value: \"null\": spec.replicas in body must be of type \
             integer: \"null\""
        ]
    );
    let list = json!({"type": "array", "items": {"type": "boolean"}});
    assert_eq!(
        faults(list, json!([true, 1])),
        [
            "spec[1]: Invalid value: \"integer\": spec[1] in body must be of type boolean: \
          \"integer\""
        ]
    );
    let either = json!({"x-kubernetes-int-or-string": true});
    assert!(faults(either.clone(), json!(1)).is_empty());
    assert!(faults(either.clone(), json!("1")).is_empty());
    assert_eq!(faults(either, json!(true)).len(), 1);
}

#[test]
fn required_and_allowed_values() {
    let spec = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string"}, "b": {"type": "string", "enum": ["x", "y"]}}});
    assert_eq!(
        faults(spec, json!({"b": "z"})),
        [
            "spec.b: Unsupported value: \"z\": supported values: \"x\", \"y\"",
            "spec.a: Required value"
        ]
    );
    let numbers = json!({"type": "integer", "enum": [1, 2]});
    assert!(faults(numbers.clone(), json!(2)).is_empty());
    assert_eq!(
        faults(numbers, json!(3)),
        ["spec: Unsupported value: 3: supported values: \"1\", \"2\""]
    );
}

#[test]
fn bounds_are_checked() {
    let number = json!({"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 3});
    assert_eq!(
        faults(number.clone(), json!(10)),
        [
            "spec: Invalid value: 10: spec in body should be a multiple of 3",
            "spec: Invalid value: 10: spec in body should be less than or equal to 9",
        ]
    );
    assert_eq!(
        faults(number, json!(0)),
        ["spec: Invalid value: 0: spec in body should be greater than or equal to 1"]
    );
    let exclusive = json!({"type": "number", "minimum": 1, "exclusiveMinimum": true});
    assert_eq!(
        faults(exclusive, json!(1)),
        ["spec: Invalid value: 1: spec in body should be greater than 1"]
    );
    let text = json!({"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[a-z]+$"});
    assert_eq!(
        faults(text.clone(), json!("A")),
        ["spec: Invalid value: \"A\": spec in body should be at least 2 chars long"]
    );
    assert_eq!(
        faults(text.clone(), json!("AB")),
        ["spec: Invalid value: \"AB\": spec in body should match '^[a-z]+$'"]
    );
    assert_eq!(
        faults(text, json!("äöüx"))[0],
        "spec: Too long: may not be more than 3 bytes"
    );
    let list = json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}});
    assert_eq!(
        faults(list.clone(), json!([])),
        ["spec: Invalid value: 0: spec in body should have at least 1 items"]
    );
    assert_eq!(
        faults(list, json!([1, 2, 3])),
        ["spec: Too many: 3: must have at most 2 items"]
    );
    let small = json!({"type": "integer", "format": "int32"});
    assert_eq!(
        faults(small, json!(3_000_000_000_u64)),
        [
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format \
             int32 in spec"
        ]
    );
    let address = json!({"type": "string", "format": "ipv4"});
    assert_eq!(
        faults(address, json!("x")),
        ["spec: Invalid value: \"x\": spec in body must be of type ipv4: \"x\""]
    );
}

#[test]
fn combinations_are_checked() {
    let either = json!({"type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    assert!(faults(either.clone(), json!({"a": "x"})).is_empty());
    assert_eq!(
        faults(either.clone(), json!({})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). \
             Found none valid",
            "spec.a: Required value",
        ]
    );
    assert_eq!(
        faults(either, json!({"a": "x", "b": "y"})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). \
          Found 2 valid alternatives"
        ]
    );
    let any = json!({"type": "string", "anyOf": [{"minLength": 3}, {"pattern": "^x"}]});
    assert!(faults(any.clone(), json!("x")).is_empty());
    assert_eq!(faults(any, json!("y")).len(), 2);
    let not = json!({"type": "string", "not": {"enum": ["no"]}});
    assert_eq!(
        faults(not, json!("no")),
        ["<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)"]
    );
    let all = json!({"type": "integer", "allOf": [{"minimum": 2}, {"maximum": 5}]});
    assert_eq!(
        faults(all, json!(1)),
        [
            "spec: Invalid value: 1: spec in body should be greater than or equal to 2",
            "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf)",
        ]
    );
}

#[test]
fn sets_and_maps_hold_each_entry_once() {
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    assert_eq!(
        faults(set, json!(["a", "b", "a", "a"])),
        ["spec[2]: Duplicate value: \"a\""]
    );
    let item = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "port": {"type": "integer"}}});
    let map = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "port"], "items": item});
    let entries = json!([{"name": "a", "port": 1}, {"name": "a", "port": 2},
        {"port": 1, "name": "a"}]);
    assert_eq!(
        faults(map, entries),
        ["spec[2]: Duplicate value: {\"name\":\"a\",\"port\":1}"]
    );
}

#[test]
fn an_embedded_object_says_what_it_is() {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(
        faults(embedded.clone(), json!({"kind": ""})),
        [
            "spec.apiVersion: Required value",
            "spec.kind: Invalid value: \"\": must not be empty",
        ]
    );
    assert!(faults(embedded, json!({"apiVersion": "v1", "kind": "Pod"})).is_empty());
}

#[test]
fn faults_without_end_are_cut() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let values = Value::Array(vec!["x".into(); 100_000]);
    assert_eq!(faults(list, values).len(), CAUSES_MAX);
}
