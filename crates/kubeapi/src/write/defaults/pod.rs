//! Defaults of pods and of pod templates.

use serde_json::{Value, json};

use super::{amount, amounts, pair};
use crate::write::field::{
    self, existing_mut, items_mut, object_mut, set, set_default, set_default_number,
};

/// A pod of its own.
pub(super) fn apply(pod: &mut Value) {
    if let Some(status) = existing_mut(pod, "status") {
        pair(status, "podIP", "podIPs", "ip");
        pair(status, "hostIP", "hostIPs", "ip");
    }
    let spec = object_mut(pod, "spec");
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            amounts(object_mut(container, "resources"), "limits");
            requests_follow_limits(container);
        }
    }
    set_default(spec, "enableServiceLinks", true);
    if field::flag(spec, "hostNetwork") {
        for list in ["containers", "initContainers"] {
            items_mut(spec, list).iter_mut().for_each(host_ports);
        }
    }
    apply_spec(spec);
}

/// The pod template in the field `key`.
pub(super) fn apply_template(value: &mut Value, key: &str) {
    if let Some(template) = existing_mut(value, key) {
        apply_spec(object_mut(template, "spec"));
    }
}

/// What pods and templates share.
fn apply_spec(spec: &mut Value) {
    set_default(spec, "dnsPolicy", "ClusterFirst");
    set_default(spec, "restartPolicy", "Always");
    set_default(spec, "schedulerName", "default-scheduler");
    set_default(spec, "securityContext", json!({}));
    set_default(spec, "terminationGracePeriodSeconds", 30);
    service_account_alias(spec);
    items_mut(spec, "volumes").iter_mut().for_each(volume);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        items_mut(spec, list).iter_mut().for_each(container);
    }
    amounts(spec, "overhead");
    if let Some(resources) = existing_mut(spec, "resources") {
        amounts(resources, "limits");
        amounts(resources, "requests");
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`: whichever is given, both are stored.
fn service_account_alias(spec: &mut Value) {
    let name = match field::text(spec, "serviceAccountName") {
        "" => field::text(spec, "serviceAccount").to_owned(),
        name => name.to_owned(),
    };
    if !name.is_empty() {
        set(spec, "serviceAccountName", name.as_str());
        set(spec, "serviceAccount", name);
    }
}

fn container(container: &mut Value) {
    let policy = pull_policy(field::text(container, "image"));
    set_default(container, "imagePullPolicy", policy);
    set_default(container, "terminationMessagePath", "/dev/termination-log");
    set_default(container, "terminationMessagePolicy", "File");
    let resources = object_mut(container, "resources");
    amounts(resources, "limits");
    amounts(resources, "requests");
    for port in items_mut(container, "ports") {
        set_default(port, "protocol", "TCP");
    }
    for variable in items_mut(container, "env") {
        if let Some(source) = existing_mut(variable, "valueFrom") {
            field_reference(source);
            if let Some(file) = existing_mut(source, "fileKeyRef") {
                set_default(file, "optional", false);
            }
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = existing_mut(container, name) {
            set_default_number(probe, "timeoutSeconds", 1);
            set_default_number(probe, "periodSeconds", 10);
            set_default_number(probe, "successThreshold", 1);
            set_default_number(probe, "failureThreshold", 3);
            action(probe);
        }
    }
    if let Some(lifecycle) = existing_mut(container, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(hook) = existing_mut(lifecycle, name) {
                action(hook);
            }
        }
    }
}

fn action(holder: &mut Value) {
    if let Some(get) = existing_mut(holder, "httpGet") {
        set_default(get, "path", "/");
        set_default(get, "scheme", "HTTP");
    }
    if let Some(call) = existing_mut(holder, "grpc") {
        set_default(call, "service", "");
    }
}

/// An image without a tag, or tagged `latest`, is asked for each time. A digest never changes.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') {
        return "IfNotPresent";
    }
    let name = image.rsplit('/').next().unwrap_or_default();
    match name.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

fn volume(volume: &mut Value) {
    let sourced = volume.as_object().is_some_and(|fields| {
        fields
            .iter()
            .any(|(key, value)| key != "name" && !value.is_null())
    });
    if !sourced {
        set(volume, "emptyDir", json!({}));
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = existing_mut(volume, name) {
            set_default(source, "defaultMode", 0o644);
        }
    }
    if let Some(path) = existing_mut(volume, "hostPath")
        && !field::is_set(path, "type")
    {
        set(path, "type", "");
    }
    if let Some(source) = existing_mut(volume, "emptyDir")
        && let Some(limit) = source.get_mut("sizeLimit")
    {
        amount(limit);
    }
    if let Some(source) = existing_mut(volume, "downwardAPI") {
        items_mut(source, "items")
            .iter_mut()
            .for_each(field_reference);
    }
    if let Some(source) = existing_mut(volume, "projected") {
        items_mut(source, "sources").iter_mut().for_each(projection);
    }
    if let Some(image) = existing_mut(volume, "image") {
        let policy = pull_policy(field::text(image, "reference"));
        set_default(image, "pullPolicy", policy);
    }
    if let Some(source) = existing_mut(volume, "ephemeral")
        && let Some(template) = existing_mut(source, "volumeClaimTemplate")
    {
        claim_spec(object_mut(template, "spec"));
    }
    remote_volume(volume);
}

fn projection(source: &mut Value) {
    if let Some(downward) = existing_mut(source, "downwardAPI") {
        items_mut(downward, "items")
            .iter_mut()
            .for_each(field_reference);
    }
    if let Some(token) = existing_mut(source, "serviceAccountToken") {
        set_default(token, "expirationSeconds", 3600);
    }
}

/// Sources that volumes of pods and persistent volumes share.
pub(super) fn remote_volume(volume: &mut Value) {
    if let Some(iscsi) = existing_mut(volume, "iscsi") {
        set_default(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = existing_mut(volume, "rbd") {
        set_default(rbd, "pool", "rbd");
        set_default(rbd, "user", "admin");
        set_default(rbd, "keyring", "/etc/ceph/keyring");
    }
    if let Some(disk) = existing_mut(volume, "azureDisk") {
        set_default(disk, "cachingMode", "ReadWrite");
        set_default(disk, "fsType", "ext4");
        set_default(disk, "readOnly", false);
        set_default(disk, "kind", "Shared");
    }
    if let Some(disk) = existing_mut(volume, "scaleIO") {
        set_default(disk, "storageMode", "ThinProvisioned");
        set_default(disk, "fsType", "xfs");
    }
}

/// The spec of a claim, wherever it stands.
pub(super) fn claim_spec(spec: &mut Value) {
    set_default(spec, "volumeMode", "Filesystem");
    let resources = object_mut(spec, "resources");
    amounts(resources, "limits");
    amounts(resources, "requests");
}

fn field_reference(holder: &mut Value) {
    if let Some(reference) = existing_mut(holder, "fieldRef") {
        set_default(reference, "apiVersion", "v1");
    }
}

fn requests_follow_limits(container: &mut Value) {
    let resources = object_mut(container, "resources");
    let limits = field::child(resources, "limits").clone();
    if field::is_empty(&limits) {
        return;
    }
    let requests = object_mut(resources, "requests");
    for (name, limit) in limits.as_object().into_iter().flatten() {
        if !field::is_set(requests, name) {
            set(requests, name, limit.clone());
        }
    }
}

fn host_ports(container: &mut Value) {
    for port in items_mut(container, "ports") {
        if let Some(number) = field::number(port, "containerPort") {
            set_default_number(port, "hostPort", number);
        }
    }
}
