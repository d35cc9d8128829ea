//! The cache against a model that keeps everything.

use std::collections::BTreeMap;

use object::Range;
use proptest::prelude::*;
use wire::digest::Member;

use super::tests::{cache, delete, list, name, of, pod, pods, put, version};
use super::*;

/// Something that happens to a cache.
#[derive(Debug, Clone)]
enum Operation {
    Put(usize, usize),
    Delete(usize),
    Bookmark,
    /// A list, without those of which it happens to know nothing any more.
    List(Vec<usize>),
    /// A list that breaks off.
    Broken(Vec<usize>),
}

fn operation() -> impl Strategy<Value = Operation> {
    let few = || prop::collection::vec(0..6usize, 0..3);
    prop_oneof![
        5 => (0..6usize, 0..3usize).prop_map(|(name, node)| Operation::Put(name, node)),
        3 => (0..6usize).prop_map(Operation::Delete),
        1 => Just(Operation::Bookmark),
        1 => few().prop_map(Operation::List),
        1 => few().prop_map(Operation::Broken),
    ]
}

proptest! {
    #[test]
    fn a_cache_has_what_a_map_would_have(operations in prop::collection::vec(operation(), 0..60)) {
        let mut cache = cache(&[]);
        let mut model: BTreeMap<ObjectName, Object> = BTreeMap::new();
        let mut history: Vec<Object> = Vec::new();
        let mut at = 10;
        for operation in operations {
            at += 1;
            match operation {
                Operation::Put(name, node) => {
                    let object = pod(&format!("ns{}/{name}", name % 2), &format!("n{node}"), at);
                    put(&mut cache, &object);
                    history.push(object.clone());
                    model.insert(object.header.name.clone(), object);
                }
                Operation::Delete(name) => {
                    let path = format!("ns{}/{name}", name % 2);
                    cache.apply(&pods(), delete(&path, at)).unwrap();
                    model.remove(&ObjectName::from_path(&path));
                }
                Operation::Bookmark => cache.advance(&pods(), &version(at)),
                Operation::List(gone) => {
                    for name in gone {
                        model.remove(&ObjectName::from_path(&format!("ns{}/{name}", name % 2)));
                    }
                    let listed: Vec<Object> = model.values().cloned().collect();
                    list(&mut cache, &listed, at);
                }
                Operation::Broken(some) => {
                    cache.list_started(&pods());
                    for name in some {
                        cache.listed(&pods(), pod(&format!("ns0/{name}"), "n1", at));
                    }
                    cache.list_dropped(&pods());
                }
            }
        }
        check(&cache, &model, &history);
    }
}

fn check(cache: &Cache, model: &BTreeMap<ObjectName, Object>, history: &[Object]) {
    for scope in [
        Scope::all(),
        of(Range::Namespace("ns0".into())),
        of(Range::Node("n1".into())),
        of(Range::Name(name("ns1/3"))),
    ] {
        let expected: Vec<&Object> = model
            .values()
            .filter(|object| scope.contains(&object.header))
            .collect();
        let scopes = [scope];
        let found = cache.headers(&pods(), &scopes);
        let same = expected
            .iter()
            .zip(&found)
            .all(|(object, header)| object.header == **header);
        assert!(same && expected.len() == found.len(), "{:?}", scopes[0]);
        let mut digest = Digest::default();
        for object in &expected {
            digest.add(Member::of(&pods(), &object.header));
        }
        assert_eq!(
            cache.digest(&pods(), &scopes),
            (digest, expected.len() as u64)
        );
    }
    for object in model.values() {
        let bytes = cache.bytes(&pods(), &object.header);
        assert_eq!(bytes.as_ref(), Some(&object.bytes));
    }
    // Whatever is given of an older version is what it was.
    for object in history {
        let bytes = cache.bytes(&pods(), &object.header);
        assert!(bytes.is_none_or(|bytes| bytes == object.bytes));
    }
}
