//! Tests of reading and refusing the schemas of custom kinds.

use serde_json::json;

use super::*;

fn faults(schema: Value) -> Vec<String> {
    let causes = check(&schema, "schema");
    causes
        .into_iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect()
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn a_sound_schema_is_taken_and_read() {
    let schema = object(json!({
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 1, "default": 3},
            "port": {"x-kubernetes-int-or-string": true,
                "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "entries": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"],
                    "properties": {"name": {"type": "string", "maxLength": 5}}}}}},
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "a"}}}
    }));
    assert_eq!(faults(schema.clone()), Vec::<String>::new());
    let parsed = parse(&schema).unwrap();
    let spec = parsed.field("spec").unwrap();
    assert_eq!(spec.field("port").unwrap().shape, Shape::IntOrString);
    assert_eq!(spec.field("size").unwrap().default, Some(json!(3)));
    assert!(matches!(spec.field("labels").unwrap().shape, Shape::Map(_)));
    assert!(spec.field("raw").unwrap().preserve_unknown);
    assert_eq!(
        spec.field("entries").unwrap().list,
        ListKind::Map(vec!["name".into()])
    );
    let name = spec
        .field("entries")
        .unwrap()
        .items()
        .unwrap()
        .field("name")
        .unwrap();
    assert_eq!(name.bounds.as_ref().unwrap().length_max, Some(5));
}

#[test]
fn the_common_mistakes_are_named_in_the_words_of_kubernetes() {
    let required = "Required value: must not be empty for specified object fields";
    assert_eq!(
        faults(object(json!({"spec": {"properties": {"a": {}}}}))),
        [
            format!("schema.properties[spec].properties[a].type: {required}"),
            format!("schema.properties[spec].type: {required}"),
        ]
    );
    assert_eq!(
        faults(json!({"type": "string"})),
        ["schema.type: Invalid value: \"string\": must be object at the root"]
    );
    assert_eq!(
        faults(object(json!({"a": {"type": "array"}}))),
        ["schema.properties[a].items: Required value: must be specified"]
    );
    assert_eq!(
        faults(object(
            json!({"a": {"type": "string", "anyOf": [{"type": "string"}]}})
        )),
        ["schema.properties[a].anyOf[0].type: Forbidden: must be empty to be structural"]
    );
    assert_eq!(
        faults(object(json!({"a": {"type": "text"}}))),
        [
            "schema.properties[a].type: Unsupported value: \"text\": supported values: \"array\", \
          \"boolean\", \"integer\", \"number\", \"object\", \"string\""
        ]
    );
    assert_eq!(
        faults(object(json!({"a": {"$ref": "#/x", "type": "string"}}))),
        ["schema.properties[a].$ref: Forbidden: $ref is not supported"]
    );
    let wrong = faults(object(json!({"a": {"type": "string", "pattern": "["}})));
    assert!(wrong[0].starts_with(
        "schema.properties[a].pattern: Invalid value: \"[\": must be a valid regular expression, \
         but isn't: "
    ));
}

#[test]
fn lists_with_keys_need_them_in_their_items() {
    let list = |keys: Value, properties: Value| {
        object(
            json!({"a": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "properties": properties}}}),
        )
    };
    assert_eq!(
        faults(list(json!(["name"]), json!({}))),
        [
            "schema.properties[a].x-kubernetes-list-map-keys: Invalid value: [\"name\"]: \
             entries must all be names of item properties"
        ]
    );
    assert_eq!(
        faults(list(json!(["name"]), json!({"name": {"type": "string"}}))),
        [
            "schema.properties[a].items.properties[name].default: Required value: this \
             property is in x-kubernetes-list-map-keys, so it must have a default or be a \
             required property"
        ]
    );
}

#[test]
fn a_default_must_be_a_value_that_the_schema_takes() {
    let wrong = faults(object(json!({"a": {"type": "integer", "default": "x"}})));
    assert_eq!(wrong.len(), 1);
    assert!(
        wrong[0].starts_with("schema.properties[a].default: Invalid value: "),
        "{wrong:?}"
    );
    let unknown = faults(object(
        json!({"a": {"type": "object", "default": {"b": 1}}}),
    ));
    assert_eq!(
        unknown,
        ["schema.properties[a].default: Invalid value: {\"b\":1}: must not have unknown fields"]
    );
}

#[test]
fn what_a_combination_speaks_of_must_be_described() {
    let mut schema = object(json!({"a": {"type": "string"}}));
    schema["anyOf"] = json!([{"properties": {"a": {"minLength": 1}, "b": {"minLength": 1}}}]);
    assert_eq!(
        faults(schema),
        [
            "schema.properties[b]: Required value: because it is defined in \
          schema.anyOf[0].properties[b]"
        ]
    );
}

#[test]
fn metadata_may_only_be_narrowed_by_name() {
    let wrong = faults(object(
        json!({"metadata": {"type": "object", "properties": {
        "labels": {"type": "object"}}}}),
    ));
    assert_eq!(
        wrong,
        [
            "schema.properties[metadata]: Forbidden: must not specify anything other than name and \
          generateName, but metadata is implicitly specified"
        ]
    );
}

#[test]
fn what_is_not_done_here_is_said() {
    let schema = object(
        json!({"spec": {"type": "object", "x-kubernetes-validations": [
        {"rule": "self.a > 1"}], "properties": {"c": {"type": "string", "format": "colour"}}}}),
    );
    assert_eq!(
        unheeded(&schema, "schema"),
        [
            "schema.properties[spec].properties[c].format: unrecognized format \"colour\"",
            "schema.properties[spec].x-kubernetes-validations: kept, but CEL rules are not \
             evaluated here",
        ]
    );
}

#[test]
fn a_bottomless_schema_is_refused() {
    let mut schema = json!({"type": "object"});
    for _ in 0..100 {
        schema = json!({"type": "array", "items": schema});
    }
    assert_eq!(parse(&schema), Err(TooDeep));
    assert_eq!(check(&schema, "schema").len(), 1);
}
