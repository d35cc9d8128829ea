//! What upstream's impersonation tests mean, in our words.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::*;
use crate::who::Authorizer;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        let name: HeaderName = name.parse().unwrap();
        map.append(name, HeaderValue::from_str(value).unwrap());
    }
    map
}

fn wanted(pairs: &[(&str, &str)]) -> Wanted {
    Wanted::from_headers(&headers(pairs)).unwrap().unwrap()
}

/// A caller who may do exactly what the list says: `verb group/resource/name`, `*` for any name.
fn caller(allowed: &'static [&'static str]) -> impl Fn(&Attributes) -> Decision {
    move |asked| {
        let Target::Resource(place) = &asked.target else {
            return Decision::no_opinion();
        };
        let key = |name: &str| {
            let path = place.resource_path();
            format!("{} {}/{path}/{name}", asked.verb, place.group)
        };
        let yes = allowed.contains(&key(&place.name).as_str()) || allowed.contains(&&*key("*"));
        match yes {
            true => Decision::allow(),
            false => Decision::no_opinion(),
        }
    }
}

fn list_pods(user: User) -> Attributes {
    Attributes::resource(&Arc::new(user), "list", Place::new("", "pods", "ns"))
}

fn become_user(pairs: &[(&str, &str)], allowed: &'static [&'static str]) -> Result<User, Status> {
    let asked = list_pods(User::new("dev", ["devs"]));
    wanted(pairs).allowed_user(&asked, &caller(allowed))
}

#[test]
fn without_headers_nobody_is_wanted() {
    assert_eq!(Wanted::from_headers(&HeaderMap::new()).unwrap(), None);
    let others = headers(&[("x-remote-user", "admin"), ("x-forwarded-for", "1.2.3.4")]);
    assert_eq!(Wanted::from_headers(&others).unwrap(), None);
}

#[test]
fn groups_uid_or_extra_without_a_user_are_a_bad_request() {
    for name in [
        "Impersonate-Group",
        "Impersonate-Uid",
        "Impersonate-Extra-a",
    ] {
        let refused = Wanted::from_headers(&headers(&[(name, "x")])).unwrap_err();
        assert_eq!(refused.code, 400, "{name}");
        assert!(
            refused
                .message
                .ends_with("without impersonating a user name")
        );
    }
}

#[test]
fn two_users_in_one_request_are_a_bad_request() {
    let two = headers(&[("impersonate-user", "a"), ("impersonate-user", "b")]);
    assert_eq!(Wanted::from_headers(&two).unwrap_err().code, 400);
}

#[test]
fn text_that_is_not_utf8_is_a_bad_request() {
    let mut map = HeaderMap::new();
    map.insert(
        "impersonate-user",
        HeaderValue::from_bytes(b"\xff").unwrap(),
    );
    assert_eq!(Wanted::from_headers(&map).unwrap_err().code, 400);
}

#[test]
fn keys_of_extra_are_unescaped_and_bad_escapes_kept() {
    let user = wanted(&[
        ("Impersonate-User", "u"),
        ("Impersonate-Extra-acme.com%2Fproject", "p1"),
        ("Impersonate-Extra-acme.com%2Fproject", "p2"),
        ("Impersonate-Extra-bad%zz", "x"),
        ("Impersonate-Extra-cut%2", "y"),
    ]);
    let keys: Vec<_> = user.0.extra.keys().cloned().collect();
    assert_eq!(keys, ["acme.com/project", "bad%zz", "cut%2"]);
    assert_eq!(user.0.extra["acme.com/project"], ["p1", "p2"]);
}

#[test]
fn the_old_way_needs_leave_for_every_part() {
    const ALL: &[&str] = &[
        "impersonate /users/tester",
        "impersonate /groups/g1",
        "impersonate authentication.k8s.io/uids/u-1",
        "impersonate authentication.k8s.io/userextras/scopes/view",
    ];
    let pairs = [
        ("impersonate-user", "tester"),
        ("impersonate-group", "g1"),
        ("impersonate-uid", "u-1"),
        ("impersonate-extra-scopes", "view"),
    ];
    let user = become_user(&pairs, ALL).unwrap();
    assert_eq!(user.name, "tester");
    assert_eq!(user.uid, "u-1");
    assert_eq!(user.groups, ["g1", AUTHENTICATED]);
    assert_eq!(user.extra["scopes"], ["view"]);
    for left_out in [
        &ALL[1..],
        &[ALL[0], ALL[2], ALL[3]],
        &[ALL[0], ALL[1], ALL[3]],
        &ALL[..3],
    ] {
        let left_out: &'static [&'static str] = Vec::leak(left_out.to_vec());
        assert_eq!(
            become_user(&pairs, left_out).unwrap_err().code,
            403,
            "{left_out:?}"
        );
    }
}

#[test]
fn a_refusal_speaks_of_the_first_way_that_was_tried() {
    let refused = become_user(&[("impersonate-user", "admin")], &[]).unwrap_err();
    assert_eq!(
        refused.message,
        "pods is forbidden: User \"dev\" cannot impersonate-on:user-info:list resource \"pods\" \
         in API group \"\" in the namespace \"ns\""
    );
    let refused = become_user(
        &[("impersonate-user", "admin")],
        &["impersonate-on:user-info:list /pods/"],
    );
    assert_eq!(
        refused.unwrap_err().message,
        "users.authentication.k8s.io \"admin\" is forbidden: User \"dev\" cannot \
         impersonate:user-info resource \"users\" in API group \"authentication.k8s.io\" \
         at the cluster scope"
    );
}

#[test]
fn the_constrained_way_needs_leave_for_the_deed_too() {
    const BOTH: &[&str] = &[
        "impersonate-on:user-info:list /pods/",
        "impersonate:user-info authentication.k8s.io/users/*",
        "impersonate:user-info authentication.k8s.io/groups/*",
    ];
    let pairs = [("impersonate-user", "tester"), ("impersonate-group", "g")];
    assert_eq!(become_user(&pairs, BOTH).unwrap().name, "tester");
    assert_eq!(become_user(&pairs, &BOTH[1..]).unwrap_err().code, 403);
    assert_eq!(become_user(&pairs, &BOTH[..2]).unwrap_err().code, 403);
}

#[test]
fn no_constrained_way_leads_to_the_masters() {
    const CONSTRAINED: &[&str] = &[
        "impersonate-on:user-info:list /pods/",
        "impersonate:user-info authentication.k8s.io/users/*",
        "impersonate:user-info authentication.k8s.io/groups/*",
        "impersonate:user-info authentication.k8s.io/userextras/scopes/*",
    ];
    for group in [MASTERS, ""] {
        let pairs = [("impersonate-user", "x"), ("impersonate-group", group)];
        assert_eq!(
            become_user(&pairs, CONSTRAINED).unwrap_err().code,
            403,
            "{group:?}"
        );
    }
    // A key without a domain is fine in the old way only.
    let pairs = [("impersonate-user", "x"), ("impersonate-extra-scopes", "a")];
    assert_eq!(become_user(&pairs, CONSTRAINED).unwrap_err().code, 403);
}

#[test]
fn a_service_account_brings_its_groups() {
    const OLD: &[&str] = &[
        "impersonate /serviceaccounts/default",
        "impersonate /groups/*",
    ];
    let name = "system:serviceaccount:ns:default";
    let user = become_user(&[("impersonate-user", name)], OLD).unwrap();
    let own = [
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        AUTHENTICATED,
    ];
    assert_eq!(user.groups, own);
    // Groups that are given replace them.
    let pairs = [("impersonate-user", name), ("impersonate-group", "other")];
    assert_eq!(
        become_user(&pairs, OLD).unwrap().groups,
        ["other", AUTHENTICATED]
    );
    // Leave for users is not leave for service accounts.
    let refused = become_user(&[("impersonate-user", name)], &["impersonate /users/*"]);
    assert_eq!(refused.unwrap_err().code, 403);
}

#[test]
fn a_node_is_reached_constrained_with_its_group_and_unconstrained_without() {
    const CONSTRAINED: &[&str] = &[
        "impersonate-on:arbitrary-node:list /pods/",
        "impersonate:arbitrary-node authentication.k8s.io/nodes/a",
    ];
    let pairs = [("impersonate-user", "system:node:a")];
    let user = become_user(&pairs, CONSTRAINED).unwrap();
    assert_eq!(user.node(), Some("a"));
    let user = become_user(&pairs, &["impersonate /users/system:node:a"]).unwrap();
    assert_eq!(user.node(), None);
}

#[test]
fn an_agent_may_be_the_node_it_runs_on_and_no_other() {
    const ALLOWED: &[&str] = &[
        "impersonate-on:associated-node:list /pods/",
        "impersonate:associated-node authentication.k8s.io/nodes/*",
    ];
    let mut agent = User::service_account("kube-system", "agent");
    agent.extra.insert(NODE_NAME.into(), vec!["a".into()]);
    let asked = list_pods(agent);
    let try_node =
        |name: &str| wanted(&[("impersonate-user", name)]).allowed_user(&asked, &caller(ALLOWED));
    assert_eq!(try_node("system:node:a").unwrap().node(), Some("a"));
    assert_eq!(try_node("system:node:b").unwrap_err().code, 403);
}

#[test]
fn nobody_stays_unauthenticated() {
    const OLD: &[&str] = &["impersonate /users/*", "impersonate /groups/*"];
    let user = become_user(&[("impersonate-user", ANONYMOUS)], OLD).unwrap();
    assert_eq!(user.groups, [UNAUTHENTICATED]);
    let pairs = [
        ("impersonate-user", "x"),
        ("impersonate-group", UNAUTHENTICATED),
    ];
    assert_eq!(become_user(&pairs, OLD).unwrap().groups, [UNAUTHENTICATED]);
    let pairs = [
        ("impersonate-user", "x"),
        ("impersonate-group", AUTHENTICATED),
    ];
    assert_eq!(become_user(&pairs, OLD).unwrap().groups, [AUTHENTICATED]);
}

#[test]
fn masters_may_be_anyone_even_masters() {
    let authorizer = Authorizer::default();
    let asked = list_pods(User::new("root", [MASTERS]));
    let other = wanted(&[("impersonate-user", "x"), ("impersonate-group", MASTERS)]);
    let user = other
        .allowed_user(&asked, &|question| authorizer.decide(question))
        .unwrap();
    assert_eq!(user.groups, [MASTERS, AUTHENTICATED]);
}

#[test]
fn stripping_leaves_no_header_of_impersonation() {
    let mut map = headers(&[
        ("Impersonate-User", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Group", "c"),
        ("Impersonate-Uid", "d"),
        ("Impersonate-Extra-x", "e"),
        ("accept", "application/json"),
    ]);
    strip(&mut map);
    assert_eq!(map.len(), 1);
    assert!(map.contains_key("accept"));
}
