//! One object by name.

use jiff::Timestamp;
use object::select::Selector;
use object::{Object, ObjectName};
use store::{Range, Reader, Want};

use super::options::{Freshness, get_freshness};
use super::{refused, unreadable, wait_for};
use crate::Status;
use crate::catalog::Kind;
use crate::read::encode::Encoder;
use crate::request::{Query, ResourcePath};

/// Answers a get.
pub async fn get(
    reader: &Reader,
    encoder: &Encoder,
    path: &ResourcePath,
    query: &Query,
    now: Timestamp,
) -> Result<bytes::Bytes, Status> {
    if let Freshness::AtLeast(version) = get_freshness(query)? {
        wait_for(reader, &encoder.kind, &version).await?;
    }
    let object = find(reader, &encoder.kind, path)?;
    encoder.object(&object.bytes, now)
}

/// The object that a path names. "Not found" is said only where what is held would have it.
pub fn find(reader: &Reader, kind: &Kind, path: &ResourcePath) -> Result<Object, Status> {
    let namespace = if kind.namespaced {
        path.namespace.as_str()
    } else {
        ""
    };
    let name = ObjectName::new(namespace, &path.name);
    let range = Range::Name(name.clone());
    let want = Want {
        resource: kind.stored_as(),
        range,
        selector: Selector::default(),
    };
    reader.floor(&want).map_err(refused)?;
    match reader.object(&want.resource, &name).map_err(unreadable)? {
        Some(object) => Ok(object),
        None => Err(Status::not_found(&kind.group, &kind.plural, &path.name)),
    }
}
