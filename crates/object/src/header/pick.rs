//! Picks the fields that a kind can be selected on out of an object, as it is read.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{BadObject, Pairs};
use crate::Resource;
use crate::fields::{self, FIELDS_MAX};

/// A set of paths, by their place in [`Picks`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Live(u64);

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
pub(super) struct Picks<'f> {
    paths: Vec<Path<'f>>,
    resource_fields: &'static [fields::Field],
    extra_fields: &'f [Arc<str>],
}

struct Path<'f> {
    segments: Vec<&'f str>,
    value: Box<str>,
}

impl<'f> Picks<'f> {
    pub(super) fn new(
        resource: &Resource,
        extra_fields: &'f [Arc<str>],
    ) -> Result<Self, BadObject> {
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

    pub(super) fn all(&self) -> Live {
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

    pub(super) fn into_fields(self) -> Pairs {
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
pub(super) enum Key {
    Metadata,
    Other(Live),
}

pub(super) struct KeyAt<'p, 'f> {
    pub(super) picks: &'p Picks<'f>,
    pub(super) live: Live,
    pub(super) depth: usize,
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

/// Reads the value of a key on the way to picked fields, or skips the value of any other key.
pub(super) fn step<'de, A: MapAccess<'de>>(
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
