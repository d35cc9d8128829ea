//! What is wrong with a definition, with the field and the words that Kubernetes gives.
//!
//! Kubernetes moves what all versions have in common to the top before it looks: with one version,
//! a wrong schema is found at `spec.validation`, not at `spec.versions[0].schema`. The fields named
//! here are therefore those.

mod columns; // printer columns, selectable fields, paths
mod version; // versions, their schemas and subresources

use serde_json::Value;

use super::approval;
use super::cause::{forbidden, invalid, not_supported, required};
use super::definition::{Conversion, Definition, Names, Spec};
use crate::status::Cause;
use crate::write::names::{rfc1035_label_faults, subdomain_faults};

pub(super) use version::warnings;

/// What is wrong with a new definition.
pub(super) fn create(definition: &Definition) -> Vec<Cause> {
    let mut causes = check_name(definition);
    causes.extend(check_spec(&definition.spec));
    causes.extend(status(definition));
    causes.extend(check_stored_versions(definition));
    causes.extend(approval::check(definition, None));
    causes.extend(check_preserve_unknown(&definition.spec, None));
    causes
}

/// What is wrong with a definition that replaces another.
pub(super) fn update(definition: &Definition, old: &Definition) -> Vec<Cause> {
    let mut causes = check_spec(&definition.spec);
    causes.extend(check_immutable(definition, old));
    causes.extend(status(definition));
    causes.extend(check_stored_versions(definition));
    causes.extend(approval::check(definition, Some(old)));
    causes.extend(check_preserve_unknown(&definition.spec, Some(&old.spec)));
    causes
}

/// What is wrong with the status of a definition.
pub(super) fn status(definition: &Definition) -> Vec<Cause> {
    check_names(&definition.status.accepted_names, "status.acceptedNames")
}

fn check_name(definition: &Definition) -> Vec<Cause> {
    let (name, spec) = (definition.metadata.name.as_str(), &definition.spec);
    if name.is_empty() {
        return vec![required(
            "metadata.name",
            "name or generateName is required",
        )];
    }
    let mut wrong = subdomain_faults(name);
    if name != format!("{}.{}", spec.names.plural, spec.group) {
        wrong.push("must be spec.names.plural+\".\"+spec.group".to_owned());
    }
    wrong
        .iter()
        .map(|why| invalid("metadata.name", name, why))
        .collect()
}

fn check_spec(spec: &Spec) -> Vec<Cause> {
    let mut causes = check_group(&spec.group);
    match spec.scope.as_str() {
        "" => causes.push(required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => causes.push(not_supported(
            "spec.scope",
            other,
            &["Cluster", "Namespaced"],
        )),
    }
    causes.extend(version::check(spec));
    let needed = [
        ("plural", &spec.names.plural),
        ("singular", &spec.names.singular),
        ("kind", &spec.names.kind),
        ("listKind", &spec.names.list_kind),
    ];
    let missing = needed.iter().filter(|(_, name)| name.is_empty());
    causes.extend(missing.map(|(field, _)| required(format!("spec.names.{field}"), "")));
    causes.extend(check_names(&spec.names, "spec.names"));
    causes.extend(version::check_shared(spec));
    causes.extend(
        spec.conversion
            .as_ref()
            .map(check_conversion)
            .unwrap_or_default(),
    );
    causes
}

fn check_group(group: &str) -> Vec<Cause> {
    let wrong = subdomain_faults(group);
    match group {
        "" => vec![required("spec.group", "")],
        _ if !wrong.is_empty() => vec![invalid("spec.group", group, &wrong.join(","))],
        _ if !group.contains('.') => {
            vec![invalid(
                "spec.group",
                group,
                "should be a domain with at least one dot",
            )]
        }
        _ => Vec::new(),
    }
}

/// What is wrong with names that are there; missing ones are no mistake here.
fn check_names(names: &Names, base: &str) -> Vec<Cause> {
    let check = |field: &str, name: &str, spelled: &str, remark: &str| {
        let wrong = rfc1035_label_faults(spelled);
        let words = format!("{remark}{}", wrong.join(","));
        (!wrong.is_empty()).then(|| invalid(format!("{base}.{field}"), name, &words))
    };
    let mixed = "may have mixed case, but should otherwise match: ";
    let mut causes = Vec::new();
    for (field, name) in [("plural", &names.plural), ("singular", &names.singular)] {
        causes.extend(check(field, name, name, "").filter(|_| !name.is_empty()));
    }
    for (field, name) in [("kind", &names.kind), ("listKind", &names.list_kind)] {
        let wrong = check(field, name, &name.to_lowercase(), mixed);
        causes.extend(wrong.filter(|_| !name.is_empty()));
    }
    for (at, name) in names.short_names.iter().enumerate() {
        causes.extend(check(&format!("shortNames[{at}]"), name, name, ""));
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let words = "kind and listKind may not be the same";
        let field = format!("{base}.listKind");
        causes.push(invalid(field, names.list_kind.as_str(), words));
    }
    for (at, name) in names.categories.iter().enumerate() {
        causes.extend(check(&format!("categories[{at}]"), name, name, ""));
    }
    causes
}

fn check_conversion(conversion: &Conversion) -> Vec<Cause> {
    let field = "spec.conversion.strategy";
    match (conversion.strategy.as_str(), &conversion.webhook) {
        ("", _) => vec![required(field, "")],
        ("None", Some(_)) => vec![forbidden(
            "spec.conversion.webhookClientConfig",
            "should not be set when strategy is not set to Webhook",
        )],
        ("None", None) => Vec::new(),
        ("Webhook", _) => vec![Cause::new(
            "FieldValueNotSupported",
            field,
            "Unsupported value: \"Webhook\": this server calls no conversion webhooks; supported \
             values: \"None\" (objects of all versions have the same fields)",
        )],
        (other, _) => vec![not_supported(field, other, &["None", "Webhook"])],
    }
}

fn check_immutable(definition: &Definition, old: &Definition) -> Vec<Cause> {
    let (new_spec, old_spec) = (&definition.spec, &old.spec);
    let mut fixed = vec![
        ("spec.group", &new_spec.group, &old_spec.group),
        (
            "spec.names.plural",
            &new_spec.names.plural,
            &old_spec.names.plural,
        ),
    ];
    if old.has_condition("Established") {
        fixed.push(("spec.scope", &new_spec.scope, &old_spec.scope));
        fixed.push((
            "spec.names.kind",
            &new_spec.names.kind,
            &old_spec.names.kind,
        ));
    }
    let changed = fixed.into_iter().filter(|(_, new, old)| new != old);
    changed
        .map(|(field, new, _)| invalid(field, new.as_str(), "field is immutable"))
        .collect()
}

/// Every version that objects may be stored in must still be there.
fn check_stored_versions(definition: &Definition) -> Vec<Cause> {
    let field = "status.storedVersions";
    let stored = &definition.status.stored_versions;
    let listed = || match stored.is_empty() {
        true => Value::Null,
        false => Value::from(stored.as_slice()),
    };
    if stored.is_empty() {
        return vec![invalid(
            field,
            listed(),
            "must have at least one stored version",
        )];
    }
    let mut causes = Vec::new();
    let unrecorded = definition
        .storage_version()
        .filter(|version| !stored.contains(&version.name));
    if let Some(version) = unrecorded {
        let words = format!("must have the storage version {}", version.name);
        causes.push(invalid(field, listed(), &words));
    }
    for (at, name) in stored.iter().enumerate() {
        if definition.version(name).is_none() {
            let words = format!(
                "missing from spec.versions; {name} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name} and removes {name} from status.storedVersions"
            );
            causes.push(invalid(format!("{field}[{at}]"), name.as_str(), &words));
        }
    }
    causes
}

/// Keeping unknown fields everywhere is only for definitions that did so before it was forbidden.
fn check_preserve_unknown(spec: &Spec, old: Option<&Spec>) -> Option<Cause> {
    let did = old.is_some_and(|old| old.preserve_unknown_fields == Some(true));
    let does = spec.preserve_unknown_fields == Some(true);
    (does && !did).then(|| {
        let words = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                     spec.versions[*].schema instead";
        invalid("spec.preserveUnknownFields", true, words)
    })
}
