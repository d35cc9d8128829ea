//! Which fields of which kind can be selected on, where their values stand, and how a refusal
//! reads.
//!
//! The table holds the built-in kinds of Kubernetes 1.36. A custom kind brings its own paths.
//! Every kind can be selected on `metadata.name`, and those in namespaces on `metadata.namespace`;
//! these two are not in the table, because every header has them anyway.

use std::sync::Arc;

use crate::Resource;

mod table; // what each built-in kind has

use table::{KINDS, Kind};

/// Fields that one kind may be selected on, the custom ones included. Kubernetes allows a custom
/// kind eight and no built-in kind has more than ten.
pub const FIELDS_MAX: usize = 32;

/// A field that a built-in kind can be selected on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name of the field in a selector.
    pub label: &'static str,
    /// Where its value stands in the object; the first of these that is not empty counts.
    pub paths: &'static [&'static str],
    /// The value of an object that has none.
    pub otherwise: &'static str,
}

/// Where a kind comes from, which decides what it may be selected on and how a refusal is worded.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// A kind of Kubernetes itself.
    BuiltIn,
    /// A kind that a CustomResourceDefinition made.
    Custom {
        /// Whether its objects live in namespaces.
        scope: Scope,
        /// Its selectable fields as the definition spells them: `.spec.color`.
        paths: &'a [Arc<str>],
    },
}

/// Whether the objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They do not.
    Cluster,
}

/// Why a field cannot be selected on. The caller's fault: 400, with this text, which clients know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedField {
    /// The kind names its fields, and this is not one of them.
    #[error("field label not supported: {0}")]
    NotSupported(String),
    /// The kind has no fields of its own to select on.
    #[error("{0:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")]
    OnlyMetadata(String),
    /// Jobs word it in their own way.
    #[error("field label {0:?} not supported for Job")]
    Job(String),
    /// So do resource slices.
    #[error("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {0}")]
    ResourceSlice(String),
}

/// The fields that a built-in kind can be selected on beside name and namespace; empty for most
/// kinds, and for kinds that are not built in.
pub fn of(resource: &Resource) -> &'static [Field] {
    kind(resource).map_or(&[], |kind| kind.fields)
}

/// The name under which headers keep the field that a selector calls `label`, or why there is none.
///
/// Nearly always the same word; `spec.host` of a pod and the `regarding` of an event are old and
/// new names of fields that are kept under one.
pub fn canonical_label<'a>(
    resource: &Resource,
    origin: Origin<'_>,
    label: &'a str,
) -> Result<&'a str, UnsupportedField> {
    match (origin, kind(resource)) {
        (Origin::Custom { scope, paths }, _) => custom_label(scope, paths, label),
        (Origin::BuiltIn, Some(kind)) => kind.canonical_label(label),
        (Origin::BuiltIn, None) => match label {
            "metadata.name" | "metadata.namespace" => Ok(label),
            _ => Err(UnsupportedField::OnlyMetadata(label.to_owned())),
        },
    }
}

fn custom_label<'a>(
    scope: Scope,
    paths: &[Arc<str>],
    label: &'a str,
) -> Result<&'a str, UnsupportedField> {
    let supported = match label {
        "metadata.name" => true,
        "metadata.namespace" => scope == Scope::Namespaced,
        _ => paths.iter().any(|path| label_of_path(path) == label),
    };
    if supported {
        Ok(label)
    } else {
        Err(UnsupportedField::NotSupported(label.to_owned()))
    }
}

/// The name that a selector uses for a custom kind's path: `.spec.color` is `spec.color`.
pub fn label_of_path(path: &str) -> &str {
    path.strip_prefix('.').unwrap_or(path)
}

fn kind(resource: &Resource) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.resource == resource.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built_in(resource: &str, label: &'static str) -> Result<&'static str, String> {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let resource = Resource::new(group, plural);
        canonical_label(&resource, Origin::BuiltIn, label).map_err(|refused| refused.to_string())
    }

    #[test]
    fn a_pod_is_selected_on_its_node_under_both_names() {
        assert_eq!(built_in("pods", "spec.nodeName"), Ok("spec.nodeName"));
        assert_eq!(built_in("pods", "spec.host"), Ok("spec.nodeName"));
        assert_eq!(
            built_in("pods", "metadata.namespace"),
            Ok("metadata.namespace")
        );
    }

    #[test]
    fn refusals_read_as_kubernetes_words_them_for_each_kind() {
        let refusals = [
            ("pods", "spec.x", "field label not supported: spec.x"),
            (
                "nodes",
                "metadata.namespace",
                "field label not supported: metadata.namespace",
            ),
            ("jobs.batch", "x", "field label \"x\" not supported for Job"),
            (
                "deployments.apps",
                "status.replicas",
                "\"status.replicas\" is not a known field selector: only \"metadata.name\", \
                 \"metadata.namespace\"",
            ),
            (
                "resourceslices.resource.k8s.io",
                "spec.pool",
                "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.pool",
            ),
        ];
        for (resource, label, text) in refusals {
            assert_eq!(
                built_in(resource, label),
                Err(text.to_owned()),
                "{resource} {label}"
            );
        }
    }

    #[test]
    fn events_of_both_groups_share_the_names_in_the_header() {
        assert_eq!(
            built_in("events.events.k8s.io", "regarding.uid"),
            Ok("involvedObject.uid")
        );
        assert_eq!(
            built_in("events", "involvedObject.uid"),
            Ok("involvedObject.uid")
        );
        assert!(built_in("events", "regarding.uid").is_err());
        assert!(built_in("events.events.k8s.io", "involvedObject.uid").is_err());
    }

    #[test]
    fn a_custom_kind_is_selected_on_its_own_paths_only() {
        let widgets = Resource::new("example.com", "widgets");
        let paths: [Arc<str>; 1] = [".spec.color".into()];
        let cluster = Origin::Custom {
            scope: Scope::Cluster,
            paths: &paths,
        };
        assert_eq!(
            canonical_label(&widgets, cluster, "spec.color"),
            Ok("spec.color")
        );
        assert!(canonical_label(&widgets, cluster, "spec.size").is_err());
        assert!(canonical_label(&widgets, cluster, "metadata.namespace").is_err());
        let namespaced = Origin::Custom {
            scope: Scope::Namespaced,
            paths: &paths,
        };
        assert!(canonical_label(&widgets, namespaced, "metadata.namespace").is_ok());
    }

    #[test]
    fn every_field_can_be_asked_for_and_no_kind_has_too_many() {
        for kind in KINDS {
            let paths: usize = kind.fields.iter().map(|field| field.paths.len()).sum();
            assert!(paths <= FIELDS_MAX, "{}", kind.resource);
            for field in kind.fields {
                let named = kind
                    .labels
                    .iter()
                    .any(|(_, canonical)| *canonical == field.label);
                let kept_for_the_other_group = kind.resource == "events.events.k8s.io";
                assert!(
                    named || kept_for_the_other_group,
                    "{} {}",
                    kind.resource,
                    field.label
                );
            }
        }
    }
}
