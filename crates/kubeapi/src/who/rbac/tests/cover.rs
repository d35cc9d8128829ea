//! Who may grant what.

use super::*;

#[test]
fn one_set_of_rules_holds_another_piece_by_piece() {
    let cases = [
        (vec![rule("*", "*", "*")], vec![rule("get", "g", "r")], true),
        (
            vec![rule("get", "g", "r")],
            vec![rule("*", "*", "*")],
            false,
        ),
        // Two rules of the owner together hold one that is wanted.
        (
            vec![rule("get", "g", "r1"), rule("get", "g", "r2")],
            vec![rule("get", "g", "r1,r2")],
            true,
        ),
        (
            vec![rule("get,list", "g", "r")],
            vec![rule("get,watch", "g", "r")],
            false,
        ),
        (
            vec![rule("get", "g", "*/scale")],
            vec![rule("get", "g", "r/scale")],
            true,
        ),
        (
            vec![rule("get", "g", "*/scale")],
            vec![rule("get", "g", "r/status")],
            false,
        ),
        (
            vec![rule("get", "g", "r/scale")],
            vec![rule("get", "g", "*/scale")],
            false,
        ),
        (
            vec![rule("get", "g", "r")],
            vec![rule("get", "g", "r/scale")],
            false,
        ),
        (vec![], vec![], true),
    ];
    for (owned, wanted, expected) in cases {
        let found = missing(&parsed(&owned), &parsed(&wanted)).is_empty();
        assert_eq!(found, expected, "{owned:?} {wanted:?}");
    }
}

#[test]
fn names_and_paths_are_held_like_everything_else() {
    let named = |names: &[&str]| {
        let mut rule = rule("get", "core", "pods");
        rule["resourceNames"] = json!(names);
        parsed(&[rule])
    };
    assert!(missing(&named(&[]), &named(&["a"])).is_empty());
    assert!(missing(&named(&["a", "b"]), &named(&["b"])).is_empty());
    assert!(!missing(&named(&["a"]), &named(&["b"])).is_empty());
    assert!(
        !missing(&named(&["a"]), &named(&[])).is_empty(),
        "a name is less than all"
    );
    let paths = |paths: &[&str]| parsed(&[json!({"verbs": ["get"], "nonResourceURLs": paths})]);
    assert!(missing(&paths(&["/a/*"]), &paths(&["/a/b", "/a/*"])).is_empty());
    assert!(missing(&paths(&["*"]), &paths(&["/x"])).is_empty());
    assert!(!missing(&paths(&["/a"]), &paths(&["/a/*"])).is_empty());
    assert!(!missing(&parsed(&[rule("*", "*", "*")]), &paths(&["/a"])).is_empty());
}

#[test]
fn a_rule_with_endless_combinations_is_refused_without_reading_them() {
    let many: Vec<String> = (0..10_000).map(|number| format!("x{number}")).collect();
    let wanted = parsed(&[json!({
        "verbs": many, "apiGroups": many, "resources": many, "resourceNames": many,
    })]);
    assert!(many.len().pow(4) > COMBINATIONS_MAX);
    assert_eq!(missing(&parsed(&[rule("get", "g", "r")]), &wanted), wanted);
    assert!(missing(&parsed(&[rule("*", "*", "*")]), &wanted).is_empty());
}

#[test]
fn a_refused_grant_lists_what_is_missing_in_upstreams_words() {
    let user = User::new("u", ["a", "b"]);
    let wanted = parsed(&[
        rule("get,list", "core,apps", "pods"),
        json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
    ]);
    let owned = parsed(&[rule("get", "core", "pods")]);
    assert_eq!(
        escalation(&user, &owned, &wanted).unwrap(),
        "user \"u\" (groups=[\"a\" \"b\"]) is attempting to grant RBAC permissions not currently \
         held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"list\"]}\n\
         {APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n\
         {NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}"
    );
    assert_eq!(escalation(&user, &wanted, &wanted), None);
}
