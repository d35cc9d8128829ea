//! The versions of a definition: their names, their schemas and their parts.

use serde_json::{Value, json};

use super::super::cause::{forbidden, invalid, required};
use super::super::definition::{Definition, Spec, Subresources, Version};
use super::columns;
use crate::schema::structural;
use crate::status::Cause;
use crate::write::names::rfc1035_label_faults;

/// Where a part of a version is found when something is wrong with it.
enum Place {
    /// In all versions alike: Kubernetes looks at it once.
    Shared,
    /// In each version on its own.
    Each,
}

/// What is wrong with the list of versions, and with what they do not have in common.
pub(super) fn check(spec: &Spec) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (at, version) in spec.versions.iter().enumerate() {
        if version.schema().is_none() {
            causes.push(required(
                format!("spec.versions[{at}].schema.openAPIV3Schema"),
                "",
            ));
        }
    }
    for (at, version) in spec.versions.iter().enumerate() {
        let base = format!("spec.versions[{at}]");
        let wrong = rfc1035_label_faults(&version.name);
        if !wrong.is_empty() {
            causes.push(invalid(
                format!("{base}.name"),
                version.name.as_str(),
                &wrong.join(","),
            ));
        }
        causes.extend(check_deprecation(version, &base));
        if matches!(schema_place(spec), Place::Each) {
            causes.extend(check_schema(version, &format!("{base}.schema")));
        }
        if matches!(place(spec, |version| &version.subresources), Place::Each) {
            causes.extend(check_subresources(version, &format!("{base}.subresources")));
        }
        if matches!(
            place(spec, |version| &version.additional_printer_columns),
            Place::Each
        ) {
            causes.extend(columns::check(
                version,
                &format!("{base}.additionalPrinterColumns"),
            ));
        }
        if matches!(
            place(spec, |version| &version.selectable_fields),
            Place::Each
        ) {
            causes.extend(columns::check_selectable(
                version,
                &format!("{base}.selectableFields"),
            ));
        }
    }
    causes.extend(check_list(spec));
    // The first version is looked at once more, as the one that there was before several were.
    let first = spec.versions.first().map_or("", |version| &version.name);
    let wrong = rfc1035_label_faults(first);
    if !first.is_empty() && !wrong.is_empty() {
        causes.push(invalid("spec.version", first, &wrong.join(",")));
    }
    causes
}

/// What is wrong with what all versions have in common.
pub(super) fn check_shared(spec: &Spec) -> Vec<Cause> {
    let Some(first) = spec.versions.first() else {
        return Vec::new();
    };
    let mut causes = Vec::new();
    if matches!(schema_place(spec), Place::Shared) {
        // Whether the status stands on its own may differ even where the schema does not.
        let with_status = spec.versions.iter().find(|version| version.has_status());
        causes.extend(check_schema(
            with_status.unwrap_or(first),
            "spec.validation",
        ));
    }
    if matches!(place(spec, |version| &version.subresources), Place::Shared) {
        causes.extend(check_subresources(first, "spec.subresources"));
    }
    if matches!(
        place(spec, |version| &version.additional_printer_columns),
        Place::Shared
    ) {
        causes.extend(columns::check(first, "spec.additionalPrinterColumns"));
    }
    if matches!(
        place(spec, |version| &version.selectable_fields),
        Place::Shared
    ) {
        causes.extend(columns::check_selectable(first, "spec.selectableFields"));
    }
    causes
}

/// What the author should know though nothing is wrong: CEL rules that are kept and not evaluated,
/// formats that nobody knows.
pub(in super::super) fn warnings(definition: &Definition) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, version) in definition.spec.versions.iter().enumerate() {
        let base = format!("spec.versions[{at}].schema.openAPIV3Schema");
        warnings.extend(
            version
                .schema()
                .map(|schema| structural::unheeded(schema, &base)),
        );
    }
    warnings.into_iter().flatten().collect()
}

fn place<T: PartialEq>(spec: &Spec, part: impl Fn(&Version) -> &T) -> Place {
    let mut parts = spec.versions.iter().map(part);
    let first = parts.next();
    match parts.all(|one| Some(one) == first) {
        true => Place::Shared,
        false => Place::Each,
    }
}

fn schema_place(spec: &Spec) -> Place {
    place(spec, |version| &version.schema)
}

fn check_list(spec: &Spec) -> Vec<Cause> {
    let versions = &spec.versions;
    let names: Vec<&str> = versions
        .iter()
        .map(|version| version.name.as_str())
        .collect();
    let mut causes = Vec::new();
    let shown = match names.is_empty() {
        true => Value::Null,
        false => versions
            .iter()
            .map(|version| shown(spec, version))
            .collect(),
    };
    let mut wrong = |words| causes.push(invalid("spec.versions", shown.clone(), words));
    if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
        wrong("must contain unique version names");
    }
    if versions.iter().filter(|version| version.storage).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
    causes
}

/// A version as the words of a real server show it: what all have in common stands elsewhere then.
fn shown(spec: &Spec, version: &Version) -> Value {
    let own = |place: Place, part: Option<&Value>| match (place, part) {
        (Place::Each, Some(part)) => part.clone(),
        _ => Value::Null,
    };
    json!({
        "Name": version.name, "Served": version.served, "Storage": version.storage,
        "Deprecated": version.deprecated, "DeprecationWarning": version.deprecation_warning,
        "Schema": own(schema_place(spec), version.schema()), "Subresources": null,
        "AdditionalPrinterColumns": null, "SelectableFields": null,
    })
}

fn check_deprecation(version: &Version, base: &str) -> Vec<Cause> {
    let Some(words) = &version.deprecation_warning else {
        return Vec::new();
    };
    let mut wrong = Vec::new();
    if !version.deprecated {
        wrong.push("can only be set for deprecated versions".to_owned());
    } else if words.is_empty() {
        wrong.push("must not be an empty string".to_owned());
    } else {
        if words.len() > 256 {
            wrong.push("must be <= 256 characters long".to_owned());
        }
        let odd = words.char_indices().find(|(_, c)| c.is_control());
        wrong.extend(odd.map(|(at, _)| {
            format!(
                "must only contain printable UTF-8 characters; non-printable character found at \
                 index {at}"
            )
        }));
    }
    let field = format!("{base}.deprecationWarning");
    wrong
        .iter()
        .map(|why| invalid(field.as_str(), words.as_str(), why))
        .collect()
}

/// Keywords that may stand at the root of a schema whose status is validated on its own.
const AT_ROOT: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];
/// The same in the words of the refusal.
const AT_ROOT_WORDS: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum \
    ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required \
    Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";

fn check_schema(version: &Version, base: &str) -> Vec<Cause> {
    let Some(schema) = version.schema() else {
        return Vec::new();
    };
    let base = format!("{base}.openAPIV3Schema");
    let mut causes = Vec::new();
    if version.has_status() {
        causes.extend(check_root(schema, &base));
    }
    if schema["nullable"] == true {
        let words = "nullable cannot be true at the root";
        causes.push(forbidden(format!("{base}.nullable"), words));
    }
    causes.extend(structural::check(schema, &base));
    causes
}

/// The status is validated by its own part of the schema: nothing at the root may depend on it.
fn check_root(schema: &Value, base: &str) -> Option<Cause> {
    let fields = schema.as_object()?;
    let odd = fields.iter().find(|(keyword, value)| {
        let unset = value.is_null() || **value == false;
        !unset && !AT_ROOT.contains(&keyword.as_str())
    });
    match (schema["type"].as_str().unwrap_or_default(), odd) {
        ("" | "object", None) => None,
        ("" | "object", Some((keyword, _))) => {
            let words = format!(
                "only {AT_ROOT_WORDS} fields are allowed at the root of the schema if the status \
                 subresource is enabled"
            );
            Some(invalid(base, keyword.as_str(), &words))
        }
        (other, _) => {
            let words = "only \"object\" is allowed as the type at the root of the schema if the \
                         status subresource is enabled";
            Some(invalid(format!("{base}.type"), other, words))
        }
    }
}

fn check_subresources(version: &Version, base: &str) -> Vec<Cause> {
    let Some(Subresources {
        scale: Some(scale), ..
    }) = &version.subresources
    else {
        return Vec::new();
    };
    let paths = [
        (
            "specReplicasPath",
            &scale.spec_replicas_path,
            &[".spec."][..],
            ".spec",
        ),
        (
            "statusReplicasPath",
            &scale.status_replicas_path,
            &[".status."][..],
            ".status",
        ),
    ];
    let mut causes = Vec::new();
    for (field, path, prefixes, place) in paths {
        let field = format!("{base}.scale.{field}");
        match path.as_str() {
            "" => causes.push(required(field, "")),
            path => causes.extend(columns::check_path(path, field, prefixes, place)),
        }
    }
    if let Some(path) = scale
        .label_selector_path
        .as_deref()
        .filter(|path| !path.is_empty())
    {
        let field = format!("{base}.scale.labelSelectorPath");
        let place = "either .spec or .status";
        causes.extend(columns::check_path(
            path,
            field,
            &[".spec.", ".status."],
            place,
        ));
    }
    causes
}
