//! Namespaces: their phases, what may be created in them, and how they end.
//!
//! No namespace controller runs in an embedded cluster, so the cluster itself ends a namespace:
//! everything in it is deleted, and when nothing is left the finalizer `kubernetes` goes, and the
//! namespace with it. [`end`] says what comes next.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Status;
use crate::status::Cause;
use crate::write::fault::{Faults, Path};
use crate::write::options::DeleteOptions;
use crate::write::{Decision, Part, Target, delete, field, meta, names};

/// The namespaces that every cluster has.
pub const BUILT_IN: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// What ends a namespace, one step at a time.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// It is not ending.
    No,
    /// Everything in it is to be deleted, in the background; then ask again.
    Empty,
    /// Nothing is left in it: it is stored as this, or goes if it has no other finalizer.
    Finish(Decision),
    /// Something in it waits for a finalizer of its own. Ask again when that is gone.
    Wait,
}

/// What comes next for `namespace`, in which `left` objects are left, `waiting` of them already
/// being deleted.
pub fn end(namespace: &Value, left: usize, waiting: usize) -> End {
    if !meta::is_deleting(namespace) {
        return End::No;
    }
    match left {
        0 => {}
        _ if waiting < left => return End::Empty,
        _ => return End::Wait,
    }
    let mut finished = namespace.clone();
    let spec = field::object_mut(&mut finished, "spec");
    let kept = field::texts(spec, "finalizers")
        .into_iter()
        .filter(|name| *name != KUBERNETES);
    let kept: Vec<Value> = kept.map(Value::from).collect();
    let others = !kept.is_empty();
    match others {
        true => field::set(spec, "finalizers", kept),
        false => drop(field::remove(spec, "finalizers")),
    }
    let decision = match others || !meta::finalizers(namespace).is_empty() {
        true if finished == *namespace => Decision::Unchanged,
        true => Decision::Put(finished),
        false => Decision::Delete(finished),
    };
    End::Finish(decision)
}

/// Refuses to create in a namespace that is absent or ending.
pub(crate) fn check_may_create(
    target: &Target,
    name: &str,
    namespace: Option<&Value>,
) -> Result<(), Status> {
    let inside = target.namespace;
    let Some(namespace) = namespace else {
        return Err(Status::not_found("", "namespaces", inside));
    };
    if field::at(namespace, &["status", "phase"]) != "Terminating" {
        return Ok(());
    }
    let (group, plural) = target.resource();
    let why = format!(
        "unable to create new content in namespace {inside} because it is being terminated"
    );
    let mut status = Status::forbidden(group, plural, name, &why);
    let words = format!("namespace {inside} is being terminated");
    let cause = Cause::new("NamespaceTerminating", "metadata.namespace", words);
    status.details.get_or_insert_default().causes.push(cause);
    Err(status)
}

/// Refuses to end the namespaces that a cluster cannot be without.
pub(crate) fn check_mortal(target: &Target) -> Result<(), Status> {
    match target.name {
        "default" | "kube-system" | "kube-public" => {
            let why = "this namespace may not be deleted";
            Err(Status::forbidden("", "namespaces", target.name, why))
        }
        _ => Ok(()),
    }
}

/// The first deletion makes a namespace terminate. Later ones wait until its own finalizers are
/// gone, and then nothing is special about it.
pub(crate) fn begin_end(
    namespace: &Value,
    options: &DeleteOptions,
    now: Timestamp,
) -> Option<Decision> {
    if meta::is_deleting(namespace) {
        return holds_finalizers(namespace).then_some(Decision::Unchanged);
    }
    let mut ending = namespace.clone();
    field::set(
        field::object_mut(&mut ending, "status"),
        "phase",
        "Terminating",
    );
    let had = meta::finalizers(namespace);
    let wanted = delete::collector_finalizer(&had, options);
    let kept = had
        .iter()
        .copied()
        .filter(|name| !matches!(*name, "orphan" | "foregroundDeletion"));
    let has: Vec<Value> = kept.chain(wanted).map(Value::from).collect();
    let metadata = field::object_mut(&mut ending, "metadata");
    field::set(metadata, "deletionTimestamp", meta::seconds(now));
    match has.is_empty() {
        true => drop(field::remove(metadata, "finalizers")),
        false => field::set(metadata, "finalizers", has),
    }
    Some(Decision::Put(ending))
}

/// Whether `object` is a namespace with finalizers in its spec.
pub(crate) fn holds_finalizers(object: &Value) -> bool {
    field::text(object, "kind") == "Namespace"
        && field::text(object, "apiVersion") == "v1"
        && !field::list(field::child(object, "spec"), "finalizers").is_empty()
}

pub(super) fn prepare_new(namespace: &mut Value) {
    field::set(namespace, "status", json!({"phase": "Active"}));
    let spec = field::object_mut(namespace, "spec");
    if field::texts(spec, "finalizers").contains(&KUBERNETES) {
        return;
    }
    let mut finalizers = field::list(spec, "finalizers").to_vec();
    finalizers.push(KUBERNETES.into());
    field::set(spec, "finalizers", finalizers);
}

/// `spec.finalizers` is written through `finalize` alone.
pub(super) fn prepare_update(new: &mut Value, old: &Value, part: Part) {
    if part != Part::Finalize {
        let kept = field::child(old, "spec");
        field::copy(field::object_mut(new, "spec"), kept, "finalizers");
    }
}

pub(super) fn check(namespace: &Value, faults: &mut Faults) {
    let finalizers = field::texts(field::child(namespace, "spec"), "finalizers");
    let path = Path::new("spec").child("finalizers");
    names::check_finalizer_names(&finalizers, &path, faults);
}

pub(super) fn check_status(namespace: &Value, faults: &mut Faults) {
    let phase = field::at(namespace, &["status", "phase"]);
    let path = Path::new("status").child("Phase");
    match (
        meta::is_deleting(namespace),
        phase.as_str().unwrap_or_default(),
    ) {
        (false, "Active") | (true, "Terminating") => {}
        (false, phase) => {
            faults.invalid(
                &path,
                phase,
                "may only be 'Active' if `deletionTimestamp` is empty",
            );
        }
        (true, phase) => {
            let why = "may only be 'Terminating' if `deletionTimestamp` is not empty";
            faults.invalid(&path, phase, why);
        }
    }
}

/// The label that carries the name, also where the name was generated.
pub(super) fn finish(namespace: &mut Value) {
    let name = meta::name(namespace).to_owned();
    let metadata = field::object_mut(namespace, "metadata");
    field::set(
        field::object_mut(metadata, "labels"),
        "kubernetes.io/metadata.name",
        name,
    );
}

const KUBERNETES: &str = "kubernetes";
