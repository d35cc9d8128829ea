//! What an outbox tells of itself, and what it is told when the node turns out to hold something
//! else than it should.

use std::sync::Arc;

use object::{Header, Resource, Scope, Version};

use super::follow::Follow;
use super::{Flying, Item, Outbox};
use crate::cut;
use crate::digest::{Digest, Member};
use crate::session::Compared;

impl Outbox {
    /// The resources of which the node holds something, or is to.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.follows.resources()
    }

    /// Whether it is known what the node is to hold of a resource.
    pub fn knows(&self, resource: &Resource) -> bool {
        self.follows.knows(resource)
    }

    /// What the node is to hold of a resource.
    pub fn wanted(&self, resource: &Resource) -> &[Scope] {
        let follow = self.follows.get(resource);
        follow.map_or(&[], |follow| follow.wanted())
    }

    /// The same, shared.
    pub(crate) fn wanted_shared(&self, resource: &Resource) -> Arc<[Scope]> {
        let follow = self.follows.get(resource);
        follow.map_or_else(Arc::default, |follow| Arc::clone(follow.wanted()))
    }

    /// What the node holds of a resource and is kept up to date.
    pub(crate) fn held(&self, resource: &Resource) -> Option<&[Scope]> {
        self.follows.get(resource).map(|follow| follow.held())
    }

    /// What the node holds of a resource, up to date or not.
    pub(crate) fn present(&self, resource: &Resource) -> impl Iterator<Item = &Scope> {
        let follow = self.follows.get(resource);
        follow.into_iter().flat_map(Follow::in_hand)
    }

    /// Up to where the node has everything of a resource, once what was sent is stored.
    pub fn progress(&self, resource: &Resource) -> Option<&Version> {
        self.follows.get(resource)?.progress()
    }

    /// Whether the node has, when everything on its way is stored, exactly what it should.
    pub fn is_even(&self, resource: &Resource, source: &impl Compared) -> bool {
        let Some(ring) = source.ring(resource) else {
            return false;
        };
        let Some(follow) = self.follows.get(resource) else {
            // It is to hold nothing, and does.
            return self.follows.knows(resource);
        };
        match follow.at_rest() {
            Some((_, [])) => true,
            Some((Some(standing), held)) => {
                let missing = cut::changes(ring, held, standing, ring.now());
                missing.is_ok_and(|changes| changes.is_empty())
            }
            Some((None, _)) | None => false,
        }
    }

    /// The digest of all that the node holds, once everything on its way is stored; nothing where
    /// that is not known.
    pub fn expected(&self, source: &impl Compared) -> Option<Digest> {
        let mut all = Digest::default();
        for (resource, follow) in self.follows.iter() {
            let (standing, held) = follow.at_rest()?;
            if held.is_empty() {
                continue;
            }
            let ring = source.ring(resource)?;
            let member = |header: &Header| Member::of(resource, header);
            let now = (source.digest(resource, held), member);
            all = all.and(cut::digest_at(ring, held, standing?, now).ok()?);
        }
        Some(all)
    }

    /// How many objects are on their way, or the word that they went.
    pub fn objects_in_flight(&self) -> usize {
        let object = |flying: &&Flying| match flying {
            Flying::Part(sent) => matches!(sent.item, Item::Change(_) | Item::Object(_)),
            Flying::Document(_) => false,
        };
        self.window.on_the_way().filter(object).count()
    }

    /// What the node holds of a resource cannot be relied on.
    pub fn doubt(&mut self, resource: &Resource) {
        if self.current.as_ref() == Some(resource) {
            self.queue.clear();
        }
        if let Some(follow) = self.follows.get_mut(resource) {
            follow.doubt();
        }
    }
}
