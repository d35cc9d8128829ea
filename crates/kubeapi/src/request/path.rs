//! The path of a URL -> a resource, or a path of its own.
//!
//! A path is taken apart once, here. The same parts are used to authorize and to answer, so that no
//! spelling of a path can mean one thing to one and another thing to the other. Nothing is
//! normalised: a path that would need it is refused.

use http::Method;
use object::{ObjectName, Resource};

use super::percent;

/// Bytes of a URL that are read.
pub const URL_BYTES_MAX: usize = 8 * 1024;

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Objects.
    Resource(ResourcePath),
    /// Something else: health, discovery, schemas. The segments, decoded.
    Other(Vec<String>),
}

/// A path that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// It has more than [`URL_BYTES_MAX`].
    #[error("the URL is too long")]
    TooLong,
    /// It could be taken for another one: nothing is found there.
    #[error("the request path is not well formed")]
    Unclear,
    /// A segment of it is none of ours: it is empty, or has a slash, a backslash or a percent sign
    /// in it. Nothing is found there either; what lies behind a proxy may have such paths.
    #[error("the request path has segments that lead nowhere")]
    Foreign,
}

/// The parts of a path that leads to objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourcePath {
    /// The API group, empty for the core group.
    pub group: String,
    /// The version of the group.
    pub version: String,
    /// The namespace, empty for none. For the resource `namespaces` itself it is the name, as the
    /// authorizer expects.
    pub namespace: String,
    /// The plural name.
    pub resource: String,
    /// The object's name, empty for a collection.
    pub name: String,
    /// The part of the object, empty for all of it.
    pub subresource: String,
    /// Segments after the subresource.
    pub rest: Vec<String>,
    /// The old way to ask for a watch: a `watch` segment after the version.
    pub watch: bool,
}

impl ResourcePath {
    /// The object with all of which such a request is answered; nothing where the answer is
    /// something else, such as a collection, a watch or a log.
    pub fn answered_with(&self, method: &Method) -> Option<(Resource, ObjectName)> {
        let whole = matches!(self.subresource.as_str(), "" | "status") && self.rest.is_empty();
        let shown = matches!(*method, Method::GET | Method::PUT | Method::PATCH);
        if self.name.is_empty() || !whole || !shown || self.watch {
            return None;
        }
        let namespace = match (&*self.group, &*self.resource) {
            ("", "namespaces") => "",
            _ => &self.namespace,
        };
        let resource = Resource::new(&self.group, &self.resource);
        Some((resource, ObjectName::new(namespace, &self.name)))
    }
}

impl Target {
    /// Takes a path apart.
    pub fn parse(path: &str) -> Result<Self, BadPath> {
        if path.len() > URL_BYTES_MAX {
            return Err(BadPath::TooLong);
        }
        let path = path.strip_prefix('/').ok_or(BadPath::Unclear)?;
        if path.is_empty() {
            return Ok(Self::Other(Vec::new()));
        }
        // One slash at the end is harmless and customary.
        let path = path.strip_suffix('/').unwrap_or(path);
        let segments = path
            .split('/')
            .map(decode)
            .collect::<Result<Vec<String>, BadPath>>();
        // The worst of its segments says what a path is.
        let segments = segments.map_err(|_| match path.split('/').all(is_plain) {
            true => BadPath::Foreign,
            false => BadPath::Unclear,
        })?;
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match words.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => return Ok(Self::Other(segments)),
        };
        Ok(Self::Resource(ResourcePath::parse(group, version, rest)))
    }
}

impl ResourcePath {
    fn parse(group: &str, version: &str, rest: &[&str]) -> Self {
        let (watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let mut path = Self {
            group: group.to_owned(),
            version: version.to_owned(),
            watch,
            ..Self::default()
        };
        // A namespace has few parts of its own; what else follows its name lies in it.
        let rest = match rest {
            ["namespaces", namespace, part, more @ ..]
                if !(more.is_empty() && ["status", "finalize"].contains(part)) =>
            {
                path.namespace = (*namespace).to_owned();
                &rest[2..]
            }
            ["namespaces", name, ..] => {
                path.namespace = (*name).to_owned();
                rest
            }
            rest => rest,
        };
        let mut parts = rest.iter().map(|part| (*part).to_owned());
        path.resource = parts.next().unwrap_or_default();
        path.name = parts.next().unwrap_or_default();
        path.subresource = parts.next().unwrap_or_default();
        path.rest = parts.collect();
        path
    }
}

/// One segment, with its percent signs resolved. What could be read as another path is refused.
fn decode(segment: &str) -> Result<String, BadPath> {
    let bytes = percent::decode(segment).ok_or(BadPath::Unclear)?;
    let decoded = String::from_utf8(bytes).map_err(|_| BadPath::Unclear)?;
    let leads_elsewhere = decoded.split(['/', '\\']).any(|it| it == "." || it == "..");
    if leads_elsewhere || decoded.chars().any(char::is_control) {
        return Err(BadPath::Unclear);
    }
    match decoded.is_empty() || decoded.contains(['/', '\\', '%']) {
        true => Err(BadPath::Foreign),
        false => Ok(decoded),
    }
}

fn is_plain(segment: &str) -> bool {
    decode(segment) != Err(BadPath::Unclear)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> ResourcePath {
        match Target::parse(path) {
            Ok(Target::Resource(path)) => path,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn an_object_is_the_answer_to_who_reads_or_writes_it_and_to_nobody_else() {
        let is = |method: Method, path: &str| resource(path).answered_with(&method).is_some();
        let pod = "/api/v1/namespaces/n/pods/p";
        for method in [Method::GET, Method::PUT, Method::PATCH] {
            assert!(is(method.clone(), pod), "{method}");
            assert!(is(method, &format!("{pod}/status")));
        }
        assert!(!is(Method::DELETE, pod) && !is(Method::POST, &format!("{pod}/eviction")));
        assert!(!is(Method::GET, "/api/v1/namespaces/n/pods"));
        assert!(!is(Method::GET, "/api/v1/watch/namespaces/n/pods/p"));
        for part in ["log", "exec", "proxy", "proxy/a", "status/a"] {
            assert!(!is(Method::GET, &format!("{pod}/{part}")), "{part}");
        }
    }

    #[test]
    fn a_path_is_taken_apart_as_kubernetes_does() {
        let pods = resource("/api/v1/namespaces/n/pods/p/log");
        assert_eq!((&*pods.namespace, &*pods.resource), ("n", "pods"));
        assert_eq!((&*pods.name, &*pods.subresource), ("p", "log"));
        let all = resource("/apis/apps/v1/deployments");
        assert_eq!(
            (&*all.group, &*all.version, &*all.resource),
            ("apps", "v1", "deployments")
        );
        assert_eq!((&*all.namespace, &*all.name), ("", ""));
        let namespace = resource("/api/v1/namespaces/n");
        assert_eq!(
            (&*namespace.resource, &*namespace.name),
            ("namespaces", "n")
        );
        assert_eq!(namespace.namespace, "n");
        let status = resource("/api/v1/namespaces/n/status");
        assert_eq!((&*status.name, &*status.subresource), ("n", "status"));
        let finalize = resource("/api/v1/namespaces/n/finalize");
        assert_eq!(finalize.subresource, "finalize");
        let inside = resource("/api/v1/namespaces/n/status/x");
        assert_eq!((&*inside.resource, &*inside.name), ("status", "x"));
        assert!(resource("/api/v1/watch/pods").watch);
    }

    #[test]
    fn other_paths_are_left_as_they_are() {
        for path in [
            "/",
            "/api",
            "/api/v1",
            "/apis/apps",
            "/apis/apps/v1",
            "/healthz/ping",
        ] {
            assert!(
                matches!(Target::parse(path), Ok(Target::Other(_))),
                "{path}"
            );
        }
    }

    #[test]
    fn a_path_that_could_mean_two_things_is_refused() {
        let wrong = [
            "/api/v1/./pods",
            "/api/v1/namespaces/../secrets",
            "/api/v1/namespaces/%2e%2e/secrets",
            "/api/v1/namespaces/%2e%2e%2fsecrets",
            "/api/v1/pods/a%2f.%5cb",
            "/api//v1/../pods",
            "/api/v1/pods/a%00",
            "/api/v1/pods/a%0a",
            "/api/v1/pods/%ff",
            "/api/v1/pods/%zz",
            "/api/v1/pods/%2",
            "api/v1/pods",
        ];
        for path in wrong {
            assert_eq!(Target::parse(path), Err(BadPath::Unclear), "{path}");
        }
        for foreign in [
            "//",
            "/api//v1/pods",
            "/api/v1/pods/a%2Fb",
            "/api/v1/pods/a%5cb",
            "/api/v1/pods/%252e",
        ] {
            assert_eq!(Target::parse(foreign), Err(BadPath::Foreign), "{foreign}");
        }
        let long = format!("/api/v1/pods/{}", "a".repeat(URL_BYTES_MAX));
        assert_eq!(Target::parse(&long), Err(BadPath::TooLong));
    }
}
