//! What is filled in, beyond what the tests of single kinds show.

use serde_json::json;

use super::*;
use crate::write::defaults;

fn filled(api_version: &str, name: &str, plural: &str, body: Value) -> Value {
    let kind = testing::kind(api_version, name, plural);
    let mut object = body;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(name);
    defaults::apply(&kind, &mut object);
    object
}

#[test]
fn filling_twice_changes_nothing_more() {
    for (version, name, plural, body) in [
        ("v1", "Pod", "pods", pod()),
        ("apps/v1", "Deployment", "deployments", deployment()),
        ("apps/v1", "StatefulSet", "statefulsets", deployment()),
        ("apps/v1", "DaemonSet", "daemonsets", deployment()),
        (
            "v1",
            "Service",
            "services",
            json!({"spec": {"ports": [{"port": 1}]}}),
        ),
        ("batch/v1", "Job", "jobs", deployment()),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            json!({"spec": {"behavior": {}}}),
        ),
        ("storage.k8s.io/v1", "CSIDriver", "csidrivers", json!({})),
    ] {
        let once = filled(version, name, plural, body);
        let twice = filled(version, name, plural, once.clone());
        assert_eq!(once, twice, "{plural}");
    }
}

#[test]
fn a_deployment_rolls_unless_it_says_otherwise() {
    let object = filled("apps/v1", "Deployment", "deployments", deployment());
    let spec = &object["spec"];
    assert_eq!(
        spec["strategy"],
        json!({
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}
        })
    );
    assert_eq!(spec["replicas"], 1);
    assert_eq!(spec["revisionHistoryLimit"], 10);
    assert_eq!(spec["progressDeadlineSeconds"], 600);
    let template = &spec["template"]["spec"];
    assert_eq!(template["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(template.get("enableServiceLinks"), None, "only pods get it");
    assert_eq!(template.get("serviceAccountName"), None);
}

#[test]
fn the_tag_decides_how_often_an_image_is_pulled() {
    let policy = |image: &str| {
        let mut body = pod();
        body["spec"]["containers"][0]["image"] = json!(image);
        let object = filled("v1", "Pod", "pods", body);
        object["spec"]["containers"][0]["imagePullPolicy"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(policy("nginx"), "Always");
    assert_eq!(policy("nginx:latest"), "Always");
    assert_eq!(policy("nginx:1.2"), "IfNotPresent");
    assert_eq!(policy("host:5000/nginx"), "Always");
    assert_eq!(policy("nginx@sha256:0123"), "IfNotPresent");
}

#[test]
fn probes_volumes_and_amounts_are_completed() {
    let mut body = pod();
    body["spec"]["containers"][0]["livenessProbe"] = json!({"httpGet": {"port": 80}});
    body["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": 0.5, "memory": "1024Ki"}});
    body["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80}]);
    body["spec"]["hostNetwork"] = json!(true);
    body["spec"]["volumes"] = json!([
        {"name": "a"}, {"name": "b", "configMap": {"name": "c"}},
        {"name": "h", "hostPath": {"path": "/"}},
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    ]);
    let object = filled("v1", "Pod", "pods", body);
    let container = &object["spec"]["containers"][0];
    assert_eq!(
        container["livenessProbe"],
        json!({
            "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
            "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3
        })
    );
    let amounts = json!({"cpu": "500m", "memory": "1Mi"});
    assert_eq!(
        container["resources"],
        json!({"limits": amounts, "requests": amounts})
    );
    assert_eq!(
        container["ports"],
        json!([{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}])
    );
    let volumes = &object["spec"]["volumes"];
    assert_eq!(volumes[0]["emptyDir"], json!({}));
    assert_eq!(volumes[1]["configMap"]["defaultMode"], 0o644);
    assert_eq!(volumes[2]["hostPath"]["type"], "");
    assert_eq!(
        volumes[3]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"],
        3600
    );
}

#[test]
fn policies_classes_and_slices_say_what_they_mean() {
    let policy = json!({"spec": {"egress": [{"ports": [{"port": 1}]}]}});
    let policy = filled(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "networkpolicies",
        policy,
    );
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(policy["spec"]["egress"][0]["ports"][0]["protocol"], "TCP");
    let class = filled(
        "storage.k8s.io/v1",
        "StorageClass",
        "storageclasses",
        json!({}),
    );
    assert_eq!(class["reclaimPolicy"], "Delete");
    assert_eq!(class["volumeBindingMode"], "Immediate");
    let slice = json!({"ports": [{"port": 80}]});
    let slice = filled(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "endpointslices",
        slice,
    );
    assert_eq!(
        slice["ports"],
        json!([{"port": 80, "name": "", "protocol": "TCP"}])
    );
    let scaler = filled(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        json!({"spec": {}}),
    );
    assert_eq!(scaler["spec"]["minReplicas"], 1);
    assert_eq!(
        scaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
        80
    );
    let range = json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}});
    let range = filled("v1", "LimitRange", "limitranges", range);
    assert_eq!(
        range["spec"]["limits"][0]["defaultRequest"],
        json!({"cpu": "1"})
    );
}
