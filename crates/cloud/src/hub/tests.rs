//! What a hub makes of lists, changes and outages.

use host::Clock;
use object::{Change, Object, Range, Version};
use wire::frame::{Class, Weight};
use wire::report::statement::Wanted;

use super::*;
use crate::ledger::Began;
use crate::papers::Effective;
use crate::replay::{Standing, Witness as _};
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
        r#","spec":{{"nodeName":"n","serviceAccountName":"default","volumes":[{{"name":"v","secret":
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

#[test]
fn what_a_session_said_is_written_while_it_is_the_nodes_and_was_just_heard_of() {
    let (clock, hands) = Clock::manual("2026-11-16T10:00:00Z".parse().unwrap());
    let times = Times::new(clock.clone());
    let (hub, _) = Hub::new(times, Policy::default(), 1, Limits::default());
    let node: NodeName = "n".into();
    hub.sessions().begin(&node, 4, times_now(&hub));
    let began = Began {
        number: 4,
        at: times_now(&hub),
        remote: "".into(),
        transport: "tcp",
        program: "".into(),
    };
    hub.ledger().began(&node, began, clock.wall());
    assert_eq!(hub.standing(&node, 4), Standing::Live);
    assert_eq!(hub.standing(&node, 3), Standing::Over);
    hands.advance(Duration::from_secs(11));
    assert_eq!(hub.standing(&node, 4), Standing::Silent);
    let mut weight = Weight::default();
    weight.add(Class::Control, 1);
    hub.carried(&node, weight, Weight::default());
    assert_eq!(hub.standing(&node, 4), Standing::Live);
    hub.sessions().begin(&node, 5, times_now(&hub));
    assert_eq!(hub.standing(&node, 4), Standing::Over);
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

fn widgets() -> Resource {
    Resource::new("example.com", "widgets")
}

/// A hub that knows who may read widgets, and nothing else.
fn hub_of_rules() -> Hub {
    let times = Times::new(Clock::machine());
    let (hub, _) = Hub::new(times, Policy::default(), 1, Limits::default());
    let rule = r#","rules":[{"apiGroups":["example.com"],"resources":["widgets"],"verbs":["*"]}]"#;
    let subject = r#","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},
        "subjects":[{"kind":"ServiceAccount","name":"default","namespace":"a"}]"#;
    for kind in role_kinds() {
        let all = match kind.plural() {
            "roles" => vec![object(&kind, "r", 5, rule)],
            "rolebindings" => vec![object(&kind, "r", 6, subject)],
            _ => Vec::new(),
        };
        list(&hub, &kind, &all, 100);
    }
    let effective = Effective::read(&hub.cache().read()).unwrap();
    assert!(hub.papers.rule(effective));
    hub.grant_all();
    hub
}

#[test]
fn what_a_node_asks_for_is_given_once_its_pods_are_known() {
    let hub = hub_of_rules();
    let range = Range::Namespace("a".into());
    let resource = widgets();
    hub.ask_for(&"n".into(), vec![Wanted { resource, range }]);
    assert!(!hub.wanted("n").contains_key(&widgets()));
    list(&hub, &pods(), &[pod("one", 5)], 100);
    assert!(hub.wanted("n").contains_key(&widgets()));
}

#[test]
fn what_a_node_asked_for_is_forgotten_when_it_is_deleted_and_has_no_session() {
    let (hub, nodes) = (hub_of_rules(), Resource::new("", "nodes"));
    let node = |name: &str| {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","uid":"u","resourceVersion":"5"}},"kind":"Node"}}"#
        );
        Object::parse(&nodes, text.into(), &[]).unwrap()
    };
    let inputs = hub.resources().0.into_iter();
    let others = inputs.filter(|it| *it != pods() && *it != nodes && !is_of_rules(it));
    others.for_each(|resource| hub.serves(&resource, false));
    list(&hub, &pods(), &[pod("one", 5)], 100);
    list(&hub, &nodes, &[node("n")], 100);
    let asks = || {
        let (resource, range) = (widgets(), Range::Namespace("a".into()));
        hub.ask_for(&"n".into(), vec![Wanted { resource, range }]);
    };
    let asked = || hub.wishes.nodes().contains(&"n".into());
    asks();
    hub.forget_wishes(&"n".into());
    assert!(asked(), "it is there");
    hub.sessions().begin(&"n".into(), 1, times_now(&hub));
    list(&hub, &nodes, &[], 120);
    assert!(asked(), "it has a session, in which it says so once");
    hub.sessions().end(&"n".into(), 1);
    hub.forget_wishes(&"n".into());
    assert!(
        !asked()
            && hub
                .wanted("n")
                .get(&widgets())
                .is_none_or(|it| it.is_empty())
    );
    // It is there again, and is deleted while it has none.
    list(&hub, &nodes, &[node("n")], 130);
    asks();
    list(&hub, &nodes, &[], 140);
    assert!(!asked());
}

#[tokio::test]
async fn who_waits_until_everything_is_known_misses_nothing() {
    let times = Times::new(Clock::machine());
    let (hub, _) = Hub::new(times, Policy::default(), 1, Limits::default());
    let hub = Arc::new(hub);
    let waits = hub.clone();
    let waiting = async move { waits.until_inputs_are_known().await };
    let mut waiting = std::pin::pin!(waiting);
    let inputs = hub.resources().0.into_iter();
    for resource in inputs.filter(|kind| !is_of_rules(kind)) {
        let woken = tokio::time::timeout(Duration::ZERO, waiting.as_mut()).await;
        assert!(woken.is_err(), "before {resource} is known");
        hub.serves(&resource, false);
    }
    waiting.await;
}
