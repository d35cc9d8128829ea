//! A node's own Node: it may say what it is, but not draw work to itself that is not meant for it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Operation, Write, is_empty, same};
use crate::Status;

pub(super) fn check(node: &str, write: &Write<'_>) -> Result<(), Status> {
    let requested = match write.name {
        "" => write.name_in_object(),
        name => name,
    };
    if requested != node {
        return write.refuse(format!(
            "node {node:?} is not allowed to modify node {requested:?}"
        ));
    }
    match write.operation {
        Operation::Create => create(node, write),
        Operation::Update => update(node, write),
        Operation::Delete => Ok(()),
    }
}

fn create(node: &str, write: &Write<'_>) -> Result<(), Status> {
    if !is_empty(&write.object["spec"]["configSource"]) {
        return write.refuse(format!(
            "node {node:?} is not allowed to create pods with a non-nil configSource"
        ));
    }
    let labels = forbidden_labels(&write.object["metadata"]["labels"], &Value::Null);
    match labels.is_empty() {
        true => Ok(()),
        false => write.refuse(format!(
            "node {node:?} is not allowed to set the following labels: {}",
            labels.join(", ")
        )),
    }
}

fn update(node: &str, write: &Write<'_>) -> Result<(), Status> {
    let (new, old) = (write.object, write.old);
    let config = &new["spec"]["configSource"];
    if !is_empty(config) && !same(config, &old["spec"]["configSource"]) {
        return write.refuse(format!(
            "node {node:?} is not allowed to update configSource to a new non-nil configSource"
        ));
    }
    if !same(&new["spec"]["taints"], &old["spec"]["taints"]) {
        return write.refuse(format!("node {node:?} is not allowed to modify taints"));
    }
    let owners = |node: &Value| node["metadata"]["ownerReferences"].clone();
    if !same(&owners(new), &owners(old)) {
        return write.refuse(format!(
            "node {node:?} is not allowed to modify ownerReferences"
        ));
    }
    let labels = forbidden_labels(&new["metadata"]["labels"], &old["metadata"]["labels"]);
    match labels.is_empty() {
        true => Ok(()),
        false => write.refuse(format!(
            "is not allowed to modify labels: {}",
            labels.join(", ")
        )),
    }
}

/// The labels that differ and are not the node's to set, in order.
fn forbidden_labels<'a>(new: &'a Value, old: &'a Value) -> Vec<&'a str> {
    let keys = |labels: &'a Value| {
        labels
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| &**key)
    };
    let all: BTreeSet<&str> = keys(new).chain(keys(old)).collect();
    all.into_iter()
        .filter(|key| new.get(key) != old.get(key))
        .filter(|key| is_forbidden(key))
        .collect()
}

/// Of the labels under `kubernetes.io` and `k8s.io` a node may set the few that describe the
/// machine. All others are out of its reach, `node-restriction.kubernetes.io` among them.
fn is_forbidden(label: &str) -> bool {
    let prefix = label.split_once('/').map_or("", |(prefix, _)| prefix);
    let under = |domain: &str| {
        prefix
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let kubelets = MACHINE_LABELS.contains(&label)
        || under("kubelet.kubernetes.io")
        || under("node.kubernetes.io");
    let kubernetes = under("kubernetes.io") || under("k8s.io");
    kubernetes && !kubelets
}

const MACHINE_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_describes_its_machine_and_nothing_else() {
        let free = [
            "kubernetes.io/hostname",
            "beta.kubernetes.io/os",
            "node.kubernetes.io/x",
            "foo.node.kubernetes.io/x",
            "foo.kubelet.kubernetes.io/x",
            "example.com/x",
            "x",
            "notk8s.io/x",
        ];
        let forbidden = [
            "kubernetes.io/x",
            "foo.k8s.io/x",
            "k8s.io/role",
            "node-role.kubernetes.io/control-plane",
            "node-restriction.kubernetes.io/x",
            "foo.node-restriction.kubernetes.io/x",
            "othernode.kubernetes.io/x",
        ];
        for label in free {
            assert!(!is_forbidden(label), "{label}");
        }
        for label in forbidden {
            assert!(is_forbidden(label), "{label}");
        }
    }
}
