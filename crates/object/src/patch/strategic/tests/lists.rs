//! How lists merge.

use super::*;

#[test]
fn lists_are_replaced_unless_the_kind_says_that_they_merge() {
    becomes(
        json!({"atomic": [{"name": "a"}]}),
        json!({"atomic": [{"name": "b"}]}),
        json!({"atomic": [{"name": "b"}]}),
    );
    becomes(
        json!({"list": [{"name": "a", "value": "1"}]}),
        json!({"list": [{"name": "b"}, {"name": "a", "other": "2"}]}),
        json!({"list": [{"name": "b"}, {"name": "a", "value": "1", "other": "2"}]}),
    );
    becomes(
        json!({"source": {"a": 1}}),
        json!({"source": {"b": 2}}),
        json!({"source": {"b": 2}}),
    );
}

#[test]
fn merging_lists_merge_in_every_depth() {
    becomes(
        json!({"list": [
            {"name": "1", "list": [{"name": "1", "value": "1"}, {"name": "2"}], "values": [1, 2]},
            {"name": "2"},
        ]}),
        json!({"list": [
            {"name": "1", "list": [{"name": "1", "other": "x"}, {"name": "2", "$patch": "delete"}],
             "values": [3]},
        ]}),
        json!({"list": [
            {"name": "1", "list": [{"name": "1", "value": "1", "other": "x"}], "values": [3, 1, 2]},
            {"name": "2"},
        ]}),
    );
}

#[test]
fn plain_values_merge_by_being_the_same() {
    becomes(
        json!({"values": [1, 2]}),
        json!({"values": [2, 3]}),
        json!({"values": [1, 2, 3]}),
    );
    becomes(
        json!({"values": ["a"]}),
        json!({"values": ["b", "b"]}),
        json!({"values": ["b", "a"]}),
    );
    becomes(
        json!({"values": []}),
        json!({"values": [1]}),
        json!({"values": [1]}),
    );
    becomes(
        json!({"values": [1]}),
        json!({"values": []}),
        json!({"values": [1]}),
    );
    becomes(
        json!({"values": []}),
        json!({"values": []}),
        json!({"values": []}),
    );
}

#[test]
fn entries_are_deleted_by_their_key() {
    becomes(
        json!({"list": [{"name": "a"}, {"name": "b"}, {"name": "a", "value": "2"}]}),
        json!({"list": [{"name": "a", "$patch": "delete"}, {"name": "none", "$patch": "delete"}]}),
        json!({"list": [{"name": "b"}]}),
    );
    becomes(
        json!({"list": [{"name": "a", "value": "1"}, {"name": "b"}]}),
        json!({"list": [{"name": "a", "$patch": "delete"}, {"name": "a", "value": "2"}]}),
        json!({"list": [{"name": "a", "value": "2"}, {"name": "b"}]}),
    );
    let refused = patch(
        json!({"list": names(&["a"])}),
        json!({"list": [{"$patch": "delete"}]}),
    );
    assert!(matches!(refused, Err(BadStrategicPatch::NoMergeKey { .. })));
}

#[test]
fn a_directive_replaces_a_list() {
    becomes(
        json!({"list": [{"name": "a", "value": "1"}, {"name": "b"}]}),
        json!({"list": [{"name": "a"}, {"$patch": "replace"}]}),
        json!({"list": [{"name": "a"}]}),
    );
    becomes(
        json!({"list": names(&["a"])}),
        json!({"list": [{"$patch": "replace"}]}),
        json!({"list": []}),
    );
    let merge = patch(
        json!({"list": names(&["a"])}),
        json!({"list": [{"$patch": "merge"}]}),
    );
    assert_eq!(merge, Err(BadStrategicPatch::MergeDirective));
}

#[test]
fn values_are_deleted_from_any_list_of_plain_values() {
    becomes(
        json!({"values": [1, 2, 3, 2], "atomic": ["a", "b"]}),
        json!({
            "$deleteFromPrimitiveList/values": [2, 9],
            "$deleteFromPrimitiveList/atomic": ["a"],
        }),
        json!({"values": [1, 3], "atomic": ["b"]}),
    );
    becomes(
        json!({"values": []}),
        json!({"$deleteFromPrimitiveList/values": [3]}),
        json!({"values": []}),
    );
    becomes(
        json!({"name": "a"}),
        json!({"$deleteFromPrimitiveList/values": [3]}),
        json!({"name": "a"}),
    );
    becomes(
        json!({"values": [1, 2]}),
        json!({"values": [3, 1], "$deleteFromPrimitiveList/values": [1]}),
        json!({"values": [3, 1, 2]}),
    );
    let malformed = [
        json!({"$deleteFromPrimitiveList": [1]}),
        json!({"$deleteFromPrimitiveListvalues": [1]}),
        json!({"$deleteFromPrimitiveList/values": 1}),
        json!({"$deleteFromPrimitiveList/values": [{}]}),
    ];
    for change in malformed {
        let refused = patch(json!({"values": [1]}), change.clone());
        assert_eq!(
            refused,
            Err(BadStrategicPatch::BadPrimitiveList),
            "{change}"
        );
    }
}

#[test]
fn an_order_is_set_and_what_only_the_server_has_keeps_its_neighbours() {
    let ordered = |old: &[&str], order: &[&str], expected: &[&str]| {
        let change = json!({"$setElementOrder/list": names(order)});
        becomes(
            json!({"list": names(old)}),
            change,
            json!({"list": names(expected)}),
        );
        let change = json!({"$setElementOrder/values": order});
        becomes(json!({"values": old}), change, json!({"values": expected}));
    };
    ordered(
        &["1", "3", "4", "2"],
        &["4", "2", "3", "1"],
        &["4", "2", "3", "1"],
    );
    ordered(
        &["1", "3", "4", "2", "9"],
        &["4", "2", "3", "1"],
        &["4", "2", "3", "1", "9"],
    );
    ordered(
        &["1", "2", "9", "3", "4"],
        &["2", "1", "4", "3"],
        &["2", "1", "9", "4", "3"],
    );
    let between = ["2", "1", "7", "9", "8", "4", "3"];
    ordered(
        &["1", "2", "7", "9", "8", "3", "4"],
        &["2", "1", "4", "3"],
        &between,
    );
    ordered(&["1", "3"], &["3", "2", "1"], &["3", "1"]);
    ordered(
        &["1", "2", "3", "2", "4"],
        &["2", "1", "4", "3", "2"],
        &["2", "2", "1", "4", "3"],
    );
    ordered(&["1"], &[], &["1"]);
    ordered(&[], &["1"], &[]);
}

#[test]
fn an_order_goes_together_with_changes() {
    becomes(
        json!({"list": [{"name": "1"}, {"name": "2"}, {"name": "3", "value": "3"}]}),
        json!({
            "$setElementOrder/list": names(&["3", "4", "1"]),
            "list": [{"name": "3", "value": "x"}, {"name": "4"}, {"name": "2", "$patch": "delete"}],
        }),
        json!({"list": [{"name": "3", "value": "x"}, {"name": "4"}, {"name": "1"}]}),
    );
    becomes(
        json!({"values": [1, 2, 3]}),
        json!({
            "$setElementOrder/values": [3, 4, 1],
            "values": [4],
            "$deleteFromPrimitiveList/values": [2],
        }),
        json!({"values": [3, 4, 1]}),
    );
    becomes(
        json!({}),
        json!({"$setElementOrder/list": names(&["b", "a"]),
               "list": [{"name": "b"}, {"name": "a"}, {"name": "c", "$patch": "delete"}]}),
        json!({"list": [{"name": "b"}, {"name": "a"}]}),
    );
    becomes(
        json!({"name": "a"}),
        json!({"$setElementOrder/list": names(&["a"])}),
        json!({"name": "a"}),
    );
    becomes(
        json!({"list": names(&["a", "b"])}),
        json!({"$setElementOrder/list": names(&["b", "a"]), "list": null}),
        json!({}),
    );
}

#[test]
fn an_order_that_contradicts_the_patch_is_refused() {
    let list = json!({"list": names(&["1", "3", "2"]), "values": [1, 3, 2]});
    let mismatched = [
        json!({"$setElementOrder/list": names(&["1", "2", "3"]), "list": names(&["3", "1"])}),
        json!({"$setElementOrder/values": [1, 2, 3], "values": [3, 1]}),
        json!({"$setElementOrder/values": [1], "values": [4]}),
    ];
    for change in mismatched {
        let refused = patch(list.clone(), change.clone()).unwrap_err();
        assert!(
            matches!(refused, BadStrategicPatch::OrderMismatch { .. }),
            "{change}: {refused}"
        );
        assert!(refused.to_string().contains("doesn't match"));
    }
    let no_field = patch(list.clone(), json!({"$setElementOrder": []}));
    assert_eq!(no_field, Err(BadStrategicPatch::BadElementOrder));
    let no_list = patch(list, json!({"$setElementOrder/list": "x"}));
    assert!(matches!(no_list, Err(BadStrategicPatch::NotAList(_))));
}

#[test]
fn entries_that_cannot_be_told_apart_are_refused() {
    let list = json!({"list": [{"name": "a"}], "values": ["a"]});
    let refusals = [
        (
            json!({"list": [{"value": "b"}]}),
            "does not contain declared merge key: name",
        ),
        (
            json!({"list": [{"name": {}}]}),
            "does not contain declared merge key: name",
        ),
        (
            json!({"list": ["a"]}),
            "list element types are not identical",
        ),
        (
            json!({"values": [1]}),
            "list element types are not identical",
        ),
        (
            json!({"values": [null]}),
            "list element types are not identical",
        ),
        (
            json!({"values": [["x"]]}),
            "lists of lists are not supported",
        ),
    ];
    for (change, text) in refusals {
        let refused = patch(list.clone(), change.clone()).unwrap_err();
        assert!(refused.to_string().contains(text), "{change}: {refused}");
        assert_eq!(refused.fault(), Fault::Inapplicable);
    }
    let no_key = patch(json!({"values": [{}]}), json!({"values": [{"name": "a"}]}));
    assert_eq!(no_key, Err(BadStrategicPatch::NoListKey));
    let secret = patch(
        json!({"list": [{"value": "hush"}]}),
        json!({"list": names(&["a"])}),
    );
    assert!(!secret.unwrap_err().to_string().contains("hush"));
}

#[test]
fn long_lists_merge_in_time_that_grows_with_their_length() {
    let long = |offset: usize| -> Vec<Value> {
        (0..30_000)
            .map(|n| json!({"name": (n + offset).to_string()}))
            .collect()
    };
    let merged = patch(json!({"list": long(0)}), json!({"list": long(15_000)})).unwrap();
    assert_eq!(merged["list"].as_array().unwrap().len(), 45_000);
}
