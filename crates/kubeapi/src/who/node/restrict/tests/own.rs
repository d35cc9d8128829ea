//! What a node says of itself.

use super::*;

fn own_node() -> Value {
    json!({"metadata": {"name": "me"}, "spec": {}})
}

#[test]
fn a_node_writes_its_own_node_only() {
    let world = world();
    for words in [
        "CREATE nodes me",
        "UPDATE nodes me",
        "UPDATE nodes/status me",
        "DELETE nodes me",
    ] {
        draft(words).to(own_node()).old(own_node()).allowed(&world);
    }
    draft("CREATE nodes").to(own_node()).allowed(&world);
    for words in [
        "CREATE nodes other",
        "UPDATE nodes other",
        "DELETE nodes other",
    ] {
        let write = draft(words).to(own_node()).old(own_node());
        let why = r#"node "me" is not allowed to modify node "other""#;
        assert_eq!(write.refused(&world), why, "{words}");
    }
    let other = json!({"metadata": {"name": "other"}});
    let refused = draft("CREATE nodes").to(other).check(&world).unwrap_err();
    assert!(refused.message.starts_with(r#"nodes "other" is forbidden"#));
}

#[test]
fn a_node_registers_with_taints_but_cannot_change_them() {
    let world = world();
    let tainted = |taints: Value| {
        let mut node = own_node();
        node["spec"]["taints"] = taints;
        node
    };
    let one = json!([{"key": "a", "effect": "NoSchedule"}]);
    draft("CREATE nodes me")
        .to(tainted(one.clone()))
        .allowed(&world);
    let update = |old: &Value, new: &Value| {
        let (old, new) = (tainted(old.clone()), tainted(new.clone()));
        draft("UPDATE nodes me").old(old).to(new)
    };
    update(&one, &one).allowed(&world);
    update(&json!([]), &Value::Null).allowed(&world);
    let other = json!([{"key": "a", "effect": "NoExecute"}]);
    for (old, new) in [(&one, &other), (&one, &json!([])), (&Value::Null, &one)] {
        let why = r#"node "me" is not allowed to modify taints"#;
        assert_eq!(update(old, new).refused(&world), why);
    }
}

#[test]
fn a_node_cannot_change_owners_or_labels_that_are_not_its_own() {
    let world = world();
    let owned = |owners: Value| {
        let mut node = own_node();
        node["metadata"]["ownerReferences"] = owners;
        node
    };
    let owner = json!([{"kind": "X", "name": "x"}]);
    for (old, new) in [(owner.clone(), Value::Null), (Value::Null, owner)] {
        let write = draft("UPDATE nodes me").old(owned(old)).to(owned(new));
        let why = r#"node "me" is not allowed to modify ownerReferences"#;
        assert_eq!(write.refused(&world), why);
    }
    let labelled = |labels: Value| {
        let mut node = own_node();
        node["metadata"]["labels"] = labels;
        node
    };
    let update = |old: Value, new: Value| {
        draft("UPDATE nodes me")
            .old(labelled(old))
            .to(labelled(new))
    };
    let free = json!({"kubernetes.io/hostname": "me", "example.com/x": "y"});
    let kept = json!({"node-role.kubernetes.io/worker": "", "example.com/x": "z"});
    update(free.clone(), json!({})).allowed(&world);
    update(json!({"node-role.kubernetes.io/worker": ""}), kept).allowed(&world);
    let roles = json!({"k8s.io/b": "", "node-restriction.kubernetes.io/a": ""});
    for (old, new) in [(json!({}), roles.clone()), (roles.clone(), json!({}))] {
        let why = "is not allowed to modify labels: k8s.io/b, node-restriction.kubernetes.io/a";
        assert_eq!(update(old, new).refused(&world), why);
    }
    draft("CREATE nodes me").to(labelled(free)).allowed(&world);
    assert_eq!(
        draft("CREATE nodes me").to(labelled(roles)).refused(&world),
        "node \"me\" is not allowed to set the following labels: k8s.io/b, \
         node-restriction.kubernetes.io/a"
    );
}

#[test]
fn a_node_cannot_point_itself_at_a_configuration() {
    let world = world();
    let with = |source: Value| {
        let mut node = own_node();
        node["spec"]["configSource"] = source;
        node
    };
    let (one, two) = (json!({"configMap": "a"}), json!({"configMap": "b"}));
    assert!(
        draft("CREATE nodes me")
            .to(with(one.clone()))
            .check(&world)
            .is_err()
    );
    let update = |old: Value, new: Value| draft("UPDATE nodes me").old(with(old)).to(with(new));
    update(one.clone(), one.clone()).allowed(&world);
    update(one.clone(), Value::Null).allowed(&world);
    assert!(update(one.clone(), two).check(&world).is_err());
    assert!(update(Value::Null, one).check(&world).is_err());
}
