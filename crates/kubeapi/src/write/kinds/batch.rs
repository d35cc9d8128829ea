//! Jobs and cron jobs.

use serde_json::{Value, json};

use super::container::check_not_negative;
use super::{pod, schedule, selector, workload};
use crate::write::fault::{Faults, Path};
use crate::write::{field, meta};

/// Gives a job's pods labels that no other job's pods have, and a selector for them.
pub(super) fn prepare_new_job(job: &mut Value) {
    let (name, uid) = (meta::name(job).to_owned(), meta::uid(job).to_owned());
    let spec = field::object_mut(job, "spec");
    if field::flag(spec, "manualSelector") {
        return;
    }
    let template = field::object_mut(spec, "template");
    let labels = field::object_mut(field::object_mut(template, "metadata"), "labels");
    for key in ["job-name", "batch.kubernetes.io/job-name"] {
        field::set_default(labels, key, name.as_str());
    }
    for key in ["controller-uid", CONTROLLER_UID] {
        field::set_default(labels, key, uid.as_str());
    }
    let selector = field::object_mut(spec, "selector");
    field::set_default(
        field::object_mut(selector, "matchLabels"),
        CONTROLLER_UID,
        uid,
    );
    // A job without labels has those of its pods.
    let labels = field::at(job, &["spec", "template", "metadata", "labels"]).clone();
    let metadata = field::object_mut(job, "metadata");
    if field::is_empty(field::child(metadata, "labels")) {
        field::set(metadata, "labels", labels);
    }
}

pub(super) fn check(plural: &str, object: &Value, faults: &mut Faults) {
    let path = Path::new("spec");
    let spec = field::child(object, "spec");
    match plural {
        "jobs" => {
            let selector = field::child(spec, "selector");
            if selector.is_object() {
                selector::check(selector, &path.child("selector"), faults);
                check_generated(object, &path.child("selector"), faults);
                let template = field::child(spec, "template");
                workload::check_match(selector, template, &path.child("template"), faults);
            } else {
                faults.required(&path.child("selector"), "");
            }
            check_job(spec, &path, faults);
        }
        "cronjobs" => check_cron_job(object, spec, &path, faults),
        _ => {}
    }
}

/// A selector that is not the author's own is exactly the one that the server makes.
fn check_generated(job: &Value, path: &Path, faults: &mut Faults) {
    let spec = field::child(job, "spec");
    if field::flag(spec, "manualSelector") {
        return;
    }
    let selector = field::child(spec, "selector");
    let made = json!({"matchLabels": {CONTROLLER_UID: meta::uid(job)}});
    if !field::same(selector, &made) {
        faults.invalid(path, selector.clone(), "`selector` not auto-generated");
    }
}

pub(super) fn check_update(plural: &str, new: &Value, old: &Value, faults: &mut Faults) {
    if plural != "jobs" {
        return;
    }
    let keys = [
        "selector",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "completionMode",
        "managedBy",
    ];
    workload::check_fixed(new, old, &keys, faults);
    let (spec, was) = (field::child(new, "spec"), field::child(old, "spec"));
    let indexed = field::text(spec, "completionMode") == "Indexed";
    let completions = field::child(spec, "completions");
    if !field::same(completions, field::child(was, "completions")) {
        let path = Path::new("spec").child("completions");
        let parallelism = field::child(spec, "parallelism");
        if !indexed {
            faults.invalid(&path, completions.clone(), "field is immutable");
        } else if !field::same(completions, parallelism) {
            let why = "can only be modified in tandem with spec.parallelism";
            faults.invalid(&path, completions.clone(), why);
        }
    }
    check_template_update(new, old, faults);
}

/// The template of a job stays, but a job that waits to be started may still be told where to run.
fn check_template_update(new: &Value, old: &Value, faults: &mut Faults) {
    let (mut template, was) = (
        field::at(new, &["spec", "template"]).clone(),
        field::at(old, &["spec", "template"]),
    );
    let suspended = field::flag(field::child(old, "spec"), "suspend");
    let unstarted = !field::is_set(field::child(old, "status"), "startTime");
    if suspended && unstarted {
        let before = field::child(was, "spec");
        let spec = field::object_mut(&mut template, "spec");
        for key in ["nodeSelector", "affinity", "tolerations", "schedulingGates"] {
            field::copy(spec, before, key);
        }
        field::copy(&mut template, was, "metadata");
    }
    if !field::same(&template, was) {
        let path = Path::new("spec").child("template");
        let now = field::at(new, &["spec", "template"]).clone();
        faults.invalid(&path, now, "field is immutable");
    }
}

fn check_job(spec: &Value, path: &Path, faults: &mut Faults) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for key in counts {
        check_not_negative(spec, key, path, faults);
    }
    match field::text(spec, "completionMode") {
        "" | "NonIndexed" => {}
        "Indexed" => {
            if !field::is_set(spec, "completions") {
                let why = "when completion mode is Indexed";
                faults.required(&path.child("completions"), why);
            }
        }
        other => {
            let known = ["NonIndexed", "Indexed"];
            faults.unsupported(&path.child("completionMode"), other, &known);
        }
    }
    let template = field::child(spec, "template");
    pod::check_template_at(template, &path.child("template"), &[], faults);
    let path = path.child("template").child("spec").child("restartPolicy");
    match field::text(field::child(template, "spec"), "restartPolicy") {
        "OnFailure" | "Never" => {}
        "" | "Always" => {
            faults.required(&path, "valid values: \"OnFailure\", \"Never\"");
        }
        other => faults.unsupported(&path, other, &["OnFailure", "Never"]),
    }
}

fn check_cron_job(object: &Value, spec: &Value, path: &Path, faults: &mut Faults) {
    let name = meta::name(object);
    if name.len() > NAME_BYTES_MAX {
        let path = Path::new("metadata").child("name");
        faults.invalid(&path, name, "must be no more than 52 characters");
    }
    let times = field::text(spec, "schedule");
    if times.is_empty() {
        faults.required(&path.child("schedule"), "");
    } else if let Err(wrong) = schedule::check(times) {
        faults.invalid(&path.child("schedule"), times, wrong.to_string());
    }
    if times.contains("TZ") {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        faults.invalid(&path.child("schedule"), times, why);
    }
    match field::text(spec, "concurrencyPolicy") {
        "Allow" | "Forbid" | "Replace" => {}
        "" => faults.required(&path.child("concurrencyPolicy"), ""),
        other => {
            let known = ["Allow", "Forbid", "Replace"];
            faults.unsupported(&path.child("concurrencyPolicy"), other, &known);
        }
    }
    let counts = [
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    ];
    for key in counts {
        check_not_negative(spec, key, path, faults);
    }
    let job = field::at(spec, &["jobTemplate", "spec"]);
    let path = path.child("jobTemplate").child("spec");
    if field::is_set(job, "selector") {
        let why = "`selector` will be auto-generated";
        faults.invalid(
            &path.child("selector"),
            field::child(job, "selector").clone(),
            why,
        );
    }
    if field::flag(job, "manualSelector") {
        faults.unsupported(
            &path.child("manualSelector"),
            json!(true),
            &["nil", "false"],
        );
    }
    check_job(job, &path, faults);
}

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// Room for the suffix that a job made from it gets.
const NAME_BYTES_MAX: usize = 52;
