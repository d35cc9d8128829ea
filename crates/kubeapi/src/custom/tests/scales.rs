//! Objects as scales, and scales written back.

use super::scale::ScalePaths;
use super::*;

const DEPLOYMENTS: (&str, &str) = ("apps", "deployments");

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ns", "uid": "u1", "resourceVersion": "7",
            "creationTimestamp": "2026-03-01T12:00:00Z", "labels": {"a": "b"}},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}]}},
        "status": {"replicas": 2},
    })
}

fn paths() -> ScalePaths {
    ScalePaths::of_built_in("apps", "deployments").unwrap()
}

fn custom(scale: Value) -> ScalePaths {
    ScalePaths::of_custom(&serde_json::from_value(scale).unwrap())
}

#[test]
fn a_deployment_as_a_scale() {
    assert_eq!(
        paths().read(&deployment()).unwrap(),
        json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {"name": "web", "namespace": "ns", "uid": "u1", "resourceVersion": "7",
                "creationTimestamp": "2026-03-01T12:00:00Z"},
            "spec": {"replicas": 3},
            "status": {"replicas": 2, "selector": "app=web,tier in (a,b)"},
        })
    );
}

#[test]
fn the_resources_that_can_be_scaled_are_four() {
    for (group, plural) in [
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("", "replicationcontrollers"),
    ] {
        assert!(ScalePaths::of_built_in(group, plural).is_some(), "{plural}");
    }
    assert!(ScalePaths::of_built_in("apps", "daemonsets").is_none());
}

#[test]
fn a_replication_controller_selects_by_plain_labels() {
    let paths = ScalePaths::of_built_in("", "replicationcontrollers").unwrap();
    let controller =
        json!({"metadata": {"name": "rc"}, "spec": {"selector": {"b": "2", "a": "1"}}});
    let scale = paths.read(&controller).unwrap();
    assert_eq!(
        scale["spec"],
        json!({"replicas": 1}),
        "what is not said is one"
    );
    assert_eq!(
        scale["status"],
        json!({"replicas": 0, "selector": "a=1,b=2"})
    );
}

#[test]
fn no_replicas_are_left_out_of_the_spec() {
    let mut none = deployment();
    none["spec"]["replicas"] = json!(0);
    assert_eq!(paths().read(&none).unwrap()["spec"], json!({}));
}

#[test]
fn a_scale_writes_its_replicas_and_the_version_that_its_writer_saw() {
    let mut object = deployment();
    let mut scale = paths().read(&object).unwrap();
    scale["spec"]["replicas"] = json!(5);
    scale["metadata"]["resourceVersion"] = json!("6");
    paths().write(&mut object, &scale, DEPLOYMENTS).unwrap();
    let mut expected = deployment();
    expected["spec"]["replicas"] = json!(5);
    expected["metadata"]["resourceVersion"] = json!("6");
    assert_eq!(object, expected);

    let bare = json!({"metadata": {"name": "web"}, "spec": {}});
    paths().write(&mut object, &bare, DEPLOYMENTS).unwrap();
    assert_eq!(
        object["spec"]["replicas"], 0,
        "a scale without a number is zero"
    );
    assert_eq!(object["metadata"]["resourceVersion"], "6");
}

#[test]
fn a_scale_that_cannot_be_is_refused() {
    let scale =
        |replicas: Value| json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas}});
    let refused = paths()
        .write(&mut deployment(), &scale(json!(-1)), DEPLOYMENTS)
        .unwrap_err();
    assert_eq!(
        refused.message,
        "Scale.autoscaling \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater \
         than or equal to 0"
    );
    for odd in [json!("3"), json!(1.5), json!(5_000_000_000_i64)] {
        let refused = paths()
            .write(&mut deployment(), &scale(odd), DEPLOYMENTS)
            .unwrap_err();
        assert_eq!(refused.code, 400);
    }
    let mut other = scale(json!(1));
    other["metadata"]["uid"] = json!("u2");
    let refused = paths()
        .write(&mut deployment(), &other, DEPLOYMENTS)
        .unwrap_err();
    assert_eq!(
        refused.message,
        "Operation cannot be fulfilled on deployments/scale.apps \"web\": Precondition failed: \
         UID in \
         precondition: u2, UID in object meta: u1"
    );
}

#[test]
fn a_custom_kind_says_where_its_replicas_stand() {
    let paths = custom(json!({
        "specReplicasPath": ".spec.pool.size", "statusReplicasPath": ".status.pool.size",
        "labelSelectorPath": ".status.selector",
    }));
    let object = json!({
        "metadata": {"name": "x"}, "spec": {"pool": {"size": 4}},
        "status": {"pool": {"size": 1}, "selector": "app=x"},
    });
    let scale = paths.read(&object).unwrap();
    assert_eq!(scale["spec"], json!({"replicas": 4}));
    assert_eq!(scale["status"], json!({"replicas": 1, "selector": "app=x"}));

    let mut bare = json!({"metadata": {"name": "x"}});
    let missing = paths.read(&bare).unwrap_err();
    assert_eq!(missing.code, 500);
    assert!(
        missing
            .message
            .contains("the spec replicas field \".spec.pool.size\" does not exist")
    );
    let wanted = json!({"metadata": {"name": "x"}, "spec": {"replicas": 2}});
    paths
        .write(&mut bare, &wanted, ("example.com", "xs"))
        .unwrap();
    assert_eq!(bare["spec"], json!({"pool": {"size": 2}}));
}

#[test]
fn a_custom_object_with_other_types_on_the_way_is_refused() {
    let paths = custom(
        json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n",
        "labelSelectorPath": ".status.s"}),
    );
    assert!(paths.read(&json!({"spec": {"n": "4"}})).is_err());
    assert!(
        paths
            .read(&json!({"spec": {"n": 4}, "status": {"s": {"a": "b"}}}))
            .is_err()
    );
    let wanted = json!({"spec": {"replicas": 2}});
    assert!(
        paths
            .write(&mut json!({"spec": [1]}), &wanted, ("g", "xs"))
            .is_err()
    );
}
