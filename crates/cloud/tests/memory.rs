//! What a pod costs the hub: packed bytes, header, row and indexes, as the machine counts it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write;

use bytes::Bytes;
use cloud::cache::{Cache, Keep, Limits};
use object::{Object, Resource, Scope};
use serde_json::{Value, json};

/// Pods of one owner, about what clusters have.
const SIBLINGS: u64 = 8;
const PODS: u64 = 3_000;

#[test]
fn a_pod_costs_the_hub_at_most_a_kilobyte() {
    let pods = Resource::new("", "pods");
    // What is needed once is there before the counting begins.
    drop(filled(&pods, 500));
    let before = resident_bytes();
    let cache = filled(&pods, PODS);
    let used = resident_bytes().saturating_sub(before) / PODS;
    let counts = cache.counts(&pods);
    let each = |bytes: usize| bytes / counts.objects;
    println!(
        "{} pods of {} bytes: packed {}, header {}, resident {used} bytes each",
        counts.objects,
        each(counts.bytes),
        each(counts.packed_bytes),
        each(counts.header_bytes),
    );
    let headers = cache.headers(&pods, &[Scope::all()]);
    assert_eq!(headers.len() as u64, PODS);
    assert!(each(counts.bytes) > 4_000, "a pod as clusters have them");
    assert!(used <= 1024, "{used} bytes a pod");
}

/// A cache that has listed so many pods.
fn filled(pods: &Resource, count: u64) -> Cache {
    let mut cache = Cache::new(1, Limits::default());
    cache.open(pods, Keep::All);
    cache.list_started(pods);
    for number in 0..count {
        let object = Object::parse(pods, pod(number), &[]).unwrap();
        cache.listed(pods, object);
    }
    let version = (1_000_000 + count).to_string().parse().unwrap();
    cache.list_done(pods, &version);
    cache
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Hexadecimal digits that follow from a number and look like chance.
fn hex(number: u64, digits: usize) -> String {
    let mut out = String::new();
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while out.len() < digits {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        write!(out, "{state:016x}").unwrap();
    }
    out.truncate(digits);
    out
}

fn uid(number: u64) -> String {
    let hex = hex(number, 32);
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

/// A pod as a kubelet leaves it: two containers, probes, volumes, conditions, statuses.
fn pod(number: u64) -> Bytes {
    let owner = number / SIBLINGS;
    let day = number % 28 + 1;
    let started = format!("2026-11-{day:02}T{:02}:{:02}:07Z", number % 24, number % 60);
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(number, owner, &started),
        "spec": spec(number, owner),
        "status": status(number, owner, &started),
    });
    pod.to_string().into()
}

fn metadata(number: u64, owner: u64, started: &str) -> Value {
    let set = format!("app-{owner}-{}", hex(owner, 10));
    json!({
        "annotations": {
            "kubectl.kubernetes.io/restartedAt": started,
            "prometheus.io/port": "9090",
            "prometheus.io/scrape": "true",
        },
        "creationTimestamp": started,
        "generateName": format!("{set}-"),
        "generation": 1,
        "labels": {
            "app.kubernetes.io/component": "server",
            "app.kubernetes.io/instance": format!("app-{owner}"),
            "app.kubernetes.io/name": format!("app-{owner}"),
            "pod-template-hash": hex(owner, 10),
        },
        "name": format!("{set}-{number:05}"),
        "namespace": format!("team-{}", owner % 20),
        "ownerReferences": [{
            "apiVersion": "apps/v1",
            "blockOwnerDeletion": true,
            "controller": true,
            "kind": "ReplicaSet",
            "name": set,
            "uid": uid(owner + 5),
        }],
        "resourceVersion": (100_000 + number).to_string(),
        "uid": uid(number + 1_000_000),
    })
}

fn spec(number: u64, owner: u64) -> Value {
    let access = format!("kube-api-access-{}", hex(number + 3, 5));
    let tolerated = |key: &str| {
        json!({
            "effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300,
        })
    };
    json!({
        "containers": [
            container("frontend", owner, &access),
            container("sidecar", owner, &access),
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": true,
        "nodeName": format!("edge-{}", number % 500),
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {"fsGroup": 2000, "runAsNonRoot": true, "runAsUser": 1000},
        "serviceAccount": format!("app-{owner}"),
        "serviceAccountName": format!("app-{owner}"),
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            tolerated("node.kubernetes.io/not-ready"),
            tolerated("node.kubernetes.io/unreachable"),
        ],
        "volumes": [
            {"configMap": {"defaultMode": 420, "name": format!("app-{owner}-config")},
             "name": "config"},
            {"emptyDir": {}, "name": "cache"},
            {"name": access, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}],
                    "name": "kube-root-ca.crt"}},
                {"downwardAPI": {"items": [{"fieldRef": {"apiVersion": "v1",
                    "fieldPath": "metadata.namespace"}, "path": "namespace"}]}},
            ]}},
        ],
    })
}

fn container(image: &str, owner: u64, access: &str) -> Value {
    json!({
        "args": [
            "--listen=:8080",
            "--log-level=info",
            format!("--upstream=app-{owner}.example.svc:9000"),
        ],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1",
                "fieldPath": "metadata.name"}}},
            {"name": "REGION", "value": format!("eu-central-{}", owner % 3)},
        ],
        "image": format!("registry.example.com/team/{image}:1.{owner}.3"),
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": {
            "failureThreshold": 3,
            "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
            "periodSeconds": 10,
            "successThreshold": 1,
            "timeoutSeconds": 1,
        },
        "name": image,
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": {
            "limits": {"memory": "256Mi"},
            "requests": {"cpu": "100m", "memory": "128Mi"},
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"mountPath": "/etc/app", "name": "config", "readOnly": true},
            {"mountPath": "/cache", "name": "cache"},
            {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": access,
             "readOnly": true},
        ],
    })
}

fn status(number: u64, owner: u64, started: &str) -> Value {
    let conditions = [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ];
    let condition = |kind: &&str| {
        json!({
            "lastProbeTime": null,
            "lastTransitionTime": started,
            "observedGeneration": 1,
            "status": "True",
            "type": kind,
        })
    };
    let container = |image: &str, number: u64| {
        let reference = format!("registry.example.com/team/{image}");
        json!({
            "containerID": format!("containerd://{}", hex(number + 9_000_000, 64)),
            "image": format!("{reference}:1.{owner}.3"),
            "imageID": format!("{reference}@sha256:{}", hex(owner + 5_000_000, 64)),
            "lastState": {},
            "name": image,
            "ready": true,
            "restartCount": 0,
            "started": true,
            "state": {"running": {"startedAt": started}},
        })
    };
    let host = format!("192.168.{}.{}", number % 500 / 250, number % 250);
    let ip = format!(
        "10.{}.{}.{}",
        number % 200,
        number / 200 % 250,
        number % 250
    );
    json!({
        "conditions": conditions.iter().map(condition).collect::<Vec<_>>(),
        "containerStatuses": [
            container("frontend", number * 2),
            container("sidecar", number * 2 + 1),
        ],
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "qosClass": "Burstable",
        "startTime": started,
    })
}
