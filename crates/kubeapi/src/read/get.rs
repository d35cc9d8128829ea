//! One object by name.

use bytes::Bytes;
use object::ObjectName;
use object::select::Selector;
use store::{At, Extent, Part, Range, Reader, Want};

use super::options::{Freshness, get_freshness};
use super::{Overlay, refused, unreadable, wait_until};
use crate::Status;
use crate::catalog::Kind;
use crate::request::{Query, ResourcePath};

/// The object that a path names, as new as the query asks for.
pub async fn stored(
    reader: &Reader,
    kind: &Kind,
    path: &ResourcePath,
    query: &Query,
) -> Result<Bytes, Status> {
    wait_for(reader, kind, path, query).await?;
    find(reader, kind, path)
}

/// The object as it is shown: where something lies over it, at the version of its resource.
pub async fn shown(
    reader: &Reader,
    kind: &Kind,
    path: &ResourcePath,
    query: &Query,
    overlay: &dyn Overlay,
) -> Result<Bytes, Status> {
    wait_for(reader, kind, path, query).await?;
    let resource = kind.stored_as();
    // The version comes first: what is read after it may be newer, but never older, than what it
    // is shown at.
    let at = reader.version(&resource);
    let bytes = find(reader, kind, path)?;
    let shown = at.and_then(|at| overlay.shown(&resource, &name(kind, path), (&bytes, &at)));
    Ok(shown.unwrap_or(bytes))
}

/// Waits until what is held is as new as the query asks for.
async fn wait_for(
    reader: &Reader,
    kind: &Kind,
    path: &ResourcePath,
    query: &Query,
) -> Result<(), Status> {
    if query.optional_switch("export") == Some(true) {
        let message = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(Status::bad_request(message));
    }
    if let Freshness::AtLeast(version) = get_freshness(query)? {
        let want = want(kind, path);
        if reader.row(&want.resource, &name(kind, path)).is_none() {
            reader.floor(&want).map_err(refused)?;
        }
        wait_until(reader, &want, &version).await?;
    }
    Ok(())
}

/// Whether a get is answered from what is held: what is there is there, and where a scope covers
/// the name, what is not there is not.
pub fn is_held(reader: &Reader, kind: &Kind, path: &ResourcePath) -> bool {
    is_name_held(reader, kind, &name(kind, path))
}

/// The same of an object with this name.
pub fn is_name_held(reader: &Reader, kind: &Kind, name: &ObjectName) -> bool {
    let want = named(kind, name.clone());
    let there = reader.row(&want.resource, name).is_some();
    // Of what is damaged there is nothing to show.
    (there && !reader.is_damaged(&want.resource)) || reader.covers(&want)
}

/// Whether the object that a path names, if it is there, is in the version of the kind.
pub fn is_in_version(reader: &Reader, kind: &Kind, path: &ResourcePath) -> bool {
    if !kind.may_differ() {
        return true;
    }
    let object = reader.object(&kind.stored_as(), &name(kind, path));
    // What cannot be read is told by the answer.
    let object = object.ok().flatten();
    object.is_none_or(|object| kind.is_version_of(&object.bytes))
}

/// The object that a path names. "Not found" is said only where what is held would have it.
pub fn find(reader: &Reader, kind: &Kind, path: &ResourcePath) -> Result<Bytes, Status> {
    let (want, name) = (want(kind, path), name(kind, path));
    if let Some(object) = reader.object(&want.resource, &name).map_err(unreadable)? {
        return Ok(object.bytes);
    }
    // Covered and absent must be true in one moment: a scope that ended meanwhile is no 404.
    let page = reader.page(&want, &At::Now, &Part::default());
    let page = page.map_err(refused)?;
    match page.rows.first() {
        Some(row) => page.bytes(row).map_err(|why| unreadable(why.into())),
        None => Err(Status::not_found(&kind.group, &kind.plural, &path.name)),
    }
}

fn want(kind: &Kind, path: &ResourcePath) -> Want {
    named(kind, name(kind, path))
}

fn named(kind: &Kind, name: ObjectName) -> Want {
    Want {
        resource: kind.stored_as(),
        range: Range::Name(name),
        selector: Selector::default(),
        extent: Extent::Whole,
    }
}

/// The name of the object that a path names.
pub fn name(kind: &Kind, path: &ResourcePath) -> ObjectName {
    let namespace = if kind.namespaced {
        &*path.namespace
    } else {
        ""
    };
    ObjectName::new(namespace, &path.name)
}
