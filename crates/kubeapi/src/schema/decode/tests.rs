//! Tests of decoding built-in kinds.

use serde_json::json;

use super::super::builtin::type_of;
use super::*;

fn refusal(group: &str, kind: &str, object: Value) -> String {
    let schema = type_of(group, "v1", kind).unwrap();
    check(&object, &schema, (kind, "v1")).unwrap_err().message
}

fn missing_fields(group: &str, kind: &str, object: Value) -> Vec<String> {
    let schema = type_of(group, "v1", kind).unwrap();
    missing(&object, &schema)
        .into_iter()
        .map(|cause| cause.field)
        .collect()
}

#[test]
fn a_wrong_type_is_refused_in_the_words_of_kubernetes() {
    let message = refusal("apps", "Deployment", json!({"spec": {"replicas": "three"}}));
    assert_eq!(
        message,
        "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal \
         string into Go struct field DeploymentSpec.spec.replicas of type int32"
    );
}

#[test]
fn paths_leave_out_the_places_in_lists() {
    let containers = json!([{"name": "a"}, {"name": 7}]);
    let message = refusal("", "Pod", json!({"spec": {"containers": containers}}));
    let wanted = "cannot unmarshal number 7 into Go struct field \
                  Container.spec.containers.name of type string";
    assert!(message.ends_with(wanted), "{message}");
    let message = refusal("", "Pod", json!({"spec": {"containers": {}}}));
    let wanted = "cannot unmarshal object into Go struct field \
                  PodSpec.spec.containers of type []v1.Container";
    assert!(message.ends_with(wanted), "{message}");
    let message = refusal("", "Pod", json!({"metadata": {"labels": {"a": 1}}}));
    let wanted = "cannot unmarshal number 1 into Go struct field \
                  ObjectMeta.metadata.labels of type string";
    assert!(message.ends_with(wanted), "{message}");
    let message = refusal("", "Pod", json!({"spec": []}));
    assert!(
        message.ends_with("struct field Pod.spec of type v1.PodSpec"),
        "{message}"
    );
}

#[test]
fn numbers_must_fit() {
    let message = refusal(
        "apps",
        "Deployment",
        json!({"spec": {"replicas": 3_000_000_000_u64}}),
    );
    assert!(
        message.contains("cannot unmarshal number 3000000000 into"),
        "{message}"
    );
    let message = refusal("apps", "Deployment", json!({"spec": {"replicas": 1.5}}));
    assert!(
        message.contains("cannot unmarshal number 1.5 into"),
        "{message}"
    );
}

#[test]
fn strings_that_mean_something_are_read() {
    let message = refusal("", "Secret", json!({"data": {"a": "no base64!"}}));
    assert!(
        message.ends_with(": illegal base64 data at input byte 2"),
        "{message}"
    );
    let limits = json!({"cpu": "abc"});
    let containers = json!([{"name": "a", "resources": {"limits": limits}}]);
    let message = refusal("", "Pod", json!({"spec": {"containers": containers}}));
    assert!(
        message.contains(": quantities must match the regular expression"),
        "{message}"
    );
    let message = refusal(
        "",
        "Pod",
        json!({"metadata": {"creationTimestamp": "yesterday"}}),
    );
    assert!(message.contains("parsing time \"yesterday\""), "{message}");
    for good in [
        "1", "1.5", "100m", "-2Ki", "1e3", "5E", "+.5", "1.", "12E-2",
    ] {
        assert_eq!(text::quantity(good), Ok(()), "{good}");
    }
    for bad in ["", ".", "1.2.3", "m", "1Kb", "1e", "1 ", "0x10", "1mm"] {
        assert!(text::quantity(bad).is_err(), "{bad}");
    }
    for good in ["2024-02-29T10:00:00Z", "2024-02-29T10:00:00.123456+01:30"] {
        assert!(text::check(good, "date-time").is_ok(), "{good}");
    }
    for bad in [
        "2024-02-30T10:00:00Z",
        "2024-02-29 10:00:00Z",
        "2024-02-29T10:00:00",
        "",
    ] {
        assert!(text::check(bad, "date-time").is_err(), "{bad}");
    }
}

#[test]
fn what_is_right_passes() {
    let object = json!({
        "metadata": {"name": "web", "creationTimestamp": null},
        "spec": {
            "replicas": null,
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"containers": [{"name": "a", "resources": {
                "requests": {"cpu": 1, "memory": "64Mi"}}}]}}}});
    let schema = type_of("apps", "v1", "Deployment").unwrap();
    assert!(check(&object, &schema, ("Deployment", "v1")).is_ok());
    assert!(missing(&object, &schema).is_empty());
}

#[test]
fn what_must_be_there_is_asked_for_even_below_what_was_left_out() {
    let fields = missing_fields("apps", "Deployment", json!({"metadata": {"name": "web"}}));
    assert_eq!(fields, ["spec.selector", "spec.template.spec.containers"]);
    let fields = missing_fields("", "Pod", json!({"spec": {"containers": []}}));
    assert_eq!(fields, ["spec.containers"]);
    let container = json!({"name": "", "env": [{"value": "x"}]});
    let fields = missing_fields("", "Pod", json!({"spec": {"containers": [container]}}));
    assert_eq!(
        fields,
        ["spec.containers[0].name", "spec.containers[0].env[0].name"]
    );
    let fields = missing_fields("storage.k8s.io", "StorageClass", json!({}));
    assert_eq!(fields, ["provisioner"]);
}

#[test]
fn a_status_may_be_unfinished() {
    let status = json!({"containerStatuses": [{"name": "a"}], "conditions": [{"type": "Ready"}]});
    let pod = json!({"spec": {"containers": [{"name": "a"}]}, "status": status});
    assert!(missing_fields("", "Pod", pod).is_empty());
}

#[test]
fn what_nests_too_deep_is_refused() {
    let mut value = json!(1);
    for _ in 0..70 {
        value = json!([value]);
    }
    let message = refusal("", "ConfigMap", json!({"data": value}));
    assert!(
        message.ends_with("nested deeper than 64 levels"),
        "{message}"
    );
}
