//! Publishes in the cluster that this hub is there and which nodes it has, and reads the same of
//! the others.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use host::{Shutdown, chain, secret};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::{error, info, warn};

use super::peers::{Peer, Peers, Waits};
use super::{Elsewhere, SHARDS};
use crate::cluster::{Client, Error};
use crate::hub::Hub;
use crate::join::record::{KIND_LABEL, Record, Resource};
use crate::join::{NAMESPACE, RecordError, Records};
use crate::nodes::micro;
use crate::talk::Desk;
use crate::watch::Told;

/// How often records are written that changed, at most.
const WRITE_EVERY: Duration = Duration::from_secs(2);
/// How long the last word may take when the hub stops.
const LAST_WORD: Duration = Duration::from_secs(2);
/// Records of others that wait to be read, by name. Beyond it all are listed.
const CHANGED_MAX: usize = 1024;

/// The kind of our records, and the texts in them.
const SESSIONS: &str = "sessions";
const HUB: &str = "hub";
const SHARD: &str = "shard";
/// The kind of a hub's lease.
const LEASE: &str = "hub";

/// What those who follow the cluster see of the records of hubs.
#[derive(Debug, Default)]
pub struct Heard {
    changed: Mutex<Changed>,
    rung: Notify,
}

#[derive(Debug, Default)]
struct Changed {
    names: BTreeSet<Box<str>>,
    all: bool,
}

impl Heard {
    /// Takes in what became of the cluster.
    pub fn hear(&self, told: &Told) {
        let news = match told {
            Told::Changed(resource, applied) if resource.as_str() == "configmaps" => {
                let headers = applied.iter();
                let headers = headers.filter_map(|it| it.after.as_ref().or(it.before.as_ref()));
                let ours = headers.filter(|header| {
                    header.name.namespace() == NAMESPACE
                        && header.labels.get(KIND_LABEL) == Some(SESSIONS)
                });
                let mut changed = self.changed.lock();
                changed.names.extend(ours.map(|it| it.name.name().into()));
                if changed.names.len() > CHANGED_MAX {
                    changed.names.clear();
                    changed.all = true;
                }
                changed.all || !changed.names.is_empty()
            }
            Told::Listed(resource, _) if resource.as_str() == "configmaps" => {
                self.changed.lock().all = true;
                true
            }
            _ => false,
        };
        if news {
            self.rung.notify_one();
        }
    }

    fn take(&self) -> Changed {
        std::mem::take(&mut *self.changed.lock())
    }
}

/// Publishes for one hub.
pub struct Publisher {
    /// The hub.
    pub hub: Arc<Hub>,
    /// What it is called.
    pub name: Box<str>,
    /// The cluster.
    pub client: Client,
    /// What is seen of other hubs' records.
    pub heard: Arc<Heard>,
    /// How long hubs wait for each other.
    pub waits: Waits,
}

impl Publisher {
    /// Publishes until the shutdown, and says then that this hub is gone.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Infallible> {
        let mut life = Life {
            holder: format!("{}-{:016x}", self.name, chance()),
            peers: Peers::new(self.waits),
            renewed: None,
            wrote: None,
        };
        // A former life of this hub may have left records: they say what is not so any more.
        self.heard.changed.lock().all = true;
        tokio::select! {
            () = shutdown.triggered() => {}
            () = self.go_on(&mut life) => {}
        }
        let path = lease_path(&self.name);
        let last = self.client.delete(&path, None);
        drop(tokio::time::timeout(LAST_WORD, last).await);
        Ok(())
    }

    async fn go_on(&self, life: &mut Life) {
        let clock = self.hub.times().clock();
        loop {
            let now = self.hub.times().now();
            if life
                .renewed
                .is_none_or(|at| now >= at + self.waits.renew_every)
            {
                life.renewed = Some(now);
                self.renew(&life.holder).await;
                self.look(life).await;
            }
            if life.wrote.is_none_or(|at| now >= at + WRITE_EVERY) {
                life.wrote = Some(now);
                self.write().await;
            }
            self.read().await;
            let tick = clock.now() + WRITE_EVERY.min(self.waits.renew_every);
            tokio::select! {
                () = self.heard.rung.notified() => {}
                () = clock.sleep_until(tick) => {}
            }
        }
    }

    /// Says that this hub is there.
    async fn renew(&self, holder: &str) {
        let wall = self.hub.times().clock().wall();
        let spec = json!({
            "holderIdentity": holder,
            "leaseDurationSeconds": self.waits.gone_after.as_secs().max(1),
            "renewTime": micro(wall),
        });
        let patch = json!({"spec": spec}).to_string().into();
        let renewed = match self.client.patch(&lease_path(&self.name), patch).await {
            Err(error) if error.is_code(404) => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {
                        "name": lease_name(&self.name),
                        "namespace": NAMESPACE,
                        "labels": {KIND_LABEL: LEASE},
                    },
                    "spec": spec,
                });
                self.client
                    .create(&leases(), lease.to_string().into())
                    .await
            }
            renewed => renewed,
        };
        if let Err(error) = renewed {
            warn!(error = chain(&error), "this hub's lease was not renewed");
        }
    }

    /// Looks who else is there.
    async fn look(&self, life: &mut Life) {
        let found = match self.leases().await {
            Ok(found) => found,
            // Who does not answer may be there: nobody is gone because the cluster is.
            Err(error) => {
                return warn!(error = chain(&error), "other hubs' leases cannot be read");
            }
        };
        let (own, others): (Vec<Peer>, Vec<Peer>) =
            found.into_iter().partition(|peer| peer.hub == self.name);
        if own.iter().any(|own| !own.said.starts_with(&life.holder)) {
            error!(hub = %self.name, "another hub has the same name: give each a --hub-name");
        }
        let standing = life.peers.look(others, self.hub.times().now());
        for hub in &standing.alive {
            let has = self.hub.owners().lock().alive(hub, true);
            self.end(has);
        }
        for hub in &standing.gone {
            self.hub.owners().lock().alive(hub, false);
        }
        for hub in &standing.collect {
            self.collect(hub).await;
        }
    }

    async fn leases(&self) -> Result<Vec<Peer>, Error> {
        let query = format!("{}?labelSelector={KIND_LABEL}%3D{LEASE}", leases());
        let list: Value = serde_json::from_slice(&self.client.get(&query).await?)
            .map_err(|_| Error::Malformed("a list of leases"))?;
        let items = list["items"].as_array().into_iter().flatten();
        let peer = |lease: &Value| {
            let name = lease["metadata"]["name"].as_str()?;
            let spec = &lease["spec"];
            let (holder, at) = (&spec["holderIdentity"], &spec["renewTime"]);
            let said = format!("{} {at}", holder.as_str().unwrap_or_default());
            Some(Peer {
                hub: name.strip_prefix(LEASE_PREFIX)?.into(),
                said: said.into(),
            })
        };
        Ok(items.filter_map(peer).collect())
    }

    /// Removes what a hub left that is gone for long.
    async fn collect(&self, hub: &str) {
        info!(hub, "a hub is gone: its records are collected");
        for shard in 0..SHARDS {
            let name = record_name(hub, shard);
            let deleted = Records::delete(&self.client, Resource::ConfigMaps, &name).await;
            if let Err(error) = deleted {
                return warn!(
                    error = chain(&error),
                    "records of a hub cannot be collected"
                );
            }
        }
        match self.client.delete(&lease_path(hub), None).await {
            Err(error) if !error.is_code(404) => {
                warn!(
                    error = chain(&error),
                    "the lease of a hub cannot be collected"
                );
            }
            _ => self.hub.owners().lock().gone(hub),
        }
    }

    /// Writes the records that changed.
    async fn write(&self) {
        for _ in 0..SHARDS {
            let Some((shard, text)) = self.hub.owners().lock().due() else {
                return;
            };
            let name = record_name(&self.name, shard);
            let record = Record::new(Resource::ConfigMaps, &name, SESSIONS)
                .with(HUB, &*self.name)
                .with(SHARD, shard.to_string())
                .with(SESSIONS, text);
            if let Err(error) = self.put(&record).await {
                warn!(
                    error = chain(&error),
                    "the record of this hub's sessions was not written"
                );
                return self.hub.owners().lock().not_written(shard);
            }
        }
    }

    /// Writes a record that this hub alone writes, whatever is there.
    async fn put(&self, record: &Record) -> Result<(), RecordError> {
        match Records::update(&self.client, record).await {
            Err(RecordError::Conflict) => Records::create(&self.client, record).await,
            written => written,
        }
    }

    /// Reads records of other hubs that changed.
    async fn read(&self) {
        let changed = self.heard.take();
        if changed.all {
            match Records::list(&self.client, Resource::ConfigMaps, SESSIONS).await {
                Ok(records) => records.iter().for_each(|record| self.told(record)),
                Err(error) => {
                    warn!(
                        error = chain(&error),
                        "records of other hubs cannot be listed"
                    );
                    self.heard.changed.lock().all = true;
                }
            }
            return;
        }
        for name in changed.names {
            match Records::get(&self.client, Resource::ConfigMaps, &name).await {
                Ok(Some(record)) => self.told(&record),
                Ok(None) => self.went(&name),
                Err(error) => {
                    warn!(
                        error = chain(&error),
                        "a record of another hub cannot be read"
                    );
                    self.heard.changed.lock().names.insert(name);
                }
            }
        }
    }

    /// A record says this.
    fn told(&self, record: &Record) {
        let (Some(hub), Some(shard)) = (record.text(HUB), record.text(SHARD)) else {
            return;
        };
        let Ok(shard) = shard.parse() else { return };
        let mut owners = self.hub.owners().lock();
        if *hub == *self.name {
            // Ours says what we wrote, or what a former life did.
            return owners.found(shard, record.text(SESSIONS).unwrap_or_default());
        }
        let has = owners.told(hub, shard, record.text(SESSIONS));
        drop(owners);
        self.end(has);
    }

    /// A record is gone.
    fn went(&self, name: &str) {
        let parts = name.strip_prefix(RECORD_PREFIX);
        let Some((hub, shard)) = parts.and_then(|rest| rest.rsplit_once('-')) else {
            return;
        };
        let Ok(shard) = shard.parse() else { return };
        let mut owners = self.hub.owners().lock();
        match *hub == *self.name {
            true => owners.not_written(shard),
            false => drop(owners.told(hub, shard, None)),
        }
    }

    fn end(&self, has: Vec<Elsewhere>) {
        for Elsewhere { node, number } in has {
            self.hub.sessions().elsewhere(&node, number);
        }
    }
}

struct Life {
    /// Tells this run of the hub from others of its name.
    holder: String,
    peers: Peers,
    renewed: Option<Duration>,
    wrote: Option<Duration>,
}

const LEASE_PREFIX: &str = "holdfast-hub-";
const RECORD_PREFIX: &str = "holdfast-sessions-";

fn lease_name(hub: &str) -> String {
    format!("{LEASE_PREFIX}{hub}")
}

fn leases() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")
}

fn lease_path(hub: &str) -> String {
    format!("{}/{}", leases(), lease_name(hub))
}

fn record_name(hub: &str, shard: usize) -> String {
    format!("{RECORD_PREFIX}{hub}-{shard}")
}

fn chance() -> u64 {
    u64::from_le_bytes(secret::random().unwrap_or_default())
}
