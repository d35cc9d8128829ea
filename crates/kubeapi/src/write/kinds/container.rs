//! Containers: names, images, ports, variables, mounts, probes and resources.

use std::collections::HashSet;

use serde_json::Value;

use super::pod::check_choice;
use super::service::{check_port_or_name, check_protocol};
use super::variable;
use super::volume::Volumes;
use crate::write::fault::{Faults, Path};
use crate::write::quantity::{NOT_A_QUANTITY, Quantity};
use crate::write::{field, names};

/// All containers of a pod spec.
pub(super) fn check_all(spec: &Value, path: &Path, volumes: &Volumes, faults: &mut Faults) {
    let containers = field::list(spec, "containers");
    if containers.is_empty() {
        faults.required(&path.child("containers"), "");
    }
    let mut seen: HashSet<&str> = HashSet::new();
    for list in ["containers", "initContainers"] {
        for (index, container) in field::list(spec, list).iter().enumerate() {
            let path = path.child(list).index(index);
            check(container, &path, volumes, faults);
            let name = field::text(container, "name");
            if !name.is_empty() && !seen.insert(name) {
                faults.duplicate(&path.child("name"), name);
            }
            if list == "initContainers" {
                check_init(container, &path, faults);
            }
        }
    }
    check_host_ports(containers, &path.child("containers"), faults);
}

/// With the host's network every port is the host's.
pub(super) fn check_host_network(spec: &Value, path: &Path, faults: &mut Faults) {
    for list in ["containers", "initContainers"] {
        for (index, container) in field::list(spec, list).iter().enumerate() {
            for (at, port) in field::list(container, "ports").iter().enumerate() {
                let host = field::number(port, "hostPort").unwrap_or_default();
                if host != 0 && Some(host) != field::number(port, "containerPort") {
                    let path = path.child(list).index(index).child("ports").index(at);
                    let why = "must match `containerPort` when `hostNetwork` is true";
                    faults.invalid(&path.child("hostPort"), host, why);
                }
            }
        }
    }
}

fn check(container: &Value, path: &Path, volumes: &Volumes, faults: &mut Faults) {
    match field::text(container, "name") {
        "" => faults.required(&path.child("name"), ""),
        name => faults.invalid_each(&path.child("name"), name, names::label_faults(name)),
    }
    match field::text(container, "image") {
        "" => faults.required(&path.child("image"), ""),
        image if image.trim() != image => {
            let why = "must not have leading or trailing whitespace";
            faults.invalid(&path.child("image"), image, why);
        }
        _ => {}
    }
    let policies = ["File", "FallbackToLogsOnError"];
    check_choice(
        container,
        "terminationMessagePolicy",
        &policies,
        path,
        faults,
    );
    check_ports(container, &path.child("ports"), faults);
    variable::check_all(container, path, faults);
    check_mounts(container, &path.child("volumeMounts"), volumes, faults);
    check_devices(container, &path.child("volumeDevices"), volumes, faults);
    let pulls = ["Always", "IfNotPresent", "Never"];
    check_choice(container, "imagePullPolicy", &pulls, path, faults);
    check_resources(
        field::child(container, "resources"),
        &path.child("resources"),
        faults,
    );
    check_security(container, &path.child("securityContext"), faults);
    for hook in ["postStart", "preStop"] {
        let handler = field::at(container, &["lifecycle", hook]);
        if handler.is_object() {
            check_handler(handler, &path.child("lifecycle").child(hook), faults);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = field::child(container, name);
        if probe.is_object() {
            check_probe(probe, &path.child(name), name, faults);
        }
    }
}

fn check_init(container: &Value, path: &Path, faults: &mut Faults) {
    let sidecar = match field::text(container, "restartPolicy") {
        "Always" => true,
        "" | "Never" | "OnFailure" => false,
        other => {
            let known = ["Always", "Never", "OnFailure"];
            faults.unsupported(&path.child("restartPolicy"), other, &known);
            false
        }
    };
    if sidecar {
        return;
    }
    for name in [
        "lifecycle",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
    ] {
        if field::is_set(container, name) {
            let why = "may not be set for init containers without restartPolicy=Always";
            faults.forbidden(&path.child(name), why);
        }
    }
}

fn check_ports(container: &Value, path: &Path, faults: &mut Faults) {
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, port) in field::list(container, "ports").iter().enumerate() {
        let path = path.index(index);
        let name = field::text(port, "name");
        if !name.is_empty() {
            faults.invalid_each(&path.child("name"), name, names::port_name_faults(name));
            if !seen.insert(name) {
                faults.duplicate(&path.child("name"), name);
            }
        }
        match field::number(port, "containerPort").unwrap_or_default() {
            0 => faults.required(&path.child("containerPort"), ""),
            number => check_number(number, &path.child("containerPort"), faults),
        }
        match field::number(port, "hostPort").unwrap_or_default() {
            0 => {}
            number => check_number(number, &path.child("hostPort"), faults),
        }
        check_protocol(port, &path.child("protocol"), faults);
    }
}

fn check_number(number: i64, path: &Path, faults: &mut Faults) {
    for fault in names::port_faults(number) {
        faults.invalid(path, number, fault);
    }
}

/// One host port, protocol and address can be had once.
fn check_host_ports(containers: &[Value], path: &Path, faults: &mut Faults) {
    let mut seen = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (at, port) in field::list(container, "ports").iter().enumerate() {
            let number = field::number(port, "hostPort").unwrap_or_default();
            let (protocol, host) = (field::text(port, "protocol"), field::text(port, "hostIP"));
            if number != 0 && !seen.insert((number, protocol, host)) {
                let path = path.index(index).child("ports").index(at).child("hostPort");
                faults.duplicate(&path, format!("{protocol}/{host}/{number}"));
            }
        }
    }
}

fn check_mounts(container: &Value, path: &Path, volumes: &Volumes, faults: &mut Faults) {
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, mount) in field::list(container, "volumeMounts").iter().enumerate() {
        let at = path.index(index);
        let name = field::text(mount, "name");
        if name.is_empty() {
            faults.required(&at.child("name"), "");
        }
        if !volumes.has(name) {
            faults.not_found(&at.child("name"), name);
        }
        let place = field::text(mount, "mountPath");
        if place.is_empty() {
            faults.required(&at.child("mountPath"), "");
        }
        if !seen.insert(place) {
            faults.invalid(&at.child("mountPath"), place, "must be unique");
        }
        let inner = field::text(mount, "subPath");
        check_below(inner, &path.child("subPath"), faults);
        let expanded = field::text(mount, "subPathExpr");
        if !inner.is_empty() && !expanded.is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            faults.invalid(&at.child("subPathExpr"), expanded, why);
        }
        check_below(expanded, &path.child("subPathExpr"), faults);
    }
}

/// A path that stays below where it starts.
pub(super) fn check_below(place: &str, path: &Path, faults: &mut Faults) {
    if place.starts_with('/') {
        faults.invalid(path, place, "must be a relative path");
    }
    if place.split('/').any(|part| part == "..") {
        faults.invalid(path, place, "must not contain '..'");
    }
}

fn check_devices(container: &Value, path: &Path, volumes: &Volumes, faults: &mut Faults) {
    for (index, device) in field::list(container, "volumeDevices").iter().enumerate() {
        let path = path.index(index);
        let name = field::text(device, "name");
        if name.is_empty() {
            faults.required(&path.child("name"), "");
        } else if !volumes.has(name) {
            faults.not_found(&path.child("name"), name);
        }
        if field::text(device, "devicePath").is_empty() {
            faults.required(&path.child("devicePath"), "");
        }
    }
}

/// Limits and requests: known names, amounts that are amounts, and no request above its limit.
pub(super) fn check_resources(resources: &Value, path: &Path, faults: &mut Faults) {
    for (name, value) in field::entries(resources, "limits") {
        let path = path.child("limits").key(name);
        check_resource_name(name, &path, faults);
        check_amount(name, value, &path, faults);
    }
    let limits = field::child(resources, "limits");
    let requests = path.child("requests");
    for (name, value) in field::entries(resources, "requests") {
        check_resource_name(name, &requests.key(name), faults);
        check_amount(name, value, &requests.key(name), faults);
        let Some(request) = Quantity::from_value(value) else {
            continue;
        };
        let limit = field::child(limits, name);
        let overcommit = is_native(name) && !name.starts_with("hugepages-");
        match Quantity::from_value(limit) {
            Some(most) if request != most && !overcommit => {
                let why = format!("must be equal to {name} limit of {}", shown(limit));
                faults.invalid(&requests, shown(value), why);
            }
            Some(most) if request > most => {
                let why = format!(
                    "must be less than or equal to {name} limit of {}",
                    shown(limit)
                );
                faults.invalid(&requests, shown(value), why);
            }
            Some(_) => {}
            None if overcommit => {}
            None => {
                let why = "Limit must be set for non overcommitable resources";
                faults.required(&path.child("limits"), why);
            }
        }
    }
}

pub(super) fn check_resource_name(name: &str, path: &Path, faults: &mut Faults) {
    let standard =
        matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    faults.invalid_each(path, name, names::label_key_faults(name));
    if !standard && !name.contains('/') {
        for why in [
            "must be a standard resource type or fully qualified",
            "must be a standard resource for containers",
        ] {
            faults.invalid(path, name, why);
        }
    }
}

/// An amount of the resource `name`: not negative, and whole where it cannot be divided.
pub(super) fn check_amount(name: &str, value: &Value, path: &Path, faults: &mut Faults) {
    match Quantity::from_value(value) {
        None => faults.invalid(path, value.clone(), NOT_A_QUANTITY),
        Some(amount) if amount.is_negative() => {
            faults.invalid(path, shown(value), "must be greater than or equal to 0");
        }
        Some(amount) if !is_native(name) && !amount.is_whole() => {
            faults.invalid(path, shown(value), "must be an integer");
        }
        Some(_) => {}
    }
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn shown(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn check_security(container: &Value, path: &Path, faults: &mut Faults) {
    let context = field::child(container, "securityContext");
    for key in ["runAsUser", "runAsGroup"] {
        let id = field::number(context, key);
        if let Some(id) = id.filter(|id| !(0..=i32::MAX.into()).contains(id)) {
            let why = "must be between 0 and 2147483647, inclusive";
            faults.invalid(&path.child(key), id, why);
        }
    }
    let refused = field::child(context, "allowPrivilegeEscalation").as_bool() == Some(false);
    if refused && field::flag(context, "privileged") {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        faults.invalid(path, context.clone(), why);
    }
}

fn check_probe(probe: &Value, path: &Path, name: &str, faults: &mut Faults) {
    check_handler(probe, path, faults);
    let counts = [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ];
    for key in counts {
        check_not_negative(probe, key, path, faults);
    }
    let successes = field::number(probe, "successThreshold").unwrap_or(1);
    if name != "readinessProbe" && successes != 1 {
        faults.invalid(&path.child("successThreshold"), successes, "must be 1");
    }
    let grace = field::number(probe, "terminationGracePeriodSeconds");
    if let Some(seconds) = grace.filter(|seconds| *seconds <= 0) {
        let path = path.child("terminationGracePeriodSeconds");
        faults.invalid(&path, seconds, "must be greater than 0");
    }
}

/// A count below zero.
pub(super) fn check_not_negative(value: &Value, key: &str, path: &Path, faults: &mut Faults) {
    if let Some(number) = field::number(value, key).filter(|number| *number < 0) {
        faults.invalid(
            &path.child(key),
            number,
            "must be greater than or equal to 0",
        );
    }
}

fn check_handler(handler: &Value, path: &Path, faults: &mut Faults) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let mut given = kinds
        .into_iter()
        .filter(|kind| field::is_set(handler, kind));
    let Some(first) = given.next() else {
        faults.required(path, "must specify a handler type");
        return;
    };
    for extra in given {
        faults.forbidden(
            &path.child(extra),
            "may not specify more than 1 handler type",
        );
    }
    let action = field::child(handler, first);
    let path = path.child(first);
    match first {
        "exec" if field::list(action, "command").is_empty() => {
            faults.required(&path.child("command"), "");
        }
        "httpGet" => {
            check_port_or_name(field::child(action, "port"), &path.child("port"), faults);
            let scheme = field::text(action, "scheme");
            if !matches!(scheme, "HTTP" | "HTTPS") {
                faults.unsupported(&path.child("scheme"), scheme, &["HTTP", "HTTPS"]);
            }
        }
        "tcpSocket" => {
            check_port_or_name(field::child(action, "port"), &path.child("port"), faults);
        }
        "grpc" => {
            let number = field::number(action, "port").unwrap_or_default();
            check_number(number, &path.child("port"), faults);
        }
        _ => {}
    }
}
