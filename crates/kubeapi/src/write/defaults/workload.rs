//! Defaults of the kinds that run pods: deployments and their kin, jobs, autoscalers.

use serde_json::{Value, json};

use super::pod;
use crate::write::field::{self, existing_mut, items_mut, object_mut, set, set_default};

/// The kinds of the group `apps`.
pub(super) fn apply(plural: &str, object: &mut Value) {
    match plural {
        "deployments" => deployment(object_mut(object, "spec")),
        "replicasets" => set_default(object_mut(object, "spec"), "replicas", 1),
        "daemonsets" => daemon_set(object_mut(object, "spec")),
        "statefulsets" => stateful_set(object_mut(object, "spec")),
        _ => return,
    }
    pod::apply_template(object_mut(object, "spec"), "template");
}

/// The kinds of the group `batch`.
pub(super) fn apply_batch(plural: &str, object: &mut Value) {
    match plural {
        "jobs" => job(object),
        "cronjobs" => {
            let spec = object_mut(object, "spec");
            set_default(spec, "concurrencyPolicy", "Allow");
            set_default(spec, "suspend", false);
            set_default(spec, "successfulJobsHistoryLimit", 3);
            set_default(spec, "failedJobsHistoryLimit", 1);
            let template = object_mut(spec, "jobTemplate");
            // Only the pod's part: a job's own defaults apply when the job is made.
            pod::apply_template(object_mut(template, "spec"), "template");
        }
        _ => {}
    }
}

/// Takes labels and selector from the template, as the oldest kind still does.
pub(super) fn apply_replication_controller(object: &mut Value) {
    let labels = field::at(object, &["spec", "template", "metadata", "labels"]).clone();
    let spec = object_mut(object, "spec");
    set_default(spec, "replicas", 1);
    pod::apply_template(spec, "template");
    if field::is_empty(&labels) {
        return;
    }
    if field::is_empty(field::child(spec, "selector")) {
        set(spec, "selector", labels.clone());
    }
    labels_from(object, labels);
}

/// Horizontal pod autoscalers.
pub(super) fn apply_autoscaler(object: &mut Value) {
    let spec = object_mut(object, "spec");
    set_default(spec, "minReplicas", 1);
    if field::list(spec, "metrics").is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        set(spec, "metrics", json!([metric]));
    }
    if let Some(behavior) = existing_mut(spec, "behavior") {
        let up = object_mut(behavior, "scaleUp");
        set_default(up, "stabilizationWindowSeconds", 0);
        set_default(up, "selectPolicy", "Max");
        let by_count = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        let by_share = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        set_default(up, "policies", json!([by_count, by_share]));
        let down = object_mut(behavior, "scaleDown");
        set_default(down, "selectPolicy", "Max");
        set_default(down, "policies", json!([by_share]));
    }
}

fn deployment(spec: &mut Value) {
    set_default(spec, "replicas", 1);
    let strategy = object_mut(spec, "strategy");
    set_default(strategy, "type", "RollingUpdate");
    if field::text(strategy, "type") == "RollingUpdate" {
        let rolling = object_mut(strategy, "rollingUpdate");
        set_default(rolling, "maxUnavailable", "25%");
        set_default(rolling, "maxSurge", "25%");
    }
    set_default(spec, "revisionHistoryLimit", 10);
    set_default(spec, "progressDeadlineSeconds", 600);
}

fn daemon_set(spec: &mut Value) {
    let strategy = object_mut(spec, "updateStrategy");
    set_default(strategy, "type", "RollingUpdate");
    if field::text(strategy, "type") == "RollingUpdate" {
        let rolling = object_mut(strategy, "rollingUpdate");
        set_default(rolling, "maxUnavailable", 1);
        set_default(rolling, "maxSurge", 0);
    }
    set_default(spec, "revisionHistoryLimit", 10);
}

fn stateful_set(spec: &mut Value) {
    set_default(spec, "podManagementPolicy", "OrderedReady");
    let strategy = object_mut(spec, "updateStrategy");
    if field::text(strategy, "type").is_empty() {
        set(strategy, "type", "RollingUpdate");
        object_mut(strategy, "rollingUpdate");
    }
    if field::text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = existing_mut(strategy, "rollingUpdate")
    {
        set_default(rolling, "partition", 0);
    }
    let retention = object_mut(spec, "persistentVolumeClaimRetentionPolicy");
    set_default(retention, "whenDeleted", "Retain");
    set_default(retention, "whenScaled", "Retain");
    set_default(spec, "replicas", 1);
    set_default(spec, "revisionHistoryLimit", 10);
    for claim in items_mut(spec, "volumeClaimTemplates") {
        set_default(claim, "apiVersion", "v1");
        set_default(claim, "kind", "PersistentVolumeClaim");
        pod::claim_spec(object_mut(claim, "spec"));
        set_default(object_mut(claim, "status"), "phase", "Pending");
    }
}

fn job(object: &mut Value) {
    let labels = field::at(object, &["spec", "template", "metadata", "labels"]).clone();
    let spec = object_mut(object, "spec");
    if !field::is_set(spec, "completions") && !field::is_set(spec, "parallelism") {
        set(spec, "completions", 1);
    }
    set_default(spec, "parallelism", 1);
    let limit = match field::is_set(spec, "backoffLimitPerIndex") {
        true => i64::from(i32::MAX),
        false => 6,
    };
    set_default(spec, "backoffLimit", limit);
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    let replacement = match field::is_set(spec, "podFailurePolicy") {
        true => "Failed",
        false => "TerminatingOrFailed",
    };
    set_default(spec, "podReplacementPolicy", replacement);
    set_default(spec, "manualSelector", false);
    pod::apply_template(spec, "template");
    if !field::is_empty(&labels) {
        labels_from(object, labels);
    }
}

fn labels_from(object: &mut Value, labels: Value) {
    let metadata = object_mut(object, "metadata");
    if field::is_empty(field::child(metadata, "labels")) {
        set(metadata, "labels", labels);
    }
}
