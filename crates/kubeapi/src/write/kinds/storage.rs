//! Persistent volumes, claims, and storage classes.

use serde_json::{Map, Value};

use super::container::check_amount;
use super::pod::check_choice;
use super::selector;
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
    check_modes(spec, "", &path, faults);
    let capacity = field::child(spec, "capacity");
    let amounts = path.child("capacity");
    if field::is_empty(capacity) {
        faults.required(&amounts, "");
    }
    let storage = field::child(capacity, "storage");
    if storage.is_null() || field::entries(spec, "capacity").count() > 1 {
        faults.unsupported(&amounts, capacity.clone(), &["storage"]);
    }
    if !storage.is_null() {
        check_amount("storage", storage, &amounts.key("storage"), faults);
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
    if field::is_set(spec, "hostPath") {
        let place = field::at(spec, &["hostPath", "path"]);
        let place = place.as_str().unwrap_or_default();
        let at = path.child("hostPath").child("path");
        match place {
            "" => faults.required(&at, ""),
            place if place.split('/').any(|part| part == "..") => {
                faults.invalid(&at, place, "must not contain '..'");
            }
            _ => {}
        }
    }
    let mut sources = sources(spec).into_iter();
    match sources.next() {
        None => faults.required(&path, "must specify a volume type"),
        Some(_) => {
            for (key, _) in sources {
                faults.forbidden(&path.child(&key), "may not specify more than 1 volume type");
            }
        }
    }
    if field::is_set(spec, "local") && !field::is_set(spec, "nodeAffinity") {
        let why = "Local volume requires node affinity";
        faults.required(&Path::new("metadata").child("annotations"), why);
    }
}

/// Where a volume comes from: every field that says nothing else.
fn sources(spec: &Value) -> Map<String, Value> {
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
    let fields = fields.filter(|(key, _)| !plain.contains(&key.as_str()));
    fields
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

pub(super) fn check_claim(claim: &Value, faults: &mut Faults) {
    let spec = field::child(claim, "spec");
    let path = Path::new("spec");
    check_modes(spec, "at least 1 access mode is required", &path, faults);
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
        if !field::same(&sources(spec).into(), &sources(was).into()) {
            let why = "spec.persistentvolumesource is immutable after creation";
            faults.forbidden(&Path::new("spec").child("persistentvolumesource"), why);
        }
        let (now, before) = (
            field::child(spec, "volumeMode"),
            field::child(was, "volumeMode"),
        );
        if !field::same(now, before) {
            faults.invalid(&Path::new("volumeMode"), now.clone(), "field is immutable");
        }
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
    match plural {
        "storageclasses" => {}
        "volumeattachments" => return check_attachment(field::child(class, "spec"), faults),
        _ => return,
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

fn check_attachment(spec: &Value, faults: &mut Faults) {
    let path = Path::new("spec");
    if field::text(spec, "attacher").is_empty() {
        faults.required(&path.child("attacher"), "");
    }
    let source = field::child(spec, "source");
    let given = ["inlineVolumeSpec", "persistentVolumeName"].into_iter();
    let path_of_source = path.child("source");
    match given.filter(|key| field::is_set(source, key)).count() {
        1 => {}
        0 => {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            faults.required(&path_of_source, why);
        }
        _ => {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            faults.forbidden(&path_of_source, why);
        }
    }
    let node = field::text(spec, "nodeName");
    faults.invalid_each(&path.child("nodeName"), node, names::subdomain_faults(node));
}

pub(super) fn check_class_update(plural: &str, new: &Value, old: &Value, faults: &mut Faults) {
    if plural != "storageclasses" {
        return;
    }
    for key in [
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ] {
        let now = field::child(new, key);
        if !field::same(now, field::child(old, key)) {
            faults.invalid(&Path::new(key), now.clone(), "field is immutable");
        }
    }
}

fn check_modes(spec: &Value, unsaid: &str, path: &Path, faults: &mut Faults) {
    let path = path.child("accessModes");
    let modes = field::texts(spec, "accessModes");
    if modes.is_empty() {
        faults.required(&path, unsaid);
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
