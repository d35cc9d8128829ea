//! The metadata of custom objects.

use super::instance::*;
use super::*;

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
