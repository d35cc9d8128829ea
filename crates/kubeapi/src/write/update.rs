//! A new state of an object, from what is stored and what the client sent.

use serde_json::Value;

use super::conduct::{self, StatusMetadata, Unversioned};
use super::create::is_definition;
use super::fault::{Faults, Path};
use super::{Decision, Part, Stamp, Surroundings, Target, field, kinds, meta, shape};
use crate::Status;
use crate::custom;
use crate::status::Cause;

/// The words of a refusal that tells a client to read again.
pub const MODIFIED: &str = "the object has been modified; please apply your changes to the latest \
                            version and try again";

/// An update of part of an object: what it is for, and what else must be known.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// The object in the URL.
    pub target: Target<'a>,
    /// The part that is written.
    pub part: Part,
    /// Time and randomness.
    pub stamp: &'a Stamp,
    /// Other objects that matter.
    pub around: Surroundings<'a>,
}

/// What becomes of `current` when a client puts `body` in its place.
pub fn update(update: &Update, current: &Value, body: Value) -> Result<Decision, Status> {
    let target = &update.target;
    let mut object = body;
    meta::settle(target, &mut object)?;
    meta::settle_name(target, &mut object)?;
    let claimed = meta::uid(&object);
    if !claimed.is_empty() && claimed != meta::uid(current) {
        let why = format!(
            "Precondition failed: UID in precondition: {claimed}, UID in object meta: {}",
            meta::uid(current)
        );
        let (group, plural) = target.resource();
        return Err(Status::conflict(group, plural, target.name, &why));
    }
    decide(update, current, object)
}

/// What becomes of `current` when it should be `object`, whose place in the API is settled.
pub(super) fn decide(update: &Update, current: &Value, object: Value) -> Result<Decision, Status> {
    let Update {
        target,
        part,
        around,
        ..
    } = update;
    check_version(target, current, &object)?;
    let mut new = object;
    shape::complete(target.kind, &mut new);
    restrict(target, *part, &mut new, current);
    meta::keep(&mut new, current);
    kinds::prepare_update(update, &mut new, current);
    match part {
        Part::Whole if is_definition(target) => drop(custom::admit_update(&mut new, current)?),
        Part::Status if is_definition(target) => custom::admit_status_update(&mut new, current)?,
        _ => {}
    }
    if *part == Part::Whole {
        kinds::assign_update(update, &mut new, current, around)?;
    }
    // A write of the status alone is no change that a controller has to look at.
    if *part != Part::Status {
        meta::count_change(target, &mut new, current);
    }
    let mut faults = Faults::default();
    meta::check(target, &new, &mut faults);
    check_kind_rules(update, &new, current, &mut faults);
    shape::check(target.kind, &new, &mut faults);
    let mut fixed = Faults::default();
    meta::check_update(&new, current, &mut fixed);
    faults.lead_with(fixed);
    faults.refuse(target.kind, target.name)?;
    kinds::finish(target, &mut new);
    shape::settle(target.kind, &mut new);
    if is_finished(&new, current) {
        return Ok(Decision::Delete(new));
    }
    match new == *current {
        true => Ok(Decision::Unchanged),
        false => Ok(Decision::Put(new)),
    }
}

/// Compares the version that the client worked from with the one that is stored.
fn check_version(target: &Target, current: &Value, object: &Value) -> Result<(), Status> {
    let (group, plural) = target.resource();
    match meta::resource_version(object) {
        "" => match conduct::conduct(target.kind).unversioned {
            Unversioned::Overwrites => Ok(()),
            Unversioned::Refused => {
                let words = "Invalid value: 0: must be specified for an update";
                let path = Path::new("metadata").child("resourceVersion").to_string();
                let cause = Cause::new("FieldValueInvalid", path, words);
                // Kubernetes names the resource where it otherwise names the kind.
                Err(Status::invalid(group, plural, target.name, vec![cause]))
            }
        },
        version if version == meta::resource_version(current) => Ok(()),
        _ => Err(Status::conflict(group, plural, target.name, MODIFIED)),
    }
}

/// Leaves of the request only the part that it may write; the rest is what is stored.
fn restrict(target: &Target, part: Part, new: &mut Value, current: &Value) {
    match part {
        Part::Whole if target.kind.subresource("status").is_some() => {
            field::copy(new, current, "status");
        }
        Part::Whole => {}
        Part::Finalize => field::copy(new, current, "status"),
        Part::Status | Part::Approval => restrict_to_status(target, new, current),
    }
}

fn restrict_to_status(target: &Target, new: &mut Value, current: &Value) {
    let mut restricted = current.clone();
    field::copy(&mut restricted, new, "status");
    let written: &[&str] = match conduct::conduct(target.kind).status_metadata {
        StatusMetadata::Kept => &["uid"],
        StatusMetadata::LabelsKept => &["annotations", "finalizers", "ownerReferences", "uid"],
        StatusMetadata::OwnersKept => &["annotations", "finalizers", "labels", "uid"],
        StatusMetadata::Written => &[
            "annotations",
            "finalizers",
            "labels",
            "ownerReferences",
            "uid",
        ],
    };
    let sent = field::child(new, "metadata");
    let metadata = field::object_mut(&mut restricted, "metadata");
    for key in written {
        field::copy(metadata, sent, key);
    }
    *new = restricted;
}

fn check_kind_rules(update: &Update, new: &Value, current: &Value, faults: &mut Faults) {
    match update.part {
        Part::Whole | Part::Finalize => {
            kinds::check(&update.target, new, faults);
            kinds::check_update(&update.target, new, current, faults);
        }
        Part::Status | Part::Approval => kinds::check_status(update, new, current, faults),
    }
}

/// Whether an object whose end had begun has nothing left to wait for.
fn is_finished(new: &Value, current: &Value) -> bool {
    let grace = field::at(current, &["metadata", "deletionGracePeriodSeconds"]);
    meta::is_deleting(current)
        && meta::finalizers(new).is_empty()
        && grace.as_i64().unwrap_or_default() == 0
        && !kinds::namespace::holds_finalizers(new)
}
