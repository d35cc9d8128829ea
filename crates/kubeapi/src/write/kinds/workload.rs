//! Deployments, replica sets, stateful sets, daemon sets, replication controllers.

use serde_json::Value;

use super::container::check_not_negative;
use super::{pod, selector};
use crate::write::fault::{Faults, Path};
use crate::write::{field, names};

pub(super) fn check(plural: &str, object: &Value, faults: &mut Faults) {
    let spec = field::child(object, "spec");
    let path = Path::new("spec");
    let counts = |keys: &[&str], faults: &mut Faults| {
        for key in keys {
            check_not_negative(spec, key, &path, faults);
        }
    };
    match plural {
        "deployments" => {
            counts(&["replicas"], faults);
            check_selector(spec, "deployment", &path, faults);
            check_template(spec, &path, &[], "ReplicaSet", faults);
            check_strategy(spec, &path, faults);
            counts(&["minReadySeconds", "revisionHistoryLimit"], faults);
            counts(&["progressDeadlineSeconds"], faults);
            check_deadline(spec, &path, faults);
        }
        "replicasets" => {
            counts(&["replicas", "minReadySeconds"], faults);
            check_selector(spec, "deployment", &path, faults);
            check_template(spec, &path, &[], "ReplicaSet", faults);
        }
        "daemonsets" => {
            if field::is_set(spec, "selector") {
                check_selector(spec, "daemonset", &path, faults);
            }
            check_template(spec, &path, &[], "DaemonSet", faults);
            counts(&["minReadySeconds"], faults);
            check_daemon_set(spec, &path, faults);
            counts(&["revisionHistoryLimit"], faults);
        }
        "statefulsets" => {
            check_stateful_set(spec, &path, faults);
            counts(&["replicas", "minReadySeconds"], faults);
            check_selector(spec, "statefulset", &path, faults);
            let claims = field::list(spec, "volumeClaimTemplates").iter();
            let names: Vec<&str> = claims
                .map(|claim| field::text(field::child(claim, "metadata"), "name"))
                .collect();
            check_template(spec, &path, &names, "StatefulSet", faults);
        }
        _ => {}
    }
}

/// Counts the changes of a daemon set's template in the annotation that an API of old had a field
/// for.
pub(super) fn number_template(set: &mut Value, old: Option<&Value>) {
    let number = |set: &Value| -> i64 {
        let annotations = field::at(set, &["metadata", "annotations"]);
        field::text(annotations, TEMPLATE_NUMBER)
            .parse()
            .unwrap_or_default()
    };
    let counted = match old {
        None => number(set).max(1),
        Some(old) if field::same(template(set), template(old)) => number(old),
        Some(old) => number(old).saturating_add(1),
    };
    let annotations = field::object_mut(field::object_mut(set, "metadata"), "annotations");
    field::set(annotations, TEMPLATE_NUMBER, counted.to_string());
}

fn template(set: &Value) -> &Value {
    field::at(set, &["spec", "template"])
}

const TEMPLATE_NUMBER: &str = "deprecated.daemonset.template.generation";

pub(super) fn check_update(plural: &str, new: &Value, old: &Value, faults: &mut Faults) {
    match plural {
        "deployments" | "replicasets" | "daemonsets" => {
            check_fixed(new, old, &["selector"], faults);
        }
        "statefulsets" => check_stateful_set_update(new, old, faults),
        "controllerrevisions"
            if !field::same(field::child(new, "data"), field::child(old, "data")) =>
        {
            let data = field::child(new, "data").clone();
            faults.invalid(&Path::new("data"), data, "field is immutable");
        }
        _ => {}
    }
}

pub(super) fn check_replication_controller(object: &Value, faults: &mut Faults) {
    let spec = field::child(object, "spec");
    let path = Path::new("spec");
    check_not_negative(spec, "replicas", &path, faults);
    let labels = field::child(spec, "selector");
    if field::is_empty(labels) {
        faults.required(&path.child("selector"), "");
    }
    let template = field::child(spec, "template");
    if !template.is_object() {
        faults.required(&path.child("template"), "");
        return;
    }
    let wanted = serde_json::json!({"matchLabels": labels});
    check_match(&wanted, template, &path.child("template"), faults);
    check_pods(
        template,
        &path.child("template"),
        &[],
        "ReplicationController",
        faults,
    );
}

/// Fields of the spec that cannot change.
pub(super) fn check_fixed(new: &Value, old: &Value, keys: &[&str], faults: &mut Faults) {
    for key in keys {
        let now = field::at(new, &["spec", key]);
        if !field::same(now, field::at(old, &["spec", key])) {
            let path = Path::new("spec").child(key);
            faults.invalid(&path, now.clone(), "field is immutable");
        }
    }
}

fn check_selector(spec: &Value, word: &str, path: &Path, faults: &mut Faults) {
    let path = path.child("selector");
    let selector = field::child(spec, "selector");
    if !selector.is_object() {
        faults.required(&path, "");
        return;
    }
    selector::check(selector, &path, faults);
    if selector::is_empty(selector) {
        let why = format!("empty selector is invalid for {word}");
        faults.invalid(&path, selector.clone(), why);
    }
}

fn check_template(spec: &Value, path: &Path, claimed: &[&str], kind: &str, faults: &mut Faults) {
    let template = field::child(spec, "template");
    let path = path.child("template");
    let selector = field::child(spec, "selector");
    // No selector selects nothing, an empty one everything.
    if !selector.is_object() || !selector::is_empty(selector) {
        check_match(selector, template, &path, faults);
    }
    check_pods(template, &path, claimed, kind, faults);
}

/// The pods that a template makes must be found by the selector that looks for them.
pub(super) fn check_match(selector: &Value, template: &Value, path: &Path, faults: &mut Faults) {
    let labels = field::at(template, &["metadata", "labels"]);
    if !selector.is_object() || !selector::matches(selector, labels) {
        let path = path.child("metadata").child("labels");
        faults.invalid(
            &path,
            labels.clone(),
            "`selector` does not match template `labels`",
        );
    }
}

fn check_pods(template: &Value, path: &Path, claimed: &[&str], kind: &str, faults: &mut Faults) {
    pod::check_template_at(template, path, claimed, faults);
    let spec = field::child(template, "spec");
    let path = path.child("spec");
    match field::text(spec, "restartPolicy") {
        "Always" => {}
        other => faults.unsupported(&path.child("restartPolicy"), other, &["Always"]),
    }
    if field::is_set(spec, "activeDeadlineSeconds") {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        faults.forbidden(&path.child("activeDeadlineSeconds"), why);
    }
}

fn check_strategy(spec: &Value, path: &Path, faults: &mut Faults) {
    let strategy = field::child(spec, "strategy");
    let at = path.child("strategy");
    match field::text(strategy, "type") {
        "Recreate" => {
            if field::is_set(strategy, "rollingUpdate") {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                faults.forbidden(&at.child("rollingUpdate"), why);
            }
        }
        "RollingUpdate" => {
            check_rolling(
                field::child(strategy, "rollingUpdate"),
                &at.child("rollingUpdate"),
                faults,
            );
        }
        _ => faults.unsupported(&at, strategy.clone(), &["Recreate", "RollingUpdate"]),
    }
}

fn check_deadline(spec: &Value, path: &Path, faults: &mut Faults) {
    let deadline = field::number(spec, "progressDeadlineSeconds");
    let ready = field::number(spec, "minReadySeconds").unwrap_or_default();
    if let Some(seconds) = deadline.filter(|seconds| *seconds <= ready) {
        let path = path.child("progressDeadlineSeconds");
        faults.invalid(&path, seconds, "must be greater than minReadySeconds");
    }
}

fn check_rolling(rolling: &Value, path: &Path, faults: &mut Faults) {
    let (down, up) = (
        field::child(rolling, "maxUnavailable"),
        field::child(rolling, "maxSurge"),
    );
    check_share(down, &path.child("maxUnavailable"), faults);
    check_share(up, &path.child("maxSurge"), faults);
    if share(down) == Some(0) && share(up) == Some(0) {
        let why = "may not be 0 when `maxSurge` is 0";
        faults.invalid(&path.child("maxUnavailable"), down.clone(), why);
    }
    if percent(down).is_some_and(|percent| percent > 100) {
        let path = path.child("maxUnavailable");
        faults.invalid(&path, down.clone(), "must not be greater than 100%");
    }
}

/// The percentage that a share is, if it is one.
pub(super) fn percent(value: &Value) -> Option<i64> {
    let percent = value.as_str().is_some_and(|text| text.ends_with('%'));
    percent.then(|| share(value)).flatten()
}

/// A count that is not negative, or a percentage.
pub(super) fn check_share(value: &Value, path: &Path, faults: &mut Faults) {
    match value {
        Value::String(text) if share(value).is_none() => {
            let why = "a valid percent string must be a numeric string followed by an ending '%' \
                       (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            faults.invalid(path, text.as_str(), why);
        }
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            faults.invalid(path, value.clone(), "must be greater than or equal to 0");
        }
        _ => {}
    }
}

fn share(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => {
            let digits = text.strip_suffix('%')?;
            let right = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            right.then(|| digits.parse().unwrap_or(i64::MAX))
        }
        value => value.as_i64(),
    }
}

fn check_daemon_set(spec: &Value, path: &Path, faults: &mut Faults) {
    let strategy = field::child(spec, "updateStrategy");
    let path = path.child("updateStrategy");
    match field::text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = field::child(strategy, "rollingUpdate");
            let path = path.child("rollingUpdate");
            let (down, up) = (
                field::child(rolling, "maxUnavailable"),
                field::child(rolling, "maxSurge"),
            );
            check_share(down, &path.child("maxUnavailable"), faults);
            check_share(up, &path.child("maxSurge"), faults);
            let (some_down, some_up) = (share(down) != Some(0), share(up).unwrap_or(0) != 0);
            if some_down && some_up {
                let why = "may not be set when maxUnavailable is non-zero";
                faults.invalid(&path.child("maxSurge"), up.clone(), why);
            } else if !some_down && !some_up {
                let why = "cannot be 0 when maxSurge is 0";
                faults.invalid(&path.child("maxUnavailable"), down.clone(), why);
            }
        }
        _ => faults.unsupported(&path, strategy.clone(), &["RollingUpdate", "OnDelete"]),
    }
}

fn check_stateful_set(spec: &Value, path: &Path, faults: &mut Faults) {
    let policy = field::text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let path = path.child("podManagementPolicy");
        faults.invalid(&path, policy, "must be 'OrderedReady' or 'Parallel'");
    }
    let strategy = field::child(spec, "updateStrategy");
    let at = path.child("updateStrategy");
    let rolling = field::child(strategy, "rollingUpdate");
    match field::text(strategy, "type") {
        "OnDelete" if rolling.is_object() => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            faults.invalid(&at.child("rollingUpdate"), rolling.clone(), why);
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            check_not_negative(rolling, "partition", &at.child("rollingUpdate"), faults);
        }
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            faults.invalid(&at, strategy.clone(), why);
        }
    }
    let service = field::text(spec, "serviceName");
    if !service.is_empty() {
        let wrong = names::label_faults(service);
        faults.invalid_each(&path.child("serviceName"), service, wrong);
    }
}

fn check_stateful_set_update(new: &Value, old: &Value, faults: &mut Faults) {
    let mut spec = field::child(new, "spec").clone();
    let was = field::child(old, "spec");
    let free = [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ];
    for key in free {
        field::copy(&mut spec, was, key);
    }
    if !field::same(&spec, was) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                   'template', 'updateStrategy', 'revisionHistoryLimit', \
                   'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        faults.forbidden(&Path::new("spec"), why);
    }
}
