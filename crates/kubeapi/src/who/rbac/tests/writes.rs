//! Who may write roles and bindings.

use super::*;

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
