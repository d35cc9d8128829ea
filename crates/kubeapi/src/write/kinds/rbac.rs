//! Roles and their bindings.

use serde_json::{Value, json};

use crate::write::fault::{Faults, Path};
use crate::write::{field, names};

pub(super) fn check(plural: &str, object: &Value, faults: &mut Faults) {
    match plural {
        "roles" => check_rules(object, Scope::Namespace, faults),
        "clusterroles" => check_rules(object, Scope::Cluster, faults),
        "rolebindings" | "clusterrolebindings" => check_binding(plural, object, faults),
        _ => {}
    }
}

/// A binding to another role is another binding.
pub(super) fn check_update(new: &Value, old: &Value, faults: &mut Faults) {
    let (now, was) = (field::child(new, "roleRef"), field::child(old, "roleRef"));
    if !field::same(now, was) {
        let part = |name: &str| field::text(now, name).to_owned();
        let shown = json!({
            "APIGroup": part("apiGroup"), "Kind": part("kind"), "Name": part("name"),
        });
        faults.invalid(&Path::new("roleRef"), shown, "cannot change roleRef");
    }
}

#[derive(PartialEq, Eq)]
enum Scope {
    Namespace,
    Cluster,
}

fn check_rules(role: &Value, scope: Scope, faults: &mut Faults) {
    for (index, rule) in field::list(role, "rules").iter().enumerate() {
        let path = Path::new("rules").index(index);
        let empty = |key: &str| field::list(rule, key).is_empty();
        if empty("verbs") {
            faults.required(
                &path.child("verbs"),
                "verbs must contain at least one value",
            );
        }
        if !empty("nonResourceURLs") {
            let at = path.child("nonResourceURLs");
            let urls = field::child(rule, "nonResourceURLs").clone();
            if scope == Scope::Namespace {
                let why = "namespaced rules cannot apply to non-resource URLs";
                faults.invalid(&at, urls.clone(), why);
            }
            if !empty("apiGroups") || !empty("resources") || !empty("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                faults.invalid(&at, urls, why);
            }
            continue;
        }
        if empty("apiGroups") {
            let why = "resource rules must supply at least one api group";
            faults.required(&path.child("apiGroups"), why);
        }
        if empty("resources") {
            let why = "resource rules must supply at least one resource";
            faults.required(&path.child("resources"), why);
        }
    }
}

fn check_binding(plural: &str, binding: &Value, faults: &mut Faults) {
    let role = field::child(binding, "roleRef");
    let path = Path::new("roleRef");
    let group = field::text(role, "apiGroup");
    if group != GROUP {
        faults.unsupported(&path.child("apiGroup"), group, &[GROUP]);
    }
    let kinds: &[&str] = match plural {
        "rolebindings" => &["Role", "ClusterRole"],
        _ => &["ClusterRole"],
    };
    let kind = field::text(role, "kind");
    if !kinds.contains(&kind) {
        faults.unsupported(&path.child("kind"), kind, kinds);
    }
    match field::text(role, "name") {
        "" => faults.required(&path.child("name"), ""),
        name => faults.invalid_each(&path.child("name"), name, names::path_segment_faults(name)),
    }
    for (index, subject) in field::list(binding, "subjects").iter().enumerate() {
        check_subject(subject, plural, &Path::new("subjects").index(index), faults);
    }
}

fn check_subject(subject: &Value, plural: &str, path: &Path, faults: &mut Faults) {
    let (name, group) = (
        field::text(subject, "name"),
        field::text(subject, "apiGroup"),
    );
    if name.is_empty() {
        faults.required(&path.child("name"), "");
    }
    match field::text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                let wrong = names::subdomain_faults(name);
                faults.invalid_each(&path.child("name"), name, wrong);
            }
            if !group.is_empty() {
                faults.unsupported(&path.child("apiGroup"), group, &[""]);
            }
            let namespace = field::text(subject, "namespace");
            if plural == "clusterrolebindings" && namespace.is_empty() {
                faults.required(&path.child("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                faults.unsupported(&path.child("apiGroup"), group, &[GROUP]);
            }
        }
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            faults.unsupported(&path.child("kind"), other, &known);
        }
    }
}

const GROUP: &str = "rbac.authorization.k8s.io";
