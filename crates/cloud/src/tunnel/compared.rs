//! What an answer is compared with: what the node says it has, if the hub has the same.

use bytes::Bytes;
use http::Request;
use kubeapi::request::Target;
use object::digest::content_hash;
use tunnel::BASE_BYTES_MAX;

use crate::cache::Cache;

/// The bytes that a request names by their hash: of the object that it is answered with, unless
/// that is large. A node that names others is answered without.
pub(super) fn named<B>(cache: &Cache, request: &Request<B>) -> Option<Bytes> {
    let hash = request.headers().get(tunnel::BASE)?.to_str().ok()?;
    let hash = u64::from_str_radix(hash, 16).ok()?;
    let Ok(Target::Resource(path)) = Target::parse(request.uri().path()) else {
        return None;
    };
    let (resource, name) = path.answered_with(request.method())?;
    let (_, bytes) = cache.object(&resource, &name)?;
    (bytes.len() <= BASE_BYTES_MAX && content_hash(&bytes) == hash).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use object::{Object, Resource};

    use super::*;
    use crate::cache::{Keep, Limits};

    fn pod(name: &str, bytes: usize) -> Object {
        let note = "x".repeat(bytes);
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"a",
            "uid":"{name}","resourceVersion":"5","annotations":{{"note":"{note}"}}}}}}"#
        );
        Object::parse(&Resource::new("", "pods"), text.into(), &[]).unwrap()
    }

    #[test]
    fn a_node_cannot_have_more_held_for_it_than_what_its_answer_shows() {
        let pods = Resource::new("", "pods");
        let (small, large) = (pod("small", 1_000), pod("large", BASE_BYTES_MAX));
        let mut cache = Cache::new(1, Limits::default());
        cache.open(&pods, Keep::All);
        cache.list_started(&pods);
        for object in [&small, &large] {
            cache.listed(&pods, object.clone());
        }
        cache.list_done(&pods, &"7".parse().unwrap());
        let is_held = |method: &str, path: &str, has: &Object| {
            let uri = format!("/api/v1/namespaces/a/pods/{path}");
            let hash = format!("{:016x}", content_hash(&has.bytes));
            let request = Request::builder().method(method).uri(uri);
            let request = request.header(tunnel::BASE, hash).body(()).unwrap();
            named(&cache, &request).is_some_and(|bytes| bytes == has.bytes)
        };
        assert!(is_held("GET", "small", &small) && is_held("PUT", "small/status", &small));
        assert!(!is_held("GET", "small", &large), "it has something else");
        assert!(!is_held("GET", "large", &large));
        for path in ["small/log?follow=1", "small/exec", "small/proxy/x"] {
            assert!(!is_held("GET", path, &small), "{path}");
        }
        assert!(!is_held("DELETE", "small", &small));
    }
}
