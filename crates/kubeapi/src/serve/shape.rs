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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::request::Target;

    fn checked(method: &Method, path: &str) -> Result<(), Misfit> {
        let Ok(Target::Resource(path)) = Target::parse(path) else {
            panic!("{path} leads to no object");
        };
        let catalog = Catalog::new();
        let kind = catalog.find(&path.group, &path.version, &path.resource);
        check(&kind.unwrap(), &path, method)
    }

    #[test]
    fn a_path_that_no_kind_has_leads_nowhere() {
        for path in [
            "/api/v1/namespaces/n/nodes",
            "/api/v1/pods/p",
            "/api/v1/namespaces/n/pods/p/nothing",
            "/api/v1/namespaces/n/pods/p/status/more",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews/a",
        ] {
            let found = checked(&Method::GET, path);
            assert_eq!(found, Err(Misfit::Nowhere), "{path}");
        }
        assert_eq!(checked(&Method::GET, "/api/v1/pods"), Ok(()));
    }

    #[test]
    fn a_method_that_does_not_belong_there_is_not_allowed() {
        let not_allowed = || Err(Misfit::Refused(Status::method_not_allowed()));
        for (method, path) in [
            (Method::POST, "/api/v1/namespaces/n/pods/p"),
            (Method::POST, "/api/v1/pods"),
            (Method::PUT, "/api/v1/namespaces/n/pods"),
            (Method::PATCH, "/api/v1/namespaces/n/pods"),
            // All objects of all namespaces at once are nobody's to delete.
            (Method::DELETE, "/api/v1/pods"),
            (Method::DELETE, "/api/v1/namespaces"),
            (Method::DELETE, "/api/v1/namespaces/n/pods/p/status"),
            (
                Method::GET,
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            ),
            (Method::OPTIONS, "/api/v1/pods"),
        ] {
            assert_eq!(checked(&method, path), not_allowed(), "{method} {path}");
        }
        let collection = "/api/v1/namespaces/n/pods";
        assert_eq!(checked(&Method::DELETE, collection), Ok(()));
    }
}
