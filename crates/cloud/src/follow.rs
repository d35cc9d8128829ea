//! The hub's watches: which resources are followed, in which order, and what bytes are fetched.

use std::sync::Arc;
use std::time::Duration;

use host::{Clock, Crowd, Shutdown, Tasks, chain};
use object::{ObjectName, Resource};
use tokio::sync::watch::Receiver;
use tracing::{info, warn};

use crate::cluster::{Client, Served};
use crate::hub::Hub;
use crate::view::FURTHER_MAX;
use crate::watch::{self, Told, Watch};

/// How long to wait before the cluster is asked again how it serves a resource.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// How often it is looked whether a resource is served by now that was not.
const LOOK_AGAIN: Duration = Duration::from_secs(300);
/// How long to wait before bytes are asked for again that did not come.
const FETCH_AGAIN: Duration = Duration::from_secs(1);
/// How often it is looked whether bytes are missing, though nobody said so.
const FETCH_LOOK: Duration = Duration::from_secs(30);

/// Kinds that are followed because clients on nodes ask for them.
const FURTHER_WATCHES: u32 = FURTHER_MAX as u32;

/// What all watches of a hub need.
#[derive(Clone)]
pub struct Follow {
    /// The cluster.
    pub client: Client,
    /// Whom they feed.
    pub hub: Arc<Hub>,
    /// The epoch that has begun.
    pub epochs: Receiver<u64>,
    /// Who else is told, beside the hub.
    pub tell: Arc<dyn Fn(&Told) + Send + Sync>,
    /// Who is told how a resource is served, once that is known.
    pub served: Arc<dyn Fn(&Served) + Send + Sync>,
    /// The time.
    pub clock: Clock,
    /// Ends them.
    pub shutdown: Shutdown,
}

impl Follow {
    /// Starts a watch for each resource, and what fetches bytes.
    pub fn start(self, tasks: &mut Tasks) {
        let (first, second) = self.hub.resources();
        for resource in first {
            let follow = self.clone();
            tasks.add("watch", async move { follow.resource(resource).await });
        }
        for resource in second {
            let follow = self.clone();
            tasks.add("watch", async move {
                // Once it is known whose bytes are needed, the list brings them.
                follow.until_inputs_are_known().await;
                follow.resource(resource).await
            });
        }
        let crowd = tasks.crowd("further watches", FURTHER_WATCHES);
        let follow = self.clone();
        tasks.add("further", async move { follow.further(&crowd).await });
        tasks.add("fetch", async move { self.fetch().await });
    }

    /// Follows what clients on nodes ask for, from when they do.
    async fn further(&self, crowd: &Crowd) -> Result<(), std::convert::Infallible> {
        loop {
            let resources = tokio::select! {
                resources = self.hub.further() => resources,
                () = self.shutdown.triggered() => return Ok(()),
            };
            for resource in resources {
                // There is a place for as many as may be asked for.
                let Some(place) = crowd.place() else {
                    warn!(%resource, "too many kinds are followed: this one is not");
                    continue;
                };
                info!(%resource, "followed from now on: a client on a node asks for it");
                let follow = self.clone();
                place.spawn(async move {
                    let Ok(()) = follow.resource(resource).await;
                });
            }
        }
    }

    async fn until_inputs_are_known(&self) {
        tokio::select! {
            () = self.hub.until_inputs_are_known() => {}
            () = self.shutdown.triggered() => {}
        }
    }

    /// Follows a resource until the shutdown.
    async fn resource(&self, resource: Resource) -> Result<(), std::convert::Infallible> {
        let Some(served) = self.served(&resource).await else {
            return Ok(());
        };
        watch::run(self.watch(served)).await
    }

    /// How the cluster serves a resource, once it does; nothing at the shutdown.
    async fn served(&self, resource: &Resource) -> Option<Served> {
        let mut told = false;
        loop {
            let wait = match self.client.served(resource).await {
                Ok(Some(served)) => {
                    self.hub.serves(resource, true);
                    (self.served)(&served);
                    return Some(served);
                }
                Ok(None) => {
                    self.hub.serves(resource, false);
                    if !told && self.hub.shares(resource) {
                        warn!(%resource, "the cluster does not have what is to be shared");
                    } else if !told {
                        info!(%resource, "the cluster does not have this resource");
                    }
                    told = true;
                    LOOK_AGAIN
                }
                Err(error) => {
                    warn!(%resource, error = chain(&error), "cannot ask for a resource");
                    ASK_AGAIN
                }
            };
            tokio::select! {
                () = self.clock.sleep_until(self.clock.now() + wait) => {}
                () = self.shutdown.triggered() => return None,
            }
        }
    }

    fn watch(&self, served: Served) -> Watch {
        let (hub, tell) = (Arc::clone(&self.hub), Arc::clone(&self.tell));
        Watch {
            client: self.client.clone(),
            served,
            cache: Arc::clone(self.hub.cache()),
            epochs: self.epochs.clone(),
            clock: self.clock.clone(),
            shutdown: self.shutdown.clone(),
            tell: Arc::new(move |told| {
                hub.hear(&told);
                tell(&told);
            }),
        }
    }

    /// Fetches bytes that are wanted and not there, for as long as the hub runs.
    async fn fetch(&self) -> Result<(), std::convert::Infallible> {
        let (_, kept_on_demand) = self.hub.resources();
        loop {
            let mut missing = false;
            for resource in &kept_on_demand {
                missing |= !self.fetch_all(resource).await;
            }
            let wait = if missing { FETCH_AGAIN } else { FETCH_LOOK };
            tokio::select! {
                () = self.hub.lacks(), if !missing => {}
                () = self.clock.sleep_until(self.clock.now() + wait) => {}
                () = self.shutdown.triggered() => return Ok(()),
            }
        }
    }

    /// Fetches what is missing of a resource. Says whether nothing is any more.
    async fn fetch_all(&self, resource: &Resource) -> bool {
        let lacking: Vec<ObjectName> = self.hub.cache().read().lacking_all(resource);
        if lacking.is_empty() {
            return true;
        }
        let Ok(Some(served)) = self.client.served(resource).await else {
            return false;
        };
        let watch = self.watch(served);
        let mut whole = true;
        for name in lacking {
            match watch::fetch(&watch, &name).await {
                Ok(true) => self.hub.supplied(resource, &name),
                Ok(false) => whole = false,
                Err(error) => {
                    warn!(%resource, %name, error = chain(&error), "cannot fetch an object");
                    return false;
                }
            }
        }
        whole
    }
}
