//! What is asked for in a node's name, and in which order.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use wire::report::statement::{About, Act, EventApi, Pulse};

use super::lanes::{AGAIN_MIN, BYTES_MAX};
use super::write::{about, request};
use super::*;
use crate::cluster::ContentType;

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

#[test]
fn one_at_a_time_writes_for_a_node_and_in_order() {
    let now = Clock::machine().now();
    let mut lanes = Lanes::default();
    for item in 1..=3 {
        lanes.push(&node("a"), 1, (item, 1)).unwrap();
    }
    lanes.push(&node("b"), 1, (9, 1)).unwrap();
    assert_eq!(lanes.begin(now), Some(node("a")));
    assert_eq!(lanes.begin(now), Some(node("b")));
    assert_eq!(lanes.begin(now), None);
    for item in 1..=3 {
        assert_eq!(lanes.first(&node("a"), |it| *it), Some((item, 1)));
        assert_eq!(lanes.pop(&node("a"), 1), Some(item));
    }
    assert_eq!(lanes.first(&node("a"), |it| *it), None);
    // The next begins anew.
    lanes.push(&node("a"), 1, (4, 1)).unwrap();
    assert_eq!(lanes.begin(now), Some(node("a")));
}

#[test]
fn what_an_older_session_said_is_not_written_after_what_a_newer_one_says() {
    let now = Clock::machine().now();
    let mut lanes = Lanes::default();
    lanes.push(&node("a"), 1, (1, 1)).unwrap();
    lanes.push(&node("a"), 1, (2, 1)).unwrap();
    assert_eq!(lanes.begin(now), Some(node("a")));
    assert_eq!(lanes.first(&node("a"), |it| *it), Some((1, 1)));
    // While it is written the session ends, and another one begins.
    lanes.ended(&node("a"), 1);
    lanes.push(&node("a"), 2, (1, 1)).unwrap();
    assert_eq!(lanes.begin(now), None);
    assert_eq!(lanes.pop(&node("a"), 1), None);
    assert_eq!(lanes.first(&node("a"), |it| *it), Some((1, 2)));
    lanes.push(&node("a"), 1, (7, 1)).unwrap();
    assert_eq!(lanes.pop(&node("a"), 2), Some(1));
    assert_eq!(lanes.first(&node("a"), |it| *it), None);
}

#[test]
fn a_lane_that_rests_holds_up_no_other_and_rests_longer_each_time() {
    let mut lanes = Lanes::default();
    let mut at = Clock::machine().now();
    lanes.push(&node("a"), 1, (1, 1)).unwrap();
    for pause in [1, 2, 4, 8] {
        assert_eq!(lanes.begin(at), Some(node("a")));
        lanes.rest(&node("a"), None, at);
        // Whatever comes meanwhile waits behind it.
        lanes.push(&node("a"), 1, (2, 1)).unwrap();
        assert_eq!(lanes.begin(at), None);
        let rested = at + Duration::from_secs(pause);
        assert_eq!(lanes.rested(), Some(rested));
        lanes.push(&node("b"), 1, (9, 1)).unwrap();
        assert_eq!(lanes.begin(at), Some(node("b")));
        assert_eq!(lanes.pop(&node("b"), 1), Some(9));
        assert_eq!(lanes.first(&node("b"), |it| *it), None);
        at = rested;
    }
    // Who was told to come at once does not.
    assert_eq!(lanes.begin(at), Some(node("a")));
    lanes.rest(&node("a"), Some(Duration::ZERO), at);
    assert_eq!(lanes.rested(), Some(at + AGAIN_MIN));
    // The session ends while it rests: the next one is written at once, and once.
    lanes.ended(&node("a"), 1);
    lanes.push(&node("a"), 2, (3, 1)).unwrap();
    assert_eq!(lanes.begin(at + AGAIN_MIN), Some(node("a")));
    assert_eq!(lanes.begin(at + AGAIN_MIN), None);
    assert_eq!(lanes.pop(&node("a"), 2), Some(3));
}

#[test]
fn a_node_has_only_so_much_on_its_way() {
    let mut lanes = Lanes::default();
    lanes.push(&node("a"), 1, (1, BYTES_MAX)).unwrap();
    assert_eq!(lanes.push(&node("a"), 1, (2, 1)), Err(Full));
    lanes.push(&node("b"), 1, (2, 1)).unwrap();
}
