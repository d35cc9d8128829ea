//! When an object goes, when it waits, and what the client is told.

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::write::delete;
use crate::write::options::{DeleteOptions, Propagation};

fn deleted(kind: &Kind, current: &Value, options: &DeleteOptions) -> Result<Decision, Status> {
    let inside = if kind.namespaced { "default" } else { "" };
    let name = current["metadata"]["name"].as_str().unwrap();
    let target = Target {
        kind,
        namespace: inside,
        name,
    };
    let now: Timestamp = "2025-06-01T12:00:00Z".parse().unwrap();
    delete::delete(&target, current, options, now)
}

fn kept(decision: Decision) -> Value {
    match decision {
        Decision::Put(object) | Decision::PutAndDelete(object) => object,
        other => panic!("{other:?}"),
    }
}

fn running_pod() -> Value {
    let mut pod = stored(&pods(), pod());
    pod["spec"]["nodeName"] = json!("n1");
    pod["status"]["phase"] = json!("Running");
    pod
}

#[test]
fn without_finalizers_an_object_goes_at_once() {
    let kind = config_maps();
    let current = stored(&kind, config_map());
    let options = DeleteOptions::default();
    let decision = deleted(&kind, &current, &options).unwrap();
    assert_eq!(decision, Decision::Delete(current.clone()));
    let target = Target {
        kind: &kind,
        namespace: "default",
        name: "m",
    };
    let (code, body) = delete::answer(&target, &decision, &current, &options);
    assert_eq!(code, 200);
    assert_eq!(
        body,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"name": "m", "kind": "configmaps", "uid": testing::stamp().uid}
        })
    );
}

#[test]
fn with_finalizers_it_is_marked_and_kept() {
    let kind = deployments();
    let mut current = stored(&kind, deployment());
    current["metadata"]["finalizers"] = json!(["a/b"]);
    let object = kept(deleted(&kind, &current, &DeleteOptions::default()).unwrap());
    assert_eq!(
        object["metadata"]["deletionTimestamp"],
        "2025-06-01T12:00:00Z"
    );
    assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(object["metadata"]["generation"], 2);
    let again = deleted(&kind, &object, &DeleteOptions::default()).unwrap();
    assert_eq!(again, Decision::Unchanged);
}

#[test]
fn preconditions_must_hold() {
    let kind = config_maps();
    let current = stored(&kind, config_map());
    let uid = DeleteOptions {
        uid: Some("other".into()),
        ..Default::default()
    };
    let status = deleted(&kind, &current, &uid).unwrap_err();
    assert_eq!(status.code, 409);
    assert_eq!(
        status.message,
        format!(
            "Operation cannot be fulfilled on ConfigMap \"m\": the UID in the precondition \
             (other) does not match the UID in record ({}). The object might have been deleted \
             and then recreated",
            testing::stamp().uid
        )
    );
    let version = DeleteOptions {
        resource_version: Some("9".into()),
        ..Default::default()
    };
    let status = deleted(&kind, &current, &version).unwrap_err();
    assert!(status.message.ends_with(
        "the ResourceVersion in the precondition (9) does not match the ResourceVersion in record \
         (10). The object might have been modified"
    ));
    let right = DeleteOptions {
        uid: Some(testing::stamp().uid),
        resource_version: Some("10".into()),
        ..Default::default()
    };
    assert!(matches!(
        deleted(&kind, &current, &right),
        Ok(Decision::Delete(_))
    ));
}

#[test]
fn dependents_are_told_by_finalizers() {
    let kind = deployments();
    let mut current = stored(&kind, deployment());
    let finalizers = |current: &Value, propagation| {
        let options = DeleteOptions {
            propagation: Some(propagation),
            ..Default::default()
        };
        match deleted(&kind, current, &options).unwrap() {
            Decision::Put(object) => object["metadata"]["finalizers"].clone(),
            Decision::Delete(_) | Decision::PutAndDelete(_) => json!("gone"),
            Decision::Unchanged => json!("unchanged"),
        }
    };
    assert_eq!(
        finalizers(&current, Propagation::Foreground),
        json!(["foregroundDeletion"])
    );
    assert_eq!(finalizers(&current, Propagation::Orphan), json!(["orphan"]));
    assert_eq!(finalizers(&current, Propagation::Background), json!("gone"));
    current["metadata"]["finalizers"] = json!(["orphan", "a/b"]);
    assert_eq!(
        finalizers(&current, Propagation::Foreground),
        json!(["a/b", "foregroundDeletion"])
    );
    let old = DeleteOptions {
        orphan_dependents: Some(true),
        ..Default::default()
    };
    let object = kept(deleted(&kind, &current, &old).unwrap());
    assert_eq!(object["metadata"]["finalizers"], json!(["orphan", "a/b"]));
}

#[test]
fn the_oldest_way_to_cascade_is_answered_with_accepted() {
    let kind = deployments();
    let mut current = stored(&kind, deployment());
    current["metadata"]["finalizers"] = json!(["a/b"]);
    let options = DeleteOptions {
        orphan_dependents: Some(false),
        ..Default::default()
    };
    let decision = deleted(&kind, &current, &options).unwrap();
    let target = Target {
        kind: &kind,
        namespace: "default",
        name: "web",
    };
    assert_eq!(
        delete::answer(&target, &decision, &current, &options).0,
        202
    );
}

#[test]
fn a_pod_on_a_node_is_given_its_grace() {
    let object = kept(deleted(&pods(), &running_pod(), &DeleteOptions::default()).unwrap());
    assert_eq!(
        object["metadata"]["deletionTimestamp"],
        "2025-06-01T12:00:30Z"
    );
    assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(object["metadata"]["generation"], 2);
    let at_once = DeleteOptions {
        grace_seconds: Some(0),
        ..Default::default()
    };
    let ended = kept(deleted(&pods(), &object, &at_once).unwrap());
    assert_eq!(ended["metadata"]["deletionGracePeriodSeconds"], 0);
    assert!(matches!(
        deleted(&pods(), &ended, &at_once),
        Ok(Decision::Delete(_))
    ));
    let longer = DeleteOptions {
        grace_seconds: Some(60),
        ..Default::default()
    };
    assert_eq!(
        deleted(&pods(), &object, &longer).unwrap(),
        Decision::Unchanged
    );
    let shorter = DeleteOptions {
        grace_seconds: Some(10),
        ..Default::default()
    };
    let sooner = kept(deleted(&pods(), &object, &shorter).unwrap());
    assert_eq!(
        sooner["metadata"]["deletionTimestamp"],
        "2025-06-01T12:00:10Z"
    );
    assert_eq!(sooner["metadata"]["generation"], 2);
}

#[test]
fn a_negative_grace_is_the_shortest() {
    let negative = DeleteOptions {
        grace_seconds: Some(-5),
        ..Default::default()
    };
    let object = kept(deleted(&pods(), &running_pod(), &negative).unwrap());
    assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 1);
}

#[test]
fn a_pod_that_runs_nowhere_is_told_that_its_time_is_over_and_goes() {
    let first = |change: fn(&mut Value)| {
        let mut pod = running_pod();
        change(&mut pod);
        deleted(&pods(), &pod, &DeleteOptions::default()).unwrap()
    };
    let unscheduled = first(|pod| pod["spec"]["nodeName"] = json!(""));
    let Decision::PutAndDelete(ended) = unscheduled else {
        panic!("{unscheduled:?}");
    };
    assert_eq!(ended["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = deleted(&pods(), &ended, &DeleteOptions::default()).unwrap();
    assert!(matches!(again, Decision::Delete(_)));
    let failed = first(|pod| pod["status"]["phase"] = json!("Failed"));
    assert!(matches!(failed, Decision::PutAndDelete(_)));
    let waiting = first(|pod| {
        pod["spec"]["nodeName"] = json!("");
        pod["metadata"]["finalizers"] = json!(["a/b"]);
    });
    assert_eq!(kept(waiting)["metadata"]["deletionGracePeriodSeconds"], 0);
}

#[test]
fn pods_and_claims_answer_with_their_last_state() {
    let pod = running_pod();
    let options = DeleteOptions {
        grace_seconds: Some(0),
        ..Default::default()
    };
    let decision = deleted(&pods(), &pod, &options).unwrap();
    let kind = pods();
    let target = Target {
        kind: &kind,
        namespace: "default",
        name: "p",
    };
    let (code, body) = delete::answer(&target, &decision, &pod, &options);
    assert_eq!((code, &body["kind"]), (200, &json!("Pod")));
}
