//! What a cluster says of its kinds, as one document: both halves of aggregated discovery, as its
//! server wrote them.
//!
//! `{"api": LIST, "apis": LIST}`, where a list is an APIGroupDiscoveryList. A hub makes it and a
//! node answers from it. What is not understood of it is passed on, and nothing of it is guessed.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Part;
use crate::catalog::{CustomKind, Group, GroupVersion, Kind, Snapshot, Subresource};

/// The document, read.
#[derive(Debug, Deserialize)]
pub struct Document<'a> {
    #[serde(borrow)]
    api: &'a RawValue,
    #[serde(borrow)]
    apis: &'a RawValue,
}

/// Why a document is of no use.
#[derive(Debug, thiserror::Error)]
#[error("the cluster's discovery cannot be read")]
pub struct Unread(#[from] serde_json::Error);

impl<'a> Document<'a> {
    /// Reads a document.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Unread> {
        Ok(serde_json::from_slice(bytes)?)
    }

    /// One half, as the cluster's server wrote it.
    pub fn half(&self, part: Part) -> &'a str {
        match part {
            Part::Core => self.api.get(),
            Part::Named => self.apis.get(),
        }
    }

    /// All groups in the order of the document. Kinds that are built in here are those of
    /// `builtin`, with what the cluster says that can be done with them.
    pub fn groups(&self, builtin: &Snapshot) -> Result<Vec<Group>, Unread> {
        let mut groups = Vec::new();
        for half in [self.api, self.apis] {
            let list: List<'_> = serde_json::from_str(half.get())?;
            groups.extend(list.items.iter().map(|item| group(item, builtin)));
        }
        Ok(groups)
    }
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    items: Vec<Item<'a>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    versions: Vec<Version<'a>>,
}

#[derive(Deserialize, Default)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Version<'a> {
    #[serde(borrow)]
    version: Cow<'a, str>,
    #[serde(borrow, default)]
    resources: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow)]
    resource: Cow<'a, str>,
    /// Left out where only its parts can be asked for.
    #[serde(borrow, default)]
    response_kind: Option<Named<'a>>,
    #[serde(borrow, default)]
    scope: Cow<'a, str>,
    #[serde(borrow, default)]
    singular_resource: Cow<'a, str>,
    #[serde(borrow, default)]
    verbs: Vec<Cow<'a, str>>,
    #[serde(borrow, default)]
    short_names: Vec<Cow<'a, str>>,
    #[serde(borrow, default)]
    categories: Vec<Cow<'a, str>>,
    #[serde(borrow, default)]
    subresources: Vec<PartEntry<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartEntry<'a> {
    #[serde(borrow)]
    subresource: Cow<'a, str>,
    #[serde(borrow, default)]
    response_kind: Option<Named<'a>>,
    #[serde(borrow, default)]
    verbs: Vec<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
struct Named<'a> {
    #[serde(borrow, default)]
    group: Cow<'a, str>,
    #[serde(borrow, default)]
    version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
}

/// Where an entry stands.
struct Place<'a> {
    group: Arc<str>,
    version: Arc<str>,
    /// All versions of the group, the preferred one first.
    versions: &'a [Version<'a>],
    builtin: &'a Snapshot,
}

fn group(item: &Item<'_>, builtin: &Snapshot) -> Group {
    let name: Arc<str> = item.metadata.name.as_ref().into();
    let versions = item.versions.iter().map(|version| {
        let place = Place {
            group: name.clone(),
            version: version.version.as_ref().into(),
            versions: &item.versions,
            builtin,
        };
        let kinds = version.resources.iter().map(|entry| kind(entry, &place));
        let mut kinds: Vec<Arc<Kind>> = kinds.map(Arc::new).collect();
        kinds.sort_by(|left, right| left.plural.cmp(&right.plural));
        kinds.dedup_by(|right, left| left.plural == right.plural);
        Arc::new(GroupVersion::new(place.version, kinds))
    });
    Group {
        versions: versions.collect(),
        name,
    }
}

fn kind(entry: &Entry<'_>, place: &Place<'_>) -> Kind {
    let known = place.builtin;
    let known = known.find(&place.group, &place.version, &entry.resource);
    let named = entry.response_kind.as_ref();
    let name = named.map_or("", |named| &*named.kind);
    let known = known.filter(|known| &*known.kind == name);
    let held = is_held_version(entry, place);
    // Nobody here knows how a kind in another version looks: it is like a custom one.
    let custom = (known.is_none() || !held).then(|| {
        Arc::new(CustomKind {
            storage: held,
            ..CustomKind::default()
        })
    });
    Kind {
        group: place.group.clone(),
        version: place.version.clone(),
        kind: name.into(),
        list_kind: format!("{name}List").into(),
        plural: entry.resource.as_ref().into(),
        singular: entry.singular_resource.as_ref().into(),
        short_names: shared(&entry.short_names),
        categories: shared(&entry.categories),
        namespaced: entry.scope == "Namespaced",
        verbs: shared(&entry.verbs),
        subresources: parts(entry, place),
        schema: known.and_then(|known| known.schema.clone()),
        custom,
        told: true,
    }
}

/// Whether this is the version in which a node holds the resource: a hub follows the first version
/// that has it.
fn is_held_version(entry: &Entry<'_>, place: &Place<'_>) -> bool {
    let has = |version: &&Version<'_>| {
        let mut all = version.resources.iter();
        all.any(|other| other.resource == entry.resource)
    };
    let first = place.versions.iter().find(has);
    first.is_some_and(|first| *first.version == *place.version)
}

fn parts(entry: &Entry<'_>, place: &Place<'_>) -> Vec<Subresource> {
    let part = |part: &PartEntry<'_>| {
        let named = part.response_kind.as_ref();
        let own = named.is_none_or(|named| named.group.is_empty() && named.version.is_empty());
        // What is left empty is that of the list.
        let (group, version) = match named.filter(|_| !own) {
            Some(named) => (named.group.as_ref().into(), named.version.as_ref().into()),
            None => (place.group.clone(), place.version.clone()),
        };
        Subresource {
            name: part.subresource.as_ref().into(),
            group,
            version,
            kind: named.map_or("", |named| &*named.kind).into(),
            verbs: shared(&part.verbs),
        }
    };
    entry.subresources.iter().map(part).collect()
}

fn shared(words: &[Cow<'_, str>]) -> Vec<Arc<str>> {
    words.iter().map(|word| Arc::from(&**word)).collect()
}
