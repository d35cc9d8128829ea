//! The API server, as one hub sees it: lists, looks and watches, and what can be wrong with them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloud::watch::Failure;
use object::{Object, ObjectName, Resource, Version};

use crate::around::Around;
use crate::objects::{number, version};

/// How the server is to a hub.
#[derive(Debug, Default)]
pub(crate) struct Mood {
    pub(crate) down: bool,
    pub(crate) busy: bool,
    pub(crate) forbidden: BTreeSet<Resource>,
    /// The last list of these was of the past: the next one is not.
    stale: BTreeSet<Resource>,
}

/// A list that is being read.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) version: u64,
    pub(crate) left: Vec<Arc<Object>>,
}

/// Whether the server answers at all.
pub(crate) fn answers(around: &Around, hub: usize, resource: &Resource) -> Result<(), Failure> {
    let mood = &around.moods[hub];
    if mood.down {
        return Err(Failure::Broken("the server is down".into()));
    }
    if mood.busy {
        let words = "the server is busy".into();
        return Err(Failure::Later(Duration::from_secs(2), words));
    }
    match mood.forbidden.contains(resource) {
        true => Err(Failure::Refused("forbidden".into())),
        false => Ok(()),
    }
}

/// A list, consistent as it should be. Now and then it is of the past.
pub(crate) fn list(
    around: &mut Around,
    hub: usize,
    resource: &Resource,
) -> Result<Listing, Failure> {
    answers(around, hub, resource)?;
    let now = around.cluster.history.revision;
    let stale = !around.moods[hub].stale.remove(resource) && around.mishap(20, "list stale");
    let at = match stale {
        true => {
            around.moods[hub].stale.insert(resource.clone());
            now.saturating_sub(1 + around.chance.below(40) as u64)
                .max(1)
        }
        false => now,
    };
    let rows = around.cluster.history.at(resource, at);
    Ok(Listing {
        version: at,
        left: rows.values().rev().cloned().collect(),
    })
}

/// The version of the cluster, by a consistent read.
pub(crate) fn look(around: &Around, hub: usize, resource: &Resource) -> Result<Version, Failure> {
    answers(around, hub, resource)?;
    Ok(version(around.cluster.history.revision))
}

/// Where a watch from a version begins.
pub(crate) fn watch(
    around: &mut Around,
    hub: usize,
    resource: &Resource,
    from: &Version,
) -> Result<usize, Failure> {
    answers(around, hub, resource)?;
    let history = &around.cluster.history;
    let from = number(from);
    if from < history.floor {
        around.seen.note("gone (410)");
        return Err(Failure::Expired);
    }
    if from > history.revision {
        return Err(Failure::Ahead("too large a version".into()));
    }
    let events = &history.tables[resource].events;
    Ok(events.partition_point(|event| event.version <= from))
}

/// One object.
pub(crate) fn get(
    around: &Around,
    hub: usize,
    resource: &Resource,
    name: &ObjectName,
) -> Result<Option<Arc<Object>>, Failure> {
    answers(around, hub, resource)?;
    let rows = &around.cluster.history.tables[resource].now;
    Ok(rows.get(name).cloned())
}
