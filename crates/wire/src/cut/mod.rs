//! Cuts: what a node lacks of one resource, in an order that its clients can be shown.
//!
//! The rules are those of "Order or reset". Of each object the newest change up to the aim is sent,
//! ascending by version, so that whatever version a client at the node has seen fixes exactly what
//! it has seen. A cut that was cut off can be taken up again: the node says how far it got, and
//! what it holds follows from that.

use std::collections::BTreeMap;
use std::sync::Arc;

use object::standing::Part;
use object::{Header, ObjectName, Scope, Standing, Version};

use crate::digest::{Digest, Member};
use crate::ring::{Ring, Step, TooOld};

/// A change that a node is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The object as it is at this version.
    Put {
        /// What it is.
        header: Arc<Header>,
        /// What the node has of the same name: a difference can be made from it.
        base: Option<Arc<Header>>,
    },
    /// The object went, or the node has no more to do with it.
    Delete {
        /// Its name.
        name: ObjectName,
        /// Its uid: another object of this name is not meant.
        uid: Box<str>,
        /// When.
        version: Version,
    },
}

impl Change {
    /// The version at which the node learns of it.
    pub fn version(&self) -> &Version {
        match self {
            Self::Put { header, .. } => &header.version,
            Self::Delete { version, .. } => version,
        }
    }
}

/// What a node that stands `from` lacks in these scopes, which it has held since: ascending by
/// version, all above what it has shown.
pub fn changes(
    ring: &Ring,
    scopes: &[Scope],
    from: &Standing,
    to: &Version,
) -> Result<Vec<Change>, TooOld> {
    let mut all = Vec::new();
    for trail in trails(ring, scopes, from, to)?.values() {
        all.extend(trail.lead(trail.held(from), to));
    }
    all.sort_by(|one, other| one.version().cmp(other.version()));
    Ok(all)
}

/// The digest of what a node that stands `from` holds in these scopes, from that of what is in them
/// now.
pub fn digest_at(
    ring: &Ring,
    scopes: &[Scope],
    from: &Standing,
    (now, member): (Digest, impl Fn(&Header) -> Member),
) -> Result<Digest, TooOld> {
    let mut digest = now;
    for trail in trails(ring, scopes, from, ring.now())?.values() {
        if let Some(newest) = trail.end(ring.now()) {
            digest.remove(member(newest));
        }
        if let Some(held) = trail.held(from) {
            digest.add(member(held));
        }
    }
    Ok(digest)
}

/// An object that something happened to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Its name.
    pub name: ObjectName,
    /// What it is in the end; nothing if that is not in the scopes.
    pub end: Option<Arc<Header>>,
}

/// The objects that something happened to, and that were or are in these scopes.
pub fn touched(
    ring: &Ring,
    scopes: &[Scope],
    from: &Standing,
    to: &Version,
) -> Result<Vec<Touched>, TooOld> {
    let trails = trails(ring, scopes, from, to)?.into_iter();
    let inside = trails.filter(|(_, trail)| trail.was_ever_inside());
    let touched = |(name, trail): (&ObjectName, Trail<'_>)| Touched {
        name: name.clone(),
        end: trail.end(to).cloned(),
    };
    Ok(inside.map(touched).collect())
}

/// What happened to one object since a node was complete.
struct Trail<'r> {
    scopes: &'r [Scope],
    /// At least one, ascending.
    steps: Vec<&'r Step>,
}

fn trails<'r>(
    ring: &'r Ring,
    scopes: &'r [Scope],
    from: &Standing,
    to: &Version,
) -> Result<BTreeMap<&'r ObjectName, Trail<'r>>, TooOld> {
    let mut trails: BTreeMap<&ObjectName, Trail<'r>> = BTreeMap::new();
    for step in ring.between(&from.progress, to)? {
        let steps = Vec::new();
        let trail = trails.entry(&step.name).or_insert(Trail { scopes, steps });
        trail.steps.push(step);
    }
    Ok(trails)
}

impl<'r> Trail<'r> {
    /// What the node holds of the object: what it was sent of each cut, one after the other.
    fn held(&self, from: &Standing) -> Option<&'r Arc<Header>> {
        let mut held = self.inside(self.steps.first().and_then(|step| step.before.as_ref()));
        for Part { aim, shown } in from.parts.as_slice() {
            for change in self.lead(held, aim) {
                held = match change {
                    change if change.version() > shown => break,
                    Change::Put { .. } => self.end(aim),
                    Change::Delete { .. } => None,
                };
            }
        }
        held
    }

    /// What the object is in the end, if that is in the scopes.
    fn end(&self, to: &Version) -> Option<&'r Arc<Header>> {
        let last = self.steps.iter().rfind(|step| step.version <= *to)?;
        self.inside(last.after.as_ref())
    }

    /// The changes that lead from what is held to what is there in the end.
    fn lead(&self, held: Option<&Arc<Header>>, to: &Version) -> Vec<Change> {
        if self.steps.first().is_none_or(|step| step.version > *to) {
            return Vec::new();
        }
        let end = self.end(to);
        let mut changes = Vec::new();
        let same_object = |held: &Header| end.is_some_and(|end| end.uid == held.uid);
        if let Some(held) = held.filter(|held| !same_object(held))
            && let Some(version) = self.departure(&held.uid, to)
        {
            changes.push(Change::Delete {
                name: held.name.clone(),
                uid: held.uid.clone(),
                version,
            });
        }
        if let Some(end) = end.filter(|end| held.is_none_or(|held| held.version != end.version)) {
            changes.push(Change::Put {
                header: end.clone(),
                base: held.filter(|held| same_object(held)).cloned(),
            });
        }
        changes
    }

    /// When the object of this uid was last in the scopes.
    fn departure(&self, uid: &str, to: &Version) -> Option<Version> {
        let inside = |header: &Option<Arc<Header>>| {
            let inside = self.inside(header.as_ref());
            inside.is_some_and(|header| &*header.uid == uid)
        };
        let mut steps = self.steps.iter().filter(|step| step.version <= *to);
        let last = steps.rfind(|step| inside(&step.before) && !inside(&step.after));
        last.map(|step| step.version.clone())
    }

    /// Whether any of the steps concerns the scopes.
    fn was_ever_inside(&self) -> bool {
        let inside = |header: &Option<Arc<Header>>| self.inside(header.as_ref()).is_some();
        let mut steps = self.steps.iter();
        steps.any(|step| inside(&step.before) || inside(&step.after))
    }

    fn inside<'h>(&self, header: Option<&'h Arc<Header>>) -> Option<&'h Arc<Header>> {
        header.filter(|header| self.scopes.iter().any(|scope| scope.contains(header)))
    }
}

#[cfg(test)]
mod tests;
