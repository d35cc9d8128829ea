//! What upstream's tests of roles and bindings mean, in our words.

mod cover;
mod writes;
mod first;

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
