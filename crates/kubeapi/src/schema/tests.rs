//! Properties of the rules on any JSON whatever.

use proptest::prelude::*;
use serde_json::Map;

use super::*;

/// Names that schemas use, so that values meet them.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "metadata",
            "labels",
            "spec",
            "template",
            "containers",
            "name",
            "ports",
            "status",
            "selector",
            "type",
            "properties",
            "items",
            "anyOf",
            "required",
            "default",
            "not",
        ])
        .prop_map(str::to_owned),
        "[a-z]{0,3}",
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9{}\\[\\]\"]{0,6}".prop_map(Value::from),
        prop::sample::select(vec!["object", "array", "string", "integer"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_pruned_and_filled_once_stays_as_it_is(mut object in json()) {
        let schema = builtin::definition("io.k8s.api.apps.v1.Deployment").unwrap();
        fields::prune(&mut object, schema);
        fill::fill(&mut object, schema);
        let once = object.clone();
        prop_assert!(fields::prune(&mut object, schema).is_empty());
        fill::fill(&mut object, schema);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn nothing_that_a_client_sends_stops_the_rules(object in json(), schema in json()) {
        let reference = builtin::type_of("apps", "v1", "Deployment").unwrap();
        let _ = decode::check(&object, &reference, ("Deployment", "v1"));
        let _ = decode::missing(&object, &reference);
        let _ = structural::check(&schema, "schema");
        let _ = structural::unheeded(&schema, "schema");
        if let Ok(parsed) = structural::parse(&schema) {
            let _ = validate::validate(&object, &parsed);
            fill::fill(&mut object.clone(), &parsed);
        }
    }

    #[test]
    fn a_text_made_from_a_value_repeats_nothing(object in json()) {
        prop_assert!(fields::repeated(object.to_string().as_bytes()).is_empty());
    }
}

#[test]
fn depth_is_counted_without_recursion() {
    let mut value = Value::Null;
    for _ in 1..DEPTH_MAX {
        value = Value::Array(vec![value]);
    }
    assert!(!too_deep(&value));
    assert!(too_deep(&Value::Array(vec![value])));
}
