//! Reads a header out of an object's JSON, in one pass.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{DEPTH_MAX, Header, Lifecycle, NAME_BYTES_MAX, OBJECT_BYTES_MAX, Owner, Pairs};
use crate::fields::{self, FIELDS_MAX};
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

/// Reads the value of a key on the way to picked fields, or skips the value of any other key.
fn step<'de, A: MapAccess<'de>>(
    picks: &mut Picks<'_>,
    map: &mut A,
    (live, depth): (Live, usize),
    seen: &mut Live,
) -> Result<(), A::Error> {
    if live.is_empty() {
        return map.next_value::<IgnoredAny>().map(drop);
    }
    // Within one JSON object different keys lead to different paths.
    if seen.intersects(live) {
        return Err(de::Error::custom(
            "a field that is selected on stands twice",
        ));
    }
    seen.add(live);
    map.next_value_seed(Walk { picks, live, depth })
}

/// A set of paths, by their place in [`Picks`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Live(u64);

impl Live {
    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn iter(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |at| self.0 & (1 << at) != 0)
    }
}

/// The fields to pick out of an object, and the values found so far.
struct Picks<'f> {
    paths: Vec<Path<'f>>,
    resource_fields: &'static [fields::Field],
    extra_fields: &'f [Arc<str>],
}

struct Path<'f> {
    segments: Vec<&'f str>,
    value: Box<str>,
}

impl<'f> Picks<'f> {
    fn new(resource: &Resource, extra_fields: &'f [Arc<str>]) -> Result<Self, BadObject> {
        let resource_fields = fields::of(resource);
        let built_in = resource_fields
            .iter()
            .flat_map(|field| field.paths.iter().copied());
        let custom = extra_fields.iter().map(|path| fields::label_of_path(path));
        let paths: Vec<Path<'f>> = built_in
            .chain(custom)
            .take(FIELDS_MAX + 1)
            .map(|path| Path {
                segments: path.split('.').collect(),
                value: Box::default(),
            })
            .collect();
        if paths.len() > FIELDS_MAX {
            return Err(BadObject::TooManyFields);
        }
        Ok(Self {
            paths,
            resource_fields,
            extra_fields,
        })
    }

    fn all(&self) -> Live {
        Live((1u64 << self.paths.len()) - 1)
    }

    /// Which of the live paths go on through `segment`.
    fn through(&self, live: Live, depth: usize, segment: &str) -> Live {
        let goes_on = |at: &usize| self.paths[*at].segments.get(depth) == Some(&segment);
        Live(
            live.iter()
                .filter(goes_on)
                .fold(0, |bits, at| bits | 1 << at),
        )
    }

    /// Notes a value for the paths that end here.
    fn found(&mut self, live: Live, depth: usize, value: &str) {
        for at in live.iter() {
            if self.paths[at].segments.len() == depth {
                self.paths[at].value = value.into();
            }
        }
    }

    fn into_fields(self) -> Pairs {
        let mut values = self.paths.into_iter().map(|path| path.value);
        let mut fields = Vec::new();
        for field in self.resource_fields {
            let found: Vec<Box<str>> = values.by_ref().take(field.paths.len()).collect();
            let value = found.into_iter().find(|value| !value.is_empty());
            fields.push((field.label, value.unwrap_or_else(|| field.otherwise.into())));
        }
        let labels = self
            .extra_fields
            .iter()
            .map(|path| fields::label_of_path(path));
        fields.extend(labels.zip(values));
        fields
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }
}

/// What a key of the object is to us.
enum Key {
    Metadata,
    Other(Live),
}

struct KeyAt<'p, 'f> {
    picks: &'p Picks<'f>,
    live: Live,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for KeyAt<'_, '_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Key, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyAt<'_, '_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
        Ok(match key {
            "metadata" if self.depth == 0 => Key::Metadata,
            _ => Key::Other(self.picks.through(self.live, self.depth, key)),
        })
    }
}

/// A value on the way to picked fields. Anything that is not on the way is skipped, and a value of
/// an unexpected type is as good as none: whether it may be there is for the kind's schema to say.
struct Walk<'p, 'f> {
    picks: &'p mut Picks<'f>,
    live: Live,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { picks, live, depth } = self;
        let mut seen = Live::default();
        while let Some(next) = map.next_key_seed(KeyAt { picks, live, depth })? {
            let onward = match next {
                Key::Metadata => Live::default(),
                Key::Other(onward) => onward,
            };
            step(picks, &mut map, (onward, depth + 1), &mut seen)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { picks, live, depth } = self;
        // Only the first item of a list is ever selected on.
        let first = picks.through(live, depth, "0");
        seq.next_element_seed(Walk {
            picks,
            live: first,
            depth: depth + 1,
        })?;
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.picks.found(self.live, self.depth, value);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.picks
            .found(self.live, self.depth, if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.picks.found(self.live, self.depth, &value.to_string());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.picks.found(self.live, self.depth, &value.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.picks.found(self.live, self.depth, &value.to_string());
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
