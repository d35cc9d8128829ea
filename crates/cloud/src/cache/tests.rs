//! Tests of the cache by hand.

use std::time::Duration;

use host::Clock;
use object::{Range, Standing};
use wire::digest::Member;

use super::*;

pub(super) fn pods() -> Resource {
    Resource::new("", "pods")
}

fn secrets() -> Resource {
    Resource::new("", "secrets")
}

pub(super) fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

pub(super) fn name(path: &str) -> ObjectName {
    ObjectName::from_path(path)
}

/// A pod on a node; what else it says follows from its version.
pub(super) fn pod(path: &str, node: &str, at: u64) -> Object {
    object(&pods(), path, node, at)
}

fn object(resource: &Resource, path: &str, node: &str, at: u64) -> Object {
    let name = name(path);
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"{}",
        "uid":"{}","resourceVersion":"{at}","ownerReferences":[{{"apiVersion":"apps/v1",
        "kind":"ReplicaSet","name":"web","uid":"web-uid"}}]}},"spec":{{"nodeName":"{node}",
        "containers":[{{"name":"app","image":"registry.example/app:{at}"}}]}}}}"#,
        name.name(),
        name.namespace(),
        uid(path),
    );
    Object::parse(resource, text.into(), &[]).unwrap()
}

fn uid(path: &str) -> String {
    path.replace('/', "-")
}

pub(super) fn delete(path: &str, at: u64) -> Change {
    Change::Delete {
        name: name(path),
        uid: uid(path).into(),
        version: version(at),
    }
}

/// A cache that knows these pods as of version 10.
pub(super) fn cache(listed: &[Object]) -> Cache {
    let mut cache = Cache::new(1, Limits::default());
    cache.open(&pods(), Keep::All);
    list(&mut cache, listed, 10);
    cache
}

pub(super) fn list(cache: &mut Cache, listed: &[Object], at: u64) -> Relisted {
    cache.list_started(&pods());
    for object in listed {
        cache.listed(&pods(), object.clone());
    }
    cache.list_done(&pods(), &version(at))
}

pub(super) fn put(cache: &mut Cache, object: &Object) -> Applied {
    cache.apply(&pods(), Change::Put(object.clone())).unwrap()
}

fn names(headers: &[Arc<Header>]) -> Vec<String> {
    headers
        .iter()
        .map(|header| header.name.to_string())
        .collect()
}

pub(super) fn of(range: Range) -> Scope {
    Scope::of(range)
}

#[test]
fn nothing_is_known_before_the_first_list_is_whole() {
    let mut cache = Cache::new(1, Limits::default());
    cache.open(&pods(), Keep::All);
    let change = Change::Put(pod("a/x", "n1", 11));
    let refused = cache.apply(&pods(), change).unwrap_err();
    assert_eq!(refused, Misfit::NotListed(pods()));
    cache.list_started(&pods());
    cache.listed(&pods(), pod("a/x", "n1", 7));
    assert!(cache.ring(&pods()).is_none() && cache.header(&pods(), &name("a/x")).is_none());
    assert_eq!(cache.state(&pods()), State::Unlisted);
    assert_eq!(cache.list_done(&pods(), &version(10)), Relisted::First);
    assert_eq!(cache.version(&pods()), Some(&version(10)));
    assert_eq!(cache.state(&pods()), State::Complete);
}

#[test]
fn a_change_says_what_was_and_what_is() {
    let mut cache = cache(&[pod("a/x", "n1", 7)]);
    let (old, new) = (pod("a/x", "n1", 7), pod("a/x", "n2", 11));
    let applied = put(&mut cache, &new);
    assert_eq!(applied.before.as_deref(), Some(&old.header));
    assert_eq!(applied.after.as_deref(), Some(&new.header));
    let gone = cache.apply(&pods(), delete("a/x", 12)).unwrap();
    assert_eq!(gone.before.as_deref(), Some(&new.header));
    assert_eq!(gone.after, None);
    let nothing = cache.apply(&pods(), delete("a/x", 13)).unwrap();
    assert!(!nothing.is_change());
    assert_eq!(cache.version(&pods()), Some(&version(13)));
    let late = cache.apply(&pods(), Change::Put(old)).unwrap_err();
    assert!(matches!(late, Misfit::OutOfOrder(_)));
}

#[test]
fn older_versions_can_be_had_until_there_are_too_many() {
    let first = pod("a/x", "n1", 7);
    let mut cache = cache(std::slice::from_ref(&first));
    let mut all = vec![first];
    for at in 11..=18 {
        all.push(pod("a/x", "n1", at));
        put(&mut cache, all.last().unwrap());
    }
    // What was asked for lately is not to hide what the chain has.
    *cache.recent.lock() = Recent::new(0);
    for object in &all {
        let bytes = cache.bytes(&pods(), &object.header);
        assert_eq!(
            bytes.as_ref(),
            Some(&object.bytes),
            "{:?}",
            object.header.version
        );
    }
    put(&mut cache, &pod("a/x", "n1", 19));
    assert_eq!(cache.bytes(&pods(), &all[0].header), None, "one too many");
    assert_eq!(
        cache.bytes(&pods(), &all[1].header).as_ref(),
        Some(&all[1].bytes)
    );
    cache.apply(&pods(), delete("a/x", 20)).unwrap();
    assert_eq!(cache.bytes(&pods(), &all[1].header), None, "it went");
    assert_eq!(cache.past_bytes(), 0);
}

#[test]
fn all_older_versions_together_have_a_limit_and_the_oldest_go() {
    let limits = Limits {
        past_bytes_max: 2_000,
        recent_bytes_max: 0,
        ..Limits::default()
    };
    let mut cache = Cache::new(1, limits);
    cache.open(&pods(), Keep::All);
    let before: Vec<Object> = (0..20).map(|i| pod(&format!("a/{i}"), "n1", 5)).collect();
    list(&mut cache, &before, 10);
    for at in 0..20 {
        put(&mut cache, &pod(&format!("a/{at}"), "n1", 11 + at));
        assert!(cache.past_bytes() <= 2_000);
    }
    assert_eq!(cache.bytes(&pods(), &before[0].header), None);
    let last = &before[19];
    assert_eq!(
        cache.bytes(&pods(), &last.header).as_ref(),
        Some(&last.bytes)
    );
    let newest = cache.object(&pods(), &name("a/0")).unwrap();
    assert_eq!(newest.1, pod("a/0", "n1", 11).bytes);
}

#[test]
fn scopes_are_found_by_namespace_node_and_name() {
    let cache = cache(&[
        pod("a-b/x", "n1", 1),
        pod("a/x", "n1", 2),
        pod("a/y", "n2", 3),
        pod("b/x", "", 4),
    ]);
    let within = |range| names(&cache.headers(&pods(), &[of(range)]));
    assert_eq!(within(Range::All), ["a-b/x", "a/x", "a/y", "b/x"]);
    assert_eq!(within(Range::Namespace("a".into())), ["a/x", "a/y"]);
    assert_eq!(within(Range::Node("n1".into())), ["a-b/x", "a/x"]);
    assert_eq!(within(Range::Node("n9".into())), [""; 0]);
    assert_eq!(within(Range::Name(name("b/x"))), ["b/x"]);
    let both = [
        of(Range::Node("n1".into())),
        of(Range::Namespace("a".into())),
    ];
    assert_eq!(
        names(&cache.headers(&pods(), &both)),
        ["a-b/x", "a/x", "a/y"]
    );
    let (digest, count) = cache.digest(&pods(), &both);
    let mut expected = Digest::default();
    for header in cache.headers(&pods(), &both) {
        expected.add(Member::of(&pods(), &header));
    }
    assert_eq!((digest, count), (expected, 3));
    assert_eq!(
        cache.digest(&pods(), &[of(Range::All), both[0].clone()]).1,
        4
    );
}

#[test]
fn pages_are_small_and_leave_nothing_out() {
    let all: Vec<Object> = (0..150)
        .map(|i| pod(&format!("a/{i:03}"), "n1", 5))
        .collect();
    let cache = cache(&all);
    for range in [
        Range::All,
        Range::Namespace("a".into()),
        Range::Node("n1".into()),
    ] {
        let scope = of(range);
        let mut seen = Vec::new();
        loop {
            let page = cache.page(&pods(), &scope, seen.last());
            assert!(page.len() <= 64);
            if page.is_empty() {
                break;
            }
            seen.extend(page.iter().map(|header| header.name.clone()));
        }
        let expected: Vec<_> = all
            .iter()
            .map(|object| object.header.name.clone())
            .collect();
        assert_eq!(seen, expected);
    }
    let one = of(Range::Name(name("a/007")));
    assert_eq!(names(&cache.page(&pods(), &one, None)), ["a/007"]);
    assert!(cache.page(&pods(), &one, Some(&name("a/007"))).is_empty());
}

#[test]
fn a_page_of_large_objects_has_few_of_them_but_one_at_least() {
    let large = |path: &str| {
        let filler: String = (0..200_000_u64)
            .map(|i| char::from(b'a' + (i * i % 23) as u8))
            .collect();
        let text = format!(
            r#"{{"metadata":{{"name":"{path}","uid":"u","resourceVersion":"5"}},"x":"{filler}"}}"#
        );
        Object::parse(&pods(), text.into(), &[]).unwrap()
    };
    let cache = cache(&[large("a"), large("b")]);
    let first = cache.page(&pods(), &Scope::all(), None);
    assert_eq!(names(&first), ["a"]);
    assert_eq!(
        names(&cache.page(&pods(), &Scope::all(), Some(&name("a")))),
        ["b"]
    );
}

#[test]
fn a_list_whose_changes_all_have_versions_keeps_the_order() {
    let mut cache = cache(&[pod("a/x", "n1", 7), pod("a/y", "n1", 8)]);
    let (newer, fresh) = (pod("a/x", "n1", 14), pod("a/z", "n1", 12));
    let relisted = list(&mut cache, &[newer.clone(), pod("a/y", "n1", 8), fresh], 20);
    let Relisted::InOrder(changes) = relisted else {
        panic!("{relisted:?}");
    };
    assert_eq!(changes.len(), 2);
    let ring = cache.ring(&pods()).unwrap();
    assert_eq!((ring.floor(), ring.now()), (&version(10), &version(20)));
    let standing = Standing::complete(version(10));
    let lacks = wire::cut::changes(ring, &[Scope::all()], &standing, &version(20)).unwrap();
    let at: Vec<String> = lacks
        .iter()
        .map(|change| change.version().to_string())
        .collect();
    assert_eq!(at, ["12", "14"]);
    // And the old one can still be the base of a difference.
    let old = pod("a/x", "n1", 7);
    assert_eq!(cache.bytes(&pods(), &old.header), Some(old.bytes));
}

#[test]
fn a_list_that_lacks_something_begins_the_ring_anew() {
    let mut cache = cache(&[pod("a/x", "n1", 7), pod("a/y", "n1", 8)]);
    cache.list_started(&pods());
    cache.listed(&pods(), pod("a/y", "n1", 8));
    assert_eq!(names(&cache.missing(&pods())), ["a/x"]);
    assert!(
        cache.header(&pods(), &name("a/x")).is_some(),
        "not before the list is whole"
    );
    let relisted = cache.list_done(&pods(), &version(20));
    assert!(matches!(&relisted, Relisted::Anew(changes) if changes.len() == 1));
    assert!(cache.header(&pods(), &name("a/x")).is_none());
    assert_eq!(cache.ring(&pods()).unwrap().floor(), &version(20));
    let on_node = of(Range::Node("n1".into()));
    assert_eq!(names(&cache.headers(&pods(), &[on_node])), ["a/y"]);
}

#[test]
fn another_object_of_the_same_name_has_no_order_either() {
    let mut cache = cache(&[pod("a/x", "n1", 7)]);
    let mut other = pod("a/x", "n1", 15);
    other.header.uid = "other".into();
    assert!(matches!(list(&mut cache, &[other], 20), Relisted::Anew(_)));
}

#[test]
fn a_list_that_was_dropped_leaves_no_trace() {
    let mut cache = cache(&[pod("a/x", "n1", 7)]);
    let before = cache.digest(&pods(), &[Scope::all()]);
    cache.list_started(&pods());
    cache.listed(&pods(), pod("a/z", "n1", 19));
    cache.list_dropped(&pods());
    assert_eq!(cache.digest(&pods(), &[Scope::all()]), before);
    assert!(cache.missing(&pods()).is_empty());
}

#[test]
fn bytes_that_nobody_wants_are_not_kept() {
    let mut cache = Cache::new(1, Limits::default());
    cache.open(&secrets(), Keep::Wanted);
    let secret = |path: &str, at| object(&secrets(), path, "", at);
    cache.list_started(&secrets());
    cache.listed(&secrets(), secret("a/x", 7));
    cache.listed(&secrets(), secret("a/y", 7));
    cache.list_done(&secrets(), &version(10));
    assert_eq!(
        cache.headers(&secrets(), &[Scope::all()]).len(),
        2,
        "headers are"
    );
    assert!(cache.object(&secrets(), &name("a/x")).is_none());

    assert_eq!(cache.want(&secrets(), &name("a/x")), Wanted::Lacking);
    assert_eq!(cache.want(&secrets(), &name("a/none")), Wanted::Unknown);
    let one = of(Range::Name(name("a/x")));
    assert_eq!(cache.lacking(&secrets(), &one), [name("a/x")]);
    assert_eq!(cache.lacking_all(&secrets()), [name("a/x")]);
    assert!(
        !cache.supply(&secrets(), &secret("a/x", 9)),
        "newer than what is known"
    );
    assert!(cache.supply(&secrets(), &secret("a/x", 7)));
    assert!(
        !cache.supply(&secrets(), &secret("a/y", 7)),
        "nobody wants it"
    );
    assert!(cache.lacking(&secrets(), &one).is_empty());

    let newer = secret("a/x", 11);
    cache.apply(&secrets(), Change::Put(newer.clone())).unwrap();
    assert_eq!(
        cache.object(&secrets(), &name("a/x")).unwrap().1,
        newer.bytes
    );
    let older = cache.bytes(&secrets(), &secret("a/x", 7).header);
    assert_eq!(older, Some(secret("a/x", 7).bytes));

    assert_eq!(cache.want(&secrets(), &name("a/x")), Wanted::Here);
    cache.release(&secrets(), &name("a/x"));
    assert!(
        cache.object(&secrets(), &name("a/x")).is_some(),
        "one still needs it"
    );
    cache.release(&secrets(), &name("a/x"));
    assert!(cache.object(&secrets(), &name("a/x")).is_none());
    assert!(
        cache.bytes(&secrets(), &newer.header).is_none(),
        "not even lately"
    );
    cache.release(&secrets(), &name("a/x"));
    assert_eq!(cache.past_bytes(), 0);
}

#[test]
fn what_is_wanted_comes_with_the_next_list_too() {
    let mut cache = Cache::new(1, Limits::default());
    cache.open(&secrets(), Keep::Wanted);
    let secret = object(&secrets(), "a/x", "", 7);
    for at in [10, 20] {
        cache.list_started(&secrets());
        cache.listed(&secrets(), secret.clone());
        cache.list_done(&secrets(), &version(at));
        if at == 10 {
            assert_eq!(cache.want(&secrets(), &name("a/x")), Wanted::Lacking);
        }
    }
    assert_eq!(
        cache.object(&secrets(), &name("a/x")).unwrap().1,
        secret.bytes
    );
}

#[test]
fn a_header_is_the_same_after_everybody_forgot_it() {
    let limits = Limits {
        steps_max: 2,
        ..Limits::default()
    };
    let mut cache = Cache::new(1, limits);
    cache.open(&pods(), Keep::All);
    list(&mut cache, &[], 10);
    let all: Vec<Object> = (11..20)
        .map(|at| pod(&format!("a/{at}"), "n1", at))
        .collect();
    for object in &all {
        put(&mut cache, object);
    }
    assert!(cache.counts(&pods()).header_bytes > 0, "some are at rest");
    let found = cache.headers(&pods(), &[Scope::all()]);
    let expected: Vec<_> = all.iter().map(|object| object.header.clone()).collect();
    let found: Vec<_> = found.iter().map(|header| (**header).clone()).collect();
    assert_eq!(found, expected);
    cache.apply(&pods(), delete("a/11", 30)).unwrap();
    assert_eq!(cache.digest(&pods(), &[Scope::all()]).1, 8);
}

#[test]
fn what_is_frozen_stays_as_it_was_and_since_then() {
    let mut cache = cache(&[pod("a/x", "n1", 7)]);
    let now = Clock::machine().now();
    cache.freeze(&pods(), now, "forbidden");
    cache.freeze(&pods(), now + Duration::from_secs(9), "still forbidden");
    let State::Frozen(trouble) = cache.state(&pods()) else {
        panic!();
    };
    assert_eq!((trouble.since, &*trouble.why), (now, "still forbidden"));
    assert_eq!(cache.headers(&pods(), &[Scope::all()]).len(), 1);
    assert!(cache.ring(&pods()).is_some());
    cache.thaw(&pods());
    assert_eq!(cache.state(&pods()), State::Complete);
}

#[test]
fn a_new_epoch_begins_with_nothing() {
    let mut cache = cache(&[pod("a/x", "n1", 7)]);
    put(&mut cache, &pod("a/x", "n1", 11));
    cache.begin(2);
    assert_eq!((cache.epoch(), cache.state(&pods())), (2, State::Unlisted));
    assert!(cache.bytes(&pods(), &pod("a/x", "n1", 11).header).is_none());
    assert_eq!(
        cache.digest(&pods(), &[Scope::all()]),
        (Digest::default(), 0)
    );
    assert_eq!(list(&mut cache, &[pod("a/x", "n1", 3)], 4), Relisted::First);
}
