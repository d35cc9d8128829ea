//! Whether a kind can be asked in this way at all: its scope, its parts, its verbs.

use http::Method;

use super::route::write_verb;
use crate::Status;
use crate::catalog::Kind;
use crate::request::ResourcePath;

/// Why it cannot.
#[derive(Debug, PartialEq)]
pub(super) enum Misfit {
    /// The path leads nowhere.
    Nowhere,
    /// The path is right, something else is not.
    Refused(Status),
}

/// Checks a path and a method against a kind.
pub(super) fn check(kind: &Kind, path: &ResourcePath, method: &Method) -> Result<(), Misfit> {
    let own_name = &*kind.plural == "namespaces" && kind.group.is_empty();
    let misplaced = !kind.namespaced && !path.namespace.is_empty() && !own_name;
    let nowhere = kind.namespaced && path.namespace.is_empty() && !path.name.is_empty();
    // What can only be asked has no objects that a path could lead to.
    let unkept = kind.verbs.iter().all(|verb| **verb == *"create") && !path.name.is_empty();
    if misplaced || nowhere || unkept || !path.rest.is_empty() {
        return Err(Misfit::Nowhere);
    }
    let read = matches!(*method, Method::GET | Method::HEAD);
    let everywhere = kind.namespaced && path.namespace.is_empty();
    if everywhere && !read && kind.custom.is_some() {
        return Err(Misfit::Nowhere);
    }
    let verb = match (read, path.name.is_empty()) {
        (true, true) => "list",
        (true, false) => "get",
        _ => write_verb(method, path).map_err(Misfit::Refused)?.word(),
    };
    let allowed = match path.subresource.as_str() {
        // A custom kind that is going is said to allow less; what still may be written is for those
        // who let its objects go.
        "" => kind.allows(verb) || kind.custom.is_some(),
        part => match kind.subresource(part) {
            None => return Err(no_such_part(kind, path)),
            Some(part) => part.verbs.iter().any(|allowed| **allowed == *verb),
        },
    };
    // A collection is created in, an object is not; an object is replaced, a collection is not.
    let (whole, many) = (path.subresource.is_empty(), path.name.is_empty());
    let fits = match method.as_str() {
        "POST" if whole => many && !everywhere,
        "PUT" | "PATCH" => !many,
        "DELETE" => !everywhere,
        _ => true,
    };
    match allowed && fits {
        true => Ok(()),
        false => Err(Misfit::Refused(Status::method_not_allowed())),
    }
}

/// Custom kinds are looked at by name before their parts are.
fn no_such_part(kind: &Kind, path: &ResourcePath) -> Misfit {
    match kind.custom.is_some() {
        true => Misfit::Refused(Status::not_found(&kind.group, &kind.plural, &path.name)),
        false => Misfit::Nowhere,
    }
}
