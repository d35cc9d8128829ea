//! What an update changes, what it cannot change, and what it must know.

use serde_json::json;

use super::*;

#[test]
fn the_same_object_again_is_no_write() {
    let kind = deployments();
    let current = stored(&kind, deployment());
    assert_eq!(
        put(&kind, &current, current.clone()).unwrap(),
        Decision::Unchanged
    );
    let mut same = current.clone();
    same["metadata"]["managedFields"] = json!([{"manager": "kubectl"}]);
    same["metadata"]["annotations"] = json!({});
    same["spec"]["paused"] = json!(null);
    assert_eq!(put(&kind, &current, same).unwrap(), Decision::Unchanged);
    assert_eq!(
        put(&kind, &current, deployment()).unwrap(),
        Decision::Unchanged
    );
}

#[test]
fn generation_counts_changes_of_the_spec_alone() {
    let kind = deployments();
    let current = stored(&kind, deployment());
    let scaled = changed(&kind, &current, |body| body["spec"]["replicas"] = json!(3)).unwrap();
    assert_eq!(scaled["metadata"]["generation"], 2);
    let labelled = |body: &mut Value| body["metadata"]["labels"] = json!({"a": "b"});
    let labelled = changed(&kind, &current, labelled).unwrap();
    assert_eq!(labelled["metadata"]["generation"], 1);
    // Deployments alone: their controller copies annotations to what they make.
    let noted = |body: &mut Value| body["metadata"]["annotations"] = json!({"a": "b"});
    let noted = changed(&kind, &current, noted).unwrap();
    assert_eq!(noted["metadata"]["generation"], 2);
    let maps = config_maps();
    let map = stored(&maps, config_map());
    let filled = changed(&maps, &map, |body| body["data"]["b"] = json!("2")).unwrap();
    assert_eq!(filled["metadata"].get("generation"), None);
}

#[test]
fn an_old_version_is_refused_and_no_version_overwrites() {
    let kind = config_maps();
    let current = stored(&kind, config_map());
    let mut body = current.clone();
    body["data"]["a"] = json!("2");
    body["metadata"]["resourceVersion"] = json!("9");
    let status = put(&kind, &current, body.clone()).unwrap_err();
    assert_eq!((status.code, status.reason), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please \
         apply your changes to the latest version and try again"
    );
    for unversioned in [json!(""), json!("0"), json!(null)] {
        body["metadata"]["resourceVersion"] = unversioned;
        assert!(matches!(
            put(&kind, &current, body.clone()),
            Ok(Decision::Put(_))
        ));
    }
}

#[test]
fn some_kinds_are_not_overwritten_blindly() {
    let kind = testing::plain_kind("coordination.k8s.io/v1", "Lease", "leases");
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    let current = stored(&kind, lease.clone());
    let status = put(&kind, &current, lease).unwrap_err();
    assert_eq!(
        status.message,
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: \
         0: must be specified for an update"
    );
}

#[test]
fn another_uid_means_another_object() {
    let kind = config_maps();
    let current = stored(&kind, config_map());
    let mut body = current.clone();
    body["metadata"]["uid"] = json!("other");
    let status = put(&kind, &current, body).unwrap_err();
    assert_eq!(status.code, 409);
    assert!(
        status
            .message
            .contains("Precondition failed: UID in precondition: other, UID in")
    );
}

#[test]
fn identity_and_times_are_the_servers() {
    let kind = config_maps();
    let current = stored(&kind, config_map());
    let object = changed(&kind, &current, |body| {
        body["metadata"]["creationTimestamp"] = json!("1999-01-01T00:00:00Z");
        body["metadata"]["generation"] = json!(50);
        body["data"]["b"] = json!("2");
    });
    assert_eq!(object.unwrap()["metadata"], current["metadata"]);
    let status = changed(&kind, &current, |body| {
        body["metadata"]["deletionTimestamp"] = json!("1999-01-01T00:00:00Z");
    });
    assert_eq!(
        faults(status.unwrap_err()),
        [
            "metadata.deletionTimestamp: Invalid value: \"1999-01-01T00:00:00Z\": field is \
             immutable"
        ]
    );
}

#[test]
fn the_name_must_be_that_of_the_url() {
    let kind = config_maps();
    let current = stored(&kind, config_map());
    let mut body = current.clone();
    body["metadata"]["name"] = json!("other");
    let status = put(&kind, &current, body.clone()).unwrap_err();
    assert_eq!(status.code, 400);
    assert_eq!(
        status.message,
        "the name of the object (other) does not match the name on the URL (m)"
    );
    body["metadata"]["name"] = json!("");
    assert_eq!(put(&kind, &current, body).unwrap_err().code, 400);
}

#[test]
fn spec_and_status_are_written_apart() {
    let kind = deployments();
    let current = stored(&kind, deployment());
    let mut body = current.clone();
    body["spec"]["replicas"] = json!(7);
    body["status"] = json!({"replicas": 7});
    body["metadata"]["labels"] = json!({"a": "b"});
    body["metadata"]["annotations"] = json!({"c": "d"});
    let Decision::Put(whole) = put(&kind, &current, body.clone()).unwrap() else {
        panic!()
    };
    assert_eq!(
        (&whole["spec"]["replicas"], &whole["status"]),
        (&json!(7), &json!({}))
    );
    let status = put_part(&kind, Part::Status, &current, body).unwrap();
    let Decision::Put(status) = status else {
        panic!()
    };
    assert_eq!(status["spec"], current["spec"]);
    assert_eq!(status["status"], json!({"replicas": 7}));
    assert_eq!(status["metadata"]["generation"], 1);
    assert_eq!(
        status["metadata"].get("labels"),
        None,
        "labels of deployments stay"
    );
    assert_eq!(status["metadata"]["annotations"], json!({"c": "d"}));
}

#[test]
fn a_node_is_annotated_through_its_status_and_a_custom_object_is_not() {
    let change = json!({"annotations": {"a": "b"}});
    for (kind, written) in [
        (testing::cluster_kind("v1", "Node", "nodes"), true),
        (
            testing::custom_kind("example.com/v1", "Thing", "things"),
            false,
        ),
    ] {
        let current = stored(&kind, json!({"metadata": {"name": "n"}, "spec": {}}));
        let mut body = current.clone();
        body["metadata"]["annotations"] = change["annotations"].clone();
        body["status"] = json!({"x": 1});
        let decision = put_part(&kind, Part::Status, &current, body).unwrap();
        let Decision::Put(object) = decision else {
            panic!()
        };
        assert_eq!(object["metadata"].get("annotations").is_some(), written);
        assert_eq!(object["status"]["x"], 1);
    }
}

#[test]
fn the_last_finalizer_takes_a_deleted_object_along() {
    let kind = config_maps();
    let mut current = stored(&kind, config_map());
    current["metadata"]["finalizers"] = json!(["a/b", "c/d"]);
    let removed = |current: &Value| {
        let mut body = current.clone();
        body["metadata"]["finalizers"] = json!([]);
        put(&kind, current, body).unwrap()
    };
    assert!(matches!(removed(&current), Decision::Put(_)));
    current["metadata"]["deletionTimestamp"] = json!("2025-01-01T00:00:00Z");
    current["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    assert!(matches!(removed(&current), Decision::Delete(_)));
    let mut one_left = current.clone();
    one_left["metadata"]["finalizers"] = json!(["a/b"]);
    assert!(matches!(
        put(&kind, &current, one_left).unwrap(),
        Decision::Put(_)
    ));
}

#[test]
fn no_finalizer_is_added_to_what_is_going() {
    let kind = config_maps();
    let mut current = stored(&kind, config_map());
    current["metadata"]["finalizers"] = json!(["a/b"]);
    current["metadata"]["deletionTimestamp"] = json!("2025-01-01T00:00:00Z");
    let status = changed(&kind, &current, |body| {
        body["metadata"]["finalizers"] = json!(["a/b", "z/z", "c/d"]);
        body["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("deletionTimestamp");
    });
    assert_eq!(
        faults(status.unwrap_err()),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
             being deleted, found new finalizers []string{\"c/d\", \"z/z\"}"
        ]
    );
}
