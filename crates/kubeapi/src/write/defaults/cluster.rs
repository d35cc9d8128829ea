//! Defaults of services, storage, policies, roles and the rest.

use serde_json::{Value, json};

use super::{amounts, pair, pod};
use crate::write::field::{self, existing_mut, items_mut, object_mut, set, set_default};

/// A service. Its addresses are no defaults: they are given out when it is stored.
pub(super) fn apply_service(service: &mut Value) {
    let spec = object_mut(service, "spec");
    set_default(spec, "sessionAffinity", "None");
    match field::text(spec, "sessionAffinity") {
        "None" => drop(field::remove(spec, "sessionAffinityConfig")),
        "ClientIP" => {
            let given = field::at(
                spec,
                &["sessionAffinityConfig", "clientIP", "timeoutSeconds"],
            );
            if given.is_null() {
                let config = json!({"clientIP": {"timeoutSeconds": 10800}});
                set(spec, "sessionAffinityConfig", config);
            }
        }
        _ => {}
    }
    set_default(spec, "type", "ClusterIP");
    for port in items_mut(spec, "ports") {
        set_default(port, "protocol", "TCP");
        let unset = match field::child(port, "targetPort") {
            Value::Null => true,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::String(name) => name.is_empty(),
            _ => false,
        };
        if let (true, Some(number)) = (unset, field::number(port, "port")) {
            set(port, "targetPort", number);
        }
    }
    let kind = field::text(spec, "type").to_owned();
    let external = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && !field::list(spec, "externalIPs").is_empty());
    if external {
        set_default(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        set_default(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set_default(spec, "allocateLoadBalancerNodePorts", true);
        let Some(status) = existing_mut(service, "status") else {
            return;
        };
        let Some(balancer) = existing_mut(status, "loadBalancer") else {
            return;
        };
        for ingress in items_mut(balancer, "ingress") {
            if !field::text(ingress, "ip").is_empty() {
                set_default(ingress, "ipMode", "VIP");
            }
        }
    }
}

pub(super) fn apply_endpoints(endpoints: &mut Value) {
    for subset in items_mut(endpoints, "subsets") {
        for port in items_mut(subset, "ports") {
            set_default(port, "protocol", "TCP");
        }
    }
}

pub(super) fn apply_endpoint_slice(slice: &mut Value) {
    for port in items_mut(slice, "ports") {
        if !field::is_set(port, "name") {
            set(port, "name", "");
        }
        set_default(port, "protocol", "TCP");
    }
}

/// The label by which selectors find a namespace by its name.
pub(super) fn apply_namespace(namespace: &mut Value) {
    let metadata = object_mut(namespace, "metadata");
    let name = field::text(metadata, "name").to_owned();
    if !name.is_empty() {
        set(
            object_mut(metadata, "labels"),
            "kubernetes.io/metadata.name",
            name,
        );
    }
}

pub(super) fn apply_node(node: &mut Value) {
    if let Some(spec) = existing_mut(node, "spec") {
        pair(spec, "podCIDR", "podCIDRs", "");
    }
    let Some(status) = existing_mut(node, "status") else {
        return;
    };
    amounts(status, "capacity");
    amounts(status, "allocatable");
    if field::is_set(status, "capacity") && !field::is_set(status, "allocatable") {
        let capacity = field::child(status, "capacity").clone();
        set(status, "allocatable", capacity);
    }
}

pub(super) fn apply_volume(volume: &mut Value) {
    set_default(object_mut(volume, "status"), "phase", "Pending");
    let spec = object_mut(volume, "spec");
    set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
    set_default(spec, "volumeMode", "Filesystem");
    amounts(spec, "capacity");
    if let Some(path) = existing_mut(spec, "hostPath")
        && !field::is_set(path, "type")
    {
        set(path, "type", "");
    }
    pod::remote_volume(spec);
}

pub(super) fn apply_claim(claim: &mut Value) {
    set_default(object_mut(claim, "status"), "phase", "Pending");
    pod::claim_spec(object_mut(claim, "spec"));
}

/// Limits follow the maximum, requests follow limits, then the minimum.
pub(super) fn apply_limit_range(range: &mut Value) {
    for limit in items_mut(object_mut(range, "spec"), "limits") {
        let maps = [
            "max",
            "min",
            "default",
            "defaultRequest",
            "maxLimitRequestRatio",
        ];
        maps.iter().for_each(|key| amounts(limit, key));
        if field::text(limit, "type") != "Container" {
            continue;
        }
        for (key, source) in [
            ("default", "max"),
            ("defaultRequest", "default"),
            ("defaultRequest", "min"),
        ] {
            let source = field::child(limit, source).clone();
            let filled = object_mut(limit, key);
            for (name, value) in source.as_object().into_iter().flatten() {
                if !field::is_set(filled, name) {
                    set(filled, name, value.clone());
                }
            }
        }
    }
}

pub(super) fn apply_networking(plural: &str, object: &mut Value) {
    let spec = object_mut(object, "spec");
    match plural {
        "networkpolicies" => {
            if field::list(spec, "policyTypes").is_empty() {
                let both = !field::list(spec, "egress").is_empty();
                let kinds = if both {
                    json!(["Ingress", "Egress"])
                } else {
                    json!(["Ingress"])
                };
                set(spec, "policyTypes", kinds);
            }
            for direction in ["ingress", "egress"] {
                for rule in items_mut(spec, direction) {
                    for port in items_mut(rule, "ports") {
                        set_default(port, "protocol", "TCP");
                    }
                }
            }
        }
        "ingressclasses" => {
            if let Some(parameters) = existing_mut(spec, "parameters") {
                set_default(parameters, "scope", "Cluster");
            }
        }
        _ => {}
    }
}

pub(super) fn apply_rbac(plural: &str, object: &mut Value) {
    if !matches!(plural, "rolebindings" | "clusterrolebindings") {
        return;
    }
    set_default(object_mut(object, "roleRef"), "apiGroup", RBAC);
    for subject in items_mut(object, "subjects") {
        if matches!(field::text(subject, "kind"), "User" | "Group") {
            set_default(subject, "apiGroup", RBAC);
        }
    }
}

pub(super) fn apply_storage(plural: &str, object: &mut Value) {
    match plural {
        "storageclasses" => {
            set_default(object, "reclaimPolicy", "Delete");
            set_default(object, "volumeBindingMode", "Immediate");
        }
        "csidrivers" => {
            let spec = object_mut(object, "spec");
            set_default(spec, "attachRequired", true);
            set_default(spec, "podInfoOnMount", false);
            set_default(spec, "storageCapacity", false);
            set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
            if field::list(spec, "volumeLifecycleModes").is_empty() {
                set(spec, "volumeLifecycleModes", json!(["Persistent"]));
            }
            set_default(spec, "requiresRepublish", false);
            set_default(spec, "seLinuxMount", false);
        }
        _ => {}
    }
}

/// Webhooks are stored as any object. That they are not called is said in the architecture.
pub(super) fn apply_webhooks(object: &mut Value) {
    let mutating = field::text(object, "kind") == "MutatingWebhookConfiguration";
    for hook in items_mut(object, "webhooks") {
        set_default(hook, "failurePolicy", "Fail");
        set_default(hook, "matchPolicy", "Equivalent");
        set_default(hook, "namespaceSelector", json!({}));
        set_default(hook, "objectSelector", json!({}));
        set_default(hook, "timeoutSeconds", 10);
        if mutating {
            set_default(hook, "reinvocationPolicy", "Never");
        }
        for rule in items_mut(hook, "rules") {
            set_default(rule, "scope", "*");
        }
        let Some(client) = existing_mut(hook, "clientConfig") else {
            continue;
        };
        if let Some(service) = existing_mut(client, "service") {
            set_default(service, "port", 443);
        }
    }
    let Some(spec) = existing_mut(object, "spec") else {
        return;
    };
    if field::is_set(spec, "policyName") {
        return;
    }
    set_default(spec, "failurePolicy", "Fail");
    if let Some(constraints) = existing_mut(spec, "matchConstraints") {
        set_default(constraints, "matchPolicy", "Equivalent");
        set_default(constraints, "namespaceSelector", json!({}));
        set_default(constraints, "objectSelector", json!({}));
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";
