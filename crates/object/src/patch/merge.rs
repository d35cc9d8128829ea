//! Merge patch, RFC 7386: the patch looks like the document, and null takes away.

use serde_json::{Map, Value};

/// The document with the patch applied. Every patch fits every document: where either is not an
/// object, the patch takes the document's place.
pub fn apply(document: Value, patch: Value) -> Value {
    match (document, patch) {
        (Value::Object(document), Value::Object(patch)) => Value::Object(merge(document, patch)),
        (_, Value::Object(patch)) => Value::Object(merge(Map::new(), patch)),
        (_, patch) => patch,
    }
}

fn merge(mut document: Map<String, Value>, patch: Map<String, Value>) -> Map<String, Value> {
    // All at once: taking keys away one by one would move the rest each time.
    document.retain(|key, _| patch.get(key).is_none_or(|value| !value.is_null()));
    for (key, value) in patch {
        if value.is_null() {
            continue;
        }
        let old = document.get_mut(&key).map(Value::take).unwrap_or_default();
        document.insert(key, apply(old, value));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// RFC 7386, appendix A.
    #[test]
    fn the_examples_of_the_standard_hold() {
        let examples = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b"}),
                json!({"b": "c"}),
                json!({"a": "b", "b": "c"}),
            ),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (
                json!({"a": "b", "b": "c"}),
                json!({"a": null}),
                json!({"b": "c"}),
            ),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (
                json!({"a": [{"b": "c"}]}),
                json!({"a": [1]}),
                json!({"a": [1]}),
            ),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (
                json!({"e": null}),
                json!({"a": 1}),
                json!({"e": null, "a": 1}),
            ),
            (
                json!([1, 2]),
                json!({"a": "b", "c": null}),
                json!({"a": "b"}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
        ];
        for (document, patch, expected) in examples {
            assert_eq!(
                apply(document.clone(), patch.clone()),
                expected,
                "{document} {patch}"
            );
        }
    }

    #[test]
    fn keys_keep_their_places_and_new_ones_come_last() {
        let document = json!({"z": 1, "y": {"b": 1, "a": 2}, "x": 3, "w": 4});
        let patched = apply(
            document,
            json!({"new": 0, "y": {"a": 9}, "z": null, "x": 7}),
        );
        assert_eq!(
            patched.to_string(),
            r#"{"y":{"b":1,"a":9},"x":7,"w":4,"new":0}"#
        );
    }

    #[test]
    fn a_storm_of_nulls_costs_no_more_than_reading_it() {
        let keys = |value: Value| -> Value {
            (0..200_000)
                .map(|n| (format!("k{n}"), value.clone()))
                .collect::<Map<_, _>>()
                .into()
        };
        assert_eq!(apply(keys(json!(1)), keys(json!(null))), json!({}));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(null)), any::<u8>().prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map("[abc]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The standard's own pseudo code.
    fn by_the_book(target: &Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else {
            return patch.clone();
        };
        let mut target = target.as_object().cloned().unwrap_or_default();
        for (name, value) in patch {
            match value {
                Value::Null => {
                    target.remove(name);
                }
                value => {
                    let old = target.get(name).cloned().unwrap_or_default();
                    target.insert(name.clone(), by_the_book(&old, value));
                }
            }
        }
        Value::Object(target)
    }

    proptest! {
        #[test]
        fn a_merge_is_what_the_standard_says(document in value(), patch in value()) {
            let expected = by_the_book(&document, &patch);
            prop_assert_eq!(apply(document, patch.clone()), expected.clone());
            prop_assert_eq!(apply(expected.clone(), patch), expected);
        }
    }
}
