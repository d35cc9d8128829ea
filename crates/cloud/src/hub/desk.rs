//! What a session asks of its hub, and what it tells it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use host::Times;
use object::{Resource, Scope};
use tunnel::Arrived;
use wire::documents::Documents;
use wire::frame::{Bye, Cause, Reason, Report, Weight};
use wire::report::Statement;
use wire::session::{Happening, Sender};

use super::{Hub, keep};
use crate::cache::{Cache, Keep};
use crate::replay::{Receipt, Standing, Witness};
use crate::talk::Desk;
use crate::view::NodeName;

/// Reports of a session that was not heard of for so long wait until it is: it is a heartbeat away
/// at most. It is short, because a node whose link broke soon finds another hub; much shorter, and
/// what waits its turn behind a few others would have to be heard of again.
const HEARD_WITHIN: Duration = Duration::from_secs(10);

impl Desk for Hub {
    type Source = Cache;

    fn look<T>(&self, look: impl FnOnce(&Cache) -> T) -> T {
        look(&self.cache.read())
    }

    /// What the node is to hold. A resource of which bytes are missing here is not named: nothing
    /// of it is sent before they are there, and nothing ends.
    fn view(&self, node: &str) -> BTreeMap<Resource, Arc<[Scope]>> {
        let mut view = self.wanted(node);
        let cache = self.cache.read();
        view.retain(|resource, scopes| {
            keep(resource) == Keep::All
                || scopes
                    .iter()
                    .all(|scope| cache.lacking(resource, scope).is_empty())
        });
        view
    }

    fn documents(&self, node: &str) -> Option<Arc<Documents>> {
        let accounts = self.views.read().accounts(&NodeName::from(node));
        Some(self.papers.of(accounts.as_deref()))
    }

    fn happened(&self, node: &Arc<str>, happening: Happening) {
        let now = self.times.clock().wall();
        self.ledger.happened(node, &happening, now);
        let told = self.happenings.try_send((Arc::clone(node), happening));
        if told.is_err() {
            self.ledger.overlooked();
        }
    }

    fn report(
        &self,
        (node, session): (&Arc<str>, u64),
        report: Report,
        receipt: Receipt,
    ) -> Result<(), Bye> {
        let statement = match Statement::decode(report.queue, &report.bytes) {
            // That it lives holds for this session alone, and is not written by itself.
            Ok(Statement::Kubelet(pulse)) => {
                let now = self.times.now();
                self.register.kubelet(node, session, pulse, now);
                receipt.sign();
                return Ok(());
            }
            // The same: the next hub is told again.
            Ok(Statement::Wants(wants)) => {
                self.ask_for(node, wants);
                receipt.sign();
                return Ok(());
            }
            Ok(statement) => statement,
            Err(_) => {
                self.replay.dropped(node);
                receipt.sign();
                return Ok(());
            }
        };
        let taken = self.replay.take(node, session, (statement, receipt));
        taken.map_err(|full| Bye {
            reason: Reason::Misbehaved,
            words: full.to_string().into(),
            wait_seconds: 0,
        })
    }

    fn arrived(&self, node: &Arc<str>, arrived: Arrived) {
        match &self.tunnels {
            Some(tunnels) => tunnels.serve(node, arrived),
            None => {
                let words = "this hub takes no requests";
                arrived.tube.close(Cause::NotServed, words);
            }
        }
    }

    fn carried(&self, node: &str, received: Weight, sent: Weight) {
        let now = self.times.now();
        self.ledger.carried(node, (received, sent), now);
    }

    fn looks(&self, node: &str, sender: &Sender) {
        self.ledger.looks(node, sender, self.times.clock().wall());
    }

    fn times(&self) -> &Times {
        &self.times
    }
}

impl Witness for Hub {
    /// Leases are renewed all the time.
    fn works(&self) -> u64 {
        self.register.counts().written
    }

    fn standing(&self, node: &NodeName, session: u64) -> Standing {
        match self.sessions.is(node, session) {
            true if self.silent_for(node) <= HEARD_WITHIN => Standing::Live,
            true => Standing::Silent,
            false => Standing::Over,
        }
    }
}
