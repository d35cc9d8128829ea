//! What a write answers with, and how the store's refusals are told to clients.

use bytes::Bytes;
use object::Object;
use serde_json::Value;
use store::Failed;
use store::authority::{Outcome, Refusal};

use super::{Decision, Target, draft, field};
use crate::Status;

/// The object that a dry run shows.
pub(super) fn shown<'a>(decision: &'a Decision, current: &'a Value) -> &'a Value {
    match decision {
        Decision::Put(object) | Decision::Delete(object) | Decision::PutAndDelete(object) => object,
        Decision::Unchanged => current,
    }
}

pub(super) fn stored(
    target: &Target,
    decision: &Decision,
    outcome: Outcome,
) -> Result<Value, Status> {
    match (decision, outcome) {
        (Decision::Delete(last) | Decision::PutAndDelete(last), Outcome::Deleted(version)) => {
            let mut last = last.clone();
            field::set(
                field::object_mut(&mut last, "metadata"),
                "resourceVersion",
                version.to_string(),
            );
            Ok(last)
        }
        (_, Outcome::Stored(object)) => Ok(draft::from_stored(target.kind, parsed(&object)?)),
        _ => Err(Status::internal("a write left nothing behind")),
    }
}

pub(super) fn stored_bytes(target: &Target, outcome: Outcome) -> Result<Bytes, Status> {
    match outcome {
        Outcome::Stored(object) if target.kind.is_stored_as_shown() => Ok(object.bytes),
        Outcome::Stored(object) => encoded(&draft::from_stored(target.kind, parsed(&object)?)),
        Outcome::Deleted(_) | Outcome::Checked => {
            Err(Status::internal("a write left nothing behind"))
        }
    }
}

pub(super) fn parsed(object: &Object) -> Result<Value, Status> {
    let unreadable = |_| Status::internal("the stored object could not be read");
    serde_json::from_slice(&object.bytes).map_err(unreadable)
}

pub(super) fn encoded(value: &Value) -> Result<Bytes, Status> {
    let failed = |_| Status::internal("an object was not encoded");
    serde_json::to_vec(value).map(Bytes::from).map_err(failed)
}

/// An update that creates says which version it replaces of something that is not there.
pub(super) fn without_version(mut body: Value) -> Value {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("resourceVersion");
    }
    body
}

pub(super) fn too_busy(target: &Target) -> Status {
    let (_, plural) = target.resource();
    let words = format!("The {plural} changed too often while this was written; try again");
    Status::try_again(503, "ServiceUnavailable", words, 1)
}

pub(super) fn refused(target: &Target, refusal: Refusal) -> Status {
    match refusal {
        Refusal::TooLarge { .. } => Status::too_large(refusal.to_string()),
        Refusal::Failed(Failed::NotStored(_) | Failed::Closed) => Status::try_again(
            503,
            "ServiceUnavailable",
            "the store takes no writes now",
            1,
        ),
        refusal => {
            tracing::error!(kind = %target.kind.kind, %refusal, "a write was not stored");
            Status::internal("the object was not stored")
        }
    }
}

/// A random UUID, version 4.
pub(super) fn fresh_uuid() -> Result<String, Status> {
    Ok(uuid(random()?))
}

/// Bytes that nobody can guess.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Status> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| Status::internal("no randomness is to be had"))?;
    Ok(bytes)
}

fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}
