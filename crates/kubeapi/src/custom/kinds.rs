//! A definition as the kinds that the catalog serves: one for each served version.

use std::sync::Arc;

use super::definition::{Definition, Names, Version};
use super::scale::ScalePaths;
use crate::catalog::{CustomKind, Kind, PrinterColumn, Subresource};
use crate::schema::SchemaRef;
use crate::schema::structural::{self, TooDeep};

/// What may be done with objects of a custom kind.
const VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];
/// What may be done with them while their definition goes.
const LAST_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
/// What may be done with their parts.
const PART_VERBS: [&str; 3] = ["get", "patch", "update"];

/// The kinds that a definition brings: none before it is established.
///
/// A stored definition was checked when it was written; a schema that cannot be read all the same
/// is an error and not a kind without a schema, for that would keep what the schema prunes.
pub fn kinds(definition: &Definition) -> Result<Vec<Arc<Kind>>, TooDeep> {
    if !definition.has_condition("Established") {
        return Ok(Vec::new());
    }
    let served = definition
        .spec
        .versions
        .iter()
        .filter(|version| version.served);
    served
        .map(|version| kind(definition, version).map(Arc::new))
        .collect()
}

fn kind(definition: &Definition, version: &Version) -> Result<Kind, TooDeep> {
    let names: &Names = &definition.status.accepted_names;
    let schema = version.schema().map(structural::parse).transpose()?;
    let verbs = match definition.has_condition("Terminating") {
        true => &LAST_VERBS[..],
        false => &VERBS[..],
    };
    Ok(Kind {
        group: definition.spec.group.as_str().into(),
        version: version.name.as_str().into(),
        kind: names.kind.as_str().into(),
        list_kind: names.list_kind.as_str().into(),
        plural: names.plural.as_str().into(),
        singular: names.singular.as_str().into(),
        short_names: shared(&names.short_names),
        categories: shared(&names.categories),
        namespaced: definition.spec.scope == "Namespaced",
        verbs: shared(verbs),
        subresources: parts(definition, version),
        schema: schema.map(|schema| SchemaRef::Inline(Arc::new(schema))),
        custom: Some(Arc::new(custom(definition, version)?)),
        told: false,
    })
}

fn custom(definition: &Definition, version: &Version) -> Result<CustomKind, TooDeep> {
    let columns = version
        .additional_printer_columns
        .iter()
        .map(|column| PrinterColumn {
            name: column.name.clone(),
            kind: column.r#type.clone(),
            format: column.format.clone(),
            description: match column.description.as_str() {
                "" => format!("The value at {}.", column.json_path),
                words => words.to_owned(),
            },
            priority: column.priority,
            json_path: column.json_path.clone(),
        });
    let selectable = version
        .selectable_fields
        .iter()
        .map(|field| field.json_path.as_str().into());
    let stored = definition.storage_version().filter(|_| !version.storage);
    let stored_schema = stored.and_then(Version::schema).map(structural::parse);
    Ok(CustomKind {
        columns: columns.collect(),
        selectable: selectable.collect(),
        storage: version.storage,
        stored_in: definition
            .storage_version()
            .map_or("", |stored| &stored.name)
            .into(),
        stored_schema: stored_schema
            .transpose()?
            .map(|schema| SchemaRef::Inline(Arc::new(schema))),
        preserve_unknown: definition.spec.preserve_unknown_fields.unwrap_or(false),
        deprecation: definition.deprecation(&version.name),
        scale: version.scale().map(ScalePaths::of_custom),
    })
}

fn parts(definition: &Definition, version: &Version) -> Vec<Subresource> {
    let status = version.has_status().then(|| Subresource {
        name: "status".into(),
        group: definition.spec.group.as_str().into(),
        version: version.name.as_str().into(),
        kind: definition.status.accepted_names.kind.as_str().into(),
        verbs: shared(&PART_VERBS),
    });
    let scale = version.scale().map(|_| Subresource {
        name: "scale".into(),
        group: "autoscaling".into(),
        version: "v1".into(),
        kind: "Scale".into(),
        verbs: shared(&PART_VERBS),
    });
    status.into_iter().chain(scale).collect()
}

fn shared(words: &[impl AsRef<str>]) -> Vec<Arc<str>> {
    words.iter().map(|word| Arc::from(word.as_ref())).collect()
}
