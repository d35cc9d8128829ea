//! The variables of a container, and where their values come from.

use serde_json::Value;

use crate::write::fault::{Faults, Path};
use crate::write::{field, names};

/// All variables of a container.
pub(super) fn check_all(container: &Value, path: &Path, faults: &mut Faults) {
    for (index, variable) in field::list(container, "env").iter().enumerate() {
        let path = path.child("env").index(index);
        match field::text(variable, "name") {
            "" => faults.required(&path.child("name"), ""),
            name => {
                let wrong = names::environment_name_faults(name);
                faults.invalid_each(&path.child("name"), name, wrong);
            }
        }
        check_variable_source(variable, &path.child("valueFrom"), faults);
    }
    for (index, source) in field::list(container, "envFrom").iter().enumerate() {
        let path = path.child("envFrom").index(index);
        let given = ["configMapRef", "secretRef"].into_iter();
        match given.filter(|key| field::is_set(source, key)).count() {
            0 => {
                let why = "must specify one of: `configMapRef` or `secretRef`";
                faults.invalid(&path, "", why);
            }
            1 => {}
            _ => {
                let why = "may not have more than one field specified at a time";
                faults.invalid(&path, "", why);
            }
        }
    }
}

fn check_variable_source(variable: &Value, path: &Path, faults: &mut Faults) {
    let source = field::child(variable, "valueFrom");
    if !source.is_object() {
        return;
    }
    let kinds = [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ];
    let given = kinds
        .iter()
        .filter(|key| field::is_set(source, key))
        .count();
    let value = field::text(variable, "value");
    match given {
        0 => faults.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`",
        ),
        _ if !value.is_empty() => {
            faults.invalid(path, "", "may not be specified when `value` is not empty");
        }
        1 => {}
        _ => faults.invalid(
            path,
            "",
            "may not have more than one field specified at a time",
        ),
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        let reference = field::child(source, kind);
        if !reference.is_object() {
            continue;
        }
        for key in ["name", "key"] {
            if field::text(reference, key).is_empty() {
                faults.required(&path.child(kind).child(key), "");
            }
        }
    }
    let reference = field::child(source, "fieldRef");
    if reference.is_object() {
        check_field(
            reference,
            &path.child("fieldRef").child("fieldPath"),
            faults,
        );
    }
}

/// A field of the pod that a variable shows.
fn check_field(reference: &Value, path: &Path, faults: &mut Faults) {
    let shown = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let known = [
        "metadata.annotations",
        "metadata.labels",
        "spec.host",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
    ];
    match field::text(reference, "fieldPath") {
        "" => faults.required(path, ""),
        wanted if shown.contains(&wanted) => {}
        // One label or annotation: metadata.labels['key'].
        wanted if wanted.ends_with("']") => {}
        wanted if known.contains(&wanted) => faults.unsupported(path, wanted, &shown),
        wanted => {
            let why = format!("error converting fieldPath: field label not supported: {wanted}");
            faults.invalid(path, wanted, why);
        }
    }
}
