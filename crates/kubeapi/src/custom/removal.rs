//! The end of a definition. Its objects go first; a finalizer holds the definition until they are
//! gone.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::settle::{NewCondition, set_condition};
use super::stamp;
use crate::Status;

/// Holds a definition until its objects are gone.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How far the removal of a definition's objects is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// They are being removed.
    InProgress,
    /// Some could not be removed; it is tried again.
    Failed(String),
    /// They are gone.
    Completed,
    /// There never were any, for the definition never got its names.
    NeverEstablished,
}

/// Begins the removal of a definition: from now on it takes no new objects.
pub fn begin(object: &mut Value, now: Timestamp) {
    let metadata = &mut object["metadata"];
    if metadata["deletionTimestamp"].is_null() {
        metadata["deletionTimestamp"] = stamp(now);
    }
    match &mut metadata["finalizers"] {
        Value::Array(finalizers) if finalizers.iter().any(|one| one == FINALIZER) => {}
        Value::Array(finalizers) => finalizers.push(FINALIZER.into()),
        other => *other = json!([FINALIZER]),
    }
    let pending = NewCondition {
        kind: "Terminating",
        status: "True",
        reason: "InstanceDeletionPending",
        message:
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
                .to_owned(),
    };
    set_condition(object, &pending, now);
}

/// Records how far the removal is. When the objects are gone, the finalizer goes too, and what is
/// left is to be deleted unless another finalizer holds it.
pub fn advance(object: &mut Value, stage: &Stage, now: Timestamp) {
    let (status, reason, message) = match stage {
        Stage::InProgress => (
            "True",
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        ),
        Stage::Failed(why) => ("True", "InstanceDeletionFailed", why.as_str()),
        Stage::Completed => (
            "False",
            "InstanceDeletionCompleted",
            "removed all instances",
        ),
        Stage::NeverEstablished => (
            "False",
            "NeverEstablished",
            "resource was never established",
        ),
    };
    let message = message.to_owned();
    set_condition(
        object,
        &NewCondition {
            kind: "Terminating",
            status,
            reason,
            message,
        },
        now,
    );
    if matches!(stage, Stage::Completed | Stage::NeverEstablished)
        && let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut()
    {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
}

/// The refusal of a new object while its definition goes.
pub fn no_create(group: &str, plural: &str, name: &str) -> Status {
    let why = "create not allowed while custom resource definition is terminating";
    Status::forbidden(group, plural, name, why)
}
