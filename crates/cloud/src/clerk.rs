//! What happens in sessions and must be seen to outside of them: whether the cluster's history is
//! another one, what is recorded of nodes, and what people are told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use host::{Shutdown, chain};
use object::{Resource, Version};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::{error, warn};
use wire::outbox::Settled;
use wire::session::Happening;

use crate::cache::Relisted;
use crate::cluster::Client;
use crate::epoch::{Around, Verdict, Witnesses};
use crate::epochs::Epochs;
use crate::hub::{Happenings, Hub};
use crate::ledger::words;
use crate::notices::Notice;
use crate::record::Scribe;
use crate::talk::Desk;
use crate::watch::Told;

/// How often it is looked whether another hub began a new epoch.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often it is looked what there is to tell.
const TICK: Duration = Duration::from_secs(2);
/// For how long a resource is frozen before people are told.
pub const FROZEN_LONG: Duration = Duration::from_secs(60);

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
    /// Who tells of what nodes hold.
    pub scribe: Scribe,
    /// For how long a resource is frozen before people are told.
    pub frozen_long: Duration,
}

/// What those who follow the cluster see and the clerk sees to.
#[derive(Debug, Default)]
pub struct Seen {
    rewound: Notify,
    /// Nodes that were deleted. There are no more of them than the cluster had.
    deleted: Mutex<BTreeSet<Box<str>>>,
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
        let (resource, applied) = match told {
            Told::Changed(resource, applied)
            | Told::Listed(resource, Relisted::InOrder(applied)) => (resource, applied),
            _ => return,
        };
        if resource.as_str() == "nodes" {
            let gone = applied.iter().filter(|applied| applied.after.is_none());
            let names = gone.filter_map(|it| Some(it.before.as_ref()?.name.name().into()));
            self.deleted.lock().extend(names);
        }
    }
}

impl Clerk {
    /// Sees to things until the shutdown.
    pub async fn run(mut self, shutdown: Shutdown) -> Result<(), std::convert::Infallible> {
        let mut witnesses = Witnesses::default();
        let clock = self.hub.times().clock().clone();
        let mut frozen = BTreeSet::new();
        let (mut tick, mut looked) = (clock.now(), clock.now());
        loop {
            let another = tokio::select! {
                happened = self.happenings.recv() => match happened {
                    Some((node, happening)) => {
                        self.tell(&node, &happening);
                        self.happened(&node, &happening, &mut witnesses).await
                    }
                    None => return Ok(()),
                },
                () = self.seen.rewound.notified() => true,
                () = clock.sleep_until(tick + TICK) => {
                    tick = clock.now();
                    self.look_around(&mut frozen);
                    let asked = self.hub.strangers().lock().asks();
                    if asked || tick >= looked + LOOK_EVERY {
                        looked = tick;
                        self.look().await;
                    }
                    witnesses.verdict(self.around()) == Verdict::Another
                }
                () = shutdown.triggered() => return Ok(()),
            };
            if another && self.begin().await {
                witnesses.forget();
            }
        }
    }

    /// Tells those who are concerned.
    fn tell(&mut self, node: &Arc<str>, happening: &Happening) {
        self.scribe.happened(node, happening);
        if let Happening::Settled(Settled::SetAside {
            resource,
            name,
            why,
        }) = happening
        {
            warn!(%node, %resource, %name, why = words(*why), "an object is set aside");
            self.hub.notice(Notice::SetAside {
                node: (**node).into(),
                resource: resource.clone(),
                name: name.clone(),
                why: *why,
            });
        }
        if let Happening::Settled(Settled::DocumentAside { name, why }) = happening {
            warn!(%node, document = %name, why = words(*why), "a document is set aside");
        }
    }

    /// Tells how nodes are, which are gone, and what cannot be followed.
    fn look_around(&mut self, frozen: &mut BTreeSet<Resource>) {
        for node in std::mem::take(&mut *self.seen.deleted.lock()) {
            self.scribe.gone(&node);
        }
        self.scribe.tell_summaries();
        let now = self.hub.times().clock().now();
        let cache = self.hub.cache().read();
        for resource in cache.resources() {
            let trouble = cache.trouble(resource);
            let long =
                trouble.filter(|it| now.saturating_duration_since(it.since) >= self.frozen_long);
            let notice = match long {
                Some(trouble) if frozen.insert(resource.clone()) => Notice::Frozen {
                    resource: resource.clone(),
                    why: (*trouble.why).into(),
                },
                None if trouble.is_none() && frozen.remove(resource) => Notice::Thawed {
                    resource: resource.clone(),
                },
                _ => continue,
            };
            self.hub.notice(notice);
        }
    }

    /// Says whether the history of the cluster is another one, by all that is known.
    async fn happened(
        &self,
        node: &Arc<str>,
        happening: &Happening,
        witnesses: &mut Witnesses,
    ) -> bool {
        if let Happening::SetAsideAgain { pause } = happening {
            let seconds = pause.as_secs();
            warn!(%node, seconds, "what the node could not take, it could not take again");
        }
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
        witnesses.hear(node, resource, ahead, self.around()) == Verdict::Another
    }

    fn around(&self) -> Around {
        Around {
            nodes: self.hub.nodes(),
            now: self.hub.times().now(),
        }
    }

    /// Whether a version is above what the cluster has, by a consistent read; nothing if that
    /// cannot be told.
    async fn is_beyond(&self, resource: &Resource, version: &Version) -> Option<bool> {
        let served = self.client.served(resource).await.ok()??;
        let now = self.client.version(&served).await.ok()?;
        Some(now < *version)
    }

    /// Begins a new epoch. Says whether it did.
    async fn begin(&mut self) -> bool {
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

    async fn look(&mut self) {
        let began = self.hub.times().now();
        match self.epochs.look().await {
            Ok(Some(epoch)) => self.put_into_effect(epoch),
            Ok(None) => self.hub.strangers().lock().looked(began),
            Err(error) => warn!(error = chain(&error), "the epoch cannot be looked up"),
        }
    }

    fn put_into_effect(&mut self, epoch: u64) {
        self.hub.begin(epoch);
        self.scribe.begin();
        self.hub.notice(Notice::EpochBegan { epoch });
        self.epochs.begin(epoch);
    }
}

/// How long to wait before a new epoch is tried again.
const RETRY: Duration = Duration::from_secs(1);
