//! Edits of bytes against the same edits of a tree.

use super::*;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

fn versioned(text: &str) -> String {
    let edited = with_version(&bytes(text), &version("42")).unwrap();
    String::from_utf8(edited.to_vec()).unwrap()
}

fn canonical_of(text: &str) -> String {
    String::from_utf8(canonical(&bytes(text)).unwrap().to_vec()).unwrap()
}

#[test]
fn the_version_is_replaced_where_it_stands_and_nothing_else_is_touched() {
    let text =
        r#"{ "spec":{"resourceVersion":"1"}, "metadata" : {"a":1.50,"resourceVersion" : "7" } }"#;
    let expected =
        r#"{ "spec":{"resourceVersion":"1"}, "metadata" : {"a":1.50,"resourceVersion" : "42" } }"#;
    assert_eq!(versioned(text), expected);
    let escaped = r#"{"metad\u0061ta":{"resource\u0056ersion":"7"}}"#;
    assert_eq!(
        versioned(escaped),
        r#"{"metad\u0061ta":{"resource\u0056ersion":"42"}}"#
    );
    assert_eq!(
        versioned(r#"{"metadata":{"resourceVersion":null}}"#)
            .matches("42")
            .count(),
        1
    );
}

#[test]
fn a_version_that_was_not_there_is_added() {
    assert_eq!(
        versioned(r#"{"metadata":{"name":"a" } ,"x":1}"#),
        r#"{"metadata":{"name":"a","resourceVersion":"42" } ,"x":1}"#
    );
    assert_eq!(
        versioned(r#"{"metadata":{ }}"#),
        r#"{"metadata":{"resourceVersion":"42" }}"#
    );
    assert_eq!(
        versioned(" {}"),
        r#" {"metadata":{"resourceVersion":"42"}}"#
    );
    assert_eq!(
        versioned(r#"{"a":[1]}"#),
        r#"{"a":[1],"metadata":{"resourceVersion":"42"}}"#
    );
}

#[test]
fn the_same_version_costs_no_copy() {
    let same = bytes(r#"{"metadata":{"resourceVersion":"42"}}"#);
    let edited = with_version(&same, &version("42")).unwrap();
    assert_eq!(edited.as_ptr(), same.as_ptr());
}

#[test]
fn managed_fields_go_with_their_comma() {
    let without = |text: &str| {
        let edited = without_managed_fields(&bytes(text)).unwrap();
        String::from_utf8(edited.to_vec()).unwrap()
    };
    let managed = r#""managedFields":[{"fieldsV1":{"f:metadata":{"}":"]"}}}]"#;
    assert_eq!(
        without(&format!(r#"{{"metadata":{{{managed}}}}}"#)),
        r#"{"metadata":{}}"#
    );
    assert_eq!(
        without(&format!(r#"{{"metadata":{{"a":1,{managed}}}}}"#)),
        r#"{"metadata":{"a":1}}"#
    );
    assert_eq!(
        without(&format!(r#"{{"metadata":{{{managed}, "a":1}}}}"#)),
        r#"{"metadata":{"a":1}}"#
    );
    let between = format!(r#"{{"metadata":{{"a":1,{managed},"b":2}}}}"#);
    assert_eq!(without(&between), r#"{"metadata":{"a":1,"b":2}}"#);
    for unchanged in [
        r#"{"managedFields":1}"#,
        r#"{"metadata":null}"#,
        r#"{"metadata":{"a":1}}"#,
    ] {
        assert_eq!(without(unchanged), unchanged);
    }
}

#[test]
fn canonical_bytes_start_with_the_type_and_have_no_slack() {
    let text = "{\n  \"metadata\": {\"name\": \"a b\", \"managedFields\": [ ], \"z\": 1.0},\n  \
                \"kind\": \"Pod\", \"spec\": {\"x\" : [ 1, \"\\\" , \" ]},\t\
                \"apiVersion\":\"v1\"}\n";
    let expected = concat!(
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a b","z":1.0},"#,
        r#""spec":{"x":[1,"\" , "]}}"#,
    );
    assert_eq!(canonical_of(text), expected);
    let kept = bytes(expected);
    assert_eq!(canonical(&kept).unwrap().as_ptr(), kept.as_ptr());
    assert_eq!(canonical_of("{ }"), "{}");
    assert_eq!(
        canonical_of(r#"{"metadata": null }"#),
        r#"{"metadata":null}"#
    );
}

#[test]
fn items_of_a_list_get_the_type_of_their_list() {
    let edited = canonical_as(&bytes(r#"{"metadata":{"name":"a"}}"#), "v1", "Pod").unwrap();
    assert_eq!(
        edited,
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#.as_bytes()
    );
    let own = canonical_as(&bytes(r#"{"kind":"X"}"#), "v1", "Pod").unwrap();
    assert_eq!(own, r#"{"apiVersion":"v1","kind":"X"}"#.as_bytes());
}

#[test]
fn metadata_alone_is_an_object_of_its_own() {
    let text = br#"{"spec":{"metadata":1},"metadata":{"name":"a","n":1e3}}"#;
    let partial = metadata_only(text, "meta.k8s.io/v1", "PartialObjectMetadata").unwrap();
    let expected = concat!(
        r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","#,
        r#""metadata":{"name":"a","n":1e3}}"#,
    );
    assert_eq!(partial, expected.as_bytes());
    let none = metadata_only(b"{}", "v\"1", "K").unwrap();
    assert_eq!(
        none,
        br#"{"kind":"K","apiVersion":"v\"1","metadata":{}}"#[..]
    );
}

#[test]
fn a_key_twice_is_refused_where_the_edit_is_about_it() {
    let twice = [
        r#"{"metadata":{},"metadata":{}}"#,
        r#"{"metadata":{},"m\u0065tadata":{}}"#,
        r#"{"metadata":{"resourceVersion":"1","resourceVersion":"2"}}"#,
    ];
    for text in twice {
        let edited = with_version(&bytes(text), &version("3"));
        assert!(matches!(edited, Err(BadSplice::Twice(_))), "{text}");
    }
    let managed = r#"{"metadata":{"managedFields":1,"managedFields":2}}"#;
    assert_eq!(
        without_managed_fields(&bytes(managed)),
        Err(BadSplice::Twice("managedFields"))
    );
    assert_eq!(
        canonical(&bytes(managed)),
        Err(BadSplice::Twice("managedFields"))
    );
    assert_eq!(
        canonical(&bytes(r#"{"kind":1,"kind":2}"#)),
        Err(BadSplice::Twice("kind"))
    );
    assert!(canonical(&bytes(r#"{"x":1,"x":2}"#)).is_ok());
}

#[test]
fn what_is_not_an_object_is_refused() {
    let texts = [
        "",
        " ",
        "null",
        "[]",
        "{",
        "{}}",
        "{} x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":[}]}",
        "{\"a\":{]}",
        "{\"a\":\"",
        "{\"a\":\"\\",
        "{\"a\":[1",
        "{\"metadata\":[]}",
        "{\"metadata\":\"{}\"}",
    ];
    for text in texts {
        let edited = with_version(&bytes(text), &version("3"));
        assert!(
            matches!(edited, Err(BadSplice::NotJson { .. })),
            "{text}: {edited:?}"
        );
    }
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    assert_eq!(metadata_range(deep.as_bytes()), Err(BadSplice::TooDeep));
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // serde_json reads some floats one bit off; these it reads exactly.
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
        "[\\PC\"\\\\{}\\[\\],: \t\n]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

const KEYS: &[&str] = &[
    "metadata",
    "managedFields",
    "resourceVersion",
    "kind",
    "apiVersion",
    "name",
];

fn key() -> impl Strategy<Value = String> {
    prop_oneof![3 => proptest::sample::select(KEYS).prop_map(str::to_owned), 1 => "\\PC{0,4}"]
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec((key(), json_value()), 0..6)
        .prop_map(|members| members.into_iter().collect())
}

prop_compose! {
    fn document()(mut top in object(), metadata in proptest::option::of(object())) -> Value {
        match metadata {
            Some(metadata) => top.insert("metadata".into(), Value::Object(metadata)),
            None => top.remove("metadata"),
        };
        Value::Object(top)
    }
}

/// The text of a document, close or airy, with or without escapes in its keys.
fn texts(document: &Value) -> [String; 3] {
    let close = document.to_string();
    let airy = serde_json::to_string_pretty(document).unwrap();
    let escaped = close.replace("\"metadata\":", "\"m\\u0065tadata\":");
    [close, airy, escaped]
}

fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("an edit of JSON is JSON")
}

proptest! {
    #[test]
    fn edits_mean_what_they_would_mean_on_a_tree(document in document()) {
        let mut with = document.clone();
        with["metadata"]["resourceVersion"] = json!("42");
        let mut without = document.clone();
        if let Some(Value::Object(metadata)) = without.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        for text in texts(&document) {
            let text = bytes(&text);
            prop_assert_eq!(read(&with_version(&text, &version("42")).unwrap()), with.clone());
            prop_assert_eq!(read(&without_managed_fields(&text).unwrap()), without.clone());
            let canonical = canonical(&text).unwrap();
            prop_assert_eq!(read(&canonical), without.clone());
            prop_assert_eq!(super::canonical(&canonical).unwrap(), canonical.clone());
            let range = metadata_range(&text).unwrap();
            let found = range.map(|range| read(&text[range]));
            prop_assert_eq!(found.as_ref(), document.get("metadata"));
            let partial = read(&metadata_only(&text, "g/v1", "K").unwrap());
            let metadata = document.get("metadata").cloned().unwrap_or(json!({}));
            let expected = json!({"kind": "K", "apiVersion": "g/v1", "metadata": metadata});
            prop_assert_eq!(partial, expected);
        }
    }

    #[test]
    fn canonical_bytes_have_no_slack_and_keep_the_order_of_keys(document in document()) {
        let [close, airy, _] = texts(&document);
        let from_close = canonical(&bytes(&close)).unwrap();
        prop_assert_eq!(&canonical(&bytes(&airy)).unwrap(), &from_close);
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let rest = |keys: Vec<String>| {
            keys.into_iter().filter(|key| !TYPE_KEYS.contains(&key.as_str())).collect::<Vec<_>>()
        };
        prop_assert_eq!(rest(keys(&read(&from_close))), rest(keys(&document)));
        prop_assert_eq!(read(&from_close).to_string().len(), from_close.len());
    }

    #[test]
    fn no_bytes_make_an_edit_panic(
        document in document(),
        cuts in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
        garbage in "[{}\\[\\]\",:\\\\ a1]{0,60}",
    ) {
        let mut damaged = document.to_string().into_bytes();
        for (at, byte) in cuts {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        let half = damaged[..damaged.len() / 2].to_vec();
        for text in [damaged, half, garbage.into_bytes()] {
            let text = Bytes::from(text);
            let _ = with_version(&text, &version("1"));
            let _ = without_managed_fields(&text);
            let _ = canonical(&text);
            let _ = canonical_as(&text, "v1", "Pod");
            let _ = metadata_only(&text, "v1", "Pod");
            let _ = scan::depth(&text);
        }
    }
}
