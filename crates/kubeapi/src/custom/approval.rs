//! Groups under k8s.io and kubernetes.io belong to the Kubernetes community: a definition in one
//! says who approved it.

use super::definition::Definition;
use super::{cause, settle};
use crate::status::Cause;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const FIELD: &str = "metadata.annotations[api-approved.kubernetes.io]";

/// What the annotation of a definition says.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

/// What is wrong with the approval of a definition. An approval that an update does not change is
/// left alone.
pub(super) fn check(definition: &Definition, old: Option<&Definition>) -> Option<Cause> {
    if !is_protected(&definition.spec.group) {
        return None;
    }
    let (approval, words) = (approval(definition), words(definition));
    if old.is_some_and(|old| self::approval(old) == approval) {
        return None;
    }
    match approval {
        Approval::Missing => Some(cause::required(FIELD, &words)),
        Approval::Invalid => Some(cause::invalid(FIELD, annotation(definition), &words)),
        Approval::Bypassed | Approval::Approved => None,
    }
}

/// The condition of a definition in a protected group.
pub(super) fn condition(definition: &Definition) -> Option<settle::NewCondition> {
    if !is_protected(&definition.spec.group) {
        return None;
    }
    let (status, reason) = match approval(definition) {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
    };
    let message = words(definition);
    Some(settle::NewCondition {
        kind: "KubernetesAPIApprovalPolicyConformant",
        status,
        reason,
        message,
    })
}

fn is_protected(group: &str) -> bool {
    let under = |domain: &str| {
        let parent = group.strip_suffix(domain);
        parent.is_some_and(|parent| parent.is_empty() || parent.ends_with('.'))
    };
    under("k8s.io") || under("kubernetes.io")
}

fn annotation(definition: &Definition) -> &str {
    definition
        .metadata
        .annotations
        .get(ANNOTATION)
        .map_or("", String::as_str)
}

fn approval(definition: &Definition) -> Approval {
    match annotation(definition) {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        text if is_url(text) => Approval::Approved,
        _ => Approval::Invalid,
    }
}

fn words(definition: &Definition) -> String {
    let needed = format!("protected groups must have approval annotation {ANNOTATION:?}");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match approval(definition) {
        Approval::Missing => format!("{needed}, {see}"),
        Approval::Invalid => {
            format!("{needed} with either a URL or a reason starting with \"unapproved\", {see}")
        }
        Approval::Bypassed => format!("not approved: {:?}", annotation(definition)),
        Approval::Approved => format!("approved in {}", annotation(definition)),
    }
}

/// Whether a text has the form of a URL with a host.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !host.is_empty()
        && !text.contains(|c: char| c.is_ascii_whitespace() || c.is_control())
}
