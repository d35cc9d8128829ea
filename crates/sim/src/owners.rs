//! The records by which hubs know of each other and of their sessions: what `cloud::owners` does
//! with a real cluster. They are restored with it.

use std::collections::BTreeMap;
use std::time::Duration;

use cloud::join::record::{Record, Resource};
use cloud::join::{RecordError, Records};
use cloud::owners::{Elsewhere, Peer, Peers, SHARDS, Waits};

use crate::hub::Running;
use crate::records::{Shelf, at_once};

/// The kinds of the records, and the texts in them.
const LEASE: &str = "lease";
const SESSIONS: &str = "sessions";
const HUB: &str = "hub";
const SHARD: &str = "shard";

/// What a hub publishes, and knows of the others.
pub(crate) struct Publishing {
    /// Another one for each process.
    life: u64,
    peers: Peers,
    renews_at: Duration,
    /// The records as they were read last.
    read: BTreeMap<String, String>,
}

impl Publishing {
    pub(crate) fn new(life: u64) -> Self {
        Self {
            life,
            peers: Peers::new(Waits::default()),
            renews_at: Duration::ZERO,
            read: BTreeMap::new(),
        }
    }
}

impl Running {
    /// Says that this hub is there and which nodes it has, and reads the same of the others.
    pub(crate) fn publish(&mut self, shelf: &Shelf) {
        let now = self.times.now();
        if now >= self.publishing.renews_at {
            self.publishing.renews_at = now + Waits::default().renew_every;
            let said = format!("{} {now:?}", self.publishing.life);
            let lease = self.record(LEASE, 0).with(LEASE, said);
            drop(put(shelf, lease));
            self.look(shelf, now);
        }
        for _ in 0..SHARDS {
            let Some((shard, text)) = self.hub.owners().lock().due() else {
                break;
            };
            let record = self.record(SESSIONS, shard).with(SESSIONS, text);
            if put(shelf, record).is_err() {
                self.hub.owners().lock().not_written(shard);
                break;
            }
        }
        self.read(shelf);
    }

    /// Takes its lease with it.
    pub(crate) fn unpublish(&self, shelf: &Shelf) {
        let lease = self.record(LEASE, 0);
        drop(at_once(shelf.delete(lease.resource, &lease.name)));
    }

    fn record(&self, kind: &str, shard: usize) -> Record {
        let name = format!("{kind}-hub{}-{shard}", self.number());
        Record::new(Resource::ConfigMaps, &name, kind)
            .with(HUB, format!("hub{}", self.number()))
            .with(SHARD, shard.to_string())
    }

    fn look(&mut self, shelf: &Shelf, now: Duration) {
        let Ok(leases) = at_once(shelf.list(Resource::ConfigMaps, LEASE)) else {
            return;
        };
        let own = format!("hub{}", self.number());
        let peer = |record: &Record| Peer {
            hub: record.text(HUB).unwrap_or_default().into(),
            said: record.text(LEASE).unwrap_or_default().into(),
        };
        let others = leases.iter().map(peer).filter(|peer| *peer.hub != *own);
        let standing = self.publishing.peers.look(others.collect(), now);
        for hub in &standing.alive {
            let has = self.hub.owners().lock().alive(hub, true);
            self.end(has);
        }
        for hub in &standing.gone {
            self.hub.owners().lock().alive(hub, false);
        }
    }

    /// Reads records that changed.
    fn read(&mut self, shelf: &Shelf) {
        let Ok(records) = at_once(shelf.list(Resource::ConfigMaps, SESSIONS)) else {
            return;
        };
        let own = format!("hub{}", self.number());
        for record in records {
            let text = record.text(SESSIONS).unwrap_or_default();
            let before = self
                .publishing
                .read
                .insert(record.name.clone(), text.into());
            if before.as_deref() == Some(text) {
                continue;
            }
            let hub = record.text(HUB).unwrap_or_default();
            let shard = record.text(SHARD).and_then(|shard| shard.parse().ok());
            let shard = shard.expect("it was written so");
            let mut owners = self.hub.owners().lock();
            if *hub == *own {
                owners.found(shard, text);
                continue;
            }
            let has = owners.told(hub, shard, Some(text));
            drop(owners);
            self.end(has);
        }
    }

    fn end(&self, has: Vec<Elsewhere>) {
        for Elsewhere { node, number } in has {
            self.hub.sessions().elsewhere(&node, number);
        }
    }
}

/// Writes a record that one hub alone writes, whatever is there.
fn put(shelf: &Shelf, mut record: Record) -> Result<(), RecordError> {
    let held = at_once(shelf.get(record.resource, &record.name))?;
    match held {
        Some(held) => {
            record.version = held.version;
            at_once(shelf.update(&record))
        }
        None => at_once(shelf.create(&record)),
    }
}
