//! Following the cluster: one loop for each resource, for the whole hub.
//!
//! A consistent list, then a watch from its version; when the watch cannot go on, a list again, and
//! what it lacks is gone. The rules are in the [`Follower`], which knows no I/O; this is the loop
//! around it. Only list, watch and get are asked of the cluster.

pub(crate) mod backoff; // when to try again
mod follower; // what to do next, and what came of it
mod guard; // which lists are not believed at once

#[cfg(test)]
mod tests;
#[cfg(test)]
mod weather_tests;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host::{Clock, Shutdown, chain};
use object::{Change, Object, ObjectName, Resource, Version};
use parking_lot::RwLock;
use tokio::sync::watch::Receiver;
use tracing::{debug, warn};
use wire::outbox::Source;

pub use backoff::Dice;
pub use follower::{Act, Failure, Follower};

use crate::cache::{Applied, Cache, Relisted};
use crate::cluster::{self, Client, Event, Events, Patience, Served, canonical, gone};

/// How long a watch lasts at least; it is spread up to twice as long, so that not all end at once.
const WATCH_TIME_MIN: Duration = Duration::from_secs(290);
/// How long a watch may be silent. A server sends a bookmark about every minute; one that sends
/// none is asked anew, which costs it little.
const SILENCE_MAX: Duration = Duration::from_secs(300);
/// Events that are taken in at once before others may read the cache.
const EVENTS_MAX: usize = 64;
/// Objects of a list that are taken in at once.
const ITEMS_MAX: usize = 16;

/// What the rest of the hub is told of. The cache has it already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Objects changed, in this order.
    Changed(Resource, Vec<Applied>),
    /// Nothing changed, but the version rose.
    Advanced(Resource),
    /// A list took the place of what was known.
    Listed(Resource, Relisted),
    /// The resource is not followed for now.
    Frozen(Resource),
    /// The resource is followed again.
    Thawed(Resource),
    /// The cluster has gone back to before what is known, as two consistent reads say: it was
    /// restored from a backup. Nothing is taken from it for this resource until a new epoch begins.
    Rewound {
        /// The resource by which it was seen.
        resource: Resource,
        /// The version that is known.
        known: Version,
        /// The version that the cluster is at.
        found: Version,
    },
}

impl Told {
    /// The resource that it is about.
    pub fn resource(&self) -> &Resource {
        match self {
            Self::Changed(resource, _)
            | Self::Advanced(resource)
            | Self::Listed(resource, _)
            | Self::Frozen(resource)
            | Self::Thawed(resource)
            | Self::Rewound { resource, .. } => resource,
        }
    }
}

/// What a loop needs.
#[derive(Clone)]
pub struct Watch {
    /// The cluster.
    pub client: Client,
    /// The resource. The cache must have a place for it.
    pub served: Served,
    /// Where it is kept.
    pub cache: Arc<RwLock<Cache>>,
    /// The epoch that has begun: sent after [`Cache::begin`].
    pub epochs: Receiver<u64>,
    /// The time.
    pub clock: Clock,
    /// Ends the loop.
    pub shutdown: Shutdown,
    /// Who is told. Called without a lock on the cache, and must not wait.
    pub tell: Arc<dyn Fn(Told) + Send + Sync>,
}

/// Follows a resource until the shutdown.
pub async fn run(watch: Watch) -> Result<(), std::convert::Infallible> {
    let shutdown = watch.shutdown.clone();
    let mut stop = pin!(shutdown.triggered());
    let mut follow = Box::pin(watch.follow());
    tokio::select! {
        () = &mut stop => {}
        () = &mut follow => {}
    }
    Ok(())
}

/// Gets an object's bytes that are [wanted](Cache::want) and not there, and supplies them. Says
/// whether they are there now, or are of no more use; otherwise it must be tried again, after a
/// moment.
pub async fn fetch(watch: &Watch, name: &ObjectName) -> Result<bool, cluster::Error> {
    let resource = &watch.served.resource;
    let got = watch.client.get(&watch.served.object_path(name)).await;
    let bytes = match got {
        Ok(bytes) => bytes,
        // It went. The watch says so, too.
        Err(error) if error.is_code(404) => return Ok(true),
        Err(error) => return Err(error),
    };
    match canonical(&watch.served, &bytes) {
        Ok(object) => {
            let mut cache = watch.cache.write();
            let taken = cache.supply(resource, &object);
            let known = cache.header(resource, name);
            // A newer one comes by itself, with its bytes.
            let passed = known.is_none_or(|known| known.version < object.header.version);
            Ok(taken || passed)
        }
        Err(error) => {
            warn!(%resource, %name, %error, "object cannot be kept");
            Ok(true)
        }
    }
}

impl Watch {
    async fn follow(mut self) {
        let epoch = self.cache.read().epoch();
        let mut follower = Follower::new(self.served.resource.clone(), epoch, Dice::new());
        loop {
            let act = follower.next(&self.cache.read(), self.clock.now());
            let failed = match act {
                Act::List(paging) => self.list(&mut follower, paging).await,
                Act::Look => self.look(&mut follower).await,
                Act::Watch(from) => self.watch(&mut follower, &from).await,
                Act::Wait(until) => {
                    tokio::select! {
                        () = self.clock.sleep_until(until) => {}
                        () = begun(&mut self.epochs) => {}
                    }
                    Ok(())
                }
            };
            if let Err(error) = failed {
                let resource = &self.served.resource;
                debug!(%resource, error = %chain(&error), "following the cluster failed");
                let failure = Failure::of(&error);
                let now = self.clock.now();
                let told = follower.failed(&mut self.cache.write(), failure, now);
                self.tell(told);
            }
        }
    }

    async fn list(
        &mut self,
        follower: &mut Follower,
        paging: cluster::Paging,
    ) -> Result<(), cluster::Error> {
        let mut listing = self.client.list(&self.served, paging);
        follower.list_started(&mut self.cache.write());
        let mut batch = Vec::with_capacity(ITEMS_MAX);
        loop {
            let item = tokio::select! {
                item = listing.next() => item?,
                () = begun(&mut self.epochs) => return Ok(()),
            };
            let over = item.is_none();
            batch.extend(item.and_then(|item| self.object(&item)));
            if over || batch.len() == ITEMS_MAX {
                let mut cache = self.cache.write();
                for object in batch.drain(..) {
                    follower.listed(&mut cache, object);
                }
            }
            if over {
                break;
            }
        }
        let Some(version) = listing.version() else {
            return Err(cluster::Error::Malformed("a list without a version"));
        };
        let now = self.clock.now();
        let told = follower.list_done(&mut self.cache.write(), version, now);
        self.tell(told);
        Ok(())
    }

    async fn look(&mut self, follower: &mut Follower) -> Result<(), cluster::Error> {
        let version = self.client.version(&self.served).await?;
        follower.looked(&self.cache.read(), &version);
        Ok(())
    }

    async fn watch(
        &mut self,
        follower: &mut Follower,
        from: &Version,
    ) -> Result<(), cluster::Error> {
        let patience = Patience {
            whole: WATCH_TIME_MIN.mul_f64(1.0 + follower.dice().roll()),
            silent: SILENCE_MAX,
        };
        let opened = tokio::select! {
            opened = self.client.watch(&self.served, from, patience) => opened,
            () = begun(&mut self.epochs) => return Ok(()),
        };
        let mut events = opened?;
        let told = follower.watch_started(&mut self.cache.write(), self.clock.now());
        self.tell(told);
        loop {
            let event = tokio::select! {
                event = events.next() => event?,
                () = begun(&mut self.epochs) => return Ok(()),
            };
            let Some(event) = event else {
                follower.watch_ended(self.clock.now());
                return Ok(());
            };
            self.take(follower, &mut events, event)?;
        }
    }

    /// Takes in an event, and those that came with it.
    fn take(
        &self,
        follower: &mut Follower,
        events: &mut Events,
        first: Event,
    ) -> Result<(), cluster::Error> {
        let mut read = vec![self.read(first)];
        while read.len() < EVENTS_MAX
            && let Some(event) = events.ready()?
        {
            read.push(self.read(event));
        }
        let mut told = Vec::new();
        let mut ended = Ok(());
        let mut cache = self.cache.write();
        for event in read {
            match event {
                Read::Put(object) => told.extend(follower.put(&mut cache, object)),
                Read::Delete(gone) => told.extend(follower.went(&mut cache, gone)),
                Read::Bookmark(version) => told.extend(follower.bookmark(&mut cache, &version)),
                Read::LeftOut => follower.passed_over(),
                Read::Error(status) => ended = Err(cluster::Error::Refused(status)),
            }
            if !follower.is_watching() {
                ended = Err(cluster::Error::Malformed("a watch that goes back"));
            }
            if ended.is_err() {
                break;
            }
        }
        drop(cache);
        self.tell(merged(told));
        ended
    }

    /// Reads an event's object, before the cache is locked for it.
    fn read(&self, event: Event) -> Read {
        match event {
            Event::Put(bytes) => self.object(&bytes).map_or(Read::LeftOut, Read::Put),
            Event::Delete(bytes) => match gone(&bytes) {
                Ok(change) => Read::Delete(change),
                Err(error) => {
                    self.left_out(&error);
                    Read::LeftOut
                }
            },
            Event::Bookmark(version) => Read::Bookmark(version),
            Event::Error(status) => Read::Error(status),
        }
    }

    /// An object as it is kept. One that cannot be is left out: it must not hold up the others.
    fn object(&self, bytes: &Bytes) -> Option<Object> {
        match canonical(&self.served, bytes) {
            Ok(object) => Some(object),
            Err(error) => {
                self.left_out(&error);
                None
            }
        }
    }

    fn left_out(&self, error: &dyn std::error::Error) {
        let resource = &self.served.resource;
        warn!(%resource, error = %chain(error), "object left out: it cannot be kept");
    }

    fn tell(&self, told: impl IntoIterator<Item = Told>) {
        told.into_iter().for_each(|told| (self.tell)(told));
    }
}

/// An event whose object was read.
enum Read {
    Put(Object),
    Delete(Change),
    Bookmark(Version),
    LeftOut,
    Error(cluster::Status),
}

/// Comes back when another epoch begins. Nobody is left to begin one when the hub ends.
async fn begun(epochs: &mut Receiver<u64>) {
    if epochs.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Changes one after the other are told of at once.
fn merged(told: Vec<Told>) -> Vec<Told> {
    let mut merged: Vec<Told> = Vec::new();
    for told in told {
        match (merged.last_mut(), told) {
            (Some(Told::Changed(_, before)), Told::Changed(_, more)) => before.extend(more),
            // A change says as much.
            (Some(Told::Changed(..) | Told::Advanced(_)), Told::Advanced(_)) => {}
            (_, told) => merged.push(told),
        }
    }
    merged
}
