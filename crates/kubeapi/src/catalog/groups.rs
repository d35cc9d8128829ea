//! Groups and their versions, in the order in which clients should prefer them.

use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use super::kind::Kind;

/// An API group.
#[derive(Debug, Clone)]
pub struct Group {
    /// `apps`, or the empty string for the core group.
    pub name: Arc<str>,
    /// The preferred version first.
    pub versions: Vec<Arc<GroupVersion>>,
}

/// One version of a group, with what is served in it.
#[derive(Debug)]
pub struct GroupVersion {
    /// `v1`.
    pub version: Arc<str>,
    /// Its kinds, by plural name.
    pub kinds: Vec<Arc<Kind>>,
    /// The hash of its OpenAPI document, once somebody asked. It lives and dies with the kinds.
    pub(crate) document_hash: OnceLock<Box<str>>,
}

impl Group {
    /// This version of the group.
    pub fn version(&self, version: &str) -> Option<&Arc<GroupVersion>> {
        self.versions
            .iter()
            .find(|candidate| &*candidate.version == version)
    }

    /// `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self, version: &str) -> String {
        match &*self.name {
            "" => version.to_owned(),
            name => format!("{name}/{version}"),
        }
    }
}

impl GroupVersion {
    /// A version with these kinds.
    pub(crate) fn new(version: Arc<str>, kinds: Vec<Arc<Kind>>) -> Self {
        Self {
            version,
            kinds,
            document_hash: OnceLock::new(),
        }
    }

    /// The kind of this plural name.
    pub fn plural(&self, plural: &str) -> Option<&Arc<Kind>> {
        let place = self
            .kinds
            .binary_search_by(|kind| (*kind.plural).cmp(plural));
        place.ok().map(|place| &self.kinds[place])
    }

    /// Whether these are the very same kinds, so that what was derived from them still holds.
    pub(super) fn holds(&self, kinds: &[Arc<Kind>]) -> bool {
        self.kinds.len() == kinds.len()
            && self
                .kinds
                .iter()
                .zip(kinds)
                .all(|(left, right)| Arc::ptr_eq(left, right))
    }
}

/// Sorts versions as Kubernetes prefers them: `v10`, `v2`, `v1`, `v11beta2`, `v10beta3`, `v3beta1`,
/// `v12alpha1`, and then every other name by alphabet.
pub fn preference(version: &str) -> impl Ord + use<> {
    match parse(version) {
        Some((stage, major, minor)) => (Reverse((stage, major, minor)), String::new()),
        // Lower than every parsed one; among themselves by name.
        None => (Reverse((Stage::None, 0, 0)), version.to_owned()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    None,
    Alpha,
    Beta,
    Stable,
}

fn parse(version: &str) -> Option<(Stage, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let major = major.parse().ok()?;
    let (stage, minor) = if rest.is_empty() {
        return Some((Stage::Stable, major, 0));
    } else if let Some(minor) = rest.strip_prefix("beta") {
        (Stage::Beta, minor)
    } else {
        (Stage::Alpha, rest.strip_prefix("alpha")?)
    };
    let digits = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    let minor = digits.then(|| minor.parse().ok()).flatten()?;
    Some((stage, major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_the_order_of_kubernetes() {
        let wanted = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v1beta",
        ];
        let mut versions = wanted;
        versions.reverse();
        versions.sort_by_key(|version| preference(version));
        assert_eq!(versions, wanted);
    }
}
