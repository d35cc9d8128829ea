//! The standard's examples, Kubernetes' words, and the limits.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn patch(document: Value, operations: Value) -> Result<Value, BadJsonPatch> {
    Patch::parse(operations.to_string().as_bytes())?.apply(document)
}

fn refusal(document: Value, operations: Value) -> String {
    patch(document, operations).unwrap_err().to_string()
}

/// RFC 6902, appendix A, as far as its patches are valid.
#[test]
fn the_examples_of_the_standard_hold() {
    let examples = [
        (
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/baz", "value": "qux"}]),
            json!({"baz": "qux", "foo": "bar"}),
        ),
        (
            json!({"foo": ["bar", "baz"]}),
            json!([{"op": "add", "path": "/foo/1", "value": "qux"}]),
            json!({"foo": ["bar", "qux", "baz"]}),
        ),
        (
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "remove", "path": "/baz"}]),
            json!({"foo": "bar"}),
        ),
        (
            json!({"foo": ["bar", "qux", "baz"]}),
            json!([{"op": "remove", "path": "/foo/1"}]),
            json!({"foo": ["bar", "baz"]}),
        ),
        (
            json!({"baz": "qux", "foo": "bar"}),
            json!([{"op": "replace", "path": "/baz", "value": "boo"}]),
            json!({"baz": "boo", "foo": "bar"}),
        ),
        (
            json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
            json!([{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]),
            json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}),
        ),
        (
            json!({"foo": ["all", "grass", "cows", "eat"]}),
            json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
            json!({"foo": ["all", "cows", "eat", "grass"]}),
        ),
        (
            json!({"baz": "qux", "foo": ["a", 2, "c"]}),
            json!([
                {"op": "test", "path": "/baz", "value": "qux"},
                {"op": "test", "path": "/foo/1", "value": 2},
            ]),
            json!({"baz": "qux", "foo": ["a", 2, "c"]}),
        ),
        (
            json!({"foo": "bar"}),
            json!([{"op": "add", "path": "/child", "value": {"grandchild": {}}}]),
            json!({"foo": "bar", "child": {"grandchild": {}}}),
        ),
        (
            json!({"/": 9, "~1": 10}),
            json!([{"op": "test", "path": "/~01", "value": 10}]),
            json!({"/": 9, "~1": 10}),
        ),
        (
            json!({"foo": ["bar"]}),
            json!([{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}]),
            json!({"foo": ["bar", ["abc", "def"]]}),
        ),
    ];
    for (document, operations, expected) in examples {
        let patched = patch(document, operations.clone()).unwrap();
        assert_eq!(patched, expected, "{operations}");
    }
}

#[test]
fn members_that_an_operation_does_not_have_are_ignored() {
    let extra = json!([{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}]);
    let patched = patch(json!({"foo": "bar"}), extra).unwrap();
    assert_eq!(patched, json!({"foo": "bar", "baz": "qux"}));
}

#[test]
fn what_the_standard_refuses_is_refused_in_kubernetes_words() {
    let foo = || json!({"foo": "bar"});
    let refusals = [
        (
            refusal(
                json!({"baz": "qux"}),
                json!([{"op": "test", "path": "/baz", "value": "bar"}]),
            ),
            "testing value /baz failed: test failed",
        ),
        (
            refusal(
                foo(),
                json!([{"op": "add", "path": "/baz/bat", "value": "qux"}]),
            ),
            "add operation does not apply: doc is missing path: \"/baz/bat\": missing value",
        ),
        (
            refusal(foo(), json!([{"op": "remove", "path": "/baz"}])),
            "error in remove for path: '/baz': Unable to remove nonexistent key: baz: missing \
             value",
        ),
        (
            refusal(
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/5", "value": 1}]),
            ),
            "error in add for path: '/a/5': Unable to access invalid index: 5: invalid index \
             referenced",
        ),
        (
            refusal(
                json!({"a": [1]}),
                json!([{"op": "replace", "path": "/a/1", "value": 1}]),
            ),
            "replace operation does not apply: doc is missing key: /a/1: missing value",
        ),
        (
            refusal(foo(), json!([{"op": "move", "from": "/x/y", "path": "/z"}])),
            "move operation does not apply: doc is missing from path: /x/y: missing value",
        ),
        (
            refusal(
                foo(),
                json!([{"op": "copy", "from": "/foo", "path": "/x/y"}]),
            ),
            "copy operation does not apply: doc is missing destination path: /x/y: missing value",
        ),
    ];
    for (told, text) in refusals {
        assert_eq!(told, text);
    }
}

#[test]
fn operations_that_are_none_are_refused_in_kubernetes_words() {
    let foo = || json!({"foo": "bar"});
    let refusals = [
        (
            refusal(foo(), json!([{"op": "spam", "path": "/a"}])),
            "Unexpected kind: spam",
        ),
        (
            refusal(foo(), json!([{"path": "/a"}])),
            "Unexpected kind: unknown",
        ),
        (
            refusal(foo(), json!([{"op": "add", "value": 1}])),
            "add operation failed to decode path: missing value",
        ),
        (
            refusal(foo(), json!([{"op": "move", "path": "/a"}])),
            "move operation failed to decode from: missing value",
        ),
        (
            refusal(foo(), json!([{"op": "test", "path": "/a/b", "value": 1}])),
            "test operation does not apply: is missing path: /a/b: missing value",
        ),
    ];
    for (told, text) in refusals {
        assert_eq!(told, text);
    }
    let nowhere = refusal(foo(), json!([{"op": "test", "path": "/a/b", "value": 1}]));
    let text = "test operation does not apply: is missing path: /a/b: missing value";
    assert_eq!(nowhere, text);
}

#[test]
fn a_patch_is_a_list_of_operations() {
    for text in [
        "",
        "{}",
        "[1]",
        "[{\"op\":1}]",
        "[{\"op\":\"add\",\"op\":\"remove\"}]",
        "null",
    ] {
        let refused = Patch::parse(text.as_bytes()).unwrap_err();
        assert_eq!(refused.fault(), Fault::Malformed, "{text}");
    }
    assert_eq!(patch(json!({"a": 1}), json!([])).unwrap(), json!({"a": 1}));
}

#[test]
fn places_must_be_spelled_as_they_are() {
    let list = || json!({"a": [1, 2, 3]});
    for index in ["01", "+1", "1.0", "x", "", "-0x1", "99999999999999999999"] {
        let path = format!("/a/{index}");
        let refused = patch(list(), json!([{"op": "remove", "path": path}])).unwrap_err();
        assert!(
            matches!(refused, BadJsonPatch::NotThere { .. }),
            "{index}: {refused}"
        );
    }
    let nowhere = refusal(list(), json!([{"op": "remove", "path": "a"}]));
    assert!(nowhere.contains("missing path"), "{nowhere}");
    assert!(refusal(list(), json!([{"op": "remove", "path": ""}])).contains("missing path"));
    let into_itself = refusal(
        json!({"a": {"b": 1}}),
        json!([{"op": "move", "from": "/a", "path": "/a/b"}]),
    );
    assert!(
        into_itself.contains("missing destination path"),
        "{into_itself}"
    );
    let nowhere = refusal(
        list(),
        json!([{"op": "copy", "from": "/none/b", "path": "/b"}]),
    );
    assert!(nowhere.contains("missing from path"), "{nowhere}");
}

#[test]
fn kubernetes_patience_is_kept() {
    let replaced = patch(
        json!({}),
        json!([{"op": "replace", "path": "/a", "value": 1}]),
    );
    assert_eq!(replaced.unwrap(), json!({"a": 1}));
    let copied = patch(
        json!({}),
        json!([{"op": "copy", "from": "/none", "path": "/b"}]),
    );
    assert_eq!(copied.unwrap(), json!({"b": null}));
    assert!(
        patch(
            json!({}),
            json!([{"op": "test", "path": "/a", "value": null}])
        )
        .is_ok()
    );
    assert!(patch(json!({}), json!([{"op": "test", "path": "/a"}])).is_ok());
    let last = patch(
        json!({"a": [1, 2]}),
        json!([{"op": "remove", "path": "/a/-1"}]),
    );
    assert_eq!(last.unwrap(), json!({"a": [1]}));
    let before_end = patch(
        json!({"a": [1]}),
        json!([{"op": "add", "path": "/a/-1", "value": 2}]),
    );
    assert_eq!(before_end.unwrap(), json!({"a": [1, 2]}));
}

#[test]
fn a_test_compares_meaning_and_not_spelling() {
    let document = json!({"n": 1, "o": {"a": 1, "b": [2.0]}, "big": 9_007_199_254_740_993_i64});
    let holds = |path: &str, value: Value| {
        patch(
            document.clone(),
            json!([{"op": "test", "path": path, "value": value}]),
        )
        .is_ok()
    };
    assert!(holds("/n", json!(1.0)));
    assert!(holds("/o", json!({"b": [2], "a": 1})));
    assert!(holds("", document.clone()));
    assert!(!holds("/n", json!("1")));
    assert!(!holds("/o", json!({"a": 1})));
    assert!(!holds("/big", json!(9_007_199_254_740_992_i64)));
}

#[test]
fn the_order_of_keys_is_kept_and_the_whole_document_can_be_replaced() {
    let operations =
        json!([{"op": "remove", "path": "/b"}, {"op": "add", "path": "/a", "value": 9}]);
    let patched = patch(json!({"z": 1, "b": 2, "a": 3, "c": 4}), operations).unwrap();
    assert_eq!(patched.to_string(), r#"{"z":1,"a":9,"c":4}"#);
    let whole = patch(
        json!({"a": 1}),
        json!([{"op": "replace", "path": "", "value": {"b": 2}}]),
    );
    assert_eq!(whole.unwrap(), json!({"b": 2}));
}

#[test]
fn a_patch_has_limits() {
    let many = vec![json!({"op": "test", "path": "", "value": {}}); OPERATIONS_MAX + 1];
    let refused = patch(json!({}), Value::from(many)).unwrap_err();
    assert_eq!(refused.fault(), Fault::TooLarge);
    let told = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(refused.to_string(), told);

    let double = vec![json!({"op": "copy", "from": "/a", "path": "/a/-"}); 40];
    let refused = patch(json!({"a": [1]}), Value::from(double)).unwrap_err();
    assert!(
        matches!(refused, BadJsonPatch::CopiesTooMuch { .. }),
        "{refused}"
    );

    let deeper = vec![json!({"op": "copy", "from": "", "path": "/a"}); 200];
    let refused = patch(json!({"a": 1}), Value::from(deeper)).unwrap_err();
    assert!(matches!(refused, BadJsonPatch::TooDeep), "{refused}");

    let nest = (0..100).map(|n| {
        let from = format!("/b{}", if n % 2 == 0 { "" } else { "/a" });
        json!({"op": "move", "from": from, "path": "/a/a"})
    });
    assert!(
        patch(
            json!({"a": {}, "b": {}}),
            Value::from(nest.collect::<Vec<_>>())
        )
        .is_err()
    );

    let long: Vec<Value> = vec![json!(1); 300_000];
    let shift = vec![json!({"op": "add", "path": "/a/0", "value": 1}); OPERATIONS_MAX];
    let refused = patch(json!({"a": long}), Value::from(shift)).unwrap_err();
    assert!(matches!(refused, BadJsonPatch::TooMuchWork), "{refused}");
    assert_eq!(refused.fault(), Fault::TooLarge);
}

fn pointer() -> impl Strategy<Value = String> {
    let parts = ["a", "b", "0", "1", "-", "-1", "~0", "~1", "~", "", "99"];
    proptest::collection::vec(proptest::sample::select(parts.to_vec()), 0..4)
        .prop_map(|parts| parts.iter().map(|part| format!("/{part}")).collect())
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(null)), any::<u8>().prop_map(Value::from)];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[ab~/]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_patch_is_a_panic(
        document in document(),
        operations in proptest::collection::vec(
            ("add|remove|replace|move|copy|test|x", pointer(), pointer(), document()), 0..6,
        ),
    ) {
        let operations: Vec<Value> = operations
            .into_iter()
            .map(|(op, path, from, value)| {
                json!({"op": op, "path": path, "from": from, "value": value})
            })
            .collect();
        let _ = patch(document, Value::from(operations));
    }

    #[test]
    fn what_was_added_is_there_and_goes_again(document in document(), key in "\\PC{0,4}") {
        let path = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        let mut document = json!({"o": document});
        document.as_object_mut().unwrap().remove(&key);
        let there = json!([
            {"op": "add", "path": path, "value": [1]},
            {"op": "test", "path": path, "value": [1.0]},
            {"op": "remove", "path": path},
        ]);
        prop_assert_eq!(patch(document.clone(), there).unwrap(), document);
    }
}
