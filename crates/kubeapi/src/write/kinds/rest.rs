//! The few rules of the remaining kinds: nodes, priority classes, signing requests,
//! autoscalers, leases, budgets.

use serde_json::Value;

use super::container::check_not_negative;
use super::service::{self, NOT_A_RANGE};
use super::workload::{self, check_share};
use super::{event, selector};
use crate::who::{User, certificate};
use crate::write::fault::{Faults, Path};
use crate::write::update::Update;
use crate::write::{Part, field, meta, names};

pub(super) fn check(group: &str, plural: &str, object: &Value, faults: &mut Faults) {
    let spec = field::child(object, "spec");
    let path = Path::new("spec");
    match (group, plural) {
        ("", "nodes") => check_node(spec, &path, faults),
        ("events.k8s.io", "events") => event::check(object, faults),
        ("policy", "poddisruptionbudgets") => check_budget(spec, &path, faults),
        ("autoscaling", "horizontalpodautoscalers") => check_autoscaler(spec, &path, faults),
        ("coordination.k8s.io", "leases") => {
            if let Some(seconds) = field::number(spec, "leaseDurationSeconds")
                && seconds <= 0
            {
                let path = path.child("leaseDurationSeconds");
                faults.invalid(&path, seconds, "must be greater than 0");
            }
            check_not_negative(spec, "leaseTransitions", &path, faults);
        }
        ("scheduling.k8s.io", "priorityclasses") => check_priority(object, faults),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            check_signing_request(spec, &path, faults);
        }
        ("node.k8s.io", "runtimeclasses") => {
            let handler = field::text(object, "handler");
            let wrong = names::label_faults(handler);
            faults.invalid_each(&Path::new("handler"), handler, wrong);
        }
        _ => {}
    }
}

pub(super) fn check_update(
    group: &str,
    plural: &str,
    new: &Value,
    old: &Value,
    faults: &mut Faults,
) {
    let fixed: &[&str] = match (group, plural) {
        ("scheduling.k8s.io", "priorityclasses") => &["value"],
        ("node.k8s.io", "runtimeclasses") => &["handler"],
        _ => &[],
    };
    for key in fixed {
        let now = field::child(new, key);
        if !field::same(now, field::child(old, key)) {
            let why = match *key {
                "value" => {
                    faults.forbidden(&Path::new(key), "may not be changed in an update.");
                    continue;
                }
                _ => "field is immutable",
            };
            faults.invalid(&Path::new(key), now.clone(), why);
        }
    }
}

pub(super) fn check_node_update(new: &Value, old: &Value, faults: &mut Faults) {
    let (spec, was) = (field::child(new, "spec"), field::child(old, "spec"));
    for key in ["providerID", "podCIDRs"] {
        let before = field::child(was, key);
        if !field::is_empty(before) && !field::same(field::child(spec, key), before) {
            let path = Path::new("spec").child(key);
            let why = match key {
                "providerID" => "node updates may not change providerID except from \"\" to valid",
                _ => "node updates may not change podCIDR except from \"\" to valid",
            };
            faults.forbidden(&path, why);
        }
    }
}

/// Who asks is written by the server, never taken from the request.
pub(super) fn prepare_new_signing_request(request: &mut Value, user: Option<&User>) {
    let spec = field::object_mut(request, "spec");
    for key in ["username", "uid", "groups", "extra"] {
        field::remove(spec, key);
    }
    let Some(user) = user else { return };
    field::set(spec, "username", user.name.as_str());
    field::set(spec, "groups", user.groups.clone());
    if !user.uid.is_empty() {
        field::set(spec, "uid", user.uid.as_str());
    }
    if !user.extra.is_empty() {
        field::set(spec, "extra", serde_json::json!(user.extra));
    }
}

/// Through `approval` only the conditions Approved and Denied change; through `status` everything
/// but them.
pub(super) fn prepare_signing_request(update: &Update, new: &mut Value, old: &Value, part: Part) {
    let verdict =
        |condition: &&Value| matches!(field::text(condition, "type"), "Approved" | "Denied");
    let conditions =
        |object: &Value| field::list(field::child(object, "status"), "conditions").to_vec();
    let (now, was) = (conditions(new), conditions(old));
    let mut kept: Vec<Value> = match part {
        // What was asked for is not asked for anew.
        Part::Whole | Part::Finalize => return field::copy(new, old, "spec"),
        Part::Approval => {
            let mut status = field::child(old, "status").clone();
            field::set(&mut status, "conditions", now);
            field::set(new, "status", status);
            conditions(new)
        }
        Part::Status => {
            let others = now.iter().filter(|condition| !verdict(condition)).cloned();
            was.iter().filter(verdict).cloned().chain(others).collect()
        }
    };
    for condition in &mut kept {
        field::set_default(condition, "lastUpdateTime", meta::seconds(update.stamp.now));
        field::set_default(
            condition,
            "lastTransitionTime",
            meta::seconds(update.stamp.now),
        );
    }
    let status = field::object_mut(new, "status");
    match kept.is_empty() {
        true => drop(field::remove(status, "conditions")),
        false => field::set(status, "conditions", kept),
    }
}

fn check_node(spec: &Value, path: &Path, faults: &mut Faults) {
    // Kubernetes tells of taints as if they still were an annotation.
    check_taints(spec, &Path::new("metadata").child("taints"), faults);
    for (index, range) in field::texts(spec, "podCIDRs").into_iter().enumerate() {
        if !service::is_range(range) {
            faults.invalid(&path.child("podCIDRs").index(index), range, NOT_A_RANGE);
        }
    }
}

fn check_taints(spec: &Value, path: &Path, faults: &mut Faults) {
    let mut seen = Vec::new();
    for (index, taint) in field::list(spec, "taints").iter().enumerate() {
        let path = path.index(index);
        let (key, value) = (field::text(taint, "key"), field::text(taint, "value"));
        let effect = field::text(taint, "effect");
        faults.invalid_each(&path.child("key"), key, names::label_key_faults(key));
        let wrong = names::label_value_faults(value);
        faults.invalid_each(&path.child("value"), value, wrong);
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effects.contains(&effect) {
            faults.unsupported(&path.child("effect"), effect, &effects);
        }
        if seen.contains(&(key, effect)) {
            faults.duplicate(&path, taint.clone());
        }
        seen.push((key, effect));
    }
}

fn check_budget(spec: &Value, path: &Path, faults: &mut Faults) {
    let (least, most) = (
        field::child(spec, "minAvailable"),
        field::child(spec, "maxUnavailable"),
    );
    if !least.is_null() && !most.is_null() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        faults.invalid(path, spec.clone(), why);
    }
    for (share, key) in [(least, "minAvailable"), (most, "maxUnavailable")] {
        check_share(share, &path.child(key), faults);
        if workload::percent(share).is_some_and(|percent| percent > 100) {
            let why = "must not be greater than 100%";
            faults.invalid(&path.child(key), share.clone(), why);
        }
    }
    selector::check(
        field::child(spec, "selector"),
        &path.child("selector"),
        faults,
    );
}

fn check_autoscaler(spec: &Value, path: &Path, faults: &mut Faults) {
    let least = field::number(spec, "minReplicas").unwrap_or(1);
    let most = field::number(spec, "maxReplicas").unwrap_or_default();
    if least < 1 {
        let why = "must be greater than or equal to 1";
        faults.invalid(&path.child("minReplicas"), least, why);
    }
    if most == 0 {
        let why = "must be set and greater than 0";
        faults.required(&path.child("maxReplicas"), why);
    } else if most < 0 {
        faults.invalid(&path.child("maxReplicas"), most, "must be greater than 0");
    }
    if most < least {
        let why = "must be greater than or equal to `minReplicas`";
        faults.invalid(&path.child("maxReplicas"), most, why);
    }
    let target = field::child(spec, "scaleTargetRef");
    for key in ["kind", "name"] {
        if field::text(target, key).is_empty() {
            faults.required(&path.child("scaleTargetRef").child(key), "");
        }
    }
    let version = field::text(target, "apiVersion");
    let core = field::text(target, "kind") == "ReplicationController" && version == "v1";
    if !version.contains('/') && !core {
        let path = path.child("scaleTargetRef").child("apiVersion");
        faults.invalid(&path, version, "apiVersion must specify API group");
    }
}

fn check_priority(class: &Value, faults: &mut Faults) {
    let name = meta::name(class);
    let value = field::number(class, "value").unwrap_or_default();
    if name.starts_with("system-") {
        let known = matches!(
            (name, value),
            ("system-node-critical", 2_000_001_000) | ("system-cluster-critical", 2_000_000_000)
        );
        if !known {
            let why = "priority class names with 'system-' prefix are reserved for system use \
                       only. error:";
            let why = format!("{why} {name} is not a known system priority class");
            faults.forbidden(&Path::new("metadata").child("name"), why);
        }
    } else if value > 1_000_000_000 {
        let why = "maximum allowed value of a user defined priority is 1000000000";
        faults.forbidden(&Path::new("value"), why);
    }
    let policy = field::text(class, "preemptionPolicy");
    let known = ["PreemptLowerPriority", "Never"];
    if !policy.is_empty() && !known.contains(&policy) {
        faults.unsupported(&Path::new("preemptionPolicy"), policy, &known);
    }
}

/// A verdict on a request for a certificate stays, and there is one.
pub(super) fn check_verdicts(new: &Value, old: &Value, faults: &mut Faults) {
    let path = Path::new("status").child("conditions");
    let has = |object: &Value, kind: &str| {
        let conditions = field::list(field::child(object, "status"), "conditions");
        conditions
            .iter()
            .any(|condition| field::text(condition, "type") == kind)
    };
    if has(new, "Approved") && has(new, "Denied") {
        let conditions = field::list(field::child(new, "status"), "conditions").iter();
        let kinds = conditions.map(|condition| field::text(condition, "type"));
        let mut verdicts = kinds.filter(|kind| matches!(*kind, "Approved" | "Denied"));
        let last = verdicts.next_back();
        let why = "Approved and Denied conditions are mutually exclusive";
        faults.invalid(&path, last.unwrap_or_default(), why);
    }
    for kind in ["Approved", "Denied", "Failed"] {
        if has(old, kind) && !has(new, kind) {
            let why = format!("updates may not remove a condition of type {kind:?}");
            faults.forbidden(&path, why);
        }
    }
}

fn check_signing_request(spec: &Value, path: &Path, faults: &mut Faults) {
    let request = field::child(spec, "request");
    if certificate::request_in(request.as_str().unwrap_or_default()).is_none() {
        let why = "PEM block type must be CERTIFICATE REQUEST";
        faults.invalid(&path.child("request"), request.clone(), why);
    }
    if field::list(spec, "usages").is_empty() {
        faults.required(&path.child("usages"), "");
    }
    match field::text(spec, "signerName") {
        "" => faults.required(&path.child("signerName"), ""),
        name if !name.contains('/') => {
            let why = "must be a fully qualified domain and path of the form \
                       'example.com/signer-name'";
            faults.invalid(&path.child("signerName"), name, why);
        }
        _ => {}
    }
    let lifetime = field::number(spec, "expirationSeconds");
    if let Some(seconds) = lifetime.filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        faults.invalid(&path.child("expirationSeconds"), seconds, why);
    }
}
