//! Persistent volumes, claims, and storage classes.

use serde_json::Value;

use super::container::check_amount;
use super::pod::check_choice;
use super::{selector, workload};
use crate::write::fault::{Faults, Path};
use crate::write::quantity::Quantity;
use crate::write::update::Update;
use crate::write::{field, meta, names};

/// A volume's status tells since when it is in its phase.
pub(super) fn prepare_status(update: &Update, new: &mut Value, old: &Value) {
    let was = field::child(old, "status");
    let status = field::object_mut(new, "status");
    let key = "lastPhaseTransitionTime";
    let moved = field::child(status, "phase") != field::child(was, "phase");
    let unsaid = !field::is_set(status, key) || field::child(status, key) == field::child(was, key);
    match (moved, unsaid) {
        (true, true) => field::set(status, key, meta::seconds(update.stamp.now)),
        (false, true) => field::copy(status, was, key),
        (_, false) => {}
    }
}

pub(super) fn check_volume(volume: &Value, faults: &mut Faults) {
    let spec = field::child(volume, "spec");
    let path = Path::new("spec");
    check_modes(spec, &path, faults);
    let capacity = field::child(spec, "capacity");
    let amounts = path.child("capacity");
    if field::is_empty(capacity) {
        faults.required(&amounts, "");
    }
    for (name, value) in field::entries(spec, "capacity") {
        if name == "storage" {
            check_amount(name, value, &amounts.key(name), faults);
        } else {
            faults.unsupported(&amounts, name.as_str(), &["storage"]);
        }
    }
    let policies = ["Delete", "Recycle", "Retain"];
    check_choice(
        spec,
        "persistentVolumeReclaimPolicy",
        &policies,
        &path,
        faults,
    );
    check_class_name(spec, &path, faults);
    let plain = [
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    ];
    let fields = spec.as_object().into_iter().flatten();
    let sources: Vec<&String> = fields
        .map(|(key, _)| key)
        .filter(|key| !plain.contains(&key.as_str()))
        .collect();
    match sources.as_slice() {
        [] => faults.required(&path, "must specify a volume type"),
        [_] => {}
        [_, extra @ ..] => {
            for key in extra {
                faults.forbidden(&path.child(key), "may not specify more than 1 volume type");
            }
        }
    }
    if field::is_set(spec, "local") && !field::is_set(spec, "nodeAffinity") {
        let why = "Local volume requires node affinity";
        faults.required(&Path::new("metadata").child("annotations"), why);
    }
}

pub(super) fn check_claim(claim: &Value, faults: &mut Faults) {
    let spec = field::child(claim, "spec");
    let path = Path::new("spec");
    check_modes(spec, &path, faults);
    if field::is_set(spec, "selector") {
        selector::check(
            field::child(spec, "selector"),
            &path.child("selector"),
            faults,
        );
    }
    let storage = field::at(spec, &["resources", "requests", "storage"]);
    let at = path.child("resources").key("storage");
    match Quantity::from_value(storage) {
        _ if storage.is_null() => faults.required(&at, ""),
        Some(amount) if amount.is_zero() || amount.is_negative() => {
            let shown = storage.as_str().unwrap_or_default();
            faults.invalid(&at, shown, "must be greater than zero");
        }
        _ => check_amount("storage", storage, &at, faults),
    }
    check_class_name(spec, &path, faults);
}

pub(super) fn check_update(plural: &str, new: &Value, old: &Value, faults: &mut Faults) {
    let (spec, was) = (field::child(new, "spec"), field::child(old, "spec"));
    if plural == "persistentvolumes" {
        workload::check_fixed(new, old, &["volumeMode"], faults);
        return;
    }
    let path = Path::new("spec");
    let bound = field::at(old, &["status", "phase"]) == "Bound";
    let (now, before) = (
        field::at(spec, &["resources", "requests", "storage"]),
        field::at(was, &["resources", "requests", "storage"]),
    );
    let amounts = Quantity::from_value(now).zip(Quantity::from_value(before));
    if bound && amounts.is_some_and(|(now, before)| now < before) {
        let at = path.child("resources").child("requests").child("storage");
        faults.forbidden(&at, "field can not be less than status.capacity");
    }
    let mut kept = spec.clone();
    if bound {
        field::copy(&mut kept, was, "resources");
    }
    if field::text(was, "volumeName").is_empty() {
        field::copy(&mut kept, was, "volumeName");
    }
    field::copy(&mut kept, was, "volumeAttributesClassName");
    if field::is_empty(field::child(was, "storageClassName")) {
        field::copy(&mut kept, was, "storageClassName");
    }
    if !field::same(&kept, was) {
        let why = "spec is immutable after creation except resources.requests and \
                   volumeAttributesClassName for bound claims";
        faults.forbidden(&path, why);
    }
}

pub(super) fn check_class(plural: &str, class: &Value, faults: &mut Faults) {
    if plural != "storageclasses" {
        return;
    }
    let top = Path::new("");
    let provisioner = field::text(class, "provisioner");
    if provisioner.is_empty() {
        faults.required(&top.child("provisioner"), "");
    } else {
        let wrong = names::label_key_faults(&provisioner.to_lowercase());
        faults.invalid_each(&top.child("provisioner"), provisioner, wrong);
    }
    check_choice(class, "reclaimPolicy", &["Delete", "Retain"], &top, faults);
    let modes = ["Immediate", "WaitForFirstConsumer"];
    check_choice(class, "volumeBindingMode", &modes, &top, faults);
}

pub(super) fn check_class_update(plural: &str, new: &Value, old: &Value, faults: &mut Faults) {
    if plural != "storageclasses" {
        return;
    }
    for (key, why) in [
        ("parameters", "updates to parameters are forbidden."),
        ("provisioner", "updates to provisioner are forbidden."),
        ("reclaimPolicy", "updates to reclaimPolicy are forbidden."),
    ] {
        if !field::same(field::child(new, key), field::child(old, key)) {
            faults.forbidden(&Path::new(key), why);
        }
    }
    let (now, was) = (
        field::child(new, "volumeBindingMode"),
        field::child(old, "volumeBindingMode"),
    );
    if !field::same(now, was) {
        faults.invalid(
            &Path::new("volumeBindingMode"),
            now.clone(),
            "field is immutable",
        );
    }
}

fn check_modes(spec: &Value, path: &Path, faults: &mut Faults) {
    let path = path.child("accessModes");
    let modes = field::texts(spec, "accessModes");
    if modes.is_empty() {
        faults.required(&path, "at least 1 access mode is required");
    }
    let known = [
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOnce",
        "ReadWriteOncePod",
    ];
    for mode in modes.iter().filter(|mode| !known.contains(mode)) {
        faults.unsupported(&path, *mode, &known);
    }
    if modes.len() > 1 && modes.contains(&"ReadWriteOncePod") {
        let why = "may not use ReadWriteOncePod with other access modes";
        faults.forbidden(&path, why);
    }
}

fn check_class_name(spec: &Value, path: &Path, faults: &mut Faults) {
    let class = field::text(spec, "storageClassName");
    if !class.is_empty() {
        let wrong = names::subdomain_faults(class);
        faults.invalid_each(&path.child("storageClassName"), class, wrong);
    }
    let modes = ["Block", "Filesystem"];
    let mode = field::text(spec, "volumeMode");
    if !mode.is_empty() && !modes.contains(&mode) {
        faults.unsupported(&path.child("volumeMode"), mode, &modes);
    }
}
