//! What a node says in its hello beside where it stands: which documents it has, and which objects
//! it could not take. A hub that knows the latter needs not have them rejected again.

use std::sync::Arc;
use std::time::Duration;

use object::{Header, Resource};

use super::news::Happening;
use super::sender::{Compared, Sender};
use crate::digest::content_hash;
use crate::documents::Documents;
use crate::frame::{Aside, Asides, Noted};
use crate::outbox::Settled;
use crate::window::Why;

impl Sender {
    /// The node said that it has these documents, and could not take these objects.
    pub fn learn(&mut self, documents: Vec<Noted>, aside: Asides) {
        if self.takes_documents {
            self.outbox.has_documents(documents);
        }
        self.aside = aside.last;
        self.more_aside = aside.more;
    }

    /// The node is to have these documents from now on, and no others.
    pub fn documents(&mut self, wanted: &Arc<Documents>) {
        self.outbox.want_documents(wanted);
    }

    /// Whether the node has the documents that it is to have, and no others.
    pub fn documents_are_even(&self) -> bool {
        self.outbox.documents_are_even()
    }

    /// Of resources that are known by now, says what the node could not take, and spares it that.
    pub(super) fn spare(&mut self, source: &impl Compared, now: Duration) -> Vec<Happening> {
        let more = std::mem::take(&mut self.more_aside);
        let more = (more > 0).then_some(Happening::MoreSetAside { count: more });
        let mut happenings: Vec<Happening> = more.into_iter().collect();
        let outbox = &mut self.outbox;
        let known = |resource: &Resource| outbox.knows(resource) && source.ring(resource).is_some();
        let told: Vec<Aside> = self
            .aside
            .extract_if(.., |aside| known(&aside.resource))
            .collect();
        for aside in told {
            let Aside {
                resource,
                name,
                hash,
                fault,
            } = aside;
            let all = source.headers(&resource, outbox.wanted(&resource));
            let same = |header: &&Arc<Header>| header.name == name;
            let found = all.iter().find(same);
            let bytes = found.and_then(|header| source.bytes(&resource, header));
            // What has changed since, the node may be able to take; and what came in a form that it
            // could not read.
            let changed = bytes.is_none_or(|bytes| content_hash(&bytes) != hash);
            if changed || !fault.is_of_the_object() {
                continue;
            }
            outbox.spare((resource.clone(), name.clone()), hash, now);
            happenings.push(Happening::Settled(Settled::SetAside {
                resource,
                name,
                why: Why::Rejected(fault),
            }));
        }
        happenings
    }
}
