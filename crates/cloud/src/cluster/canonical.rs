//! An object's bytes as they came -> as they are kept, made once and for all.

use bytes::Bytes;
use object::Object;
use object::header::BadObject;
use object::splice::{self, BadSplice};

use super::Served;

/// Why an object cannot be kept. It is left out; the others go on.
#[derive(Debug, thiserror::Error)]
pub enum Unkept {
    /// Its bytes cannot be put into their form.
    #[error("the object's bytes cannot be edited")]
    Form(#[from] BadSplice),
    /// It is not an object as a cluster has them.
    #[error("the object cannot be read")]
    Object(#[from] BadObject),
}

/// The object as it is kept: apiVersion and kind first (a list's items come without), managed
/// fields left out, otherwise as it came; and its header.
pub fn canonical(served: &Served, bytes: &Bytes) -> Result<Object, Unkept> {
    let bytes = splice::canonical_as(bytes, &served.api_version, &served.kind)?;
    Ok(Object::parse(&served.resource, bytes, &served.fields)?)
}
