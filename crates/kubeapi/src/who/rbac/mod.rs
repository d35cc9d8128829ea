//! Role-based access: who is granted what by roles and bindings, kept so that a question costs a
//! few look-ups and no parsing.
//!
//! Aggregated cluster roles are resolved here, from labels, at the time of a question: no
//! controller runs beside us that would write the collected rules into the object. Such a role
//! grants what the roles that it selects grant, through any number of aggregations; what its own
//! `rules` say does not count, because in a real cluster the controller overwrites them.

mod rule; // what a role grants
mod roles; // roles by name, aggregated ones resolved
mod effective; // what one account may read
pub mod cover; // does one set of rules hold another? who may write roles and bindings
pub mod bootstrap; // the roles that every cluster begins with

pub use effective::Readable;
pub use roles::{ClusterRole, RoleReference};
pub use rule::Rule;
pub(in crate::who) use rule::or_default;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use object::ObjectName;
use serde::Deserialize;

use super::question::{Attributes, Decision, Target};
use super::user::service_account_name;
use super::{Metadata, User};
use roles::Roles;

/// The group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// All roles and bindings of a cluster, by whom they concern.
#[derive(Debug, Default)]
pub struct Rules {
    roles: Roles,
    /// Grants by namespace; those of cluster role bindings are under the empty one.
    scopes: HashMap<Box<str>, Scope>,
    /// Whom each binding concerns, to take it out again.
    bindings: HashMap<ObjectName, Vec<Subject>>,
}

/// The grants that hold in one namespace, or everywhere.
#[derive(Debug, Default)]
struct Scope {
    users: HashMap<Box<str>, Grants>,
    groups: HashMap<Box<str>, Grants>,
}

/// By the name of the binding.
type Grants = BTreeMap<Box<str>, Grant>;

#[derive(Debug, Clone)]
struct Grant {
    role: RoleReference,
    /// What an allowed question is told.
    reason: Arc<str>,
}

/// Whom a binding concerns. A service account is the user that it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    User(Box<str>),
    Group(Box<str>),
}

/// A RoleBinding or ClusterRoleBinding, as much of it as counts.
#[derive(Debug, Clone, Deserialize)]
pub struct Binding {
    /// Name and namespace.
    #[serde(default)]
    pub metadata: Metadata,
    /// Whom it concerns.
    #[serde(default, deserialize_with = "or_default")]
    pub subjects: Vec<BindingSubject>,
    /// What it grants them.
    #[serde(rename = "roleRef")]
    pub role: RoleReference,
}

/// An entry of a binding's `subjects`.
#[derive(Debug, Clone, Deserialize)]
pub struct BindingSubject {
    /// `User`, `Group` or `ServiceAccount`; any other kind concerns nobody.
    #[serde(default)]
    pub kind: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// The namespace of a service account.
    #[serde(default)]
    pub namespace: String,
}

/// What is granted to a user, and what is missing.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Granted {
    /// The rules that hold.
    pub rules: Vec<Rule>,
    /// Roles that are bound but do not exist, in words.
    pub missing: Vec<String>,
}

impl Rules {
    /// Takes in a role or a cluster role; `namespace` is empty for the latter.
    pub fn put_role(&mut self, role: ClusterRole) {
        self.roles.put(role);
    }

    /// Takes a role out again.
    pub fn delete_role(&mut self, name: &ObjectName) {
        self.roles.delete(name);
    }

    /// Takes in a binding, in the place of an older one of the same name.
    pub fn put_binding(&mut self, binding: &Binding) {
        let (namespace, name) = (&binding.metadata.namespace, &binding.metadata.name);
        let key = ObjectName::new(namespace, name);
        self.delete_binding(&key);
        let scope = self.scopes.entry(namespace.as_str().into()).or_default();
        let mut subjects = Vec::new();
        for entry in &binding.subjects {
            let Some(subject) = entry.concerns(namespace) else {
                continue;
            };
            let grant = Grant {
                role: binding.role.clone(),
                reason: reason(binding, entry).into(),
            };
            // Of two subjects that are the same, the first one gives the reason.
            scope
                .grants_mut(&subject)
                .entry(name.as_str().into())
                .or_insert(grant);
            subjects.push(subject);
        }
        self.bindings.insert(key, subjects);
    }

    /// Takes a binding out again.
    pub fn delete_binding(&mut self, name: &ObjectName) {
        let Some(subjects) = self.bindings.remove(name) else {
            return;
        };
        let Some(scope) = self.scopes.get_mut(name.namespace()) else {
            return;
        };
        for subject in &subjects {
            scope.remove(subject, name.name());
        }
        if scope.users.is_empty() && scope.groups.is_empty() {
            self.scopes.remove(name.namespace());
        }
    }

    /// Whether any rule allows what is asked.
    pub fn decide(&self, asked: &Attributes) -> Decision {
        let namespace = match &asked.target {
            Target::Resource(place) => place.namespace.as_str(),
            Target::Path(_) => "",
        };
        let mut missing = Vec::new();
        for (grant, scope) in self.grants(&asked.user, namespace) {
            match self.roles.rules(&grant.role, scope) {
                Some(rules) => {
                    if rules.iter().any(|rule| rule.allows(asked)) {
                        let reason = Arc::clone(&grant.reason);
                        return Decision::Allow { reason };
                    }
                }
                None => missing.push(grant.role.missing()),
            }
        }
        match listed(&missing) {
            Some(missing) => Decision::unrelated(format!("RBAC: {missing}")),
            None => Decision::no_opinion(),
        }
    }

    /// Everything that the user is granted in a namespace, or, where it is empty, everywhere.
    pub fn granted(&self, user: &User, namespace: &str) -> Granted {
        let mut granted = Granted::default();
        for (grant, scope) in self.grants(user, namespace) {
            match self.roles.rules(&grant.role, scope) {
                Some(rules) => granted.rules.extend(rules.iter().cloned()),
                None => granted.missing.push(grant.role.missing()),
            }
        }
        granted
    }

    /// The rules of the role that a binding in `namespace` refers to. None where there is no such
    /// role.
    pub fn referenced(&self, role: &RoleReference, namespace: &str) -> Option<Arc<[Rule]>> {
        self.roles.rules(role, namespace)
    }

    /// The grants that concern a user, each with the namespace of its binding.
    fn grants<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Grant, &'a str)> {
        let everywhere = self.scopes.get_key_value("");
        let here = match namespace {
            "" => None,
            namespace => self.scopes.get_key_value(namespace),
        };
        everywhere
            .into_iter()
            .chain(here)
            .flat_map(|(name, scope)| {
                let groups = user
                    .groups
                    .iter()
                    .filter_map(|group| scope.groups.get(group.as_str()));
                let grants = scope
                    .users
                    .get(user.name.as_str())
                    .into_iter()
                    .chain(groups);
                grants.flat_map(|grants| grants.values().map(|grant| (grant, &**name)))
            })
    }
}

impl Scope {
    fn grants_mut(&mut self, subject: &Subject) -> &mut Grants {
        match subject {
            Subject::User(name) => self.users.entry(name.clone()).or_default(),
            Subject::Group(name) => self.groups.entry(name.clone()).or_default(),
        }
    }

    fn remove(&mut self, subject: &Subject, binding: &str) {
        let (side, name) = match subject {
            Subject::User(name) => (&mut self.users, name),
            Subject::Group(name) => (&mut self.groups, name),
        };
        if let Some(grants) = side.get_mut(name) {
            grants.remove(binding);
            if grants.is_empty() {
                side.remove(name);
            }
        }
    }
}

impl BindingSubject {
    fn concerns(&self, binding_namespace: &str) -> Option<Subject> {
        match self.kind.as_str() {
            "User" => Some(Subject::User(self.name.as_str().into())),
            "Group" => Some(Subject::Group(self.name.as_str().into())),
            "ServiceAccount" => {
                let namespace = self.namespace_in(binding_namespace);
                let name = service_account_name(namespace, &self.name);
                (!namespace.is_empty()).then(|| Subject::User(name.into()))
            }
            _ => None,
        }
    }

    /// A service account without a namespace is one of the binding's.
    fn namespace_in<'a>(&'a self, binding_namespace: &'a str) -> &'a str {
        match self.namespace.as_str() {
            "" => binding_namespace,
            namespace => namespace,
        }
    }
}

/// What an allowed question is told, in Kubernetes' words (which put names before namespaces).
fn reason(binding: &Binding, subject: &BindingSubject) -> String {
    let (namespace, name) = (&binding.metadata.namespace, &binding.metadata.name);
    let (kind, bound) = match namespace.as_str() {
        "" => ("ClusterRoleBinding", name.clone()),
        namespace => ("RoleBinding", format!("{name}/{namespace}")),
    };
    let concerned = match subject.kind.as_str() {
        "ServiceAccount" => {
            format!("{}/{}", subject.name, subject.namespace_in(namespace))
        }
        _ => subject.name.clone(),
    };
    format!(
        "RBAC: allowed by {kind} {bound:?} of {} {:?} to {} {concerned:?}",
        binding.role.kind, binding.role.name, subject.kind
    )
}

/// Several errors as one, the way Kubernetes lists them: each once, in brackets if more than one.
pub(in crate::who) fn listed(errors: &[String]) -> Option<String> {
    let mut once: Vec<&str> = Vec::new();
    for error in errors {
        if !once.contains(&error.as_str()) {
            once.push(error);
        }
    }
    match once.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}

#[cfg(test)]
mod tests;
