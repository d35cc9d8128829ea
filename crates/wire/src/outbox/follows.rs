//! All resources of one node. Of most it holds nothing and is to hold nothing: these take no memory
//! beside their name.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use object::{Resource, Scope};

use super::follow::Follow;

/// How a node follows the resources that are known.
#[derive(Debug, Default)]
pub(super) struct Follows(BTreeMap<Resource, Option<Box<Follow>>>);

impl Follows {
    /// Whether it is known what the node is to hold of a resource.
    pub(super) fn knows(&self, resource: &Resource) -> bool {
        self.0.contains_key(resource)
    }

    /// The resources that are known.
    pub(super) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.0.keys()
    }

    /// A resource of which the node holds something, or is to.
    pub(super) fn get(&self, resource: &Resource) -> Option<&Follow> {
        self.0.get(resource)?.as_deref()
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, resource: &Resource) -> Option<&mut Follow> {
        self.0.get_mut(resource)?.as_deref_mut()
    }

    /// This is how the node follows a resource.
    pub(super) fn put(&mut self, resource: Resource, follow: Follow) {
        self.0.insert(resource, Some(Box::new(follow)));
    }

    /// A resource, from now on at the latest.
    pub(super) fn open(&mut self, resource: Resource) -> &mut Follow {
        self.0.entry(resource).or_default().get_or_insert_default()
    }

    /// The node is to hold these scopes of a resource.
    pub(super) fn want(&mut self, resource: &Resource, scopes: Arc<[Scope]>) {
        let follow = self.0.entry(resource.clone()).or_default();
        if follow.is_some() || !scopes.is_empty() {
            follow.get_or_insert_default().want(scopes);
        }
    }

    /// All of which the node holds something, or is to.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Resource, &Follow)> {
        let all = self.0.iter();
        all.filter_map(|(resource, follow)| Some((resource, follow.as_deref()?)))
    }

    /// Those of them that are in a range, to be changed.
    pub(super) fn range_mut(
        &mut self,
        among: (Bound<&Resource>, Bound<&Resource>),
    ) -> impl Iterator<Item = (&Resource, &mut Follow)> {
        let some = self.0.range_mut::<Resource, _>(among);
        some.filter_map(|(resource, follow)| Some((resource, follow.as_deref_mut()?)))
    }

    /// All of them, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Resource, &mut Follow)> {
        self.range_mut((Bound::Unbounded, Bound::Unbounded))
    }
}
