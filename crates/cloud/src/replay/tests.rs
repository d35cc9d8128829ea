//! What is asked for in a node's name, and in which order.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use wire::report::statement::{About, Act, EventApi, Pulse};

use super::lanes::{AGAIN_MIN, BYTES_MAX, Doubt, FAILURES_MAX, FORBIDDEN_MAX};
use super::write::{about, outcome, request};
use super::*;
use crate::cluster::{self, ContentType, Error};

fn pod(patch: &Value) -> Statement {
    Statement::Status {
        about: About::Pod {
            namespace: "shop".into(),
            name: "web-0".into(),
            uid: "u1".into(),
        },
        patch: patch.to_string().into(),
    }
}

fn body(asked: &Bytes) -> Value {
    serde_json::from_slice(asked).unwrap()
}

#[test]
fn a_status_is_a_patch_for_one_uid_alone() {
    let patch = json!({"status": {"phase": "Running"}, "metadata": {"annotations": {"a": "b"}}});
    let asked = request("n1", &pod(&patch)).unwrap();
    assert_eq!(asked.method, Method::PATCH);
    assert_eq!(asked.path, "/api/v1/namespaces/shop/pods/web-0/status");
    assert_eq!(asked.content_type, ContentType::StrategicMergePatch);
    let expected = json!({
        "status": {"phase": "Running"},
        "metadata": {"annotations": {"a": "b"}, "uid": "u1"}
    });
    assert_eq!(body(&asked.body), expected);
    let node = Statement::Status {
        about: About::Node { uid: "u2".into() },
        patch: Bytes::from_static(b"{\"status\":{}}"),
    };
    let asked = request("n1", &node).unwrap();
    assert_eq!(asked.path, "/api/v1/nodes/n1/status");
    assert_eq!(body(&asked.body)["metadata"]["uid"], "u2");
}

#[test]
fn a_node_changes_nothing_but_status_labels_and_annotations() {
    for patch in [
        json!({"spec": {"nodeName": "n2"}}),
        json!({"status": {}, "kind": "Node"}),
        json!({"metadata": {"uid": "another"}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": null}),
        json!({"$patch": "delete"}),
        json!([]),
    ] {
        assert_eq!(request("n1", &pod(&patch)), None, "{patch}");
    }
}

#[test]
fn an_event_is_made_under_its_own_name_and_changed_there() {
    let event = |act| Statement::Event {
        api: EventApi::Events,
        act,
        namespace: "shop".into(),
        name: "web.1".into(),
        body: json!({"note": "x", "metadata": {"namespace": "other", "name": "another"}})
            .to_string()
            .into(),
    };
    let made = request("n1", &event(Act::Create)).unwrap();
    assert_eq!(made.path, "/apis/events.k8s.io/v1/namespaces/shop/events");
    let metadata = &body(&made.body)["metadata"];
    assert_eq!(*metadata, json!({"namespace": "shop", "name": "web.1"}));
    let changed = request("n1", &event(Act::Patch)).unwrap();
    assert_eq!(changed.path, format!("{}/web.1", made.path));
    assert_eq!(request("n1", &Statement::Kubelet(Pulse::Alive)), None);
    assert_eq!(about(&event(Act::Create)), "event shop/web.1");
}

fn node(name: &str) -> NodeName {
    name.into()
}

fn load(item: u32) -> Load<u32> {
    named(item, "")
}

fn named(item: u32, name: &str) -> Load<u32> {
    let (name, bytes) = (name.to_owned(), 1);
    Load { item, name, bytes }
}

/// What is to be written next, and its ticket.
fn first(lanes: &mut Lanes<NodeName, u32>, of: &str, now: Instant) -> Option<(u32, Ticket)> {
    lanes.first(&node(of), now, |it| *it)
}

/// Writes the next, and says what it was.
fn written(lanes: &mut Lanes<NodeName, u32>, of: &str, now: Instant) -> Option<u32> {
    let (_, ticket) = first(lanes, of, now)?;
    lanes.pop(&node(of), ticket)
}

#[test]
fn one_at_a_time_writes_for_a_node_and_in_order() {
    let now = Clock::machine().now();
    let mut lanes = Lanes::default();
    for item in 1..=3 {
        lanes.push(&node("a"), 1, load(item)).unwrap();
    }
    lanes.push(&node("b"), 1, load(9)).unwrap();
    assert_eq!(lanes.begin(now), Some(node("a")));
    assert_eq!(lanes.begin(now), Some(node("b")));
    assert_eq!(lanes.begin(now), None);
    for item in 1..=3 {
        assert_eq!(written(&mut lanes, "a", now), Some(item));
    }
    assert_eq!(first(&mut lanes, "a", now), None);
    // The next begins anew.
    lanes.push(&node("a"), 1, load(4)).unwrap();
    assert_eq!(lanes.begin(now), Some(node("a")));
}

#[test]
fn what_an_older_session_said_is_not_written_after_what_a_newer_one_says() {
    let now = Clock::machine().now();
    let mut lanes = Lanes::default();
    lanes.push(&node("a"), 1, load(1)).unwrap();
    lanes.push(&node("a"), 1, load(2)).unwrap();
    assert_eq!(lanes.begin(now), Some(node("a")));
    let (_, old) = first(&mut lanes, "a", now).unwrap();
    // While it is written the session ends, and another one begins.
    lanes.ended(&node("a"), 1);
    lanes.push(&node("a"), 2, load(1)).unwrap();
    assert_eq!(lanes.begin(now), None);
    assert_eq!(lanes.pop(&node("a"), old), None);
    let (_, new) = first(&mut lanes, "a", now).unwrap();
    assert_eq!(new.session, 2);
    lanes.push(&node("a"), 1, load(7)).unwrap();
    assert_eq!(lanes.pop(&node("a"), new), Some(1));
    assert_eq!(first(&mut lanes, "a", now), None);
}

#[test]
fn a_lane_that_rests_holds_up_no_other_and_rests_longer_each_time() {
    let mut lanes = Lanes::default();
    let mut at = Clock::machine().now();
    lanes.push(&node("a"), 1, load(1)).unwrap();
    for pause in [1, 2, 4, 8] {
        assert_eq!(lanes.begin(at), Some(node("a")));
        lanes.rest(&node("a"), None, at);
        // Whatever comes meanwhile waits behind it.
        lanes.push(&node("a"), 1, load(2)).unwrap();
        assert_eq!(lanes.begin(at), None);
        let rested = at + Duration::from_secs(pause);
        assert_eq!(lanes.rested(), Some(rested));
        lanes.push(&node("b"), 1, load(9)).unwrap();
        assert_eq!(lanes.begin(at), Some(node("b")));
        assert_eq!(written(&mut lanes, "b", at), Some(9));
        assert_eq!(first(&mut lanes, "b", at), None);
        at = rested;
    }
    // Who was told to come at once does not.
    assert_eq!(lanes.begin(at), Some(node("a")));
    lanes.rest(&node("a"), Some(Duration::ZERO), at);
    assert_eq!(lanes.rested(), Some(at + AGAIN_MIN));
    // The session ends while it rests: the next one is written at once, and once.
    lanes.ended(&node("a"), 1);
    lanes.push(&node("a"), 2, load(3)).unwrap();
    assert_eq!(lanes.begin(at + AGAIN_MIN), Some(node("a")));
    assert_eq!(lanes.begin(at + AGAIN_MIN), None);
    assert_eq!(written(&mut lanes, "a", at + AGAIN_MIN), Some(3));
}

/// What is tried again and again, each time when its pause is over. Returns how often until it is
/// given up, and after how long. The cluster does `works` other things between two tries.
fn given_up_after(doubt: Doubt, works: u64) -> Option<(u32, Duration)> {
    let mut lanes = Lanes::default();
    let began = Clock::machine().now();
    let mut at = Moment {
        now: began,
        works: 7,
    };
    lanes.push(&node("a"), 1, load(1)).unwrap();
    for tries in 1..100 {
        assert_eq!(lanes.begin(at.now), Some(node("a")));
        let (_, ticket) = first(&mut lanes, "a", at.now).unwrap();
        let soon = (doubt, Some(Duration::ZERO));
        if lanes.set_aside(&node("a"), ticket, soon, at) == Left::GivenUp(1) {
            return Some((tries, at.now - began));
        }
        assert_eq!(first(&mut lanes, "a", at.now), None);
        at.now = lanes.rested().unwrap();
        at.works += works;
    }
    None
}

#[test]
fn what_the_cluster_fails_at_for_ten_minutes_is_given_up_while_it_does_other_things() {
    let (tries, lasted) = given_up_after(Doubt::Failed, 1).unwrap();
    assert_eq!(tries, FAILURES_MAX);
    let minutes = lasted.as_secs() / 60;
    assert!((9..12).contains(&minutes), "{lasted:?}");
    // A cluster that does nothing at all is ill, and says nothing about this.
    assert_eq!(given_up_after(Doubt::Failed, 0), None);
}

#[test]
fn what_a_node_may_not_is_given_up_after_two_minutes_and_what_follows_at_once() {
    let (tries, lasted) = given_up_after(Doubt::Forbidden, 0).unwrap();
    assert_eq!(tries, FORBIDDEN_MAX);
    assert!((100..150).contains(&lasted.as_secs()), "{lasted:?}");
    let mut lanes = Lanes::default();
    let mut at = Moment {
        now: Clock::machine().now(),
        works: 0,
    };
    for item in 1..=4 {
        lanes.push(&node("a"), 1, load(item)).unwrap();
    }
    let mut forbid = |lanes: &mut Lanes<NodeName, u32>| {
        at.now += Duration::from_secs(60);
        let (_, ticket) = first(lanes, "a", at.now).unwrap();
        lanes.set_aside(&node("a"), ticket, (Doubt::Forbidden, None), at)
    };
    for _ in 1..FORBIDDEN_MAX {
        assert_eq!(forbid(&mut lanes), Left::Aside);
    }
    assert_eq!(forbid(&mut lanes), Left::GivenUp(1));
    assert_eq!(forbid(&mut lanes), Left::GivenUp(2));
    // Something is allowed again: patience is, too.
    let later = Clock::machine().now() + Duration::from_secs(3600);
    assert_eq!(written(&mut lanes, "a", later), Some(3));
    assert_eq!(forbid(&mut lanes), Left::Aside);
}

#[test]
fn what_is_set_aside_holds_up_its_own_name_alone() {
    let mut lanes = Lanes::default();
    let now = Clock::machine().now();
    let at = Moment { now, works: 0 };
    for (item, name) in [(1, "p"), (2, "p"), (3, "q")] {
        lanes.push(&node("a"), 1, named(item, name)).unwrap();
    }
    assert_eq!(lanes.begin(now), Some(node("a")));
    let (item, ticket) = first(&mut lanes, "a", now).unwrap();
    assert_eq!(item, 1);
    let failed = (Doubt::Failed, None);
    assert_eq!(lanes.set_aside(&node("a"), ticket, failed, at), Left::Aside);
    assert_eq!(written(&mut lanes, "a", now), Some(3));
    assert_eq!(first(&mut lanes, "a", now), None);
    // What comes meanwhile is written at once.
    assert_eq!(lanes.begin(now), None);
    lanes.push(&node("a"), 1, named(4, "r")).unwrap();
    assert_eq!(lanes.begin(now), Some(node("a")));
    assert_eq!(written(&mut lanes, "a", now), Some(4));
    assert_eq!(first(&mut lanes, "a", now), None);
    let later = now + AGAIN_MIN;
    assert_eq!(lanes.rested(), Some(later));
    assert_eq!(lanes.begin(later), Some(node("a")));
    assert_eq!(written(&mut lanes, "a", later), Some(1));
    assert_eq!(written(&mut lanes, "a", later), Some(2));
    assert_eq!(first(&mut lanes, "a", later), None);
}

#[test]
fn a_cluster_that_fails_at_everything_is_not_asked_for_one_thing_after_the_other() {
    let mut lanes = Lanes::default();
    let mut at = Moment {
        now: Clock::machine().now(),
        works: 3,
    };
    for (item, name) in [(1, "p"), (2, "q"), (3, "r")] {
        lanes.push(&node("a"), 1, named(item, name)).unwrap();
    }
    let fail = |lanes: &mut Lanes<NodeName, u32>, at: Moment| {
        let (item, ticket) = first(lanes, "a", at.now).unwrap();
        let left = lanes.set_aside(&node("a"), ticket, (Doubt::Failed, None), at);
        (item, left)
    };
    assert_eq!(lanes.begin(at.now), Some(node("a")));
    assert_eq!(fail(&mut lanes, at), (1, Left::Aside));
    assert_eq!(fail(&mut lanes, at), (2, Left::Resting));
    assert_eq!(lanes.begin(at.now), None);
    at.now += AGAIN_MIN;
    // What was not tried yet is not held up by what was.
    assert_eq!(lanes.begin(at.now), Some(node("a")));
    assert_eq!(written(&mut lanes, "a", at.now), Some(3));
    at.works += 1;
    assert_eq!(fail(&mut lanes, at), (1, Left::Aside));
}

#[test]
fn an_answer_is_about_the_statement_and_silence_is_not() {
    let refused = |code, message: &str| {
        outcome(&Error::Refused(cluster::Status {
            code,
            reason: String::new(),
            message: message.to_owned(),
            retry_after: None,
            is_ahead: false,
        }))
    };
    let doubt = |outcome| match outcome {
        Outcome::Aside { doubt, .. } => Some(doubt),
        _ => None,
    };
    for code in [500, 502, 503, 504] {
        assert_eq!(doubt(refused(code, "")), Some(Doubt::Failed), "{code}");
    }
    assert_eq!(doubt(refused(403, "no")), Some(Doubt::Forbidden));
    let ends = "cannot create resource: namespace x because it is being terminated";
    assert!(matches!(refused(403, ends), Outcome::Dropped(_)));
    for code in [400, 404, 422] {
        assert!(matches!(refused(code, ""), Outcome::Dropped(_)), "{code}");
    }
    for code in [401, 408, 429] {
        assert!(matches!(refused(code, ""), Outcome::Again { .. }), "{code}");
    }
    let (what, source) = ("connect", None);
    let unreached = outcome(&Error::NotSent { what, source });
    assert!(matches!(unreached, Outcome::Again { .. }));
}

#[test]
fn a_node_has_only_so_much_on_its_way() {
    let mut lanes = Lanes::default();
    lanes
        .push(
            &node("a"),
            1,
            Load {
                bytes: BYTES_MAX,
                ..load(1)
            },
        )
        .unwrap();
    assert_eq!(lanes.push(&node("a"), 1, load(2)), Err(Full));
    lanes.push(&node("b"), 1, load(2)).unwrap();
}
