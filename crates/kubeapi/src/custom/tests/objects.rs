//! Objects of custom kinds: versions, metadata, status.

use std::borrow::Cow;

use super::instance::*;
use super::*;

#[test]
fn an_object_in_another_version_differs_in_the_name_of_the_version_alone() {
    let bytes =
        br#"{ "kind":"CronTab", "apiVersion" : "stable.example.com/v1","spec":{"apiVersion":"x"}}"#;
    let other = in_version(bytes, "stable.example.com/v2").unwrap();
    assert_eq!(
        std::str::from_utf8(&other).unwrap(),
        r#"{ "kind":"CronTab", "apiVersion" : "stable.example.com/v2","spec":{"apiVersion":"x"}}"#
    );
    let same = in_version(bytes, "stable.example.com/v1").unwrap();
    assert!(
        matches!(same, Cow::Borrowed(_)),
        "nothing is copied where nothing changes"
    );
    assert!(in_version(b"{", "v1").is_err());
}

#[test]
fn metadata_has_the_form_that_every_kind_has() {
    let mut object = json!({"metadata": {
        "name": "a", "labels": {"x": "y"}, "finalizers": ["f"], "generation": 3, "colour": "red",
        "deletionTimestamp": null, "ownerReferences": [{"kind": "Pod"}],
    }});
    assert_eq!(
        coerce_metadata(&mut object),
        Ok(vec!["metadata.colour".to_owned()])
    );
    assert_eq!(
        object["metadata"],
        json!({"name": "a", "labels": {"x": "y"}, "finalizers": ["f"], "generation": 3,
               "ownerReferences": [{"kind": "Pod"}]})
    );
    assert_eq!(coerce_metadata(&mut json!({"spec": {}})), Ok(Vec::new()));
}

#[test]
fn metadata_of_the_wrong_type_is_refused() {
    let cases = [
        (json!(7), "metadata must be an object"),
        (json!({"name": 7}), "metadata.name must be a string"),
        (
            json!({"labels": {"a": 1}}),
            "metadata.labels must be a map of strings",
        ),
        (
            json!({"labels": []}),
            "metadata.labels must be a map of strings",
        ),
        (
            json!({"finalizers": [1]}),
            "metadata.finalizers must be a list of strings",
        ),
        (
            json!({"generation": "1"}),
            "metadata.generation must be a whole number",
        ),
        (
            json!({"ownerReferences": ["a"]}),
            "metadata.ownerReferences must be a list of objects",
        ),
    ];
    for (metadata, expected) in cases {
        let refused = coerce_metadata(&mut json!({"metadata": metadata})).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (400, expected));
    }
}

fn object(spec: i64, status: i64) -> Value {
    json!({"apiVersion": "x/v1", "metadata": {"name": "a", "generation": 4}, "spec": spec,
        "status": status})
}

#[test]
fn a_new_object_has_no_status_where_that_stands_on_its_own() {
    let mut separate = object(1, 2);
    prepare_create(&mut separate, StatusPart::Separate);
    assert_eq!(
        separate,
        json!({"apiVersion": "x/v1", "metadata": {"name": "a", "generation": 1}, "spec": 1})
    );
    let mut plain = object(1, 2);
    prepare_create(&mut plain, StatusPart::Plain);
    assert_eq!(plain["status"], 2);
}

#[test]
fn an_update_keeps_the_status_and_counts_the_generation() {
    let update = |new: Value, status: StatusPart| {
        let mut new = new;
        new["metadata"]["generation"] = json!(99);
        prepare_update(&mut new, &object(1, 2), status);
        (
            new["metadata"]["generation"].as_i64().unwrap(),
            new["status"].clone(),
        )
    };
    assert_eq!(update(object(1, 7), StatusPart::Separate), (4, json!(2)));
    assert_eq!(update(object(8, 7), StatusPart::Separate), (5, json!(2)));
    assert_eq!(update(object(1, 7), StatusPart::Plain), (5, json!(7)));
    let mut in_other_version = object(1, 2);
    in_other_version["apiVersion"] = json!("x/v2");
    in_other_version["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(update(in_other_version, StatusPart::Plain), (4, json!(2)));
}

#[test]
fn a_status_that_the_old_object_did_not_have_cannot_come_with_an_update() {
    let mut old = object(1, 2);
    old.as_object_mut().unwrap().shift_remove("status");
    let mut new = object(1, 7);
    prepare_update(&mut new, &old, StatusPart::Separate);
    assert!(new.get("status").is_none());
}

#[test]
fn a_write_to_the_status_takes_the_status_alone() {
    let mut new = object(8, 7);
    new["metadata"]["labels"] = json!({"a": "b"});
    new["metadata"]["managedFields"] = json!([{"manager": "me"}]);
    prepare_status_update(&mut new, &object(1, 2));
    let mut expected = object(1, 7);
    expected["metadata"]["managedFields"] = json!([{"manager": "me"}]);
    assert_eq!(new, expected);
    let mut without = object(8, 7);
    without.as_object_mut().unwrap().shift_remove("status");
    prepare_status_update(&mut without, &object(1, 2));
    assert!(without.get("status").is_none());
}
