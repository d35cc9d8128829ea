//! Which kinds there are: the built-in ones, and the custom ones that come and go.
//!
//! Readers take a [`Snapshot`] and keep it for the length of a request; a change makes a new one. A
//! built-in kind cannot be replaced by a custom one of the same name. On a node the cluster says
//! which kinds there are, as soon as it has said so once ([`Told`]).

mod builtin; // compiled-in facts -> groups
mod groups; // groups, versions and their order
mod kind; // one kind
mod told; // what a cluster elsewhere says -> groups

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use parking_lot::{Mutex, RwLock};

pub use groups::{Group, GroupVersion, preference};
pub(crate) use kind::LABEL;
pub use kind::{CustomKind, Kind, PrinterColumn, Subresource};
use told::Follower;
pub use told::{Names, Told};

/// Every kind that is served, now.
#[derive(Debug)]
pub struct Catalog {
    /// Made when somebody asks: a node may go for long without anybody who does.
    builtin: LazyLock<Arc<Snapshot>>,
    /// What is served instead, if anything changed.
    current: RwLock<Option<Arc<Snapshot>>>,
    /// The cluster that says which kinds there are, where that is another one.
    follower: Option<Follower>,
    /// Custom kinds by `plural.group`, each in all its served versions. Locked over a change, so
    /// that two changes do not lose each other.
    custom: Mutex<BTreeMap<String, Vec<Arc<Kind>>>>,
}

/// Every kind that was served at one moment.
#[derive(Debug)]
pub struct Snapshot {
    generation: u64,
    /// The core group first, then the built-in groups by priority, then the custom ones by name.
    groups: Vec<Group>,
    origin: Origin,
}

/// Who says which kinds there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This program: the kinds of Kubernetes itself, and definitions of others.
    Here,
    /// A cluster elsewhere.
    Cluster,
}

impl Catalog {
    /// The built-in kinds.
    pub fn new() -> Self {
        Self::following(None)
    }

    /// The kinds that a cluster says it has; before it said so, the built-in ones.
    pub fn told_by(told: Told) -> Self {
        Self::following(Some(Follower::new(told)))
    }

    fn following(follower: Option<Follower>) -> Self {
        Self {
            builtin: LazyLock::new(|| {
                Arc::new(Snapshot {
                    generation: 1,
                    groups: builtin::groups(),
                    origin: Origin::Here,
                })
            }),
            current: RwLock::new(None),
            follower,
            custom: Mutex::new(BTreeMap::new()),
        }
    }

    /// What is served at this moment.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        if let Some(follower) = &self.follower {
            follower.look(&self.builtin, |groups| self.take(groups));
        }
        self.last()
    }

    /// The documents of the cluster that says which kinds there are.
    pub fn told(&self) -> Option<&Told> {
        self.follower.as_ref().map(|follower| &follower.told)
    }

    /// Whether this group is one of Kubernetes' own.
    pub fn is_built_in(&self, group: &str) -> bool {
        self.builtin.group(group).is_some()
    }

    fn last(&self) -> Arc<Snapshot> {
        let current = self.current.read().clone();
        current.unwrap_or_else(|| self.builtin.clone())
    }

    /// Takes what a cluster says in place of everything before.
    fn take(&self, groups: Option<Vec<Group>>) {
        let generation = self.last().generation.saturating_add(1);
        let (groups, origin) = match groups {
            Some(groups) => (groups, Origin::Cluster),
            None => (self.builtin.groups.clone(), Origin::Here),
        };
        self.show(Snapshot {
            generation,
            groups,
            origin,
        });
    }

    fn show(&self, snapshot: Snapshot) {
        *self.current.write() = Some(Arc::new(snapshot));
    }

    /// See [`Snapshot::find`].
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        self.snapshot().find(group, version, plural).cloned()
    }

    /// See [`Snapshot::kind_of`].
    pub fn kind_of(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Kind>> {
        self.snapshot().kind_of(group, version, kind).cloned()
    }

    /// Serves a custom kind in these versions, in place of those it was served in before. The name
    /// is that of its definition, `plural.group`.
    pub fn set_custom(&self, name: &str, kinds: Vec<Arc<Kind>>) {
        let mut custom = self.custom.lock();
        custom.insert(name.to_owned(), kinds);
        self.publish(&custom);
    }

    /// Serves a custom kind no more.
    pub fn remove_custom(&self, name: &str) {
        let mut custom = self.custom.lock();
        if custom.remove(name).is_some() {
            self.publish(&custom);
        }
    }

    fn publish(&self, custom: &BTreeMap<String, Vec<Arc<Kind>>>) {
        let before = self.last();
        let mut groups = self.builtin.groups.clone();
        let builtin = groups.len();
        let mut versions: Versions = BTreeMap::new();
        for kind in custom.values().flatten() {
            let version = (kind.group.clone(), kind.version.clone());
            versions.entry(version).or_default().push(kind.clone());
        }
        for ((name, version), kinds) in versions {
            let place = groups.iter().position(|group| group.name == name);
            let group = match place {
                Some(place) => &mut groups[place],
                None => groups.push_mut(Group {
                    name,
                    versions: Vec::new(),
                }),
            };
            // Kubernetes serves custom kinds only in group-versions that are not its own.
            if group.version(&version).is_none() {
                let version = kept_or_new(&before, &group.name, version, kinds);
                group.versions.push(version);
            }
        }
        for group in &mut groups {
            group
                .versions
                .sort_by_cached_key(|version| preference(&version.version));
        }
        groups[builtin..].sort_by(|left, right| left.name.cmp(&right.name));
        let generation = before.generation.saturating_add(1);
        self.show(Snapshot {
            generation,
            groups,
            origin: Origin::Here,
        });
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

impl Snapshot {
    /// Rises with every change of the catalog, so that what was made of it can be kept as long as
    /// it holds. It starts anew with the process.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Who says so.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The kind of this plural name.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.group(group)?.version(version)?.plural(plural)
    }

    /// The kind of this name: `Deployment`.
    pub fn kind_of(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Kind>> {
        let kinds = &self.group(group)?.version(version)?.kinds;
        kinds.iter().find(|candidate| &*candidate.kind == kind)
    }

    /// The group of this name; the core group is the empty string.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| &*group.name == name)
    }

    /// All groups in the order of priority, the core group first.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// All kinds in all their versions, group by group.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        let versions = self.groups.iter().flat_map(|group| &group.versions);
        versions.flat_map(|version| &version.kinds)
    }
}

/// Kinds by group and version.
type Versions = BTreeMap<(Arc<str>, Arc<str>), Vec<Arc<Kind>>>;

/// A version whose kinds are the same as before is the same version, with what was derived from it.
fn kept_or_new(
    before: &Snapshot,
    group: &str,
    version: Arc<str>,
    mut kinds: Vec<Arc<Kind>>,
) -> Arc<GroupVersion> {
    kinds.sort_by(|left, right| left.plural.cmp(&right.plural));
    let known = before
        .group(group)
        .and_then(|group| group.version(&version));
    match known {
        Some(known) if known.holds(&kinds) => known.clone(),
        _ => Arc::new(GroupVersion::new(version, kinds)),
    }
}

#[cfg(test)]
mod tests;
