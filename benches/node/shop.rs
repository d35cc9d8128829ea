//! A cluster with a shop in it: what a node of forty pods and the programs on it look at.

use serde_json::{Value, json};

use crate::kinds;

/// Where the shop is.
pub(crate) const SHOP: &str = "shop";
/// Pods of a node, and the applications that they belong to. Each has a config map and a secret.
pub(crate) const PODS: usize = 40;
pub(crate) const APPLICATIONS: usize = 20;
/// Services of the cluster, each with a slice of so many endpoints.
pub(crate) const SERVICES: usize = 200;
const ENDPOINTS: usize = 10;
/// Namespaces beside that of the shop.
pub(crate) const NAMESPACES: usize = 30;
/// Images on a node.
const IMAGES: usize = 45;

/// The path of a kind of the core group in the shop.
pub(crate) fn shop(resource: &str) -> String {
    format!("/api/v1/namespaces/{SHOP}/{resource}")
}

/// Where the slices of the shop are.
pub(crate) fn slices() -> String {
    format!("/apis/discovery.k8s.io/v1/namespaces/{SHOP}/endpointslices")
}

/// The config map of an application, and its secret, by this name.
pub(crate) fn application(number: usize) -> String {
    format!("config-{:05}", number % APPLICATIONS)
}

/// A secret of about half a KiB.
pub(crate) fn secret(number: usize) -> Value {
    let map = kinds::config_map(number);
    let text = map["data"]["settings"].as_str().expect("a text");
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": application(number)},
        "stringData": {"token": &text[..380]}
    })
}

/// The slice of a service.
pub(crate) fn slice(number: usize) -> Value {
    let service = format!("service-{number:05}");
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("{service}-x7k2p"), "generateName": format!("{service}-"),
            "labels": {"kubernetes.io/service-name": service, "app.kubernetes.io/name": service,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"},
            "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": stamp(0)}},
        "addressType": "IPv4", "endpoints": endpoints(number, usize::MAX),
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"},
            {"name": "metrics", "port": 9090, "protocol": "TCP"}]
    })
}

/// The endpoints of a service, of which one is not ready.
pub(crate) fn endpoints(number: usize, unready: usize) -> Vec<Value> {
    let endpoint = |index: usize| {
        let ready = index != unready % (2 * ENDPOINTS);
        let pod = format!("service-{number:05}-6d4cf56db6-{index:05}");
        json!({
            "addresses": [format!("10.{}.{}.{}", 64 + index, number / 250, number % 250 + 1)],
            "conditions": {"ready": ready, "serving": ready, "terminating": false},
            "nodeName": format!("worker-{index}"), "zone": format!("zone-{}", index % 3),
            "targetRef": {"kind": "Pod", "namespace": SHOP, "name": pod,
                "uid": format!("00000000-0000-4000-8000-{:012}", number * 100 + index)}
        })
    };
    (0..ENDPOINTS).map(endpoint).collect()
}

/// A change of a slice: another endpoint is not ready, or all are.
pub(crate) fn slice_change(number: usize, turn: usize) -> Value {
    json!({
        "metadata": {"annotations":
            {"endpoints.kubernetes.io/last-change-trigger-time": stamp(turn)}},
        "endpoints": endpoints(number, turn)
    })
}

/// A pod of an application on a node, as a deployment makes it.
pub(crate) fn pod(name: &str, node: &str, number: usize) -> Value {
    let mut pod = kinds::pod(name, node, &[]);
    let spec = pod["spec"].as_object_mut().expect("a spec");
    spec.remove("automountServiceAccountToken");
    let named = application(number);
    spec.insert(
        "volumes".to_owned(),
        json!([{"name": "config", "configMap": {"name": named}},
            {"name": "secret", "secret": {"secretName": named}}]),
    );
    for container in spec["containers"].as_array_mut().expect("containers") {
        container["volumeMounts"] = json!([
            {"name": "config", "mountPath": "/etc/shop", "readOnly": true},
            {"name": "secret", "mountPath": "/etc/secret", "readOnly": true}]);
    }
    pod
}

/// What a kubelet patches of a pod when something of its containers changed.
pub(crate) fn pod_status(uid: &str, turn: usize) -> Value {
    let ready = turn.is_multiple_of(2);
    let condition = |name: &str| {
        let status = if ready { "True" } else { "False" };
        json!({"type": name, "status": status, "lastProbeTime": null,
            "lastTransitionTime": stamp(turn)})
    };
    let container = |name: &str| {
        json!({"name": name, "image": format!("registry.example.com/shop/{name}:1.2.3"),
            "imageID": format!("registry.example.com/shop/{name}@sha256:{:064x}", name.len()),
            "containerID": format!("containerd://{:064x}", turn + 1),
            "ready": ready, "started": true, "restartCount": turn / 2,
            "state": {"running": {"startedAt": stamp(turn)}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error",
                "containerID": format!("containerd://{turn:064x}"),
                "startedAt": stamp(turn.saturating_sub(1)), "finishedAt": stamp(turn)}}})
    };
    let types = ["PodReadyToStartContainers", "Initialized", "Ready"];
    let order = [&types[..], &["ContainersReady", "PodScheduled"]].concat();
    let order: Vec<Value> = order.iter().map(|it| json!({"type": it})).collect();
    json!({
        "metadata": {"uid": uid},
        "status": {"phase": "Running", "$setElementOrder/conditions": order,
            "conditions": [condition("Ready"), condition("ContainersReady")],
            "containerStatuses": [container("web"), container("cache")]}
    })
}

/// The first word of a kubelet on a pod: all of its status.
pub(crate) fn first_status(uid: &str, number: usize) -> Value {
    let mut whole = pod_status(uid, 0);
    let status = whole["status"].as_object_mut().expect("a status");
    // What is set for the first time has no order yet.
    status.remove("$setElementOrder/conditions");
    let address = format!("10.200.0.{}", number + 1);
    status.insert("hostIP".to_owned(), json!("192.0.2.7"));
    status.insert("podIP".to_owned(), json!(address));
    status.insert("podIPs".to_owned(), json!([{"ip": address}]));
    status.insert("startTime".to_owned(), json!(stamp(0)));
    let conditions = status["conditions"].as_array_mut().expect("conditions");
    for name in ["PodReadyToStartContainers", "Initialized", "PodScheduled"] {
        conditions.push(
            json!({"type": name, "status": "True", "lastProbeTime": null,
            "lastTransitionTime": stamp(0)}),
        );
    }
    whole
}

/// A node, and its status as its kubelet tells it.
pub(crate) fn node(name: &str) -> (Value, Value) {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}
    });
    let image = |number: usize| {
        json!({"names": [
            format!("registry.example.com/shop/image-{number}@sha256:{number:064x}"),
            format!("registry.example.com/shop/image-{number}:1.2.3")],
            "sizeBytes": 40_000_000 + number * 1_234_567})
    };
    let images: Vec<Value> = (0..IMAGES).map(image).collect();
    let room = json!({"cpu": "8", "memory": "16384Mi", "pods": "110",
        "ephemeral-storage": "100Gi"});
    let mut status = node_status(0);
    let whole = status["status"].as_object_mut().expect("a status");
    for condition in whole["conditions"].as_array_mut().expect("conditions") {
        condition["status"] = json!("False");
        condition["reason"] = json!("KubeletHasSufficientRoom");
        condition["message"] = json!("kubelet has sufficient room available");
        condition["lastTransitionTime"] = json!(stamp(0));
    }
    whole.insert("images".to_owned(), json!(images));
    whole.insert("capacity".to_owned(), room.clone());
    whole.insert("allocatable".to_owned(), room);
    let address = json!([{"type": "InternalIP", "address": "192.0.2.7"},
        {"type": "Hostname", "address": name}]);
    whole.insert("addresses".to_owned(), address);
    (node, status)
}

/// What a kubelet patches of its node every five minutes.
pub(crate) fn node_status(turn: usize) -> Value {
    let types = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
    let order: Vec<Value> = types.iter().map(|it| json!({"type": it})).collect();
    let beat = |name: &&str| json!({"type": name, "lastHeartbeatTime": stamp(turn)});
    let beats: Vec<Value> = types.iter().map(beat).collect();
    json!({"status": {"$setElementOrder/conditions": order, "conditions": beats}})
}

/// An event of a pod.
pub(crate) fn event(node: &str, pod: &str, turn: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{pod}.{turn:016x}"), "namespace": SHOP},
        "involvedObject": {"kind": "Pod", "namespace": SHOP, "name": pod, "apiVersion": "v1",
            "fieldPath": "spec.containers{web}"},
        "reason": "Unhealthy", "type": "Warning", "count": 1,
        "message": "Readiness probe failed: HTTP probe failed with statuscode: 503",
        "source": {"component": "kubelet", "host": node},
        "reportingComponent": "kubelet", "reportingInstance": node,
        "firstTimestamp": stamp(turn), "lastTimestamp": stamp(turn)
    })
}

/// What is asked for a pod's token.
pub(crate) fn token_request(pod: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3607, "boundObjectRef":
            {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}}
    })
}

/// The lease of a node.
pub(crate) fn lease(node: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": node, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": 40,
            "renewTime": "2026-01-01T00:00:00.000000Z"}
    })
}

/// A time of a day, by the number of a change.
fn stamp(turn: usize) -> String {
    let second = turn % 86_400;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("2026-01-01T{hour:02}:{minute:02}:{:02}Z", second % 60)
}
