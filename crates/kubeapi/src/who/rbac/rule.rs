//! What a role grants, as it stands in the object, and whether it fits a question.

use serde::{Deserialize, Deserializer, Serialize};

use crate::who::question::{Attributes, Place, Target};

/// An entry of a role's `rules`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// What may be done; `*` is everything.
    #[serde(deserialize_with = "or_default")]
    pub verbs: Vec<String>,
    /// In which API groups; `*` is all of them.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// With which resources: `pods`, `pods/log`, `*/scale`, `*`.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// With which objects only; empty is all of them.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// At which paths that are not of objects: `/healthz`, `/apis/*`, `*`.
    #[serde(
        rename = "nonResourceURLs",
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub paths: Vec<String>,
}

impl Rule {
    /// The rule that allows everything with every object.
    pub fn everything() -> Self {
        let all = || vec!["*".to_owned()];
        Self {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            ..Self::default()
        }
    }

    /// The rule that allows everything at every path that is not of objects.
    pub fn every_path() -> Self {
        let all = || vec!["*".to_owned()];
        Self {
            verbs: all(),
            paths: all(),
            ..Self::default()
        }
    }

    /// Whether the rule allows what is asked.
    pub fn allows(&self, asked: &Attributes) -> bool {
        star_or(&self.verbs, &asked.verb)
            && match &asked.target {
                Target::Resource(place) => self.holds(place),
                Target::Path(path) => self.paths.iter().any(|owned| path_covers(owned, path)),
            }
    }

    fn holds(&self, place: &Place) -> bool {
        star_or(&self.api_groups, &place.group)
            && self
                .resources
                .iter()
                .any(|owned| names_resource(owned, &place.resource, &place.subresource))
            && (self.resource_names.is_empty() || has(&self.resource_names, &place.name))
    }
}

/// Whether `owned`, an entry of a rule's resources, stands for this resource or part of one.
fn names_resource(owned: &str, resource: &str, subresource: &str) -> bool {
    match owned.split_once('/') {
        None => owned == "*" || (owned == resource && subresource.is_empty()),
        Some((of, part)) => {
            part == subresource && !subresource.is_empty() && (of == "*" || of == resource)
        }
    }
}

/// Whether `owned`, an entry of a rule's paths, stands for this path.
pub(super) fn path_covers(owned: &str, path: &str) -> bool {
    owned == path || (owned.ends_with('*') && path.starts_with(owned.trim_end_matches('*')))
}

/// Whether the list has everything in it, or this.
pub(super) fn star_or(list: &[String], wanted: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == wanted)
}

/// Whether the list has this in it.
pub(super) fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|entry| entry == wanted)
}

/// A field that is null is a field that is not there.
pub(in crate::who) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::who::User;

    fn rule(verbs: &[&str], groups: &[&str], resources: &[&str]) -> Rule {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Rule {
            verbs: owned(verbs),
            api_groups: owned(groups),
            resources: owned(resources),
            ..Rule::default()
        }
    }

    fn ask(verb: &str, group: &str, resource: &str) -> Attributes {
        let user = Arc::new(User::default());
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        Attributes::resource(&user, verb, Place::new(group, resource, "").part(part))
    }

    #[test]
    fn a_star_stands_for_everything_of_its_list_and_of_no_other() {
        let cases = [
            (rule(&["*"], &["g1"], &["r1"]), [true, false, false, true]),
            (rule(&["v1"], &["*"], &["r1"]), [true, true, false, false]),
            (rule(&["v1"], &["g1"], &["*"]), [true, false, true, false]),
            (
                rule(&["v1", "v2"], &["g1", "g2"], &["r1"]),
                [true, true, false, true],
            ),
        ];
        for (rule, expected) in cases {
            let asked = [
                ask("v1", "g1", "r1"),
                ask("v1", "g2", "r1"),
                ask("v1", "g1", "r2"),
                ask("v2", "g1", "r1"),
            ];
            let found = asked.map(|question| rule.allows(&question));
            assert_eq!(found, expected, "{rule:?}");
        }
    }

    #[test]
    fn a_part_of_a_resource_is_granted_by_its_own_name_only() {
        let cases = [
            ("pods", "pods", true),
            ("pods", "pods/log", false),
            ("pods/log", "pods/log", true),
            ("pods/log", "pods", false),
            ("pods/log", "pods/logs", false),
            ("*/scale", "anything/scale", true),
            ("*/scale", "anything/xscale", false),
            ("*/scale", "scale", false),
            ("*/scale", "anything", false),
            ("*/", "pods", false),
            ("pods/", "pods", false),
            ("*", "pods/log", true),
            ("pods/*", "pods/log", false),
        ];
        for (granted, asked, expected) in cases {
            let rule = rule(&["get"], &[""], &[granted]);
            assert_eq!(
                rule.allows(&ask("get", "", asked)),
                expected,
                "{granted} {asked}"
            );
        }
    }

    #[test]
    fn names_narrow_a_rule_to_those_objects() {
        let mut rule = rule(&["get", "list"], &[""], &["secrets"]);
        rule.resource_names = vec!["a".into()];
        let user = Arc::new(User::default());
        let named = |name: &str| {
            Attributes::resource(&user, "get", Place::new("", "secrets", "ns").named(name))
        };
        assert!(rule.allows(&named("a")));
        assert!(!rule.allows(&named("b")));
        assert!(!rule.allows(&named("")));
    }

    #[test]
    fn paths_match_whole_or_up_to_a_star() {
        let user = Arc::new(User::default());
        let cases = [
            ("/apis", "/apis", true),
            ("/apis", "/apis/v1", false),
            ("/apis/*", "/apis/v1/x", true),
            ("/apis/*", "/apis", false),
            ("/apis*", "/apis2", true),
            ("*", "/anything", true),
            ("/*/x", "/a/x", false),
        ];
        for (granted, asked, expected) in cases {
            let rule = Rule {
                verbs: vec!["get".into()],
                paths: vec![granted.into()],
                ..Rule::default()
            };
            let found = rule.allows(&Attributes::path(&user, "get", asked));
            assert_eq!(found, expected, "{granted} {asked}");
            assert!(!rule.allows(&Attributes::path(&user, "post", asked)));
        }
    }

    #[test]
    fn a_rule_for_objects_says_nothing_about_paths_and_the_reverse() {
        let user = Arc::new(User::default());
        let objects = rule(&["*"], &["*"], &["*"]);
        assert!(!objects.allows(&Attributes::path(&user, "get", "/version")));
        let paths = Rule {
            verbs: vec!["*".into()],
            paths: vec!["*".into()],
            ..Rule::default()
        };
        assert!(!paths.allows(&ask("get", "", "pods")));
    }

    #[test]
    fn null_lists_read_as_empty_ones() {
        let read: Rule =
            serde_json::from_str(r#"{"verbs":["get"],"apiGroups":null,"nonResourceURLs":["/x"]}"#)
                .unwrap();
        assert_eq!(read.paths, ["/x"]);
        assert!(read.api_groups.is_empty());
    }
}
