//! What a hub makes of lists, changes and outages.

use host::Clock;
use object::{Change, Object, Version};

use super::*;
use crate::sessions::{Begun, Bell};
use crate::talk::Desk as _;

fn object(resource: &Resource, name: &str, at: u64, rest: &str) -> Object {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"{name}","namespace":"a",
        "uid":"u-{name}","resourceVersion":"{at}"}}{rest}}}"#
    );
    Object::parse(resource, text.into(), &[]).unwrap()
}

fn pod(name: &str, at: u64) -> Object {
    let rest = format!(
        r#","spec":{{"nodeName":"n","volumes":[{{"name":"v","secret":
        {{"secretName":"{name}"}}}}]}}"#
    );
    object(&pods(), name, at, &rest)
}

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn secrets() -> Resource {
    Resource::new("", "secrets")
}

/// A hub that knows these pods and secrets, and a session that was woken for that.
fn hub(all: &[Object], named: &[Object]) -> (Hub, Arc<Bell>) {
    let times = Times::new(Clock::machine());
    let (hub, _) = Hub::new(times, Policy::default(), 1, Limits::default());
    for resource in hub.resources().0 {
        if resource != pods() {
            hub.serves(&resource, false);
        }
    }
    list(&hub, &pods(), all, 100);
    list(&hub, &secrets(), named, 100);
    let node = "n".into();
    let Begun::Yes { bell, .. } = hub.sessions().begin(&node, 1, times_now(&hub)) else {
        panic!("the first session is the node's");
    };
    (hub, bell)
}

fn times_now(hub: &Hub) -> Duration {
    hub.times().now()
}

fn list(hub: &Hub, resource: &Resource, all: &[Object], at: u64) {
    let mut cache = hub.cache().write();
    cache.list_started(resource);
    for object in all {
        cache.listed(resource, object.clone());
    }
    let version: Version = at.to_string().parse().unwrap();
    let relisted = cache.list_done(resource, &version);
    drop(cache);
    hub.hear(&Told::Listed(resource.clone(), relisted));
}

fn change(hub: &Hub, resource: &Resource, change: Change) {
    let applied = hub.cache().write().apply(resource, change).unwrap();
    hub.hear(&Told::Changed(resource.clone(), vec![applied]));
}

fn scopes(hub: &Hub, resource: &Resource) -> Option<usize> {
    hub.view("n").get(resource).map(|scopes| scopes.len())
}

#[test]
fn a_list_that_is_in_order_thaws_a_view_that_could_not_shrink() {
    let (hub, _) = hub(&[pod("one", 5), pod("two", 6)], &[]);
    assert_eq!(scopes(&hub, &secrets()), Some(2));
    hub.hear(&Told::Frozen(pods()));
    let gone = pod("two", 101).header;
    let (name, uid, version) = (gone.name, gone.uid, gone.version);
    change(&hub, &pods(), Change::Delete { name, uid, version });
    assert_eq!(
        scopes(&hub, &secrets()),
        Some(2),
        "frozen: it does not shrink"
    );
    list(&hub, &pods(), &[pod("one", 5)], 120);
    assert_eq!(scopes(&hub, &secrets()), Some(1));
}

#[test]
fn a_view_that_waits_for_bytes_is_looked_at_when_a_change_ends_the_wait() {
    let secret = |at| object(&secrets(), "one", at, "");
    let (hub, bell) = hub(&[], &[secret(5)]);
    change(&hub, &pods(), Change::Put(pod("one", 101)));
    assert_eq!(scopes(&hub, &secrets()), None, "its bytes are not there");
    bell.words();
    change(&hub, &secrets(), Change::Put(secret(102)));
    assert!(bell.words().has(Word::View));
    assert_eq!(scopes(&hub, &secrets()), Some(1));
}
