//! Roles by name, with the aggregated ones resolved from labels.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use object::ObjectName;
use serde::Deserialize;

use super::rule::{Rule, or_default};
use crate::who::Metadata;

/// Which role a binding grants.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleReference {
    /// The group that the role is of.
    #[serde(default)]
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    #[serde(default)]
    pub kind: String,
    /// The role's name.
    #[serde(default)]
    pub name: String,
}

/// A Role or a ClusterRole, as much of it as counts. The former has a namespace.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterRole {
    /// Name, namespace and labels.
    pub metadata: Metadata,
    /// What it grants.
    #[serde(deserialize_with = "or_default")]
    pub rules: Vec<Rule>,
    /// Whose rules it collects instead.
    #[serde(deserialize_with = "or_default")]
    pub aggregation_rule: Aggregation,
}

/// Which cluster roles an aggregated one collects.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Aggregation {
    /// Those that any of these selects. Where there is none, the role is an ordinary one.
    #[serde(deserialize_with = "or_default")]
    pub cluster_role_selectors: Vec<LabelSelector>,
}

/// A `metav1.LabelSelector`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    #[serde(deserialize_with = "or_default")]
    match_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    match_expressions: Vec<LabelExpression>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct LabelExpression {
    key: String,
    operator: String,
    #[serde(deserialize_with = "or_default")]
    values: Vec<String>,
}

/// All roles.
#[derive(Debug, Default)]
pub(super) struct Roles {
    namespaced: HashMap<ObjectName, Arc<[Rule]>>,
    cluster: BTreeMap<Box<str>, Stored>,
    /// What aggregated roles grant, found on the first question after a change.
    resolved: OnceLock<HashMap<Box<str>, Arc<[Rule]>>>,
}

#[derive(Debug)]
struct Stored {
    labels: BTreeMap<String, String>,
    rules: Arc<[Rule]>,
    selectors: Vec<LabelSelector>,
}

impl Roles {
    pub(super) fn put(&mut self, role: ClusterRole) {
        let rules: Arc<[Rule]> = role.rules.into();
        let metadata = role.metadata;
        if !metadata.namespace.is_empty() {
            let key = ObjectName::new(&metadata.namespace, &metadata.name);
            self.namespaced.insert(key, rules);
            return;
        }
        let stored = Stored {
            labels: metadata.labels,
            rules,
            selectors: role.aggregation_rule.cluster_role_selectors,
        };
        self.cluster.insert(metadata.name.into(), stored);
        self.resolved = OnceLock::new();
    }

    pub(super) fn delete(&mut self, name: &ObjectName) {
        if !name.namespace().is_empty() {
            self.namespaced.remove(name);
            return;
        }
        self.cluster.remove(name.name());
        self.resolved = OnceLock::new();
    }

    /// What the role grants that a binding in `namespace` refers to.
    pub(super) fn rules(&self, role: &RoleReference, namespace: &str) -> Option<Arc<[Rule]>> {
        match role.kind.as_str() {
            "Role" if !namespace.is_empty() => {
                let key = ObjectName::new(namespace, &role.name);
                self.namespaced.get(&key).map(Arc::clone)
            }
            "ClusterRole" => self.cluster_rules(&role.name),
            _ => None,
        }
    }

    fn cluster_rules(&self, name: &str) -> Option<Arc<[Rule]>> {
        let stored = self.cluster.get(name)?;
        if stored.selectors.is_empty() {
            return Some(Arc::clone(&stored.rules));
        }
        let resolved = self.resolved.get_or_init(|| self.resolve());
        resolved.get(name).map(Arc::clone)
    }

    fn resolve(&self) -> HashMap<Box<str>, Arc<[Rule]>> {
        self.cluster
            .iter()
            .filter(|(_, stored)| !stored.selectors.is_empty())
            .map(|(name, _)| (name.clone(), self.collected(name).into()))
            .collect()
    }

    /// The rules of all ordinary roles that an aggregated one reaches, each once. Every role is
    /// visited once, so roles that select each other do no harm.
    fn collected(&self, name: &str) -> Vec<Rule> {
        let mut reached = BTreeSet::from([name]);
        let mut waiting = vec![name];
        let mut rules: Vec<Rule> = Vec::new();
        while let Some(stored) = waiting.pop().and_then(|next| self.cluster.get(next)) {
            if stored.selectors.is_empty() {
                for rule in stored.rules.iter() {
                    if !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
            }
            for (candidate, other) in &self.cluster {
                let selected = stored
                    .selectors
                    .iter()
                    .any(|one| one.selects(&other.labels));
                if selected && reached.insert(candidate) {
                    waiting.push(candidate);
                }
            }
        }
        rules
    }
}

impl RoleReference {
    /// The words for a role that is not there.
    pub(super) fn missing(&self) -> String {
        match self.kind.as_str() {
            "Role" | "ClusterRole" => format!(
                "{}.{} {:?} not found",
                self.kind.to_lowercase(),
                super::GROUP,
                self.name
            ),
            kind => format!("unsupported role reference kind: {kind:?}"),
        }
    }
}

impl LabelSelector {
    /// Whether the labels are selected. A selector that is empty selects everything, one that
    /// cannot be understood nothing.
    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|one| one.holds(labels))
    }
}

impl LabelExpression {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator.as_str() {
            "In" => value.is_some_and(|value| self.values.contains(value)),
            "NotIn" => value.is_none_or(|value| !self.values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}
