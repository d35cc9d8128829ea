//! Pods: where they start, what is wrong with them, and what may change.

use serde_json::json;

use super::*;

fn told(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut body = pod();
    change(&mut body);
    faults(made(&pods(), body).unwrap_err())
}

#[test]
fn a_pod_starts_pending_with_its_defaults() {
    let object = made(&pods(), pod()).unwrap();
    assert_eq!(
        object["status"],
        json!({"phase": "Pending", "qosClass": "BestEffort"})
    );
    assert_eq!(object["metadata"]["generation"], 1);
    assert_eq!(
        object["spec"],
        json!({
            "containers": [{
                "name": "c", "image": "nginx:1", "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File", "resources": {}
            }],
            "enableServiceLinks": true, "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {},
            "terminationGracePeriodSeconds": 30, "serviceAccountName": "default",
            "serviceAccount": "default"
        })
    );
}

#[test]
fn resources_decide_the_class_of_service() {
    let class = |resources: Value| {
        let mut body = pod();
        body["spec"]["containers"][0]["resources"] = resources;
        let object = made(&pods(), body).unwrap();
        object["status"]["qosClass"].as_str().unwrap().to_owned()
    };
    assert_eq!(class(json!({})), "BestEffort");
    assert_eq!(
        class(json!({"limits": {"cpu": 1, "memory": "1Gi"}})),
        "Guaranteed"
    );
    assert_eq!(class(json!({"requests": {"cpu": "100m"}})), "Burstable");
    let same = json!({"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "1000m"}});
    assert_eq!(class(same), "Guaranteed");
}

#[test]
fn what_is_missing_is_told() {
    assert_eq!(
        told(|body| body["spec"] = json!({})),
        ["spec.containers: Required value"]
    );
    let nameless = |body: &mut Value| body["spec"]["containers"][0] = json!({"image": "a"});
    assert_eq!(told(nameless), ["spec.containers[0].name: Required value"]);
    let imageless = |body: &mut Value| body["spec"]["containers"][0] = json!({"name": "a"});
    assert_eq!(
        told(imageless),
        ["spec.containers[0].image: Required value"]
    );
}

#[test]
fn names_are_had_once() {
    let twice = |body: &mut Value| {
        let container = body["spec"]["containers"][0].clone();
        body["spec"]["containers"] = json!([container, container]);
    };
    assert_eq!(
        told(twice),
        ["spec.containers[1].name: Duplicate value: \"c\""]
    );
    let volumes = |body: &mut Value| {
        body["spec"]["volumes"] = json!([{"name": "v"}, {"name": "v"}]);
    };
    assert_eq!(
        told(volumes),
        ["spec.volumes[1].name: Duplicate value: \"v\""]
    );
}

#[test]
fn words_outside_of_the_known_ones_are_told_with_the_known_ones() {
    let policy = |body: &mut Value| {
        body["spec"]["containers"][0]["imagePullPolicy"] = json!("Sometimes");
    };
    assert_eq!(
        told(policy),
        [
            "spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported \
             values: \"Always\", \"IfNotPresent\", \"Never\""
        ]
    );
    assert_eq!(
        told(|body| body["spec"]["restartPolicy"] = json!("Maybe")),
        [
            "spec.restartPolicy: Unsupported value: \"Maybe\": supported values: \"Always\", \
             \"OnFailure\", \"Never\""
        ]
    );
}

#[test]
fn amounts_must_be_amounts_within_their_limits() {
    let resources =
        |value: Value| move |body: &mut Value| body["spec"]["containers"][0]["resources"] = value;
    assert_eq!(
        told(resources(json!({"limits": {"cpu": "abc"}})))[0],
        "spec.containers[0].resources.limits[cpu]: Invalid value: \"abc\": quantities must match \
         the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
    let above = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}});
    assert_eq!(
        told(resources(above)),
        [
            "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or \
             equal to cpu limit of 1"
        ]
    );
    let negative = json!({"requests": {"memory": "-1"}});
    assert_eq!(
        told(resources(negative)),
        [
            "spec.containers[0].resources.requests[memory]: Invalid value: \"-1\": must be \
             greater than or equal to 0"
        ]
    );
    let extended = json!({"requests": {"example.com/gpu": "1"}});
    assert_eq!(
        told(resources(extended)),
        [
            "spec.containers[0].resources.limits: Required value: Limit must be set for non \
             overcommitable resources"
        ]
    );
}

#[test]
fn ports_mounts_and_probes_are_checked() {
    let container = |value: Value| {
        move |body: &mut Value| {
            for (key, value) in value.as_object().unwrap() {
                body["spec"]["containers"][0][key] = value.clone();
            }
        }
    };
    assert_eq!(
        told(container(
            json!({"ports": [{"containerPort": 70000, "name": "Web"}]})
        )),
        [
            "spec.containers[0].ports[0].name: Invalid value: \"Web\": must contain only \
             alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 \
             and 65535, inclusive",
        ]
    );
    assert_eq!(
        told(container(
            json!({"volumeMounts": [{"name": "no", "mountPath": "/a"}]})
        )),
        ["spec.containers[0].volumeMounts[0].name: Not found: \"no\""]
    );
    assert_eq!(
        told(container(json!({"livenessProbe": {}}))),
        ["spec.containers[0].livenessProbe: Required value: must specify a handler type"]
    );
    let probe = json!({"livenessProbe": {"httpGet": {"port": 80}, "successThreshold": 2}});
    assert_eq!(
        told(container(probe)),
        ["spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"]
    );
    let source = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let variable = json!({"env": [{"name": "A", "value": "1", "valueFrom": source}]});
    assert_eq!(
        told(container(variable)),
        [
            "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when \
             `value` is not empty"
        ]
    );
    let shared = json!({"ports": [
        {"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 80}
    ]});
    assert_eq!(
        told(container(shared)),
        ["spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//80\""]
    );
}

#[test]
fn a_volume_has_one_source() {
    let both = json!([{"name": "v", "emptyDir": {}, "hostPath": {"path": "/a"}}]);
    assert_eq!(
        told(|body| body["spec"]["volumes"] = both),
        ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"]
    );
    let empty = json!([{"name": "v", "secret": {}}]);
    assert_eq!(
        told(|body| body["spec"]["volumes"] = empty),
        ["spec.volumes[0].secret.secretName: Required value"]
    );
}

#[test]
fn images_and_tolerations_may_change_and_little_else() {
    let kind = pods();
    let mut body = pod();
    body["spec"]["tolerations"] = json!([{"key": "a", "operator": "Exists"}]);
    let current = stored(&kind, body);
    let newer = changed(&kind, &current, |body| {
        body["spec"]["containers"][0]["image"] = json!("nginx:2");
        body["spec"]["activeDeadlineSeconds"] = json!(60);
        body["spec"]["tolerations"]
            .as_array_mut()
            .unwrap()
            .push(json!({"operator": "Exists"}));
    });
    assert_eq!(newer.unwrap()["metadata"]["generation"], 2);
    let status = changed(&kind, &current, |body| {
        body["spec"]["nodeName"] = json!("n")
    });
    let told = faults(status.unwrap_err());
    assert!(told[0].starts_with(
        "spec: Forbidden: pod updates may not change fields other than \
         `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
         `spec.tolerations` (only additions to existing tolerations),"
    ));
    assert!(told[0].ends_with("changed: nodeName"));
    let status = changed(&kind, &current, |body| {
        body["spec"]["tolerations"] = json!([])
    });
    assert_eq!(
        faults(status.unwrap_err()),
        [
            "spec.tolerations: Forbidden: existing toleration can not be modified except its \
             tolerationSeconds"
        ]
    );
    let status = changed(&kind, &current, |body| {
        let extra = json!({"name": "d", "image": "x"});
        body["spec"]["containers"]
            .as_array_mut()
            .unwrap()
            .push(extra);
    });
    assert_eq!(
        faults(status.unwrap_err()),
        ["spec.containers: Forbidden: pod updates may not add or remove containers"]
    );
}

#[test]
fn a_status_keeps_the_class_and_the_owners() {
    let kind = pods();
    let mut current = stored(&kind, pod());
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]);
    current["metadata"]["ownerReferences"] = owner.clone();
    let mut body = current.clone();
    body["status"] = json!({"phase": "Running"});
    body["metadata"]["ownerReferences"] = json!([]);
    let decision = put_part(&kind, Part::Status, &current, body).unwrap();
    let Decision::Put(object) = decision else {
        panic!()
    };
    assert_eq!(
        object["status"],
        json!({"phase": "Running", "qosClass": "BestEffort"})
    );
    assert_eq!(object["metadata"]["ownerReferences"], owner);
}
