//! What a definition may become.

use super::validation::causes;
use super::*;

/// What is refused when the stored definition gets this change.
fn refused_update(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let old = stored(|_| {});
    let mut object = old.clone();
    change(&mut object);
    causes(admit_update(&mut object, &old))
}

#[test]
fn an_update_keeps_what_names_the_kind() {
    assert_eq!(
        refused_update(|object| object["spec"]["names"]["shortNames"] = json!(["x"])),
        Vec::<String>::new()
    );
    assert_eq!(
        refused_update(|object| {
            object["spec"]["scope"] = json!("Cluster");
            object["spec"]["names"]["kind"] = json!("Other");
        }),
        [
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
            "spec.names.kind: Invalid value: \"Other\": field is immutable"
        ]
    );
    assert_eq!(
        refused_update(|object| {
            object["spec"]["group"] = json!("other.example.com");
            object["spec"]["names"]["plural"] = json!("others");
        }),
        [
            "spec.group: Invalid value: \"other.example.com\": field is immutable",
            "spec.names.plural: Invalid value: \"others\": field is immutable"
        ]
    );
}

#[test]
fn before_it_is_established_a_definition_can_still_change_its_kind() {
    let mut old = definition();
    admit_create(&mut old).unwrap();
    let mut object = old.clone();
    object["spec"]["names"]["kind"] = json!("Other");
    object["spec"]["scope"] = json!("Cluster");
    assert_eq!(admit_update(&mut object, &old), Ok(Vec::new()));
}

#[test]
fn a_version_that_objects_may_be_stored_in_stays() {
    let gone = refused_update(|object| {
        let mut second = version("v2");
        second["storage"] = json!(true);
        object["spec"]["versions"] = json!([second]);
    });
    assert_eq!(
        gone,
        [
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was \
          previously a storage version, and must remain in spec.versions until a storage migration \
          ensures no data remains persisted in v1 and removes v1 from status.storedVersions"
        ]
    );
    let old = stored(|_| {});
    let mut object = old.clone();
    let mut second = version("v2");
    second["storage"] = json!(true);
    object["spec"]["versions"][0]["storage"] = json!(false);
    object["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(second);
    object["status"] = json!({});
    assert_eq!(admit_update(&mut object, &old), Ok(Vec::new()));
    assert_eq!(object["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(
        object["status"]["acceptedNames"],
        old["status"]["acceptedNames"]
    );
}

#[test]
fn a_write_to_the_status_changes_nothing_else() {
    let old = stored(|_| {});
    let mut object = old.clone();
    object["spec"] = json!({"group": "other"});
    object["status"]["storedVersions"] = json!(["v2"]);
    assert_eq!(admit_status_update(&mut object, &old), Ok(()));
    assert_eq!(object["spec"], old["spec"]);
    assert_eq!(object["status"]["storedVersions"], json!(["v2"]));
    object["status"]["acceptedNames"]["plural"] = json!("NO");
    let found = causes(admit_status_update(&mut object, &old));
    assert!(
        found[0].starts_with("status.acceptedNames.plural: Invalid value: \"NO\""),
        "{found:?}"
    );
}
