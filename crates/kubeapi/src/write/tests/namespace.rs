//! Namespaces: phases, and the way they end.

use serde_json::json;

use super::*;
use crate::write::delete;
use crate::write::kinds::namespace::{End, end};
use crate::write::options::DeleteOptions;

fn kind() -> Kind {
    testing::cluster_kind("v1", "Namespace", "namespaces")
}

fn team() -> Value {
    stored(&kind(), json!({"metadata": {"name": "team"}}))
}

fn deleted(current: &Value, name: &str) -> Result<Decision, Status> {
    let kind = kind();
    let target = Target {
        kind: &kind,
        namespace: "",
        name,
    };
    delete::delete(
        &target,
        current,
        &DeleteOptions::default(),
        testing::stamp().now,
    )
}

fn ending() -> Value {
    match deleted(&team(), "team").unwrap() {
        Decision::Put(object) => object,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_namespace_starts_active_with_its_finalizer_and_label() {
    let namespace = team();
    assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(namespace["status"], json!({"phase": "Active"}));
    assert_eq!(
        namespace["metadata"]["labels"],
        json!({"kubernetes.io/metadata.name": "team"})
    );
    let generated = made(&kind(), json!({"metadata": {"generateName": "t-"}})).unwrap();
    assert_eq!(
        generated["metadata"]["labels"]["kubernetes.io/metadata.name"],
        generated["metadata"]["name"]
    );
}

#[test]
fn its_name_is_one_label() {
    let told = faults(made(&kind(), json!({"metadata": {"name": "a.b"}})).unwrap_err());
    assert_eq!(
        told,
        ["metadata.name: Invalid value: \"a.b\": must not contain dots"]
    );
}

#[test]
fn deletion_makes_it_terminate_and_keeps_it() {
    let namespace = ending();
    assert_eq!(namespace["status"]["phase"], "Terminating");
    assert_eq!(
        namespace["metadata"]["deletionTimestamp"],
        "2025-06-01T12:00:00Z"
    );
    assert_eq!(deleted(&namespace, "team").unwrap(), Decision::Unchanged);
}

#[test]
fn the_ones_a_cluster_needs_cannot_go() {
    for name in ["default", "kube-system", "kube-public"] {
        let status = deleted(&testing::namespace(name), name).unwrap_err();
        assert_eq!(status.code, 403);
        assert_eq!(
            status.message,
            format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted")
        );
    }
}

#[test]
fn nothing_is_created_in_one_that_ends_or_is_not_there() {
    let maps = config_maps();
    let target = Target {
        kind: &maps,
        namespace: "team",
        name: "",
    };
    let created = |namespace: Option<&Value>| {
        let around = Surroundings {
            namespace,
            network: None,
            references: None,
            user: None,
        };
        creation::create(&target, config_map(), &testing::stamp(), &around).unwrap_err()
    };
    let status = created(Some(&ending()));
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "configmaps \"m\" is forbidden: unable to create new content in namespace team because \
         it is being terminated"
    );
    let cause = &status.details.as_ref().unwrap().causes[0];
    assert_eq!(cause.reason, "NamespaceTerminating");
    assert_eq!(cause.message, "namespace team is being terminated");
    assert_eq!(created(None).message, "namespaces \"team\" not found");
}

#[test]
fn it_ends_when_it_is_empty() {
    assert_eq!(end(&team(), 3, 0), End::No);
    assert_eq!(end(&ending(), 3, 1), End::Empty);
    assert_eq!(end(&ending(), 3, 3), End::Wait);
    assert!(matches!(
        end(&ending(), 0, 0),
        End::Finish(Decision::Delete(_))
    ));
    let mut held = ending();
    held["spec"]["finalizers"] = json!(["kubernetes", "example.com/hold"]);
    let End::Finish(Decision::Put(kept)) = end(&held, 0, 0) else {
        panic!()
    };
    assert_eq!(kept["spec"]["finalizers"], json!(["example.com/hold"]));
    assert_eq!(end(&kept, 0, 0), End::Finish(Decision::Unchanged));
}

#[test]
fn finalizers_are_written_through_finalize_alone() {
    let current = ending();
    let mut body = current.clone();
    body["spec"]["finalizers"] = json!([]);
    assert_eq!(
        put(&kind(), &current, body.clone()).unwrap(),
        Decision::Unchanged
    );
    let finalized = put_part(&kind(), Part::Finalize, &current, body).unwrap();
    assert!(matches!(finalized, Decision::Delete(_)));
}

#[test]
fn its_status_tells_the_truth_about_deletion() {
    let current = team();
    let mut body = current.clone();
    body["status"]["phase"] = json!("Terminating");
    let status = put_part(&kind(), Part::Status, &current, body).unwrap_err();
    assert_eq!(
        faults(status),
        [
            "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if \
             `deletionTimestamp` is empty"
        ]
    );
}
