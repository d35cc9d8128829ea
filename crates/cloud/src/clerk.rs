//! What happens in sessions and must be seen to outside of them: whether the cluster's history is
//! another one.

use std::sync::Arc;
use std::time::Duration;

use host::{Shutdown, chain};
use object::{Resource, Version};
use tokio::sync::Notify;
use tracing::{error, warn};
use wire::outbox::Settled;
use wire::session::Happening;

use crate::cluster::Client;
use crate::epoch::{Around, Verdict, Witnesses};
use crate::epochs::Epochs;
use crate::hub::{Happenings, Hub};
use crate::talk::Desk;
use crate::watch::Told;

/// How often it is looked whether another hub began a new epoch.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Sees to what happens.
pub struct Clerk {
    /// The hub.
    pub hub: Arc<Hub>,
    /// The cluster.
    pub client: Client,
    /// The epochs.
    pub epochs: Epochs<Client>,
    /// What happened in sessions.
    pub happenings: Happenings,
    /// What is seen by those who follow the cluster.
    pub seen: Arc<Seen>,
}

/// What those who follow the cluster see and the clerk sees to.
#[derive(Debug, Default)]
pub struct Seen {
    rewound: Notify,
}

impl Seen {
    /// Takes in what became of the cluster.
    pub fn hear(&self, told: &Told) {
        if let Told::Rewound {
            resource,
            known,
            found,
        } = told
        {
            warn!(%resource, %known, %found, "the cluster went back");
            self.rewound.notify_one();
        }
    }
}

impl Clerk {
    /// Sees to things until the shutdown.
    pub async fn run(mut self, shutdown: Shutdown) -> Result<(), std::convert::Infallible> {
        let mut witnesses = Witnesses::default();
        let clock = self.hub.times().clock().clone();
        // Something happens all the time: the next look must not wait until nothing does.
        let mut looks_at = clock.now() + LOOK_EVERY;
        loop {
            let another = tokio::select! {
                happened = self.happenings.recv() => match happened {
                    Some((node, happening)) => {
                        self.happened(&node, &happening, &mut witnesses).await
                    }
                    None => return Ok(()),
                },
                () = self.seen.rewound.notified() => true,
                () = clock.sleep_until(looks_at) => {
                    looks_at = clock.now() + LOOK_EVERY;
                    self.look().await;
                    false
                }
                () = shutdown.triggered() => return Ok(()),
            };
            if another && self.begin().await {
                witnesses.forget();
            }
        }
    }

    /// Says whether the history of the cluster is another one, by all that is known.
    async fn happened(
        &self,
        node: &Arc<str>,
        happening: &Happening,
        witnesses: &mut Witnesses,
    ) -> bool {
        let (resource, ahead) = match happening {
            Happening::Ahead { resource, reached } => {
                (resource, self.is_beyond(resource, reached).await)
            }
            Happening::Settled(Settled::Reached { resource, .. }) => (resource, Some(false)),
            _ => return false,
        };
        let Some(ahead) = ahead else { return false };
        if ahead {
            warn!(%node, "the node was told of a version that the cluster does not have");
        }
        let around = Around {
            nodes: self.hub.nodes(),
            now: self.hub.times().now(),
        };
        witnesses.hear(node, resource, ahead, around) == Verdict::Another
    }

    /// Whether a version is above what the cluster has, by a consistent read; nothing if that
    /// cannot be told.
    async fn is_beyond(&self, resource: &Resource, version: &Version) -> Option<bool> {
        let served = self.client.served(resource).await.ok()??;
        let now = self.client.version(&served).await.ok()?;
        Some(now < *version)
    }

    /// Begins a new epoch. Says whether it did.
    async fn begin(&self) -> bool {
        match self.epochs.next(self.epochs.now()).await {
            Ok(Some(epoch)) => {
                self.put_into_effect(epoch);
                true
            }
            Ok(None) => false,
            Err(error) => {
                error!(error = chain(&error), "a new epoch cannot be begun yet");
                // Whoever saw the old history end sees it again.
                self.seen.rewound.notify_one();
                tokio::time::sleep(RETRY).await;
                false
            }
        }
    }

    async fn look(&self) {
        match self.epochs.look().await {
            Ok(Some(epoch)) => self.put_into_effect(epoch),
            Ok(None) => {}
            Err(error) => warn!(error = chain(&error), "the epoch cannot be looked up"),
        }
    }

    fn put_into_effect(&self, epoch: u64) {
        self.hub.begin(epoch);
        self.epochs.begin(epoch);
    }
}

/// How long to wait before a new epoch is tried again.
const RETRY: Duration = Duration::from_secs(1);
