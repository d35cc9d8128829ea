//! The kind's schema applied to an object: unknown fields out, what is left out in, and the types
//! right.

use serde_json::Value;

use super::defaults;
use super::fault::Faults;
use crate::Status;
use crate::catalog::Kind;
use crate::custom::instance;
use crate::protobuf::typed;
use crate::schema::fields::{self, FieldValidation};
use crate::schema::{decode, fill, validate};

/// Drops what the kind does not have and refuses what cannot be of the kind. Answers with warnings
/// for the client.
///
/// `repeated` names fields that stood twice in the request's bytes: a parsed value no longer shows
/// them.
pub(super) fn fit(
    kind: &Kind,
    object: &mut Value,
    wanted: FieldValidation,
    repeated: &[String],
) -> Result<Vec<String>, Status> {
    let Some(schema) = &kind.schema else {
        return Ok(Vec::new());
    };
    let names = (&*kind.kind, &*kind.version);
    let keeps_unknown = kind
        .custom
        .as_ref()
        .is_some_and(|custom| custom.preserve_unknown);
    let mut unknown = match keeps_unknown {
        true => Vec::new(),
        false => fields::prune(object, schema.schema()),
    };
    if kind.custom.is_some() {
        unknown.sort();
        let of_metadata = instance::coerce_metadata(object)?;
        unknown = of_metadata.into_iter().chain(unknown).collect();
    }
    let warnings = wanted.judge(names, repeated, &unknown)?;
    if kind.custom.is_none() {
        decode::check(object, schema, names)?;
    }
    Ok(warnings)
}

/// Fills in what is left out.
pub(super) fn complete(kind: &Kind, object: &mut Value) {
    match (&kind.custom, &kind.schema) {
        (None, _) => {
            settle(kind, object);
            defaults::apply(kind, object);
        }
        (Some(_), Some(schema)) => fill::fill(object, schema.schema()),
        (Some(_), None) => {}
    }
}

/// Writes a built-in object as its type is written: what is always there, what is left out.
pub(super) fn settle(kind: &Kind, object: &mut Value) {
    if kind.custom.is_none() {
        typed::settle((&kind.api_version(), &kind.kind), object);
    }
}

/// What the schema finds wrong where the kind's own rules found nothing. They say the same of a
/// missing field, in better words.
pub(super) fn check(kind: &Kind, object: &Value, faults: &mut Faults) {
    let Some(schema) = &kind.schema else { return };
    match kind.custom {
        Some(_) => faults.extend(validate::validate(object, schema.schema())),
        None if faults.is_empty() => faults.extend(decode::missing(object, schema)),
        None => {}
    }
}
