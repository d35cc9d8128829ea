//! Pods: what they start with, what their spec must say, and the little of it that may change.

use serde_json::{Value, json};

use super::{container, enrol, volume};
use crate::write::fault::{Faults, Path};
use crate::write::quantity::{self, Quantity};
use crate::write::{field, names};

/// A pod starts pending, in the quality-of-service class that its resources put it in, under the
/// namespace's own account where it names none.
pub(super) fn prepare_new(pod: &mut Value) {
    let mirror = enrol::is_mirror(pod);
    let spec = field::object_mut(pod, "spec");
    if field::text(spec, "serviceAccountName").is_empty() && !mirror {
        field::set(spec, "serviceAccountName", "default");
        field::set(spec, "serviceAccount", "default");
    }
    let class = service_class(spec);
    let mut status = json!({"phase": "Pending", "qosClass": class});
    if !field::list(spec, "schedulingGates").is_empty() {
        let gated = json!({
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates"
        });
        field::set(&mut status, "conditions", json!([gated]));
    }
    field::set(pod, "status", status);
}

/// The class is given once.
pub(super) fn prepare_status(new: &mut Value, old: &Value) {
    let was = field::child(old, "status");
    let status = field::object_mut(new, "status");
    for key in ["qosClass", "observedGeneration"] {
        if field::is_empty(field::child(status, key)) {
            field::copy(status, was, key);
        }
    }
}

pub(super) fn check(pod: &Value, faults: &mut Faults) {
    let spec = field::child(pod, "spec");
    check_spec(spec, &Path::new("spec"), &[], faults);
    if !field::list(spec, "ephemeralContainers").is_empty() {
        check_ephemeral(spec, faults);
    }
}

/// The pod template in the field `key` of `value`, at the top of an object.
pub(super) fn check_template(value: &Value, key: &str, faults: &mut Faults) {
    check_template_at(field::child(value, key), &Path::new(key), &[], faults);
}

/// A pod template. `claimed` names volumes that come from elsewhere.
pub(super) fn check_template_at(
    template: &Value,
    path: &Path,
    claimed: &[&str],
    faults: &mut Faults,
) {
    let metadata = field::child(template, "metadata");
    names::check_labels(
        field::child(metadata, "labels"),
        &path.child("labels"),
        faults,
    );
    let annotations = field::child(metadata, "annotations");
    names::check_annotations(annotations, &path.child("annotations"), faults);
    let spec = field::child(template, "spec");
    check_spec(spec, &path.child("spec"), claimed, faults);
    if !field::list(spec, "ephemeralContainers").is_empty() {
        let path = path.child("spec").child("ephemeralContainers");
        faults.forbidden(&path, "ephemeral containers not allowed in pod template");
    }
}

pub(super) fn check_update(new: &Value, old: &Value, faults: &mut Faults) {
    let (spec, was) = (field::child(new, "spec"), field::child(old, "spec"));
    let path = Path::new("spec");
    for list in ["containers", "initContainers"] {
        if field::list(spec, list).len() != field::list(was, list).len() {
            let why = "pod updates may not add or remove containers";
            faults.forbidden(&path.child(list), why);
            return;
        }
    }
    check_deadline_update(spec, was, &path.child("activeDeadlineSeconds"), faults);
    check_toleration_update(spec, was, &path.child("tolerations"), faults);
    check_gate_update(spec, was, &path.child("schedulingGates"), faults);
    let allowed = with_allowed_changes(spec, was);
    if !field::same(&allowed, was) {
        let changed = changed_fields(&allowed, was).join(", ");
        faults.forbidden(&path, format!("{ONLY_THESE}\nchanged: {changed}"));
    }
}

pub(super) fn check_status(new: &Value, old: &Value, faults: &mut Faults) {
    let (now, was) = (field::child(new, "status"), field::child(old, "status"));
    let nominated = field::text(now, "nominatedNodeName");
    if !nominated.is_empty() {
        let path = Path::new("status").child("nominatedNodeName");
        faults.invalid_each(&path, nominated, names::subdomain_faults(nominated));
    }
    let (class, had) = (field::child(now, "qosClass"), field::child(was, "qosClass"));
    if !field::is_empty(had) && !field::same(class, had) {
        let path = Path::new("status").child("qosClass");
        faults.invalid(&path, class.clone(), "field is immutable");
    }
}

fn check_spec(spec: &Value, path: &Path, claimed: &[&str], faults: &mut Faults) {
    let volumes = volume::check_all(spec, &path.child("volumes"), claimed, faults);
    container::check_all(spec, path, &volumes, faults);
    let host_network = field::flag(spec, "hostNetwork");
    if host_network {
        container::check_host_network(spec, path, faults);
    }
    check_choice(
        spec,
        "restartPolicy",
        &["Always", "OnFailure", "Never"],
        path,
        faults,
    );
    let resolvers = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    check_choice(spec, "dnsPolicy", &resolvers, path, faults);
    let selector = path.child("nodeSelector");
    names::check_labels(field::child(spec, "nodeSelector"), &selector, faults);
    for key in [
        "serviceAccountName",
        "nodeName",
        "priorityClassName",
        "runtimeClassName",
    ] {
        let name = field::text(spec, key);
        if !name.is_empty() {
            faults.invalid_each(&path.child(key), name, names::subdomain_faults(name));
        }
    }
    for key in ["hostname", "subdomain"] {
        let name = field::text(spec, key);
        if !name.is_empty() {
            faults.invalid_each(&path.child(key), name, names::label_faults(name));
        }
    }
    let deadline = field::number(spec, "activeDeadlineSeconds");
    if let Some(seconds) = deadline.filter(|seconds| !(1..=i32::MAX.into()).contains(seconds)) {
        let why = "must be between 1 and 2147483647, inclusive";
        faults.invalid(&path.child("activeDeadlineSeconds"), seconds, why);
    }
    check_tolerations(spec, &path.child("tolerations"), faults);
    check_pull_secrets(spec, &path.child("imagePullSecrets"), faults);
    if field::text(spec, "dnsPolicy") == "None" {
        let servers = field::at(spec, &["dnsConfig", "nameservers"]);
        if field::is_empty(servers) {
            let path = path.child("dnsConfig").child("nameservers");
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            faults.required(&path, why);
        }
    }
}

/// A field that must be one of a few words.
pub(super) fn check_choice(
    value: &Value,
    key: &str,
    words: &[&str],
    path: &Path,
    faults: &mut Faults,
) {
    match field::text(value, key) {
        "" => faults.required(&path.child(key), ""),
        word if words.contains(&word) => {}
        word => faults.unsupported(&path.child(key), word, words),
    }
}

fn check_pull_secrets(spec: &Value, path: &Path, faults: &mut Faults) {
    for (index, secret) in field::list(spec, "imagePullSecrets").iter().enumerate() {
        if field::text(secret, "name").is_empty() {
            faults.required(&path.index(index).child("name"), "");
        }
    }
}

fn check_tolerations(spec: &Value, path: &Path, faults: &mut Faults) {
    for (index, toleration) in field::list(spec, "tolerations").iter().enumerate() {
        let path = path.index(index);
        let (key, value) = (
            field::text(toleration, "key"),
            field::text(toleration, "value"),
        );
        let operator = field::text(toleration, "operator");
        let effect = field::text(toleration, "effect");
        if !key.is_empty() {
            faults.invalid_each(&path.child("key"), key, names::label_key_faults(key));
        } else if operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all \
                       values and all keys\"";
            faults.invalid(&path.child("operator"), operator, why);
        }
        if field::is_set(toleration, "tolerationSeconds") && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            faults.invalid(&path.child("effect"), effect, why);
        }
        match operator {
            "" | "Equal" => {
                let wrong = names::label_value_faults(value);
                if !wrong.is_empty() {
                    faults.invalid(&path.child("operator"), value, wrong.join(";"));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => {
                let why = "value must be empty when `operator` is 'Exists'";
                faults.invalid(&path.child("operator"), value, why);
            }
            other => faults.unsupported(&path.child("operator"), other, &["Equal", "Exists"]),
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effect.is_empty() && !effects.contains(&effect) {
            faults.unsupported(&path.child("effect"), effect, &effects);
        }
    }
}

fn check_ephemeral(spec: &Value, faults: &mut Faults) {
    let path = Path::new("spec").child("ephemeralContainers");
    let others = ["containers", "initContainers"].into_iter();
    let taken: Vec<&str> = others
        .flat_map(|list| field::list(spec, list))
        .map(|container| field::text(container, "name"))
        .collect();
    for (index, container) in field::list(spec, "ephemeralContainers").iter().enumerate() {
        let name = field::text(container, "name");
        if taken.contains(&name) {
            faults.duplicate(&path.index(index).child("name"), name);
        }
    }
}

fn check_deadline_update(spec: &Value, was: &Value, path: &Path, faults: &mut Faults) {
    let now = field::number(spec, "activeDeadlineSeconds");
    let before = field::number(was, "activeDeadlineSeconds");
    match (now, before) {
        (Some(now), Some(before)) if now > before => {
            faults.invalid(path, now, "must be less than or equal to previous value");
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            faults.invalid(path, Value::Null, why);
        }
        _ => {}
    }
}

fn check_toleration_update(spec: &Value, was: &Value, path: &Path, faults: &mut Faults) {
    let bare = |toleration: &Value| {
        let mut bare = toleration.clone();
        field::remove(&mut bare, "tolerationSeconds");
        bare
    };
    let now: Vec<Value> = field::list(spec, "tolerations").iter().map(bare).collect();
    let kept = |old: &Value| now.iter().any(|new| field::same(new, &bare(old)));
    if !field::list(was, "tolerations").iter().all(kept) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        faults.forbidden(path, why);
    }
}

fn check_gate_update(spec: &Value, was: &Value, path: &Path, faults: &mut Faults) {
    let had: Vec<&str> = field::list(was, "schedulingGates")
        .iter()
        .map(|gate| field::text(gate, "name"))
        .collect();
    for (index, gate) in field::list(spec, "schedulingGates").iter().enumerate() {
        let name = field::text(gate, "name");
        if !had.contains(&name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            faults.forbidden(&path.index(index).child("name"), why);
        }
    }
}

/// The new spec with every change that is allowed taken back: what still differs is not allowed.
fn with_allowed_changes(spec: &Value, was: &Value) -> Value {
    let mut spec = spec.clone();
    for list in ["containers", "initContainers"] {
        let before = field::list(was, list);
        for (container, before) in field::items_mut(&mut spec, list).iter_mut().zip(before) {
            field::copy(container, before, "image");
        }
    }
    for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        field::copy(&mut spec, was, key);
    }
    if !field::list(was, "schedulingGates").is_empty() {
        field::copy(&mut spec, was, "nodeSelector");
        let affinity = field::at(was, &["affinity", "nodeAffinity"]).clone();
        if field::is_set(&spec, "affinity") || !affinity.is_null() {
            field::set(
                field::object_mut(&mut spec, "affinity"),
                "nodeAffinity",
                affinity,
            );
            field::drop_nulls(&mut spec);
        }
    }
    let grace = |value: &Value| field::number(value, "terminationGracePeriodSeconds");
    if grace(was).is_some_and(|seconds| seconds < 0) && grace(&spec) == Some(1) {
        field::copy(&mut spec, was, "terminationGracePeriodSeconds");
    }
    spec
}

fn changed_fields(spec: &Value, was: &Value) -> Vec<String> {
    let keys = |value: &Value| -> Vec<String> {
        value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, _)| key.clone())
            .collect()
    };
    let mut all = keys(spec);
    all.extend(keys(was));
    all.sort();
    all.dedup();
    all.retain(|key| !field::same(field::child(spec, key), field::child(was, key)));
    all
}

/// Guaranteed where every container has limits that its requests equal, BestEffort where none asks
/// for anything.
fn service_class(spec: &Value) -> &'static str {
    let containers: Vec<&Value> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| field::list(spec, list))
        .collect();
    let amount = |container: &Value, kind: &str, name: &str| {
        let value = field::at(container, &["resources", kind, name]).clone();
        Quantity::from_value(&value)
            .filter(|amount| !amount.is_zero())
            .map(|_| value)
    };
    let names = ["cpu", "memory"];
    let asks = |container: &&Value| {
        names.iter().any(|name| {
            ["limits", "requests"]
                .iter()
                .any(|kind| amount(container, kind, name).is_some())
        })
    };
    if !containers.iter().any(asks) {
        return "BestEffort";
    }
    let guaranteed = |container: &&Value| {
        names.iter().all(|name| {
            let pair = amount(container, "limits", name).zip(amount(container, "requests", name));
            pair.is_some_and(|(limit, request)| quantity::same(&limit, &request))
        })
    };
    match containers.iter().all(guaranteed) {
        true => "Guaranteed",
        false => "Burstable",
    }
}

const ONLY_THESE: &str = "pod updates may not change fields other than \
     `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
     `spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
