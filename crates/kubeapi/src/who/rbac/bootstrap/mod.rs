//! The roles and bindings that every cluster begins with, as objects to be created on the first
//! start.
//!
//! The roles of single controllers (`system:controller:…`) are left out: no controllers run here,
//! and a real cluster brings its own.

mod roles;

use object::Resource;
use serde_json::{Map, Value, json};

use super::GROUP;
use super::rule::Rule;
use crate::who::user::{
    AUTHENTICATED, KUBE_CONTROLLER_MANAGER, KUBE_PROXY, KUBE_SCHEDULER, MASTERS, MONITORING,
    SERVICE_ACCOUNTS, UNAUTHENTICATED,
};

/// Everything to create: the resource, and the object without uid, version and time.
pub fn objects_to_create() -> Vec<(Resource, Value)> {
    let cluster_roles = roles::CLUSTER_ROLES.iter().map(|role| role.to_json());
    let cluster_bindings = CLUSTER_BINDINGS
        .iter()
        .map(|(name, subjects)| binding("", name, name, subjects));
    let roles = ROLES.iter().map(|(namespace, role)| {
        let mut body = role.to_json();
        body["kind"] = "Role".into();
        body["metadata"]["namespace"] = (*namespace).into();
        body
    });
    let bindings = BINDINGS
        .iter()
        .map(|(namespace, name, role, subjects)| binding(namespace, name, role, subjects));
    let plural = |name: &'static str| move |body| (Resource::new(GROUP, name), body);
    cluster_roles
        .map(plural("clusterroles"))
        .chain(cluster_bindings.map(plural("clusterrolebindings")))
        .chain(roles.map(plural("roles")))
        .chain(bindings.map(plural("rolebindings")))
        .collect()
}

/// What every node may do, before it is asked which node it is.
pub(in crate::who) fn node_rules() -> Vec<Rule> {
    roles::NODE.iter().map(|rule| rule.to_rule()).collect()
}

/// A rule in short: lists are words in a string.
#[derive(Debug, Clone, Copy)]
struct RuleText {
    verbs: &'static str,
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
    paths: &'static str,
}

const fn objects(verbs: &'static str, groups: &'static str, resources: &'static str) -> RuleText {
    RuleText {
        verbs,
        groups,
        resources,
        names: "",
        paths: "",
    }
}

const fn paths(verbs: &'static str, paths: &'static str) -> RuleText {
    RuleText {
        verbs,
        groups: "",
        resources: "",
        names: "",
        paths,
    }
}

impl RuleText {
    const fn only(mut self, names: &'static str) -> Self {
        self.names = names;
        self
    }

    fn to_rule(self) -> Rule {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let group = |word: &str| match word {
            "core" => String::new(),
            word => word.to_owned(),
        };
        Rule {
            verbs: words(self.verbs),
            api_groups: self.groups.split_whitespace().map(group).collect(),
            resources: words(self.resources),
            resource_names: words(self.names),
            paths: words(self.paths),
        }
    }
}

/// A role in short.
#[derive(Debug, Clone, Copy)]
struct Role {
    name: &'static str,
    rules: &'static [RuleText],
    /// The aggregated role that collects this one.
    collected_by: Option<&'static str>,
    /// The label's end by which this role collects others.
    collects: Option<&'static str>,
}

impl Role {
    const fn new(name: &'static str, rules: &'static [RuleText]) -> Self {
        Self {
            name,
            rules,
            collected_by: None,
            collects: None,
        }
    }

    const fn collecting(name: &'static str, what: &'static str) -> Self {
        let mut role = Self::new(name, &[]);
        role.collects = Some(what);
        role
    }

    const fn collected_by(mut self, role: &'static str) -> Self {
        self.collected_by = Some(role);
        self
    }

    fn to_json(self) -> Value {
        let label = |role: &str| format!("rbac.authorization.k8s.io/aggregate-to-{role}");
        let mut body = object("ClusterRole", self.name);
        if let Some(role) = self.collected_by {
            body["metadata"]["labels"][label(role)] = "true".into();
        }
        if let Some(role) = self.collects {
            let mut labels = Map::new();
            labels.insert(label(role), "true".into());
            body["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": labels}]});
        }
        let rules: Vec<Rule> = self.rules.iter().map(|rule| rule.to_rule()).collect();
        body["rules"] = match rules.is_empty() {
            true => Value::Null,
            false => json!(rules),
        };
        body
    }
}

fn object(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    })
}

/// Whom a binding concerns, in short.
#[derive(Debug, Clone, Copy)]
enum To {
    User(&'static str),
    Group(&'static str),
    /// Of the namespace `kube-system`.
    Account(&'static str),
}

fn binding(namespace: &str, name: &str, role: &str, subjects: &[To]) -> Value {
    let (kind, role_kind) = match namespace {
        "" => ("ClusterRoleBinding", "ClusterRole"),
        _ => ("RoleBinding", "Role"),
    };
    let mut body = object(kind, name);
    if !namespace.is_empty() {
        body["metadata"]["namespace"] = namespace.into();
    }
    body["roleRef"] = json!({"apiGroup": GROUP, "kind": role_kind, "name": role});
    if !subjects.is_empty() {
        body["subjects"] = subjects.iter().map(|subject| subject.to_json()).collect();
    }
    body
}

impl To {
    fn to_json(self) -> Value {
        match self {
            Self::User(name) => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
            Self::Group(name) => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
            Self::Account(name) => {
                json!({"kind": "ServiceAccount", "name": name, "namespace": "kube-system"})
            }
        }
    }
}

/// Cluster role bindings; each has the name of its role. The one of nodes concerns nobody: what a
/// node may do depends on which node it is, and is decided elsewhere.
const CLUSTER_BINDINGS: &[(&str, &[To])] = &[
    ("cluster-admin", &[To::Group(MASTERS)]),
    ("system:monitoring", &[To::Group(MONITORING)]),
    ("system:discovery", &[To::Group(AUTHENTICATED)]),
    ("system:basic-user", &[To::Group(AUTHENTICATED)]),
    (
        "system:public-info-viewer",
        &[To::Group(AUTHENTICATED), To::Group(UNAUTHENTICATED)],
    ),
    ("system:node-proxier", &[To::User(KUBE_PROXY)]),
    (
        "system:kube-controller-manager",
        &[To::User(KUBE_CONTROLLER_MANAGER)],
    ),
    ("system:kube-dns", &[To::Account("kube-dns")]),
    ("system:kube-scheduler", &[To::User(KUBE_SCHEDULER)]),
    ("system:volume-scheduler", &[To::User(KUBE_SCHEDULER)]),
    ("system:node", &[]),
    (
        "system:service-account-issuer-discovery",
        &[To::Group(SERVICE_ACCOUNTS)],
    ),
];

const LOCK: &[RuleText] = &[
    objects(
        "get watch list create update",
        "coordination.k8s.io",
        "leases",
    ),
    objects(
        "get watch list create update",
        "coordination.k8s.io",
        "leasecandidates",
    ),
];

const ROLES: &[(&str, Role)] = &[
    (
        "kube-system",
        Role::new(
            "extension-apiserver-authentication-reader",
            &[objects("get list watch", "core", "configmaps")
                .only("extension-apiserver-authentication")],
        ),
    ),
    (
        "kube-system",
        Role::new("system::leader-locking-kube-controller-manager", LOCK),
    ),
    (
        "kube-system",
        Role::new("system::leader-locking-kube-scheduler", LOCK),
    ),
];

/// Namespace, name, role and subjects of role bindings.
const BINDINGS: &[(&str, &str, &str, &[To])] = &[
    (
        "kube-system",
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        &[To::User(KUBE_CONTROLLER_MANAGER), To::User(KUBE_SCHEDULER)],
    ),
    (
        "kube-system",
        "system::leader-locking-kube-controller-manager",
        "system::leader-locking-kube-controller-manager",
        &[
            To::User(KUBE_CONTROLLER_MANAGER),
            To::Account("kube-controller-manager"),
            To::Account("leader-election-controller"),
        ],
    ),
    (
        "kube-system",
        "system::leader-locking-kube-scheduler",
        "system::leader-locking-kube-scheduler",
        &[To::User(KUBE_SCHEDULER), To::Account("kube-scheduler")],
    ),
];
