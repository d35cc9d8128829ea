//! Nodes, storage, access, policies and devices.

use super::*;

#[test]
fn a_node_shows_roles_versions_and_addresses() {
    let mut node = object(
        "n1",
        json!({"unschedulable": true}),
        json!({
            "conditions": [
                {"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"},
            ],
            "addresses": [
                {"type": "Hostname", "address": "n1"}, {"type": "InternalIP",
                    "address": "10.1.1.1"},
                {"type": "InternalIP", "address": "10.1.1.2"},
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.4", "osImage": "Debian \
             13", "kernelVersion": "6.12",
                "architecture": "arm64", "containerRuntimeVersion": "containerd://2.1"},
        }),
    );
    node["metadata"]["labels"] = json!({
        "node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "",
        "kubernetes.io/role": "edge", "node-role.kubernetes.io/": "",
    });
    assert_eq!(
        cells("", "Node", &node),
        [
            "n1",
            "Ready,SchedulingDisabled",
            "control-plane,edge,worker",
            "3d",
            "v1.36.4",
            "10.1.1.1",
            "<none>",
            "Debian 13",
            "6.12 (arm64)",
            "containerd://2.1"
        ]
    );
    let lost = object(
        "n2",
        json!({}),
        json!({"conditions": [{"type": "Ready", "status": "Unknown"}]}),
    );
    assert_eq!(cells("", "Node", &lost)[1..3], ["NotReady", "<none>"]);
    assert_eq!(
        cells("", "Node", &object("n3", json!({}), json!({})))[1],
        "Unknown"
    );
}

#[test]
fn configuration_is_counted() {
    let map =
        json!({"metadata": meta("m"), "data": {"a": "1", "b": "2"}, "binaryData": {"c": "Mw=="}});
    assert_eq!(cells("", "ConfigMap", &map), ["m", "3", "3d"]);
    let secret = json!({"metadata": meta("s"), "type": "Opaque", "data": {"a": "MQ=="}});
    assert_eq!(cells("", "Secret", &secret), ["s", "Opaque", "1", "3d"]);
    assert_eq!(
        cells("", "ServiceAccount", &json!({"metadata": meta("a")})),
        ["a", "3d"]
    );
    let namespace = object("ns", json!({}), json!({"phase": "Active"}));
    assert_eq!(cells("", "Namespace", &namespace), ["ns", "Active", "3d"]);
}

#[test]
fn an_event_reads_the_same_in_both_of_its_forms() {
    let old = json!({
        "metadata": meta("e"), "type": "Warning", "reason": "BackOff", "message": " no luck \n",
        "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{a}"},
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": THREE_DAYS_AGO, "lastTimestamp": FIVE_MINUTES_AGO, "count": 12,
    });
    let expected = [
        "5m",
        "Warning",
        "BackOff",
        "pod/web",
        "spec.containers{a}",
        "kubelet, n1",
        "no luck",
        "3d",
        "12",
        "e",
    ];
    assert_eq!(cells("", "Event", &old), expected);
    let new = json!({
        "metadata": meta("e"), "type": "Warning", "reason": "BackOff", "note": "no luck",
        "regarding": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{a}"},
        "reportingController": "kubelet", "reportingInstance": "n1", "eventTime": THREE_DAYS_AGO,
        "series": {"count": 12, "lastObservedTime": FIVE_MINUTES_AGO},
    });
    assert_eq!(cells("events.k8s.io", "Event", &new), expected);
    let single = json!({"metadata": meta("e"), "eventTime": FIVE_MINUTES_AGO, "lastTimestamp": null,
        "involvedObject": {"kind": "Node"}, "reportingComponent": "x"});
    assert_eq!(
        cells("", "Event", &single),
        ["5m", "", "", "node", "", "x", "", "5m", "1", "e"]
    );
}

#[test]
fn a_quota_separates_requests_from_limits() {
    let status = json!({
        "hard": {
            "requests.cpu": "2", "limits.cpu": "4000m", "pods": "10", "limits.memory": "1024Mi",
        },
        "used": {"requests.cpu": "500m", "pods": "3", "limits.memory": "512Mi"},
    });
    assert_eq!(
        cells("", "ResourceQuota", &object("q", json!({}), status)),
        [
            "q",
            "pods: 3/10, requests.cpu: 500m/2",
            "limits.cpu: 0/4, limits.memory: 512Mi/1Gi",
            "3d"
        ]
    );
}

#[test]
fn volumes_and_claims_show_size_mode_and_class() {
    let spec = json!({
        "capacity": {"storage": "10240Mi"},
        "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "fast",
        "volumeMode": "Filesystem",
        "claimRef": {"namespace": "default", "name": "data"},
    });
    let mut volume = object("pv", spec, json!({"phase": "Bound"}));
    assert_eq!(
        cells("", "PersistentVolume", &volume),
        [
            "pv",
            "10Gi",
            "RWO,RWX",
            "Retain",
            "Bound",
            "default/data",
            "fast",
            "<unset>",
            "",
            "3d",
            "Filesystem"
        ]
    );
    volume["metadata"]["deletionTimestamp"] = json!(NOW);
    assert_eq!(cells("", "PersistentVolume", &volume)[4], "Terminating");
    let spec = json!({"volumeName": "pv", "storageClassName": "fast",
        "volumeAttributesClassName": "gold"});
    let status =
        json!({"phase": "Bound", "capacity": {"storage": "10Gi"}, "accessModes": ["ReadOnlyMany"]});
    assert_eq!(
        cells("", "PersistentVolumeClaim", &object("c", spec, status)),
        [
            "c", "Bound", "pv", "10Gi", "ROX", "fast", "gold", "3d", "<unset>"
        ]
    );
    let mut waiting = object(
        "c",
        json!({}),
        json!({"phase": "Pending", "capacity": {"storage": "1Gi"}}),
    );
    waiting["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/storage-class": "old"});
    assert_eq!(
        cells("", "PersistentVolumeClaim", &waiting),
        [
            "c", "Pending", "", "", "", "old", "<unset>", "3d", "<unset>"
        ]
    );
}

#[test]
fn drivers_and_attachments_have_their_defaults() {
    assert_eq!(
        cells(
            "storage.k8s.io",
            "CSIDriver",
            &json!({"metadata": meta("d"), "spec": {}})
        ),
        [
            "d", "true", "false", "false", "<unset>", "false", "<none>", "3d"
        ]
    );
    let spec = json!({
        "attachRequired": false, "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
        "volumeLifecycleModes": ["Persistent", "Ephemeral"],
    });
    assert_eq!(
        cells(
            "storage.k8s.io",
            "CSIDriver",
            &json!({"metadata": meta("d"), "spec": spec})
        ),
        [
            "d",
            "false",
            "false",
            "false",
            "a,b",
            "false",
            "Persistent,Ephemeral",
            "3d"
        ]
    );
    let spec = json!({"attacher": "d", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}});
    assert_eq!(
        cells(
            "storage.k8s.io",
            "VolumeAttachment",
            &object("a", spec, json!({"attached": true}))
        ),
        ["a", "d", "pv", "n1", "true", "3d"]
    );
}

#[test]
fn bindings_and_certificates_show_who() {
    let binding = json!({
        "metadata": meta("b"), "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [
            {"kind": "User", "name": "ann"}, {"kind": "User", "name": "bob"},
            {"kind": "Group", "name": "dev"}, {"kind": "ServiceAccount", "namespace": "ns",
                "name": "sa"},
        ],
    });
    assert_eq!(
        cells("rbac.authorization.k8s.io", "RoleBinding", &binding),
        ["b", "ClusterRole/view", "3d", "ann, bob", "dev", "ns/sa"]
    );
    let request = |status: Value| {
        let spec = json!({"signerName": "kubernetes.io/kubelet-serving",
            "username": "system:node:n1", "expirationSeconds": 86400});
        cells(
            "certificates.k8s.io",
            "CertificateSigningRequest",
            &object("r", spec, status),
        )
    };
    assert_eq!(
        request(json!({})),
        [
            "r",
            "3d",
            "kubernetes.io/kubelet-serving",
            "system:node:n1",
            "24h",
            "Pending"
        ]
    );
    let issued = json!({"conditions": [{"type": "Approved"}], "certificate": "LS0t"});
    assert_eq!(request(issued)[5], "Approved,Issued");
    let failed =
        json!({"conditions": [{"type": "Approved"}, {"type": "Denied"}, {"type": "Failed"}]});
    assert_eq!(request(failed)[5], "Denied,Failed");
    let lease = json!({"metadata": meta("l"), "spec": {"holderIdentity": "n1"}});
    assert_eq!(
        cells("coordination.k8s.io", "Lease", &lease),
        ["l", "n1", "3d"]
    );
}

#[test]
fn policies_and_levels_show_what_they_refer_to() {
    let policy = json!({"metadata": meta("p"), "spec": {"validations": [{}, {}],
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}});
    assert_eq!(
        cells(
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicy",
            &policy
        ),
        ["p", "2", "v1/ConfigMap", "3d"]
    );
    let reference = |reference: Value| {
        let binding =
            json!({"metadata": meta("b"), "spec": {"policyName": "p", "paramRef": reference}});
        cells(
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding",
            &binding,
        )[2]
        .clone()
    };
    assert_eq!(reference(Value::Null), "<unset>");
    assert_eq!(reference(json!({"name": "x"})), "*/x");
    assert_eq!(reference(json!({"namespace": "ns", "name": "x"})), "ns/x");
    assert_eq!(
        reference(json!({"selector": {"matchLabels": {"a": "b"}}})),
        "a=b"
    );
    let level = json!({"metadata": meta("l"), "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 30,
        "limitResponse": {"queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50}}}}});
    let group = "flowcontrol.apiserver.k8s.io";
    assert_eq!(
        cells(group, "PriorityLevelConfiguration", &level),
        ["l", "Limited", "30", "64", "6", "50", "3d"]
    );
    let exempt = json!({"metadata": meta("l"), "spec": {"type": "Exempt"}});
    assert_eq!(
        cells(group, "PriorityLevelConfiguration", &exempt)[2..6],
        ["<none>"; 4]
    );
    let schema = object(
        "f",
        json!({"priorityLevelConfiguration": {"name": "l"}, "matchingPrecedence": 100}),
        json!({}),
    );
    assert_eq!(
        cells(group, "FlowSchema", &schema),
        ["f", "l", "100", "<none>", "3d", "?"]
    );
    let service = object(
        "v1.apps",
        json!({}),
        json!({"conditions": [{"type": "Available", "status": "False", "reason": "Gone"}]}),
    );
    assert_eq!(
        cells("apiregistration.k8s.io", "APIService", &service),
        ["v1.apps", "Local", "False (Gone)", "3d"]
    );
}

#[test]
fn claims_to_devices_show_their_state() {
    let state = |status: Value, deleted: bool| {
        let mut claim = object("c", json!({}), status);
        if deleted {
            claim["metadata"]["deletionTimestamp"] = json!(NOW);
        }
        cells("resource.k8s.io", "ResourceClaim", &claim)[1].clone()
    };
    assert_eq!(state(json!({}), false), "pending");
    assert_eq!(state(json!({"allocation": {}}), false), "allocated");
    assert_eq!(
        state(json!({"allocation": {}, "reservedFor": [{}]}), true),
        "deleted,allocated,reserved"
    );
    assert_eq!(state(json!({}), true), "deleted");
}

#[test]
fn a_question_about_pools_is_answered_in_sums() {
    let shown = |status: Value| {
        cells(
            "resource.k8s.io",
            "ResourcePoolStatusRequest",
            &object("q", json!({"driver": "gpu"}), status),
        )[2..]
            .join(" ")
    };
    assert_eq!(shown(Value::Null), "- - - - - 0 Pending <none>");
    let pools = json!([
        {"totalDevices": 4, "availableDevices": 1, "allocatedDevices": 3},
        {"totalDevices": 2, "unavailableDevices": 2, "validationError": "odd"},
    ]);
    let complete =
        json!([{"type": "Complete", "status": "True", "lastTransitionTime": FIVE_MINUTES_AGO}]);
    assert_eq!(
        shown(json!({"poolCount": 3, "pools": pools, "conditions": complete})),
        "6 1 3 2 1 3 Complete (2/3 pools) 5m"
    );
    let failed = json!([{"type": "Failed", "status": "True"}]);
    assert_eq!(
        shown(json!({"conditions": failed})),
        "- - - - - 0 Failed <none>"
    );
}

#[test]
fn kinds_without_columns_show_when_they_were_made() {
    let role =
        json!({"metadata": {"name": "r", "creationTimestamp": "2026-02-26T13:00:00.5+01:00"}});
    assert_eq!(
        cells("rbac.authorization.k8s.io", "Role", &role),
        ["r", "2026-02-26T12:00:00Z"]
    );
    assert_eq!(
        cells("", "LimitRange", &json!({}))[1],
        "0001-01-01T00:00:00Z"
    );
}
