//! A new object, from what the client sent.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fault::Faults;
use super::{Stamp, Surroundings, Target, field, kinds, meta, names, shape};
use crate::Status;
use crate::custom;

/// The object to store where none of its name may exist yet.
pub fn create(
    target: &Target,
    body: Value,
    stamp: &Stamp,
    around: &Surroundings,
) -> Result<Value, Status> {
    let mut object = body;
    meta::settle(target, &mut object)?;
    if !target.name.is_empty() {
        meta::settle_name(target, &mut object)?;
    }
    if target.kind.namespaced {
        let name = meta::name(&object).to_owned();
        kinds::namespace::check_may_create(target, &name, around.namespace)?;
    }
    shape::complete(target.kind, &mut object);
    meta::stamp_new(target, &mut object, stamp)?;
    kinds::prepare_new(target, &mut object, around);
    if is_definition(target) {
        custom::admit_create(&mut object)?;
    }
    kinds::assign_new(target, &mut object, stamp, around)?;
    let mut faults = Faults::default();
    meta::check(target, &object, &mut faults);
    kinds::check(target, &object, &mut faults);
    kinds::check_new(target, &object, &mut faults);
    shape::check(target.kind, &object, &mut faults);
    faults.refuse(target.kind, meta::name(&object))?;
    kinds::finish(target, &mut object);
    shape::settle(target.kind, &mut object);
    Ok(object)
}

/// Refuses what claims to be stored already. A real server finds this out when it stores: after
/// everything else was right, and not in a dry run.
pub fn check_unstored(body: &Value) -> Result<(), Status> {
    let version = field::text(field::child(body, "metadata"), "resourceVersion");
    match version.parse::<u64>() {
        Ok(1..) => {
            let why = "resourceVersion should not be set on objects to be created";
            Err(Status::bad_request(why))
        }
        _ => Ok(()),
    }
}

/// What a dry run shows: the version is what the client said, for nothing was stored.
pub fn with_claimed_version(mut object: Value, body: &Value) -> Value {
    let version = field::text(field::child(body, "metadata"), "resourceVersion");
    if !version.is_empty() {
        field::object_mut(&mut object, "metadata")["resourceVersion"] = version.into();
    }
    object
}

/// Whether custom kinds are what is written: they have rules of their own.
pub(super) fn is_definition(target: &Target) -> bool {
    target.resource() == (custom::GROUP, "customresourcedefinitions")
}

/// What the author of an object should know. `old` is what it replaces.
pub fn warnings(target: &Target, object: &Value, old: Option<&Value>) -> Vec<String> {
    if is_definition(target) {
        return custom::admit_create(&mut object.clone()).unwrap_or_default();
    }
    if target.kind.custom.is_some() {
        let before = old.map(meta::finalizers).unwrap_or_default();
        let before: BTreeSet<&str> = before.into_iter().collect();
        let mut added = meta::finalizers(object);
        added.retain(|finalizer| !before.contains(finalizer));
        return names::finalizer_warnings(&added);
    }
    let annotations = field::at(object, &["metadata", "annotations"]);
    match target.resource() {
        ("networking.k8s.io", "ingresses") if is_old_ingress(object, annotations) => {
            let instead = "please use 'spec.ingressClassName' instead";
            vec![format!(
                "annotation {INGRESS_CLASS:?} is deprecated, {instead}"
            )]
        }
        ("", "services") => kinds::service::warnings(object),
        _ => Vec::new(),
    }
}

/// Whether an ingress says its class in the way of old alone.
fn is_old_ingress(object: &Value, annotations: &Value) -> bool {
    let class = field::at(object, &["spec", "ingressClassName"]);
    field::is_set(annotations, INGRESS_CLASS) && class.is_null()
}

const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Whether the server chose the name: then a name that is taken is tried again with another suffix,
/// [`super::names::GENERATE_ATTEMPTS_MAX`] times.
pub fn name_is_generated(body: &Value) -> bool {
    let metadata = field::child(body, "metadata");
    field::text(metadata, "name").is_empty() && !field::text(metadata, "generateName").is_empty()
}

/// The refusal where an object of this name exists. `existing` is that object, `object` the one to
/// create.
pub fn already_exists(target: &Target, object: &Value, existing: Option<&Value>) -> Status {
    let (group, plural) = target.resource();
    let mut status = Status::already_exists(group, plural, meta::name(object));
    if field::is_set(field::child(object, "metadata"), "generateName") {
        status
            .message
            .push_str(", the server was not able to generate a unique name for the object");
        status.details.get_or_insert_default().retry_after_seconds = Some(1);
    }
    if existing.is_some_and(meta::is_deleting) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}
