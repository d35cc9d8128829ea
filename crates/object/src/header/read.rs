//! Reads a header out of an object's JSON, in one pass.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::pick::{Key, KeyAt, Live, Picks, step};
use super::{DEPTH_MAX, Header, Lifecycle, NAME_BYTES_MAX, OBJECT_BYTES_MAX, Owner, Pairs};
use crate::fields::FIELDS_MAX;
use crate::splice::scan;
use crate::{ObjectName, Resource};

/// Why bytes are not an object that can be kept. The sender's fault in every case: refuse it by
/// name and go on with the others.
#[derive(Debug, thiserror::Error)]
pub enum BadObject {
    /// More bytes than a cluster would store.
    #[error("the object has {bytes} bytes, the most is {OBJECT_BYTES_MAX}")]
    TooLarge {
        /// How many there are.
        bytes: usize,
    },
    /// Nested deeper than we, or serde_json, would follow.
    #[error("the object nests deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// Not UTF-8, not JSON, not a JSON object, a field of the wrong type, or a field twice.
    #[error("the object cannot be read")]
    Unreadable(#[source] serde_json::Error),
    /// The bytes are not even text.
    #[error("the object is not UTF-8")]
    NotText(#[source] std::str::Utf8Error),
    /// No metadata, or none of a field that every stored object has.
    #[error("the object has no {0}")]
    Missing(&'static str),
    /// A name that cannot be part of a path: it has a slash, a control character or too many bytes.
    #[error("{field} has a slash or a control character, or more than {NAME_BYTES_MAX} bytes")]
    BadName {
        /// Which field it stood in.
        field: &'static str,
    },
    /// A version that is not a decimal number.
    #[error("metadata.resourceVersion is wrong")]
    BadVersion(#[source] crate::version::NotAVersion),
    /// More selectable fields than a kind may declare: the definition's fault, not the object's.
    #[error("the kind declares more than {FIELDS_MAX} fields to select on")]
    TooManyFields,
}

pub(super) fn header(
    resource: &Resource,
    bytes: &[u8],
    extra_fields: &[Arc<str>],
) -> Result<Header, BadObject> {
    if bytes.len() > OBJECT_BYTES_MAX {
        return Err(BadObject::TooLarge { bytes: bytes.len() });
    }
    // Parts that are skipped are checked by serde_json neither for UTF-8 nor for depth.
    let text = std::str::from_utf8(bytes).map_err(BadObject::NotText)?;
    if scan::depth(bytes) > DEPTH_MAX {
        return Err(BadObject::TooDeep);
    }
    let mut picks = Picks::new(resource, extra_fields)?;
    let mut json = serde_json::Deserializer::from_str(text);
    let metadata = Document(&mut picks)
        .deserialize(&mut json)
        .map_err(BadObject::Unreadable)?;
    json.end().map_err(BadObject::Unreadable)?;
    let metadata = metadata.ok_or(BadObject::Missing("metadata"))?;
    assemble(metadata, picks.into_fields())
}

fn assemble(metadata: Metadata, fields: Pairs) -> Result<Header, BadObject> {
    let name = checked_name(
        "metadata.name",
        metadata.name.as_deref().unwrap_or_default(),
    )?
    .ok_or(BadObject::Missing("metadata.name"))?;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let namespace = checked_name("metadata.namespace", namespace)?.unwrap_or_default();
    let uid = metadata.uid.unwrap_or_default();
    let uid = checked_name("metadata.uid", &uid)?.ok_or(BadObject::Missing("metadata.uid"))?;
    let version = metadata
        .resource_version
        .ok_or(BadObject::Missing("metadata.resourceVersion"))?;
    let lifecycle = Lifecycle {
        deletion_timestamp: metadata.deletion_timestamp.filter(|at| !at.is_empty()),
        finalizers: metadata.finalizers.unwrap_or_default(),
        owners: metadata
            .owner_references
            .unwrap_or_default()
            .into_iter()
            .map(owner)
            .collect(),
    };
    Ok(Header {
        name: ObjectName::new(namespace, name),
        uid: uid.into(),
        version: version.parse().map_err(BadObject::BadVersion)?,
        generation: metadata.generation.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default().0,
        fields,
        lifecycle: (lifecycle != Lifecycle::default()).then(|| Box::new(lifecycle)),
    })
}

/// The name if it is one, nothing if it is empty.
fn checked_name<'a>(field: &'static str, name: &'a str) -> Result<Option<&'a str>, BadObject> {
    match is_name(name) {
        true => Ok(Some(name)),
        false if name.is_empty() => Ok(None),
        false => Err(BadObject::BadName { field }),
    }
}

/// Whether a name, a namespace or a uid can be part of an object's path. Which names a kind allows
/// beyond that is for the API to say.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |char: char| char != '/' && !char.is_control();
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(plain)
}

fn owner(Map(reference): Map<OwnerReference>) -> Owner {
    Owner {
        api_version: reference.api_version,
        kind: reference.kind,
        name: reference.name,
        uid: reference.uid,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<Box<str>>,
    namespace: Option<Box<str>>,
    uid: Option<Box<str>>,
    resource_version: Option<Box<str>>,
    generation: Option<i64>,
    labels: Option<Labels>,
    deletion_timestamp: Option<Box<str>>,
    finalizers: Option<Vec<Box<str>>>,
    owner_references: Option<Vec<Map<OwnerReference>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct OwnerReference {
    api_version: Box<str>,
    kind: Box<str>,
    name: Box<str>,
    uid: Box<str>,
}

/// A structure that must be written as a JSON object. Serde would take an array for it too.
struct Map<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct OfMap<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OfMap<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        json.deserialize_map(OfMap(PhantomData)).map(Map)
    }
}

#[derive(Default)]
struct Labels(Pairs);

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct LabelMap;
        impl<'de> Visitor<'de> for LabelMap {
            type Value = Labels;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut pairs: Vec<(Box<str>, Box<str>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<Box<str>, Option<Box<str>>>()? {
                    pairs.push((key, value.unwrap_or_default()));
                }
                pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
                if pairs.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                    return Err(de::Error::custom("a label stands twice"));
                }
                Ok(Labels(Pairs::pack(
                    pairs.iter().map(|(key, value)| (&**key, &**value)),
                )))
            }
        }
        json.deserialize_map(LabelMap)
    }
}

/// The object as a whole: its metadata in full, its picked fields, and nothing else.
struct Document<'p, 'f>(&'p mut Picks<'f>);

impl<'de> DeserializeSeed<'de> for Document<'_, '_> {
    type Value = Option<Metadata>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = Option<Metadata>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut metadata = None;
        let mut seen = Live::default();
        let all = self.0.all();
        while let Some(next) = map.next_key_seed(KeyAt {
            picks: self.0,
            live: all,
            depth: 0,
        })? {
            match next {
                Key::Metadata if metadata.is_some() => {
                    return Err(de::Error::duplicate_field("metadata"));
                }
                Key::Metadata => metadata = map.next_value::<Option<Map<Metadata>>>()?,
                Key::Other(live) => step(self.0, &mut map, (live, 1), &mut seen)?,
            }
        }
        Ok(metadata.map(|Map(metadata)| metadata))
    }
}
