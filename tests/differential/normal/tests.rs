//! What is made alike, and what must stay different.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;

use super::*;

const NOW: &str = "2026-03-01T12:00:00Z";
const A: &str = "0a0a0a0a-0000-4000-8000-000000000001";
const B: &str = "0b0b0b0b-0000-4000-8000-000000000002";
const C: &str = "0c0c0c0c-0000-4000-8000-000000000003";

/// Both sides of several answers, made alike.
fn both(real: Value, ours: Value) -> (Value, Value) {
    both_said(real, ours, "")
}

fn both_said(real: Value, ours: Value, said: &str) -> (Value, Value) {
    let now: Timestamp = NOW.parse().unwrap();
    let side = |kind, port: u16, answers: Value| {
        let answers = answers.as_array().unwrap().iter();
        Side {
            kind,
            server: format!("127.0.0.1:{port}"),
            began: now,
            answers: answers.map(|answer| (now, answer.clone())).collect(),
        }
    };
    let real = side(Kind::Real, 1111, real);
    let pair = normalise(real, side(Kind::Ours, 2222, ours), said);
    (Value::Array(pair.real), Value::Array(pair.ours))
}

/// One value alone.
fn one(value: Value) -> Value {
    let (real, _) = both(json!([value]), json!([null]));
    real[0].clone()
}

fn object(version: &str) -> Value {
    json!({"kind": "ConfigMap", "metadata": {"resourceVersion": version}})
}

#[test]
fn uids_are_numbered_by_first_appearance() {
    let (real, ours) = both(json!([[A, B, A]]), json!([[C, A, C]]));
    assert_eq!(real, ours);
    assert_eq!(real, json!([["<uid 1>", "<uid 2>", "<uid 1>"]]));
}

#[test]
fn two_objects_where_the_other_has_one_are_a_difference() {
    let (real, ours) = both(json!([A, B]), json!([C, C]));
    assert_eq!(real, json!(["<uid 1>", "<uid>"]));
    assert_eq!(ours, json!(["<uid 1>", "<uid 1>"]));
}

#[test]
fn a_missing_uid_is_a_difference_and_shifts_no_others() {
    let real = json!([{"metadata": {"uid": A}}, {"metadata": {"uid": B}}]);
    let ours = json!([{"metadata": {}}, {"metadata": {"uid": C}}]);
    let (real, ours) = both(real, ours);
    assert_eq!(real[0], json!({"metadata": {"uid": "<uid>"}}));
    assert_eq!(ours[0], json!({"metadata": {}}));
    assert_eq!(real[1], ours[1]);
}

#[test]
fn uids_in_words_are_numbered_and_the_conversations_own_are_kept() {
    let said = format!("UID: {B}");
    let text = |uid: &str| json!([format!("in precondition: {B}, in object meta: {uid}")]);
    let (real, ours) = both_said(text(A), text(C), &said);
    assert_eq!(real, ours);
    let expected = format!("in precondition: {B}, in object meta: <uid 2>");
    assert_eq!(real, json!([expected]));
}

#[test]
fn versions_become_their_order() {
    let (real, ours) = both(
        json!([object("9"), object("100"), object("9")]),
        json!([object("1"), object("2"), object("1")]),
    );
    assert_eq!(real, ours);
    assert_eq!(real[1]["metadata"]["resourceVersion"], "<v 2>");
}

#[test]
fn a_version_that_goes_back_or_stays_is_a_difference() {
    let (real, back) = both(
        json!([object("5"), object("6")]),
        json!([object("5"), object("4")]),
    );
    assert_ne!(real, back);
    let (real, same) = both(
        json!([object("5"), object("6")]),
        json!([object("5"), object("5")]),
    );
    assert_ne!(real, same);
}

#[test]
fn a_list_lies_at_or_after_an_object() {
    let list = |version: &str| {
        let mut list = object(version);
        list["items"] = json!([]);
        list
    };
    let (real, ours) = both(
        json!([object("10"), list("17"), object("20")]),
        json!([object("1"), list("1"), object("2")]),
    );
    assert_eq!(real, ours);
    assert_eq!(real[1]["metadata"]["resourceVersion"], "<at v 1>");
    let (real, stale) = both(
        json!([object("10"), object("20"), list("21")]),
        json!([object("1"), object("3"), list("2")]),
    );
    assert_ne!(real, stale);
}

#[test]
fn a_bookmark_is_a_moment() {
    let event = |kind: &str| {
        let event = json!({"type": kind, "object": object("7")});
        let (real, _) = both(json!([object("5"), event]), json!([object("5"), event]));
        real[1]["object"]["metadata"]["resourceVersion"].clone()
    };
    assert_eq!(event("BOOKMARK"), "<at v 1>");
    assert_eq!(event("ADDED"), "<v 2>");
    let table = json!({"kind": "Table", "rows": [{"object": object("7")}]});
    let table = json!({"type": "BOOKMARK", "object": table});
    let (real, _) = both(json!([object("5"), table]), json!([object("5"), table]));
    let row = &real[1]["object"]["rows"][0]["object"];
    assert_eq!(row["metadata"]["resourceVersion"], "<at v 1>");
}

#[test]
fn a_version_that_only_one_side_has_shifts_no_others() {
    let (real, ours) = both(
        json!([object("5"), object("6"), object("7")]),
        json!([object("5"), {"kind": "Status"}, object("6")]),
    );
    assert_eq!(real[1]["metadata"]["resourceVersion"], "<after v 1>");
    assert_eq!(real[2], ours[2]);
}

#[test]
fn a_version_that_only_one_side_counted_up_is_told_once() {
    let (real, ours) = both(
        json!([object("5"), object("6"), object("7")]),
        json!([object("5"), object("5"), object("6")]),
    );
    assert_eq!(real[1]["metadata"]["resourceVersion"], "<after v 1>");
    assert_eq!(ours[1]["metadata"]["resourceVersion"], "<v 1>");
    assert_eq!(real[2], ours[2]);
}

#[test]
fn times_of_the_clock_are_made_alike_and_times_that_were_sent_are_not() {
    let time = "2026-03-01T12:00:05Z";
    assert_eq!(one(json!(time)), "<now>");
    assert_eq!(one(json!("to 2026-03-01T13:00:00Z.")), "to <now+60m>.");
    assert_eq!(one(json!("2026-03-01T12:00:05.123456Z")), "<now .000000Z>");
    assert_eq!(one(json!("2026-03-01T13:00:05+01:00")), "<now +00:00>");
    assert_eq!(one(json!("2020-03-01T12:00:05Z")), "2020-03-01T12:00:05Z");
    let (kept, _) = both_said(json!([time]), json!([null]), time);
    assert_eq!(kept[0], time);
}

#[test]
fn managed_fields_are_left_out_of_metadata_only() {
    let value = json!({"metadata": {"managedFields": [1], "name": "a"}, "managedFields": [2]});
    assert_eq!(
        one(value),
        json!({"metadata": {"name": "a"}, "managedFields": [2]})
    );
}

#[test]
fn tokens_certificates_and_addresses_have_words() {
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2sifQ.c2lnbmF0dXJlc2ln";
    assert_eq!(one(json!(format!("of {token}"))), "of <token>");
    let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    assert_eq!(one(json!(certificate)), "<certificate>");
    assert_eq!(one(json!("at 127.0.0.1:1111 now")), "at <server> now");
    assert_eq!(
        one(json!({"metadata": {"continue": "abc"}})),
        json!({"metadata": {"continue": "<continue>"}})
    );
    assert_eq!(
        one(json!({"metadata": {"continue": ""}})),
        json!({"metadata": {"continue": ""}})
    );
}

#[test]
fn drawn_addresses_and_ports_are_made_alike_and_chosen_ones_are_not() {
    let service = json!({"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"],
        "ports": [{"nodePort": 30123, "port": 80}]});
    let drawn = json!({"clusterIP": "<ip>", "clusterIPs": ["<ip>"],
        "ports": [{"nodePort": "<port>", "port": 80}]});
    assert_eq!(one(service.clone()), drawn);
    let said = "10.0.0.7 and 30123";
    let (chosen, _) = both_said(json!([service]), json!([service]), said);
    assert_eq!(chosen[0], service);
    assert_eq!(
        one(json!({"clusterIP": "None"})),
        json!({"clusterIP": "None"})
    );
}

#[test]
fn generated_names_are_made_alike_wherever_they_stand() {
    let made = json!({"metadata": {"generateName": "a-", "name": "a-x7kqz"}});
    let other = json!({"message": "configmaps \"a-x7kqz\" not found"});
    let (real, _) = both(json!([made, other]), json!([null, null]));
    assert_eq!(real[0]["metadata"]["name"], "a-<suffix>");
    assert_eq!(real[1]["message"], "configmaps \"a-<suffix>\" not found");
    let refused = json!([{"details": {"name": "a-x7kqz"}, "message": "\"a-x7kqz\" is invalid"}]);
    let (real, _) = both_said(refused.clone(), json!([null]), "\"generateName\": \"a-\"");
    assert_eq!(real[0]["message"], "\"a-<suffix>\" is invalid");
    let (real, _) = both(refused.clone(), json!([null]));
    assert_eq!(real, refused);
    let chosen = json!({"metadata": {"generateName": "a-", "name": "a-vowel"}});
    assert_eq!(one(chosen.clone()), chosen);
}

#[test]
fn what_a_token_says_is_shown() {
    let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let head = part(json!({"alg": "RS256", "kid": "of-this-server"}));
    let from: Timestamp = NOW.parse().unwrap();
    let (from, to) = (from.as_second(), from.as_second() + 3600);
    let claims = part(json!({"exp": to, "iat": from, "jti": A, "aud": ["here"]}));
    let token = format!("{head}.{claims}.c2lnbmF0dXJlc2ln");
    let claims = json!({"exp": "<now+60m>", "iat": "<now>", "jti": "<uid>", "aud": ["here"]});
    let shown = json!({"<token>": {"head": {"alg": "RS256", "kid": "<key>"}, "claims": claims}});
    assert_eq!(one(json!({"token": token})), json!({"token": shown}));
    let (kept, _) = both_said(json!([token]), json!([null]), &token);
    assert_eq!(kept[0], json!(token));
}

#[test]
fn the_same_cause_is_named_once_on_the_real_side_only() {
    let cause = json!({"field": "metadata.uid", "message": "field is immutable"});
    let other = json!({"field": "metadata.name", "message": "field is immutable"});
    let often = json!([{"causes": [cause, other, cause]}]);
    let (real, ours) = both(often.clone(), often.clone());
    assert_eq!(real, json!([{"causes": [cause, other]}]));
    assert_eq!(ours, often);
}

#[test]
fn the_volume_of_a_pods_token_and_prose_have_words() {
    let pod = json!({"volumes": [{"name": "kube-api-access-x7kqz"}, {"name": "other-x7kqz"}]});
    let expected =
        json!({"volumes": [{"name": "kube-api-access-<suffix>"}, {"name": "other-x7kqz"}]});
    assert_eq!(one(pod.clone()), expected);
    let said = "kube-api-access-x7kqz";
    assert_eq!(both_said(json!([pod]), json!([null]), said).0[0], pod);
    let columns = json!({"columnDefinitions": [{"name": "Age", "description": "Some words."}]});
    let expected = json!({"columnDefinitions": [{"name": "Age", "description": "<description>"}]});
    assert_eq!(one(columns.clone()), expected);
    let said = "\"description\": \"Some words.\"";
    assert_eq!(
        both_said(json!([columns]), json!([null]), said).0[0],
        columns
    );
    let prose = json!({"annotations": {"kubernetes.io/description": "Some words."}});
    let expected = json!({"annotations": {"kubernetes.io/description": "<description>"}});
    assert_eq!(one(prose.clone()), expected);
    let (kept, _) = both_said(json!([prose]), json!([null]), "Some words.");
    assert_eq!(kept[0], prose);
}

#[test]
fn versions_in_the_words_of_errors_are_made_alike() {
    for (said, expected) in [
        (
            "too old resource version: 1 (5)",
            "too old resource version: <n> (<n>)",
        ),
        (
            "Too large resource version: 1000, current: 5",
            "Too large resource version: <n>, current: <n>",
        ),
        (
            "ResourceVersion in precondition: 1, ResourceVersion in object meta: 12",
            "ResourceVersion in precondition: <n>, ResourceVersion in object meta: <n>",
        ),
        (
            "the ResourceVersion in the precondition (5), the ResourceVersion in record (7).",
            "the ResourceVersion in the precondition (<n>), the ResourceVersion in record (<n>).",
        ),
        (
            "must be no more than 63 characters",
            "must be no more than 63 characters",
        ),
    ] {
        assert_eq!(one(json!({"message": said})), json!({"message": expected}));
    }
}

#[test]
fn ages_are_made_alike_in_cells_only() {
    let value = json!({"cells": ["a", "12s", "1m5s", "5", 3], "timeout": "12s"});
    let expected = json!({"cells": ["a", "<age>", "<age>", "5", 3], "timeout": "12s"});
    assert_eq!(one(value), expected);
}

#[test]
fn what_was_drawn_is_made_alike_in_cells_too() {
    let value = json!({"cells": ["10.0.0.7", "80:30123/TCP,81:31000/UDP", "80/TCP"]});
    let expected = json!({"cells": ["<ip>", "80:<port>/TCP,81:<port>/UDP", "80/TCP"]});
    assert_eq!(one(value), expected);
}
