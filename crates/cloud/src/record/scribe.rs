//! What happens in sessions, as words for the recorder.

use std::sync::Arc;
use std::time::Duration;

use object::Resource;
use wire::outbox::Settled;
use wire::session::Happening;

use super::books::First;
use super::{Books, Link, Recorder, ResourceSummary, Said, SetAside, Summary};
use crate::hub::Hub;
use crate::ledger::Held;
use crate::talk::Desk;
use crate::view::NodeName;

/// How long after its start a hub leaves nodes that it does not know to its first survey: they all
/// come at once then.
const FIRST_SURVEY: Duration = Duration::from_secs(120);
/// How often the summary of a node is told though nothing happened but numbers.
const SUMMARY_EVERY: Duration = Duration::from_secs(300);

/// Tells the recorder.
pub struct Scribe {
    hub: Arc<Hub>,
    /// What the hub is called.
    name: Box<str>,
    recorder: Arc<Recorder>,
    books: Books,
    told: Duration,
}

impl Scribe {
    /// Tells of this hub's nodes.
    pub fn new(hub: Arc<Hub>, name: &str, recorder: Arc<Recorder>) -> Self {
        Self {
            hub,
            name: name.into(),
            recorder,
            books: Books::default(),
            told: Duration::ZERO,
        }
    }

    /// Something happened in the session of a node.
    pub fn happened(&mut self, node: &str, happening: &Happening) {
        let Happening::Settled(Settled::Reached {
            resource,
            version,
            scopes,
        }) = happening
        else {
            return;
        };
        if !self.recorder.has_records(resource) {
            return;
        }
        let held = Held {
            version: version.clone(),
            scopes: Arc::clone(scopes),
        };
        let early = self.hub.times().now() < FIRST_SURVEY;
        let first = match early {
            true => First::Doubt,
            false => First::Say,
        };
        let node = NodeName::from(node);
        let cache = self.hub.cache().read();
        let said = self.books.reached(&node, (resource, &held), &cache, first);
        drop(cache);
        for said in said {
            self.say(&node, resource, &said);
        }
    }

    fn say(&self, node: &NodeName, resource: &Resource, said: &Said) {
        match said {
            Said::Holds(holding) => {
                let ledger = self.hub.ledger();
                if !ledger.is_aside(node, resource, &holding.name) {
                    self.recorder.holds(node, holding);
                }
            }
            Said::Dropped(holding) => self.recorder.dropped(node, holding),
            Said::Doubt => self.recorder.doubt(node),
        }
    }

    /// Tells how nodes are of which there is something to tell; now and then, of all.
    pub fn tell_summaries(&mut self) {
        let mut due = self.hub.ledger().news();
        let now = self.hub.times().now();
        if now >= self.told + SUMMARY_EVERY {
            self.told = now;
            due.extend(self.hub.ledger().connected());
            let ledger = self.hub.ledger();
            self.books.retain(|node| ledger.node(node).is_some());
        }
        for node in due {
            if let Some(summary) = self.summary(&node) {
                self.recorder.summary(&node, summary);
            }
        }
    }

    /// Another history of the cluster begins: versions of the old one say nothing any more.
    pub fn begin(&mut self) {
        self.books = Books::default();
        self.recorder.want_survey();
    }

    /// A node was deleted.
    pub fn gone(&mut self, node: &str) {
        self.hub.ledger().removed(node);
        let node = NodeName::from(node);
        self.books.retain(|known| *known != node);
        self.recorder.node_gone(&node);
    }

    fn summary(&self, node: &str) -> Option<Summary> {
        let report = self.hub.ledger().node(node)?;
        let since = report.since?;
        let cache = self.hub.cache().read();
        let held = self.hub.ledger().all_held(node);
        let resources = held.into_iter().map(|(resource, held)| {
            let even = self.hub.ledger().even_of(node, &resource);
            ResourceSummary {
                objects: cache.digest(&resource, &held.scopes).1,
                version: Some(held.version),
                digest_equal: even.map(|(even, _)| even),
                since: even.map_or(since, |(_, since)| since),
                resource,
            }
        });
        let set_aside = self.hub.ledger().aside(node).into_iter();
        Some(Summary {
            hub: self.name.clone(),
            session: report.session.unwrap_or_default(),
            link: match report.connected {
                true => Link::Connected(since),
                false => Link::Disconnected(since),
            },
            resources: resources.collect(),
            set_aside: set_aside
                .map(|(resource, name, why)| SetAside {
                    resource,
                    name,
                    why,
                })
                .collect(),
            sent: report.sent_bytes,
            received: report.received_bytes,
        })
    }
}
