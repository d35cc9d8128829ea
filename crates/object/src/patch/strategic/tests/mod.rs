//! How objects merge, what directives do, and what is left of them.

use super::*;
use proptest::prelude::{Just, Strategy as Strategy_, any};
use proptest::{prop_assert, prop_assert_eq, prop_oneof, proptest};
use serde_json::json;

mod differences;
mod lists;

/// A kind with one field of every way to merge, and items that have the same fields again.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rules {
    Item,
    MergingList,
    MergingValues,
    AtomicList,
    FreeMap,
    Replacing,
    Plain,
}

impl MergeRules for Rules {
    fn field(&self, name: &str) -> Option<Self> {
        match (self, name) {
            (Rules::Item, "list") => Some(Rules::MergingList),
            (Rules::Item, "values") => Some(Rules::MergingValues),
            (Rules::Item, "atomic") => Some(Rules::AtomicList),
            (Rules::Item, "labels") => Some(Rules::FreeMap),
            (Rules::Item, "source") => Some(Rules::Replacing),
            (Rules::Item, "nested" | "strategy") => Some(Rules::Item),
            (Rules::Item, "name" | "value" | "other" | "simple") => Some(Rules::Plain),
            (Rules::FreeMap, _) => Some(Rules::Plain),
            _ => None,
        }
    }

    fn items(&self) -> Option<Self> {
        match self {
            Rules::MergingList | Rules::AtomicList => Some(Rules::Item),
            Rules::MergingValues => Some(Rules::Plain),
            _ => None,
        }
    }

    fn strategy(&self) -> Strategy<'_> {
        match self {
            Rules::MergingList => Strategy::Merge { key: "name" },
            Rules::MergingValues => Strategy::Merge { key: "" },
            Rules::Replacing => Strategy::Replace,
            _ => Strategy::Default,
        }
    }
}

fn patch(document: Value, patch: Value) -> Result<Value, BadStrategicPatch> {
    apply(document, patch, &Rules::Item)
}

#[track_caller]
fn becomes(document: Value, change: Value, expected: Value) {
    let patched = patch(document.clone(), change.clone());
    let patched = patched.unwrap_or_else(|refused| panic!("{document} {change}: {refused}"));
    assert_eq!(
        patched.to_string(),
        expected.to_string(),
        "{document} {change}"
    );
}

fn names(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({"name": name})).collect()
}

#[test]
fn objects_merge_and_null_takes_away() {
    becomes(
        json!({
            "name": "a",
            "nested": {"value": "1", "other": "2"},
            "labels": {"x": "1", "y": "2"},
        }),
        json!({"nested": {"other": null, "value": "9"}, "labels": {"x": null, "z": "3"}}),
        json!({"name": "a", "nested": {"value": "9"}, "labels": {"y": "2", "z": "3"}}),
    );
    becomes(
        json!({"name": "a"}),
        json!({"value": null}),
        json!({"name": "a"}),
    );
    becomes(
        json!({"labels": {"x": "1"}}),
        json!({"labels": null}),
        json!({}),
    );
    becomes(
        json!({}),
        json!({"nested": {"value": null, "other": "1"}}),
        json!({"nested": {"other": "1"}}),
    );
}

#[test]
fn a_value_of_another_type_takes_the_place_of_the_old_one() {
    becomes(
        json!({"simple": {"a": 1}}),
        json!({"simple": [1]}),
        json!({"simple": [1]}),
    );
    becomes(
        json!({"simple": [1]}),
        json!({"simple": {"a": 1, "b": null}}),
        json!({"simple": {"a": 1}}),
    );
    becomes(
        json!({"simple": "x"}),
        json!({"simple": 4}),
        json!({"simple": 4}),
    );
    becomes(
        json!({"simple": "x"}),
        json!({"simple": {"$patch": "delete"}}),
        json!({}),
    );
}

#[test]
fn a_directive_replaces_or_empties_an_object() {
    becomes(
        json!({"nested": {"value": "1", "other": "2"}}),
        json!({"nested": {"$patch": "replace", "other": "3"}}),
        json!({"nested": {"other": "3"}}),
    );
    becomes(
        json!({"nested": {"value": "1"}}),
        json!({"nested": {"$patch": "delete"}}),
        json!({"nested": {}}),
    );
    becomes(
        json!({"name": "a"}),
        json!({"$patch": "replace", "value": "b"}),
        json!({"value": "b"}),
    );
    becomes(json!({"name": "a"}), json!({"$patch": "delete"}), json!({}));
    for unknown in [json!("merge"), json!("frobnicate"), json!(1), json!(null)] {
        let refused = patch(json!({}), json!({"$patch": unknown}));
        assert!(
            matches!(refused, Err(BadStrategicPatch::UnknownDirective(_))),
            "{unknown}"
        );
    }
}

#[test]
fn only_retained_keys_stay() {
    becomes(
        json!({"strategy": {"name": "RollingUpdate", "nested": {"value": "1"}, "other": "x"}}),
        json!({"strategy": {"$retainKeys": ["name", "value"], "name": "Recreate", "value": "2"}}),
        json!({"strategy": {"name": "Recreate", "value": "2"}}),
    );
    becomes(
        json!({"strategy": {"name": "a", "other": "x"}}),
        json!({"strategy": {"$retainKeys": ["name"], "other": null}}),
        json!({"strategy": {"name": "a"}}),
    );
    becomes(
        json!({"list": [{"name": "a", "value": "1", "other": "2"}]}),
        json!({"list": [{"$retainKeys": ["name", "value"], "name": "a"}]}),
        json!({"list": [{"name": "a", "value": "1"}]}),
    );
    becomes(
        json!({"nested": {"values": [1, 2], "value": "x"}}),
        json!({"nested": {"$retainKeys": ["values"], "$deleteFromPrimitiveList/values": [1],
                          "$setElementOrder/values": [2]}}),
        json!({"nested": {"values": [2]}}),
    );
    for change in [
        json!({"$retainKeys": ["name"], "value": "x"}),
        json!({"$retainKeys": "name"}),
    ] {
        assert_eq!(
            patch(json!({}), change),
            Err(BadStrategicPatch::BadRetainKeys)
        );
    }
    let loses_its_key = json!({"list": [{"$retainKeys": ["value"], "name": "a"}]});
    assert!(patch(json!({"list": names(&["a"])}), loses_its_key).is_err());
}

#[test]
fn no_directive_and_no_null_ends_up_in_the_object() {
    let change = json!({
        "nested": {"$retainKeys": ["value", "list"], "value": "1", "other": null,
                   "$setElementOrder/list": names(&["a"]), "$deleteFromPrimitiveList/values": [1],
                   "list": [{"name": "a", "value": null}, {"name": "b", "$patch": "delete"}]},
        "list": [{"name": "new", "nested": {"$retainKeys": []}, "value": null}],
        "atomic": [{"name": "x", "$retainKeys": [], "value": null}],
        "source": {"a": null, "$setElementOrder/b": []},
    });
    let clean = json!({
        "nested": {"value": "1", "list": [{"name": "a"}]},
        "list": [{"name": "new", "nested": {}}],
        "atomic": [{"name": "x"}],
        "source": {},
    });
    becomes(json!({}), change.clone(), clean.clone());
    let with_old = patch(
        json!({"list": [], "atomic": [], "source": {"z": 1}}),
        change,
    )
    .unwrap();
    assert_eq!(with_old, clean);
}

#[test]
fn a_field_that_the_kind_does_not_have_is_refused_where_its_rules_are_needed() {
    let unknown = patch(json!({"nope": {"a": 1}}), json!({"nope": {"b": 1}}));
    assert_eq!(
        unknown,
        Err(BadStrategicPatch::UnknownField("nope".to_owned()))
    );
    becomes(
        json!({}),
        json!({"nope": {"b": 1}}),
        json!({"nope": {"b": 1}}),
    );
    for not_an_object in [json!([]), json!(null), json!("x")] {
        let refused = patch(json!({}), not_an_object).unwrap_err();
        assert_eq!(refused, BadStrategicPatch::NotAnObject);
        assert_eq!(refused.fault(), Fault::Malformed);
    }
}

fn changes() -> impl Strategy_<Value = Value> {
    let keys = [
        "name",
        "value",
        "list",
        "values",
        "atomic",
        "labels",
        "source",
        "nested",
        "strategy",
        "$patch",
        "$retainKeys",
        "$setElementOrder/list",
        "$setElementOrder/values",
        "$deleteFromPrimitiveList/values",
        "$deleteFromPrimitiveList",
        "nope",
    ];
    let leaf = prop_oneof![
        Just(json!(null)),
        proptest::sample::select(vec!["a", "b", "replace", "delete", "merge"])
            .prop_map(Value::from),
        any::<u8>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let key = proptest::sample::select(keys.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn has_directive_or_null(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| {
            key.starts_with('$') || value.is_null() || has_directive_or_null(value)
        }),
        Value::Array(items) => items.iter().any(has_directive_or_null),
        _ => false,
    }
}

proptest! {
    #[test]
    fn no_patch_is_a_panic_and_none_leaves_its_directives_behind(
        document in changes(), changes in changes(),
    ) {
        let document = taken(document);
        if let Ok(patched) = patch(document, changes) {
            prop_assert!(!has_directive_or_null(&patched), "{}", patched);
        }
    }

    #[test]
    fn an_empty_patch_changes_nothing(document in changes()) {
        if let Value::Object(document) = document {
            let document = Value::Object(document);
            prop_assert_eq!(patch(document.clone(), json!({})), Ok(document));
        }
    }
}
