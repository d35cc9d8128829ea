//! What a new object is given, and when it is refused.

use serde_json::json;

use super::*;
use crate::write::create::check_unstored;

#[test]
fn a_new_object_gets_an_identity_of_its_own() {
    let mut body = config_map();
    body["metadata"] = json!({
        "name": "m", "uid": "mine", "creationTimestamp": null, "selfLink": "/x",
        "deletionTimestamp": "2020-01-01T00:00:00Z", "managedFields": [{}], "labels": {}
    });
    let object = made(&config_maps(), body).unwrap();
    assert_eq!(
        object["metadata"],
        json!({
            "name": "m", "namespace": "default", "uid": testing::stamp().uid,
            "creationTimestamp": "2025-06-01T12:00:00Z"
        })
    );
    let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["apiVersion", "kind", "metadata", "data"]);
}

#[test]
fn generation_starts_at_one_where_it_is_counted() {
    let object = made(&deployments(), deployment()).unwrap();
    assert_eq!(object["metadata"]["generation"], 1);
    assert_eq!(object["status"], json!({}));
}

#[test]
fn a_name_is_made_from_its_beginning() {
    let mut body = config_map();
    body["metadata"] = json!({"generateName": "m-"});
    assert!(creation::name_is_generated(&body));
    let object = made(&config_maps(), body).unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("m-") && name.len() == 7, "{name}");
    assert_eq!(object["metadata"]["generateName"], "m-");
}

#[test]
fn an_object_says_where_it_belongs_or_nothing() {
    let refused = |path: &str, value: Value| {
        let mut body = config_map();
        *body.pointer_mut(path).unwrap() = value;
        made(&config_maps(), body).unwrap_err()
    };
    let mut body = config_map();
    body["metadata"]["namespace"] = json!("other");
    let status = made(&config_maps(), body).unwrap_err();
    assert_eq!(status.code, 400);
    assert_eq!(
        status.message,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let status = refused("/apiVersion", json!("v2"));
    assert_eq!(
        status.message,
        "the API version in the data (v2) does not match the expected API version (v1)"
    );
    assert_eq!(refused("/kind", json!("Secret")).code, 400);
    assert!(made(&config_maps(), json!({"metadata": {"name": "m"}})).is_ok());
    assert_eq!(made(&config_maps(), json!([])).unwrap_err().code, 400);
}

#[test]
fn a_version_cannot_be_asked_for() {
    let claimed = |version: &str| {
        let mut body = config_map();
        body["metadata"]["resourceVersion"] = json!(version);
        check_unstored(&body)
    };
    let status = claimed("7").unwrap_err();
    assert_eq!(status.code, 400);
    assert_eq!(
        status.message,
        "resourceVersion should not be set on objects to be created"
    );
    for nothing in ["", "0", "word"] {
        assert_eq!(claimed(nothing), Ok(()), "{nothing}");
    }
}

#[test]
fn a_missing_or_wrong_name_is_told_with_its_field() {
    let mut body = config_map();
    body["metadata"] = json!({});
    let told = faults(made(&config_maps(), body.clone()).unwrap_err());
    assert_eq!(
        told,
        ["metadata.name: Required value: name or generateName is required"]
    );
    body["metadata"]["name"] = json!("Not_A_Name");
    let status = made(&config_maps(), body).unwrap_err();
    assert!(status.message.starts_with(
        "ConfigMap \"Not_A_Name\" is invalid: metadata.name: Invalid value: \"Not_A_Name\": a \
         lowercase RFC 1123 subdomain must consist of"
    ));
}

#[test]
fn metadata_is_checked_whatever_the_kind() {
    let mut body = config_map();
    body["metadata"]["labels"] = json!({"a b": "c"});
    body["metadata"]["finalizers"] = json!(["orphan", "foregroundDeletion"]);
    let owner = |name: &str| {
        let of = json!(name);
        json!({"apiVersion": "v1", "kind": "Pod", "name": of, "uid": "u", "controller": true})
    };
    body["metadata"]["ownerReferences"] = json!([owner("a"), owner("b"), {"uid": "x"}]);
    let told = faults(made(&config_maps(), body).unwrap_err());
    assert!(told[0].starts_with("metadata.labels: Invalid value: \"a b\": name part must consist"));
    assert!(told.iter().any(|fault| fault.ends_with(
        "Only one reference can have Controller set to true. Found \"true\" in references for \
         Pod/a and Pod/b"
    )));
    assert!(told.contains(
        &"metadata.ownerReferences.kind: Invalid value: \"\": must not be empty".to_owned()
    ));
    assert!(
        told.last()
            .unwrap()
            .ends_with("finalizer orphan and foregroundDeletion cannot be both set")
    );
}

#[test]
fn an_object_that_exists_is_named() {
    let kind = config_maps();
    let target = Target {
        kind: &kind,
        namespace: "default",
        name: "",
    };
    let mut object = config_map();
    let status = creation::already_exists(&target, &object, Some(&object));
    assert_eq!(status.message, "configmaps \"m\" already exists");
    let leaving = json!({"metadata": {"name": "m", "deletionTimestamp": "t"}});
    let status = creation::already_exists(&target, &object, Some(&leaving));
    assert_eq!(
        status.message,
        "object is being deleted: configmaps \"m\" already exists"
    );
    object["metadata"]["generateName"] = json!("m");
    let status = creation::already_exists(&target, &object, None);
    assert_eq!(
        status.message,
        "configmaps \"m\" already exists, the server was not able to generate a unique name for \
         the object"
    );
    assert_eq!(status.retry_after_seconds(), Some(1));
}

#[test]
fn status_is_not_for_clients_to_create() {
    let kind = testing::custom_kind("example.com/v1", "Thing", "things");
    let body = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"},
        "spec": {"a": null}, "status": {"done": true}
    });
    let object = made(&kind, body).unwrap();
    assert_eq!(object.get("status"), None);
    assert_eq!(
        object["spec"],
        json!({"a": null}),
        "nulls of custom kinds are theirs"
    );
    assert_eq!(object["metadata"]["generation"], 1);
}

#[test]
fn a_node_registers_itself_with_its_status() {
    let nodes = testing::cluster_kind("v1", "Node", "nodes");
    let body = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": {"capacity": {"cpu": "2"}}
    });
    let target = Target {
        kind: &nodes,
        namespace: "",
        name: "",
    };
    let around = Surroundings::default();
    let object = creation::create(&target, body, &testing::stamp(), &around).unwrap();
    assert_eq!(object["status"]["capacity"], json!({"cpu": "2"}));
}

#[test]
fn what_nests_too_deep_to_be_read_again_is_refused() {
    let mut deep = json!(1);
    for _ in 0..120 {
        deep = json!([deep]);
    }
    let mut body = config_map();
    body["data"] = deep;
    assert_eq!(made(&config_maps(), body).unwrap_err().code, 400);
}
