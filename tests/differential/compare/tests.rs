//! What is found, what is excused, and excuses that are out of date.

use serde_json::json;

use super::*;

/// What is wrong with a file of one step with these directives.
fn judged(directives: &str, real: Value, ours: Value) -> Vec<What> {
    let text = format!("### a\n{directives}GET /\n");
    let conversation = Conversation::parse("x.http", &text).unwrap();
    let turn = Turn {
        step: 0,
        request: "GET /",
        real,
        ours,
    };
    let found = findings(&conversation, vec![turn]);
    found.into_iter().map(|finding| finding.what).collect()
}

fn difference(path: &str, real: Option<Value>, ours: Option<Value>) -> Difference {
    Difference {
        path: path.to_owned(),
        real,
        ours,
    }
}

#[test]
fn equal_answers_are_no_finding_in_any_order_of_keys() {
    let real: Value = serde_json::from_str(r#"{"a": 1, "b": [2]}"#).unwrap();
    let ours: Value = serde_json::from_str(r#"{"b": [2], "a": 1}"#).unwrap();
    assert_eq!(judged("", real, ours), []);
}

#[test]
fn a_difference_is_told_by_its_path_with_both_values() {
    let real = json!({"status": 200, "body": {"items": [{"x": 1}, {"x": 2}], "only": null}});
    let ours = json!({"status": 200, "body": {"items": [{"x": 1}, {"x": 3}, 4]}});
    let expected = vec![
        difference("body.items.1.x", Some(json!(2)), Some(json!(3))),
        difference("body.items.2", None, Some(json!(4))),
        difference("body.only", Some(Value::Null), None),
    ];
    assert_eq!(judged("", real, ours), [What::Differs(expected)]);
}

#[test]
fn listed_differences_are_excused_with_all_below_them() {
    let real = json!({"body": {"a": {"b": 1, "c": 2}, "items": [{"s": 1, "t": 1}]}});
    let ours = json!({"body": {"a": {"b": 2, "c": 3}, "items": [{"s": 2, "t": 2}]}});
    let both = "# @differs 1 body.a\n# @differs 2 body.items.*.s body.items.0.t\n";
    assert_eq!(judged(both, real.clone(), ours.clone()), []);
    let all = judged("# @differs 1 *\n", real.clone(), ours.clone());
    assert_eq!(all, []);
    let some = judged("# @differs 1 body.a body.items.0.s\n", real, ours);
    let left = vec![difference("body.items.0.t", Some(json!(1)), Some(json!(2)))];
    assert_eq!(some, [What::Differs(left)]);
}

#[test]
fn an_excuse_for_what_is_alike_is_out_of_date() {
    let value = json!({"body": {"a": 1, "list": [1]}});
    let directives = "# @differs 4 body.a\n# @subset 5 body.list 1\n";
    let found = judged(directives, value.clone(), value);
    let [What::Listed(differs), What::Listed(subset)] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert!(differs.contains("@differs 4 body.a"), "{differs}");
    assert!(subset.contains("@subset 5 body.list"), "{subset}");
}

#[test]
fn of_a_subset_only_our_entries_are_compared() {
    let real = json!({"body": {"groups": [{"name": "a", "v": 1}, {"name": "b"}, {"name": "c"}]}});
    let ours = json!({"body": {"groups": [{"name": "a", "v": 1}, {"name": "c"}]}});
    let subset = "# @subset 5 body.groups name 2\n";
    assert_eq!(judged(subset, real.clone(), ours), []);
    let fewer = json!({"body": {"groups": [{"name": "a", "v": 1}]}});
    let why = "@subset 5 body.groups: ours has 1, not 2".to_owned();
    assert_eq!(judged(subset, real.clone(), fewer), [What::Listed(why)]);
    let other = json!({"body": {"groups": [{"name": "a", "v": 2}, {"name": "c"}]}});
    let expected = vec![difference(
        "body.groups.0.v",
        Some(json!(1)),
        Some(json!(2)),
    )];
    assert_eq!(
        judged(subset, real.clone(), other),
        [What::Differs(expected)]
    );
    let more = json!({"body": {"groups": [{"name": "a", "v": 1}, {"name": "z"}]}});
    let expected = vec![difference(
        "body.groups.1",
        None,
        Some(json!({"name": "z"})),
    )];
    assert_eq!(judged(subset, real, more), [What::Differs(expected)]);
}

#[test]
fn subsets_of_maps_and_inside_every_entry_are_left_out() {
    let real = json!({"body": {"l": [{"m": {"x": 1, "y": 2}}, {"m": {"x": 3, "y": 4}}]}});
    let ours = json!({"body": {"l": [{"m": {"x": 1}}, {"m": {"x": 3}}]}});
    assert_eq!(judged("# @subset 5 body.l.*.m 2\n", real, ours), []);
    let real = json!({"body": {"paths": ["/a", "/b"]}});
    let ours = json!({"body": {"paths": ["/b"]}});
    assert_eq!(judged("# @subset 5 body.paths 1\n", real, ours), []);
}

#[test]
fn what_the_real_server_does_not_do_is_the_files_fault_even_where_both_agree() {
    let silent = json!({"event": [], "missing": "nothing came for ten seconds"});
    let found = judged("", silent.clone(), silent.clone());
    let whose = Whose::Both;
    let why = "nothing came for ten seconds".to_owned();
    assert_eq!(found, [What::Failed { whose, why }]);
    let ours_alone = judged("", json!({"event": []}), silent);
    assert!(
        matches!(ours_alone.as_slice(), [What::Differs(_)]),
        "{ours_alone:?}"
    );
}

#[test]
fn what_came_before_both_failed_is_compared() {
    let told = |events: Value| json!({"event": events, "missing": "nothing came"});
    let found = judged("", told(json!([{"type": "ADDED"}])), told(json!([])));
    let event = difference("event.0", Some(json!({"type": "ADDED"})), None);
    let [What::Failed { whose, .. }, What::Differs(differences)] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((*whose, differences), (Whose::Both, &vec![event]));
}

#[test]
fn no_mark_excuses_that_our_side_failed() {
    let real = json!({"status": 200, "body": 1});
    for failed in FAILED {
        let ours = json!({failed: "no answer"});
        let found = judged("# @differs 1 status=422 *\n", real.clone(), ours);
        let [What::Differs(differences), ..] = found.as_slice() else {
            panic!("{found:?}")
        };
        let paths: Vec<_> = differences.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, [failed, "status"]);
    }
}

#[test]
fn a_status_is_excused_only_as_it_is_marked() {
    let answer = |status: u16| json!({"status": status, "body": status});
    let marked = "# @differs 1 status=422 *\n";
    assert_eq!(judged(marked, answer(500), answer(422)), []);
    let status = |ours: u16| difference("status", Some(json!(500)), Some(json!(ours)));
    let found = judged(marked, answer(500), answer(404));
    assert_eq!(found[0], What::Differs(vec![status(404)]));
    let found = judged("# @differs 1 *\n", answer(500), answer(422));
    assert_eq!(found, [What::Differs(vec![status(422)])]);
}
