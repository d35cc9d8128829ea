//! What is asked for -> what the store is asked: a range and a selector, with the fields that this
//! kind can be selected on.

use std::sync::Arc;

use object::ObjectName;
use object::fields::{Origin, Scope};
use object::select::Selector;
use store::{Extent, Range, Want};

use crate::Status;
use crate::catalog::Kind;
use crate::request::{Query, ResourcePath};

/// The range and selector of a list or a watch.
pub fn want(kind: &Kind, path: &ResourcePath, query: &Query) -> Result<Want, Status> {
    let resource = kind.stored_as();
    let selector = selector(kind, query)?;
    let namespace = if kind.namespaced {
        path.namespace.as_str()
    } else {
        ""
    };
    let selected = selector.fields.exact("metadata.name");
    let name = match (path.name.as_str(), selected) {
        ("", selected) => selected.unwrap_or(""),
        (name, Some(selected)) if name == selected => name,
        (name, None) if selector.fields.is_everything() => name,
        _ => {
            let message = "fieldSelector metadata.name doesn't match requested name";
            return Err(Status::bad_request(message));
        }
    };
    let range = match (name, namespace) {
        // Without its namespace a name may belong to several objects: the selector finds them.
        (name, "") if !name.is_empty() && !kind.namespaced => {
            Range::Name(ObjectName::new("", name))
        }
        (name, namespace) if !name.is_empty() && !namespace.is_empty() => {
            Range::Name(ObjectName::new(namespace, name))
        }
        (_, "") => Range::All,
        (_, namespace) => Range::Namespace(namespace.into()),
    };
    Ok(Want {
        resource,
        range,
        selector,
        extent: Extent::Whole,
    })
}

/// The selector of a query, refused where it names a field that this kind cannot be selected on.
pub fn selector(kind: &Kind, query: &Query) -> Result<Selector, Status> {
    let (labels, fields) = (query.text("labelSelector"), query.text("fieldSelector"));
    let selector = Selector::parse(labels, fields);
    let selector = selector.map_err(|error| Status::bad_request(error.to_string()))?;
    let none: &[Arc<str>] = &[];
    let origin = match &kind.custom {
        None => Origin::BuiltIn,
        Some(custom) => Origin::Custom {
            scope: if kind.namespaced {
                Scope::Namespaced
            } else {
                Scope::Cluster
            },
            paths: if custom.selectable.is_empty() {
                none
            } else {
                &custom.selectable
            },
        },
    };
    let resolved = selector.resolve(&kind.resource(), origin);
    resolved.map_err(|error| Status::bad_request(error.to_string()))
}
