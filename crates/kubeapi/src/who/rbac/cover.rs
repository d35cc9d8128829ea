//! Does one set of rules hold another? Nobody may grant what he does not have, unless a rule with
//! the verb `escalate` or `bind` says that he may.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::rule::{Rule, has, path_covers, star_or};
use super::{Binding, ClusterRole, GROUP};
use crate::Status;
use crate::who::question::{Attributes, Place};
use crate::who::user::MASTERS;
use crate::who::{Authorizer, User};

/// Combinations of verb, group, resource and name that are held against the owner's rules one by
/// one. Past this a rule is not read to its end and counts as not held: four long lists in one
/// object could otherwise keep us busy for years.
pub const COMBINATIONS_MAX: usize = 100_000;

/// The rules of `wanted` that `owned` does not hold, each for one verb, one resource and one name.
/// Empty where everything is held.
pub fn missing(owned: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let mut missing = Vec::new();
    let mut left = COMBINATIONS_MAX;
    for rule in wanted {
        if owned.iter().any(|owner| holds(owner, rule)) {
            continue;
        }
        match combinations(rule).filter(|count| *count <= left) {
            Some(count) => {
                left -= count;
                let alone = single(rule).filter(|one| !owned.iter().any(|own| holds(own, one)));
                missing.extend(alone);
            }
            None => missing.push(rule.clone()),
        }
    }
    missing
}

/// Whether the rule `owner` alone holds all that `wanted` says.
fn holds(owner: &Rule, wanted: &Rule) -> bool {
    let verbs = wanted.verbs.iter().all(|verb| star_or(&owner.verbs, verb));
    let groups = wanted
        .api_groups
        .iter()
        .all(|group| star_or(&owner.api_groups, group));
    let resources = wanted
        .resources
        .iter()
        .all(|resource| holds_resource(&owner.resources, resource));
    let paths = wanted
        .paths
        .iter()
        .all(|path| owner.paths.iter().any(|owned| path_covers(owned, path)));
    verbs && groups && resources && paths && holds_names(owner, wanted)
}

fn holds_resource(owned: &[String], wanted: &str) -> bool {
    star_or(owned, wanted)
        || wanted
            .split_once('/')
            .is_some_and(|(_, part)| has(owned, &format!("*/{part}")))
}

fn holds_names(owner: &Rule, wanted: &Rule) -> bool {
    let all_named = !wanted.resource_names.is_empty()
        && wanted
            .resource_names
            .iter()
            .all(|name| has(&owner.resource_names, name));
    owner.resource_names.is_empty() || all_named
}

fn combinations(rule: &Rule) -> Option<usize> {
    let objects = rule
        .verbs
        .len()
        .checked_mul(rule.api_groups.len())?
        .checked_mul(rule.resources.len())?
        .checked_mul(rule.resource_names.len().max(1))?;
    objects.checked_add(rule.verbs.len().checked_mul(rule.paths.len())?)
}

/// A rule as many rules of one verb, one resource and one name each.
fn single(rule: &Rule) -> impl Iterator<Item = Rule> {
    let one = |text: &String| vec![text.clone()];
    let names: Vec<Vec<String>> = match rule.resource_names.is_empty() {
        true => vec![Vec::new()],
        false => rule.resource_names.iter().map(one).collect(),
    };
    let mut singles = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                singles.extend(names.iter().map(|name| Rule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    resource_names: name.clone(),
                    paths: Vec::new(),
                }));
            }
        }
    }
    for path in &rule.paths {
        singles.extend(rule.verbs.iter().map(|verb| Rule {
            verbs: one(verb),
            paths: one(path),
            ..Rule::default()
        }));
    }
    singles.into_iter()
}

/// Why `user`, who is granted `owned`, may not grant `wanted`; None where he may.
pub fn escalation(user: &User, owned: &[Rule], wanted: &[Rule]) -> Option<String> {
    let missing = missing(owned, wanted);
    if missing.is_empty() {
        return None;
    }
    let lines: Vec<String> = compact(missing)
        .iter()
        .map(in_words)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    Some(format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        lines.join("\n")
    ))
}

/// Puts rules together that differ in the verb only.
fn compact(rules: Vec<Rule>) -> Vec<Rule> {
    let mut others = Vec::new();
    let mut by_object: BTreeMap<(String, String, Vec<String>), Rule> = BTreeMap::new();
    for rule in rules {
        let simple = rule.paths.is_empty()
            && rule.resource_names.len() <= 1
            && rule.api_groups.len() == 1
            && rule.resources.len() == 1;
        if !simple {
            others.push(rule);
            continue;
        }
        let key = (
            rule.api_groups.concat(),
            rule.resources.concat(),
            rule.resource_names.clone(),
        );
        match by_object.get_mut(&key) {
            Some(known) => known.verbs.extend(rule.verbs),
            None => {
                by_object.insert(key, rule);
            }
        }
    }
    others.extend(by_object.into_values());
    others
}

fn in_words(rule: &Rule) -> String {
    let lists = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.paths),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let parts: Vec<String> = lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(name, list)| format!("{name}:{}", quoted(list)))
        .collect();
    format!("{{{}}}", parts.join(", "))
}

/// A list as Kubernetes prints it: `["a" "b"]`.
fn quoted(list: &[String]) -> String {
    let words: Vec<String> = list.iter().map(|word| format!("{word:?}")).collect();
    format!("[{}]", words.join(" "))
}

/// Whether `user` may write this Role or ClusterRole. `old` is what stands in its place now.
///
/// The caller lets writes pass that change nothing but owner references and finalizers.
pub fn may_write_role(
    authorizer: &Authorizer,
    user: &Arc<User>,
    role: &ClusterRole,
    old: Option<&ClusterRole>,
) -> Result<(), Status> {
    let (namespace, name) = (&role.metadata.namespace, &role.metadata.name);
    let resource = match namespace.as_str() {
        "" => "clusterroles",
        _ => "roles",
    };
    let place = Place::new(GROUP, resource, namespace).named(name);
    if may_always(authorizer, user, "escalate", place) {
        return Ok(());
    }
    let owned = authorizer.rules().granted(user, namespace).rules;
    if let Some(why) = escalation(user, &owned, &role.rules) {
        return Err(Status::forbidden(GROUP, resource, name, &why));
    }
    // An aggregated role can collect anything, so it takes everything to write one.
    if aggregated(role) || old.is_some_and(aggregated) {
        let everything = [Rule::everything(), Rule::every_path()];
        if !missing(&owned, &everything).is_empty() {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(Status::forbidden(GROUP, resource, name, why));
        }
    }
    Ok(())
}

/// Whether `user` may write this RoleBinding or ClusterRoleBinding.
///
/// The caller lets writes pass that change nothing but owner references and finalizers.
pub fn may_write_binding(
    authorizer: &Authorizer,
    user: &Arc<User>,
    binding: &Binding,
) -> Result<(), Status> {
    let (namespace, name) = (&binding.metadata.namespace, &binding.metadata.name);
    let role = &binding.role;
    let resource = match namespace.as_str() {
        "" => "clusterrolebindings",
        _ => "rolebindings",
    };
    let role_resource = match role.kind.as_str() {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        kind => {
            let why = format!("unsupported role reference kind: {kind:?}");
            return Err(Status::bad_request(why));
        }
    };
    let place = Place::new(&role.api_group, role_resource, namespace).named(&role.name);
    if may_always(authorizer, user, "bind", place) {
        return Ok(());
    }
    let Some(wanted) = authorizer.rules().referenced(role, namespace) else {
        // As Kubernetes says it: the resource is the binding's and the name the role's.
        return Err(Status::not_found(GROUP, resource, &role.name));
    };
    let owned = authorizer.rules().granted(user, namespace).rules;
    match escalation(user, &owned, &wanted) {
        Some(why) => Err(Status::forbidden(GROUP, resource, name, &why)),
        None => Ok(()),
    }
}

fn may_always(authorizer: &Authorizer, user: &Arc<User>, verb: &str, place: Place) -> bool {
    user.belongs_to(MASTERS)
        || authorizer
            .decide(&Attributes::resource(user, verb, place))
            .is_allowed()
}

fn aggregated(role: &ClusterRole) -> bool {
    !role.aggregation_rule.cluster_role_selectors.is_empty()
}
