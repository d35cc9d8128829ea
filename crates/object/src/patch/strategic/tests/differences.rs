//! A difference, applied, gives what it was made for, and touches nothing else.

use super::*;

fn differs(before: &Value, after: &Value) -> Option<Value> {
    difference(before, after, &Rules::Item)
}

#[test]
fn entries_of_others_are_not_named() {
    let before = json!({"list": [{"name": "a", "value": 1}, {"name": "b", "value": 1}]});
    let after = json!({"list": [{"name": "a", "value": 2}, {"name": "b", "value": 1}]});
    let patch = differs(&before, &after).unwrap();
    assert_eq!(patch, json!({"list": [{"name": "a", "value": 2}]}));
    let meanwhile = json!({"list": [{"name": "b", "value": 7}, {"name": "a", "value": 1}]});
    let expected = json!({"list": [{"name": "b", "value": 7}, {"name": "a", "value": 2}]});
    becomes(meanwhile, patch, expected);
    assert_eq!(differs(&before, &before), None);
}

#[test]
fn what_goes_is_taken_away() {
    let before = json!({
        "list": [{"name": "a"}, {"name": "b"}], "values": [1, 2], "labels": {"x": "1", "y": "2"},
        "simple": 1
    });
    let after = json!({"list": [{"name": "b"}], "values": [2, 3], "labels": {"y": "2"}});
    let expected = json!({
        "list": [{"$patch": "delete", "name": "a"}],
        "$deleteFromPrimitiveList/values": [1], "values": [3],
        "labels": {"x": null}, "simple": null
    });
    assert_eq!(differs(&before, &after), Some(expected));
}

#[test]
fn a_list_whose_key_stands_twice_is_replaced_whole() {
    let before = json!({"list": [{"name": "ip", "value": 1}]});
    let after = json!({"list": [{"name": "ip", "value": 1}, {"name": "ip", "value": 2}]});
    let patch = differs(&before, &after).unwrap();
    assert_eq!(patch["list"][0], json!({"$patch": "replace"}));
    becomes(before, patch, after);
}

/// The same without the order of keys, and of lists that merge.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let inner = object.iter().map(|(key, value)| {
                let mut value = sorted(value);
                if let ("list" | "values", Value::Array(items)) = (key.as_str(), &mut value) {
                    items.sort_by_key(Value::to_string);
                }
                (key.clone(), value)
            });
            let inner: std::collections::BTreeMap<String, Value> = inner.collect();
            json!(inner)
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn item(depth: u32) -> proptest::prelude::BoxedStrategy<Value> {
    let number = any::<u8>().prop_map(|number| json!(number % 3));
    let labels = proptest::collection::btree_map("[xyz]", "[12]", 0..3).prop_map(|it| json!(it));
    let values = proptest::collection::btree_set(0_u8..4, 0..3).prop_map(|it| json!(it));
    let atomic = proptest::collection::vec(0_u8..3, 0..3).prop_map(|it| json!(it));
    let list = match depth {
        0 => Just(json!([])).boxed(),
        _ => proptest::collection::btree_map("[abc]", item(depth - 1), 0..3)
            .prop_map(|all| {
                let named = all.into_iter().map(|(name, mut item)| {
                    item["name"] = name.into();
                    item
                });
                named.collect()
            })
            .boxed(),
    };
    let fields = [
        ("simple", number.boxed()),
        ("labels", labels.clone().boxed()),
        ("source", labels.boxed()),
        ("values", values.boxed()),
        ("atomic", atomic.boxed()),
        ("list", list),
    ];
    let optional = fields.map(|(name, field)| {
        proptest::option::of(field).prop_map(move |value| value.map(|value| (name, value)))
    });
    let collected = |all: [Option<(&'static str, Value)>; 6]| {
        let there = all.into_iter().flatten();
        Value::Object(
            there
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    };
    optional.prop_map(collected).boxed()
}

fn fail(why: BadStrategicPatch) -> proptest::test_runner::TestCaseError {
    proptest::test_runner::TestCaseError::fail(why.to_string())
}

proptest! {
    #[test]
    fn a_difference_applied_gives_what_it_was_made_for(before in item(2), after in item(2)) {
        let patch = differs(&before, &after).unwrap_or_else(|| json!({}));
        let made = apply(before.clone(), patch.clone(), &Rules::Item);
        let made = made.map_err(fail)?;
        prop_assert_eq!(sorted(&made), sorted(&after), "{}", patch);
        prop_assert!(differs(&after, &after).is_none());
    }
}

/// Maps and values that are always there: see what [`composed`] cannot do.
fn with_maps(mut object: Value) -> Value {
    for map in ["labels", "source"] {
        if object.get(map).is_none() {
            object[map] = json!({});
        }
    }
    if object.get("values").is_none() {
        object["values"] = json!([]);
    }
    if let Some(Value::Array(items)) = object.get_mut("list") {
        items
            .iter_mut()
            .for_each(|item| *item = with_maps(item.take()));
    }
    object
}

fn full() -> impl Strategy_<Value = Value> {
    item(1).prop_map(with_maps)
}

proptest! {
    #[test]
    fn one_patch_does_what_two_do_also_where_the_first_was_applied(
        all in [full(), full(), full()],
    ) {
        let [before, between, after] = all.each_ref();
        let patch = |from, to| differs(from, to).unwrap_or_else(|| json!({}));
        let (first, second) = (patch(before, between), patch(between, after));
        let both = composed(&first, &second, &Rules::Item);
        for from in [before, between] {
            let made = apply(from.clone(), both.clone(), &Rules::Item);
            let made = made.map_err(fail)?;
            prop_assert_eq!(sorted(&made), sorted(after), "{} {} {}", first, second, both);
        }
    }
}
