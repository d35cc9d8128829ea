//! The kinds of Kubernetes itself, read from the compiled-in facts.

use std::sync::Arc;

use super::groups::{Group, GroupVersion};
use super::kind::{Kind, Subresource};
use crate::schema::builtin::{FACTS, reference};

/// What may be done with most kinds.
const VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";

/// All built-in groups, in the order of their priority.
pub(super) fn groups() -> Vec<Group> {
    let mut groups = Vec::new();
    for block in FACTS.split("\n\n") {
        let Some(text) = block.trim_start().strip_prefix("group ") else {
            continue;
        };
        let (first, lines) = text.split_once('\n').unwrap_or((text, ""));
        let (name, version) = first.split_once(' ').unwrap_or((first, "v1"));
        let group = named_group(name);
        let mut kinds: Vec<Arc<Kind>> = kinds(lines, &group, version);
        kinds.sort_by(|left, right| left.plural.cmp(&right.plural));
        groups.push(Group {
            name: group,
            versions: vec![Arc::new(GroupVersion::new(version.into(), kinds))],
        });
    }
    groups
}

fn kinds(lines: &'static str, group: &Arc<str>, version: &str) -> Vec<Arc<Kind>> {
    let mut kinds: Vec<Kind> = Vec::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["kind", kind, plural, singular, scope, schema, rest @ ..] => kinds.push(Kind {
                group: group.clone(),
                version: version.into(),
                kind: (*kind).into(),
                list_kind: format!("{kind}List").into(),
                plural: (*plural).into(),
                singular: (*singular).into(),
                short_names: listed(rest, "short=", ""),
                categories: listed(rest, "in=", ""),
                namespaced: *scope == "namespaced",
                verbs: listed(rest, "verbs=", VERBS),
                subresources: Vec::new(),
                schema: Some(reference(schema)),
                custom: None,
                told: false,
            }),
            ["sub", name, kind, verbs] => {
                if let (Some(owner), Some(sub)) = (kinds.last_mut(), subresource(name, kind, verbs))
                {
                    owner.subresources.push(sub);
                }
            }
            _ => {}
        }
    }
    kinds.into_iter().map(Arc::new).collect()
}

/// `status`, `apps/v1/Deployment`, `get,patch,update`
fn subresource(name: &str, kind: &str, verbs: &str) -> Option<Subresource> {
    let mut parts = kind.split('/');
    Some(Subresource {
        name: name.into(),
        group: named_group(parts.next()?),
        version: parts.next()?.into(),
        kind: parts.next()?.into(),
        verbs: verbs.split(',').map(Arc::from).collect(),
    })
}

fn listed(words: &[&str], prefix: &str, otherwise: &'static str) -> Vec<Arc<str>> {
    let found = words.iter().find_map(|word| word.strip_prefix(prefix));
    found
        .unwrap_or(otherwise)
        .split(',')
        .filter(|word| !word.is_empty())
        .map(Arc::from)
        .collect()
}

/// The facts write the core group as a word, because a line needs one.
fn named_group(word: &str) -> Arc<str> {
    match word {
        "core" => "".into(),
        group => group.into(),
    }
}
