//! What upstream's tests of roles and bindings mean, in our words.

use std::sync::Arc;

use serde_json::{Value, json};

use super::cover::{COMBINATIONS_MAX, escalation, may_write_binding, may_write_role, missing};
use super::*;
use crate::who::question::Place;
use crate::who::{Authorizer, user};

fn rule(verbs: &str, groups: &str, resources: &str) -> Value {
    let words = |text: &str| -> Vec<String> {
        text.split(',')
            .map(|word| word.replace("core", ""))
            .collect()
    };
    json!({"verbs": words(verbs), "apiGroups": words(groups), "resources": words(resources)})
}

fn parsed(rules: &[Value]) -> Vec<Rule> {
    serde_json::from_value(json!(rules)).unwrap()
}

fn role(namespace: &str, name: &str, rules: &[Value]) -> ClusterRole {
    serde_json::from_value(json!({
        "metadata": {"namespace": namespace, "name": name}, "rules": rules,
    }))
    .unwrap()
}

/// A binding of `Kind/name` to subjects written `Kind:name` or `ServiceAccount:namespace:name`.
fn binding(namespace: &str, name: &str, role: &str, subjects: &[&str]) -> Binding {
    let (kind, role) = role.split_once('/').unwrap();
    let subjects: Vec<Value> = subjects
        .iter()
        .map(
            |subject| match *subject.splitn(2, ':').collect::<Vec<_>>() {
                ["ServiceAccount", account] => {
                    let (namespace, name) = account.split_once(':').unwrap();
                    json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
                }
                [kind, name] => json!({"kind": kind, "name": name, "apiGroup": GROUP}),
                _ => unreachable!(),
            },
        )
        .collect();
    serde_json::from_value(json!({
        "metadata": {"namespace": namespace, "name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": subjects,
    }))
    .unwrap()
}

fn ask(user: &User, verb: &str, resource: &str, namespace: &str) -> Attributes {
    let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
    let place = Place::new("", resource, namespace).part(part);
    Attributes::resource(&Arc::new(user.clone()), verb, place)
}

fn allowed(rules: &Rules, user: &User, verb: &str, resource: &str, namespace: &str) -> bool {
    rules
        .decide(&ask(user, verb, resource, namespace))
        .is_allowed()
}

#[test]
fn a_role_binding_grants_in_its_namespace_only() {
    let mut rules = Rules::default();
    rules.put_role(role("", "admin", &[rule("*", "*", "*")]));
    rules.put_binding(&binding(
        "ns1",
        "b",
        "ClusterRole/admin",
        &["User:admin", "Group:admins"],
    ));
    let admin = User::new("admin", ["g"]);
    let member = User::new("joe", ["g", "admins"]);
    for user in [&admin, &member] {
        assert!(allowed(&rules, user, "get", "pods", "ns1"));
        assert!(allowed(&rules, user, "watch", "anything", "ns1"));
        assert!(!allowed(&rules, user, "get", "pods", "ns2"));
        assert!(!allowed(&rules, user, "get", "pods", ""));
        assert!(!allowed(&rules, user, "get", "nodes", ""));
        let path = Attributes::path(&Arc::new(user.clone()), "get", "/version");
        assert!(!rules.decide(&path).is_allowed());
    }
    assert!(!allowed(
        &rules,
        &User::new("joe", ["g"]),
        "get",
        "pods",
        "ns1"
    ));
    // A user is not the group of the same name, and the reverse.
    assert!(!allowed(
        &rules,
        &User::new("admins", ["admin"]),
        "get",
        "pods",
        "ns1"
    ));
}

#[test]
fn a_cluster_role_binding_grants_everywhere() {
    let mut rules = Rules::default();
    rules.put_role(role("", "reader", &[rule("get", "core", "pods")]));
    rules.put_binding(&binding("", "b", "ClusterRole/reader", &["User:u"]));
    let user = User::new("u", ["g"]);
    for namespace in ["", "a", "b"] {
        assert!(allowed(&rules, &user, "get", "pods", namespace));
        assert!(!allowed(&rules, &user, "delete", "pods", namespace));
    }
}

#[test]
fn a_role_is_one_of_the_bindings_namespace() {
    let mut rules = Rules::default();
    rules.put_role(role("a", "r", &[rule("get", "core", "pods")]));
    rules.put_binding(&binding("a", "x", "Role/r", &["User:u"]));
    rules.put_binding(&binding("b", "x", "Role/r", &["User:u"]));
    let user = User::new("u", ["g"]);
    assert!(allowed(&rules, &user, "get", "pods", "a"));
    assert!(!allowed(&rules, &user, "get", "pods", "b"));
    // A cluster role binding cannot grant a role that has a namespace.
    rules.put_binding(&binding("", "y", "Role/r", &["User:u"]));
    assert!(!allowed(&rules, &user, "get", "pods", "c"));
}

#[test]
fn a_service_account_is_meant_by_namespace_and_name() {
    let mut rules = Rules::default();
    rules.put_role(role("", "r", &[rule("get", "core", "pods")]));
    rules.put_binding(&binding(
        "a",
        "x",
        "ClusterRole/r",
        &["ServiceAccount:b:sa"],
    ));
    rules.put_binding(&binding(
        "a",
        "y",
        "ClusterRole/r",
        &["ServiceAccount::local"],
    ));
    rules.put_binding(&binding(
        "",
        "z",
        "ClusterRole/r",
        &["ServiceAccount::nowhere"],
    ));
    let account = User::service_account;
    assert!(allowed(&rules, &account("b", "sa"), "get", "pods", "a"));
    assert!(!allowed(&rules, &account("a", "sa"), "get", "pods", "a"));
    assert!(allowed(&rules, &account("a", "local"), "get", "pods", "a"));
    assert!(!allowed(
        &rules,
        &account("", "nowhere"),
        "get",
        "pods",
        "a"
    ));
}

#[test]
fn the_reason_names_the_binding_the_role_and_the_subject() {
    let mut rules = Rules::default();
    rules.put_role(role("", "r", &[rule("get", "core", "pods")]));
    rules.put_binding(&binding("", "everywhere", "ClusterRole/r", &["Group:g"]));
    rules.put_binding(&binding(
        "ns",
        "here",
        "ClusterRole/r",
        &["ServiceAccount::sa"],
    ));
    let decide = |user: &User| {
        rules
            .decide(&ask(user, "get", "pods", "ns"))
            .reason()
            .to_string()
    };
    assert_eq!(
        decide(&User::new("u", ["g"])),
        r#"RBAC: allowed by ClusterRoleBinding "everywhere" of ClusterRole "r" to Group "g""#
    );
    assert_eq!(
        decide(&User::service_account("ns", "sa")),
        r#"RBAC: allowed by RoleBinding "here/ns" of ClusterRole "r" to ServiceAccount "sa/ns""#
    );
}

#[test]
fn a_binding_to_a_role_that_is_not_there_grants_nothing_and_says_so() {
    let mut rules = Rules::default();
    rules.put_binding(&binding("", "b", "ClusterRole/gone", &["User:u"]));
    rules.put_binding(&binding("ns", "b", "Role/too", &["User:u", "Group:g"]));
    let user = User::new("u", ["g"]);
    let decision = rules.decide(&ask(&user, "get", "pods", ""));
    let gone = r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#;
    assert_eq!(decision, Decision::unrelated(format!("RBAC: {gone}")));
    let too = r#"role.rbac.authorization.k8s.io "too" not found"#;
    let decision = rules.decide(&ask(&user, "get", "pods", "ns"));
    assert_eq!(
        decision,
        Decision::unrelated(format!("RBAC: [{gone}, {too}]"))
    );
    rules.put_role(role("ns", "too", &[rule("get", "core", "pods")]));
    assert!(allowed(&rules, &user, "get", "pods", "ns"));
}

#[test]
fn changes_and_deletes_take_back_what_was_granted() {
    let mut rules = Rules::default();
    let user = User::new("u", ["g"]);
    rules.put_role(role("", "r", &[rule("get", "core", "pods")]));
    rules.put_binding(&binding(
        "ns",
        "b",
        "ClusterRole/r",
        &["User:u", "User:u", "Group:g"],
    ));
    assert!(allowed(&rules, &user, "get", "pods", "ns"));
    rules.put_role(role("", "r", &[rule("get", "core", "secrets")]));
    assert!(!allowed(&rules, &user, "get", "pods", "ns"));
    assert!(allowed(&rules, &user, "get", "secrets", "ns"));
    rules.put_binding(&binding("ns", "b", "ClusterRole/r", &["Group:g"]));
    assert!(!allowed(
        &rules,
        &User::new("u", ["h"]),
        "get",
        "secrets",
        "ns"
    ));
    rules.delete_binding(&ObjectName::new("ns", "b"));
    assert!(!allowed(&rules, &user, "get", "secrets", "ns"));
    assert!(
        rules.scopes.is_empty() && rules.bindings.is_empty(),
        "nothing is left behind"
    );
    rules.put_binding(&binding("ns", "b", "ClusterRole/r", &["Group:g"]));
    rules.delete_role(&ObjectName::new("", "r"));
    assert!(!allowed(&rules, &user, "get", "secrets", "ns"));
    rules.delete_binding(&ObjectName::new("ns", "never-seen"));
}

fn aggregated(name: &str, label: &str, selector: Value) -> ClusterRole {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {label: "true"}},
        "aggregationRule": {"clusterRoleSelectors": [selector]},
        "rules": [rule("delete", "core", "nodes")],
    }))
    .unwrap()
}

#[test]
fn an_aggregated_role_grants_what_it_selects_and_not_its_own_rules() {
    let mut rules = Rules::default();
    let user = User::new("u", ["g"]);
    rules.put_binding(&binding("", "b", "ClusterRole/top", &["User:u"]));
    rules.put_role(aggregated(
        "top",
        "x",
        json!({"matchLabels": {"to-top": "true"}}),
    ));
    let expression = json!({"matchExpressions": [{"key": "to-middle", "operator": "Exists"}]});
    rules.put_role(aggregated("middle", "to-top", expression));
    assert!(!allowed(&rules, &user, "delete", "nodes", ""));
    assert!(!allowed(&rules, &user, "get", "pods", ""));
    let mut leaf = role("", "leaf", &[rule("get", "core", "pods")]);
    leaf.metadata
        .labels
        .insert("to-middle".into(), "any".into());
    rules.put_role(leaf);
    assert!(
        allowed(&rules, &user, "get", "pods", ""),
        "through two aggregations"
    );
    rules.delete_role(&ObjectName::new("", "middle"));
    assert!(!allowed(&rules, &user, "get", "pods", ""));
}

#[test]
fn roles_that_select_each_other_do_no_harm() {
    let mut rules = Rules::default();
    let select = |label: &str| json!({"matchLabels": {label: "true"}});
    rules.put_role(aggregated("a", "to-b", select("to-a")));
    rules.put_role(aggregated("b", "to-a", select("to-b")));
    let mut leaf = role("", "leaf", &[rule("get", "core", "pods")]);
    leaf.metadata.labels.insert("to-b".into(), "true".into());
    rules.put_role(leaf);
    rules.put_binding(&binding("", "x", "ClusterRole/a", &["User:u"]));
    assert!(allowed(&rules, &User::new("u", ["g"]), "get", "pods", ""));
}

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

/// An authorizer with the bootstrap objects and what else is given.
fn authorizer(roles: &[ClusterRole], bindings: &[Binding]) -> Authorizer {
    let mut authorizer = bootstrapped();
    for role in roles {
        authorizer.rules.put_role(role.clone());
    }
    for binding in bindings {
        authorizer.rules.put_binding(binding);
    }
    authorizer
}

fn bootstrapped() -> Authorizer {
    let mut authorizer = Authorizer::default();
    for (resource, body) in bootstrap::objects_to_create() {
        let metadata: Metadata = serde_json::from_value(body["metadata"].clone()).unwrap();
        let name = ObjectName::new(&metadata.namespace, &metadata.name);
        authorizer
            .handle_put(&resource, &name, body.to_string().as_bytes())
            .unwrap();
    }
    authorizer
}

#[test]
fn nobody_writes_a_role_that_grants_more_than_he_has() {
    let authorizer = authorizer(
        &[
            role("", "reader", &[rule("get", "core", "pods")]),
            role("", "escalator", &[rule("escalate", GROUP, "roles")]),
        ],
        &[
            binding("ns", "b", "ClusterRole/reader", &["User:u", "User:e"]),
            binding("ns", "e", "ClusterRole/escalator", &["User:e"]),
        ],
    );
    let write = |name: &str, role: &ClusterRole| {
        let user = Arc::new(User::new(name, ["g"]));
        may_write_role(&authorizer, &user, role, None)
    };
    let modest = role("ns", "r", &[rule("get", "core", "pods")]);
    let bold = role("ns", "r", &[rule("get", "core", "secrets")]);
    assert!(write("u", &modest).is_ok());
    let refused = write("u", &bold).unwrap_err();
    assert_eq!(refused.code, 403);
    assert!(
        refused
            .message
            .starts_with(r#"roles.rbac.authorization.k8s.io "r" is forbidden: user "u""#)
    );
    assert!(write("e", &bold).is_ok());
    let elsewhere = role("other", "r", &[rule("get", "core", "pods")]);
    assert!(write("u", &elsewhere).is_err());
    let root = Arc::new(User::new("root", [user::MASTERS]));
    assert!(may_write_role(&authorizer, &root, &bold, None).is_ok());
}

#[test]
fn it_takes_everything_to_write_an_aggregated_role() {
    let authorizer = authorizer(
        &[role("", "reader", &[rule("get", "core", "pods")])],
        &[
            binding("", "r", "ClusterRole/reader", &["User:u"]),
            binding("", "a", "ClusterRole/cluster-admin", &["User:admin"]),
        ],
    );
    let mut collecting = aggregated("top", "x", json!({"matchLabels": {"y": "true"}}));
    collecting.rules.clear();
    let plain = role("", "top", &[]);
    let write = |name: &str, role: &ClusterRole, old: Option<&ClusterRole>| {
        may_write_role(&authorizer, &Arc::new(User::new(name, ["g"])), role, old)
    };
    let refused = write("u", &collecting, None).unwrap_err();
    assert!(
        refused
            .message
            .ends_with("cluster-admin privileges to use the aggregationRule")
    );
    assert!(write("u", &plain, Some(&collecting)).is_err());
    assert!(write("u", &plain, None).is_ok());
    assert!(write("admin", &collecting, None).is_ok());
}

#[test]
fn nobody_binds_a_role_that_grants_more_than_he_has() {
    let authorizer = authorizer(
        &[
            role("", "reader", &[rule("get", "core", "pods")]),
            role("", "binder", &[rule("bind", GROUP, "clusterroles")]),
        ],
        &[
            binding("ns", "r", "ClusterRole/reader", &["User:u"]),
            binding("ns", "b", "ClusterRole/binder", &["User:b"]),
        ],
    );
    let write = |name: &str, binding: &Binding| {
        may_write_binding(&authorizer, &Arc::new(User::new(name, ["g"])), binding)
    };
    assert!(write("u", &binding("ns", "x", "ClusterRole/reader", &["User:v"])).is_ok());
    let refused = write("u", &binding("ns", "x", "ClusterRole/view", &["User:u"])).unwrap_err();
    assert_eq!(refused.code, 403);
    assert!(
        refused
            .message
            .contains("rolebindings.rbac.authorization.k8s.io \"x\" is forbidden")
    );
    // What holds in a namespace is not held everywhere.
    assert!(write("u", &binding("", "x", "ClusterRole/reader", &["User:u"])).is_err());
    assert!(write("b", &binding("ns", "x", "ClusterRole/view", &["User:b"])).is_ok());
    assert!(write("b", &binding("", "x", "ClusterRole/view", &["User:b"])).is_err());
    let gone = write("u", &binding("ns", "x", "ClusterRole/gone", &["User:u"])).unwrap_err();
    assert_eq!(gone.code, 404);
    let odd = write("b", &binding("ns", "x", "Pod/view", &["User:u"])).unwrap_err();
    assert_eq!(odd.code, 400);
}

#[test]
fn the_first_roles_give_everyone_what_upstream_gives() {
    let authorizer = bootstrapped();
    let decide = |user: &User, verb: &str, group: &str, resource: &str| {
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let place = Place::new(group, resource, "ns").part(part);
        authorizer
            .decide(&Attributes::resource(&Arc::new(user.clone()), verb, place))
            .is_allowed()
    };
    let plain = User::new("u", [user::AUTHENTICATED]);
    let review = "selfsubjectaccessreviews";
    assert!(decide(&plain, "create", "authorization.k8s.io", review));
    assert!(!decide(
        &plain,
        "create",
        "authorization.k8s.io",
        "subjectaccessreviews"
    ));
    assert!(!decide(&plain, "get", "", "pods"));
    assert!(decide(
        &User::new("root", [user::MASTERS]),
        "delete",
        "x.y",
        "z"
    ));
    let proxy = User::new(user::KUBE_PROXY, [user::AUTHENTICATED]);
    assert!(decide(
        &proxy,
        "watch",
        "discovery.k8s.io",
        "endpointslices"
    ));
    assert!(!decide(&proxy, "watch", "", "secrets"));
    let path = |user: &User, path: &str| {
        let asked = Attributes::path(&Arc::new(user.clone()), "get", path);
        authorizer.decide(&asked).is_allowed()
    };
    assert!(path(&plain, "/api") && path(&plain, "/apis/apps/v1") && path(&plain, "/openapi/v3"));
    assert!(!path(&plain, "/metrics"));
    assert!(path(&User::service_account("ns", "sa"), "/openid/v1/jwks"));
    assert!(!path(&plain, "/openid/v1/jwks"));
}

#[test]
fn admin_edit_and_view_hold_one_another_by_aggregation() {
    let mut authorizer = bootstrapped();
    for role in ["admin", "edit", "view"] {
        let (granted, subject) = (format!("ClusterRole/{role}"), format!("User:{role}"));
        let bound = binding("ns", role, &granted, &[&subject]);
        authorizer.rules.put_binding(&bound);
    }
    let may = |user: &str, verb: &str, group: &str, resource: &str| {
        let user = Arc::new(User::new(user, ["g"]));
        let place = Place::new(group, resource, "ns");
        authorizer
            .decide(&Attributes::resource(&user, verb, place))
            .is_allowed()
    };
    for user in ["admin", "edit", "view"] {
        assert!(may(user, "list", "", "pods"), "{user}");
        assert!(!may(user, "create", "", "nodes"), "{user}");
    }
    assert!(may("admin", "create", "apps", "deployments"));
    assert!(may("edit", "get", "", "secrets") && !may("view", "get", "", "secrets"));
    assert!(!may("view", "create", "apps", "deployments"));
    assert!(may("admin", "create", GROUP, "roles") && !may("edit", "create", GROUP, "roles"));
}

#[test]
fn the_first_roles_are_complete_objects_with_names_of_their_own() {
    let mut seen = std::collections::HashSet::new();
    for (resource, body) in bootstrap::objects_to_create() {
        let metadata = &body["metadata"];
        assert!(seen.insert(format!(
            "{resource} {} {}",
            metadata["namespace"], metadata["name"]
        )));
        assert_eq!(
            metadata["labels"]["kubernetes.io/bootstrapping"],
            "rbac-defaults"
        );
        assert_eq!(body["apiVersion"], "rbac.authorization.k8s.io/v1");
        for rule in body["rules"].as_array().into_iter().flatten() {
            let rule: Rule = serde_json::from_value(rule.clone()).unwrap();
            assert!(!rule.verbs.is_empty(), "{body}");
            assert_ne!(rule.resources.is_empty(), rule.paths.is_empty(), "{body}");
            assert_eq!(
                rule.resources.is_empty(),
                rule.api_groups.is_empty(),
                "{body}"
            );
        }
    }
    assert!(seen.len() > 40);
}
