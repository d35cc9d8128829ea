//! Patches of every kind, of what every object has and of what is particular to its kind.

use serde_json::{Value, json};

use super::kinds::{Kind, labels};
use super::maker::{Maker, Said, State};
use super::writing::{Meant, query, stored};

pub(super) const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");
const STRATEGIC: (&str, &str) = ("Content-Type", "application/strategic-merge-patch+json");
const JSON_PATCH: (&str, &str) = ("Content-Type", "application/json-patch+json");

/// Patches one object.
pub(super) fn patch(maker: &mut Maker) {
    let (kind, name) = maker.place_where(|state| state != State::Absent);
    let (header, mut body) = match maker.lot.below(4) {
        0 => (JSON_PATCH, operations(maker)),
        // What a custom kind says instead of taking this is a listed difference.
        1 if kind != Kind::Thing => (STRATEGIC, strategic(maker, kind)),
        _ => (MERGE, merged(maker, kind)),
    };
    if maker.lot.percent(12) {
        expect_version(maker, (kind, name), &mut body);
    }
    let (query, meant) = query(maker);
    let answer = maker.say(Said {
        title: format!("{} {name} is patched", kind.word()),
        method: "PATCH",
        target: format!("{}/{name}{query}", kind.collection()),
        headers: &[header],
        body: Some(body),
    });
    let there = maker.belief(kind, name).state != State::Absent;
    if there && header != JSON_PATCH && meant == Meant::Yes {
        stored(maker, (kind, name), answer);
    }
}

/// Makes a patch depend on the version, the last that is known or the first, or on the uid.
fn expect_version(maker: &mut Maker, (kind, name): (Kind, &'static str), body: &mut Value) {
    let answers = &maker.belief(kind, name).answers;
    let (first, last) = (answers.first().cloned(), answers.last().cloned());
    let answer = if maker.lot.percent(50) { first } else { last };
    let field = maker
        .lot
        .one_of(&["resourceVersion", "resourceVersion", "uid"]);
    let Some(answer) = answer else { return };
    let value = format!("{{{{{answer}.metadata.{field}}}}}");
    match body {
        Value::Array(operations) => {
            let path = format!("/metadata/{field}");
            let test = json!({"op": "test", "path": path, "value": value});
            operations.insert(0, test);
        }
        body => body["metadata"][field] = json!(value),
    }
}

/// A patch that knows the lists of its kind.
fn strategic(maker: &mut Maker, kind: Kind) -> Value {
    let port = maker.lot.below(3) + 80;
    match (kind, maker.lot.below(3)) {
        (Kind::Pod, 0) => {
            json!({"spec": {"containers": [{"name": "c", "image": format!("i:{port}")}]}})
        }
        (Kind::Pod, 1) => json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}),
        (Kind::Service, 0) => json!({"spec": {"ports": [{"port": port, "name": "web"}]}}),
        (Kind::Service, 1) => json!({"spec": {"ports": [{"port": port, "$patch": "delete"}]}}),
        (_, 2) => json!({"metadata": {"labels": {"$patch": "replace", "color": "green"}}}),
        _ => merged(maker, kind),
    }
}

/// A patch that is merged: of labels, or of what is particular to the kind.
fn merged(maker: &mut Maker, kind: Kind) -> Value {
    match maker.lot.below(6) {
        0 | 1 => json!({"metadata": {"labels": labels(&mut maker.lot)}}),
        2 => json!({"metadata": {"labels": {"color": null}}}),
        3 => json!({"metadata": {"annotations": {"note": maker.lot.below(9).to_string()}}}),
        _ => kind.change(&mut maker.lot),
    }
}

fn operations(maker: &mut Maker) -> Value {
    let color = maker.lot.one_of(&["red", "blue"]);
    match maker.lot.below(6) {
        5 => json!([{"op": "add", "path": "/metadata/labels/size", "value": "big"},
            {"op": "move", "from": "/metadata/labels/size", "path": "/metadata/labels/was"}]),
        0 => json!([{"op": "add", "path": "/metadata/labels", "value": {"color": color}}]),
        1 => json!([{"op": "replace", "path": "/metadata/labels/color", "value": color}]),
        2 => json!([{"op": "remove", "path": "/metadata/labels/color"}]),
        3 => json!([{"op": "test", "path": "/metadata/labels/color", "value": color},
            {"op": "add", "path": "/metadata/annotations", "value": {"note": "tested"}}]),
        _ => json!([{"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"}]),
    }
}
