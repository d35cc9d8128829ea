//! A CustomResourceDefinition as it is read. It is changed as JSON, so that nothing unknown is
//! lost.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::Status;
use crate::catalog::preference;

/// A definition.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Definition {
    /// Its name and annotations.
    #[serde(deserialize_with = "object")]
    pub metadata: Metadata,
    /// What its author wants.
    #[serde(deserialize_with = "object")]
    pub spec: Spec,
    /// What it got.
    #[serde(deserialize_with = "object")]
    pub status: DefinitionStatus,
}

/// What matters of the metadata.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// `plural.group`.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Free words, one of which approves of protected groups.
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    /// Set when the end has begun.
    pub deletion_timestamp: Option<String>,
}

/// What the author of a definition wants.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spec {
    /// The group of the kind.
    #[serde(deserialize_with = "or_default")]
    pub group: String,
    /// What the kind is called.
    #[serde(deserialize_with = "object")]
    pub names: Names,
    /// `Namespaced` or `Cluster`.
    #[serde(deserialize_with = "or_default")]
    pub scope: String,
    /// The versions of the kind.
    #[serde(deserialize_with = "objects")]
    pub versions: Vec<Version>,
    /// How objects of one version become those of another.
    #[serde(deserialize_with = "optional_object")]
    pub conversion: Option<Conversion>,
    /// Keeps unknown fields everywhere; only for definitions from before it was forbidden.
    pub preserve_unknown_fields: Option<bool>,
}

/// What a kind is called.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Names {
    /// `crontabs`.
    #[serde(deserialize_with = "or_default")]
    pub plural: String,
    /// `crontab`.
    #[serde(deserialize_with = "or_default")]
    pub singular: String,
    /// `CronTab`.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// `CronTabList`.
    #[serde(deserialize_with = "or_default")]
    pub list_kind: String,
    /// `ct`.
    #[serde(deserialize_with = "or_default")]
    pub short_names: Vec<String>,
    /// `all`.
    #[serde(deserialize_with = "or_default")]
    pub categories: Vec<String>,
}

/// A version of a kind.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Version {
    /// `v1`.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Whether it can be asked for.
    #[serde(deserialize_with = "or_default")]
    pub served: bool,
    /// Whether objects are stored in it.
    #[serde(deserialize_with = "or_default")]
    pub storage: bool,
    /// Whether its users are told to leave it.
    #[serde(deserialize_with = "or_default")]
    pub deprecated: bool,
    /// In which words.
    pub deprecation_warning: Option<String>,
    /// The shape of its objects.
    #[serde(deserialize_with = "optional_object")]
    pub schema: Option<VersionSchema>,
    /// Parts that are read and written on their own.
    #[serde(deserialize_with = "optional_object")]
    pub subresources: Option<Subresources>,
    /// What a table shows.
    #[serde(deserialize_with = "objects")]
    pub additional_printer_columns: Vec<PrinterColumn>,
    /// What a list can be narrowed by.
    #[serde(deserialize_with = "objects")]
    pub selectable_fields: Vec<SelectableField>,
}

/// Where the schema of a version stands.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VersionSchema {
    /// A JSONSchemaProps.
    #[serde(rename = "openAPIV3Schema")]
    pub open_api: Option<Value>,
}

/// Parts of an object that are read and written on their own.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Subresources {
    /// Present (and empty) where there is a status.
    pub status: Option<Value>,
    /// Where replicas stand.
    #[serde(deserialize_with = "optional_object")]
    pub scale: Option<ScaleFields>,
}

/// Where replicas stand in an object.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ScaleFields {
    /// `.spec.replicas`.
    #[serde(deserialize_with = "or_default")]
    pub spec_replicas_path: String,
    /// `.status.replicas`.
    #[serde(deserialize_with = "or_default")]
    pub status_replicas_path: String,
    /// `.status.selector`.
    pub label_selector_path: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PrinterColumn {
    /// The heading.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// integer, number, string, boolean or date.
    #[serde(deserialize_with = "or_default")]
    pub r#type: String,
    /// An OpenAPI format.
    #[serde(deserialize_with = "or_default")]
    pub format: String,
    /// Words for people.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// More than 0 for wide tables only.
    #[serde(deserialize_with = "or_default")]
    pub priority: i32,
    /// Where the value stands.
    #[serde(deserialize_with = "or_default")]
    pub json_path: String,
}

/// A field that a list can be narrowed by.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SelectableField {
    /// Where it stands.
    #[serde(deserialize_with = "or_default")]
    pub json_path: String,
}

/// How objects of one version become those of another.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Conversion {
    /// `None` or `Webhook`.
    #[serde(deserialize_with = "or_default")]
    pub strategy: String,
    /// Whom to ask.
    pub webhook: Option<Value>,
}

/// What a definition got.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DefinitionStatus {
    /// How far it is.
    #[serde(deserialize_with = "objects")]
    pub conditions: Vec<Condition>,
    /// The names that it got.
    #[serde(deserialize_with = "object")]
    pub accepted_names: Names,
    /// The versions that objects may be stored in.
    #[serde(deserialize_with = "or_default")]
    pub stored_versions: Vec<String>,
}

/// An entry of status.conditions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// `NamesAccepted`, `Established`, `Terminating`, …
    #[serde(deserialize_with = "or_default")]
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "or_default")]
    pub status: String,
    /// Why, in one word.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// Why, in words.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
}

impl Definition {
    /// Reads a definition; fields of wrong types are the writer's mistake.
    pub fn read(object: &Value) -> Result<Self, Status> {
        let read = Object::<Self>::deserialize(object).map(|read| read.0);
        read.map_err(|error| {
            Status::bad_request(format!(
                "CustomResourceDefinition in version \"v1\" cannot be handled as a \
                 CustomResourceDefinition: {error}"
            ))
        })
    }

    /// Whether the condition of this type is True.
    pub fn has_condition(&self, kind: &str) -> bool {
        self.status
            .conditions
            .iter()
            .any(|one| one.r#type == kind && one.status == "True")
    }

    /// The version of this name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.spec
            .versions
            .iter()
            .find(|version| version.name == name)
    }

    /// The version that objects are stored in.
    pub fn storage_version(&self) -> Option<&Version> {
        self.spec.versions.iter().find(|version| version.storage)
    }

    /// What users of a deprecated version are told.
    pub fn deprecation(&self, version: &str) -> Option<String> {
        let version = self.version(version).filter(|version| version.deprecated)?;
        let (group, kind) = (&self.spec.group, &self.spec.names.kind);
        Some(match &version.deprecation_warning {
            Some(words) => words.clone(),
            None => {
                let old = format!("{group}/{} {kind} is deprecated", version.name);
                match self.successor(&version.name) {
                    Some(better) => format!("{old}; use {group}/{better} {kind}"),
                    None => old,
                }
            }
        })
    }

    /// The best version that is served and not deprecated, if it is better than this one.
    fn successor(&self, version: &str) -> Option<&str> {
        let others = self.spec.versions.iter();
        let good = others.filter(|other| other.served && !other.deprecated);
        let best = good.min_by_key(|other| preference(&other.name))?;
        (preference(&best.name) < preference(version)).then_some(best.name.as_str())
    }
}

impl Version {
    /// Whether the status is read and written on its own.
    pub fn has_status(&self) -> bool {
        self.subresources
            .as_ref()
            .is_some_and(|parts| parts.status.is_some())
    }

    /// Where replicas stand, for versions that can be scaled.
    pub fn scale(&self) -> Option<&ScaleFields> {
        self.subresources.as_ref()?.scale.as_ref()
    }

    /// The schema of the version.
    pub fn schema(&self) -> Option<&Value> {
        self.schema.as_ref()?.open_api.as_ref()
    }
}

/// null counts as missing, as it does in Kubernetes: generated definitions write `conditions:
/// null`.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A JSON object. What is derived would take a list of the fields' values too; Kubernetes would
/// not.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(optional_object(deserializer)?.unwrap_or_default())
}

fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Object<T>>::deserialize(deserializer)?.map(|read| read.0))
}

fn objects<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let read = Option::<Vec<Object<T>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(read.into_iter().map(|read| read.0).collect())
}
