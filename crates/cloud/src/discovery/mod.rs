//! What the cluster says of itself -> documents of nodes: its version, and which kinds it has.
//!
//! It is asked again and again, and says in a few bytes that nothing changed. What it cannot say
//! now stays as it was.

mod halves; // two answers -> one document
mod pace; //   what came of a question -> when the next one is asked

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use host::{Shutdown, chain};
use http::header::HeaderValue;
use serde::Deserialize;
use tracing::{info, warn};

use crate::cluster::{Client, Error, Reading};
use crate::hub::Hub;
use crate::papers::{DISCOVERY, VERSION};
use crate::talk::Desk as _;
use crate::watch::Dice;
use halves::{Half, Halves, Unfit};
use pace::{Heard, Pace};

/// How often its version is asked for, which changes when it is upgraded.
const VERSION_EVERY: Duration = Duration::from_secs(30);
/// When it is asked again after it did not answer.
const AGAIN: Duration = Duration::from_secs(15);
/// How long a hub that was just started waits for kinds of which the cluster can say nothing now.
/// Nodes may know them from before.
const PARTIAL_TIME_MAX: Duration = Duration::from_secs(600);

/// The form of discovery that every server since Kubernetes 1.30 has.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const JSON: &str = "application/json";

/// What the cluster said so far.
struct Listener {
    client: Client,
    hub: Arc<Hub>,
    halves: Halves,
    /// What names the answers of last time.
    etags: [Option<HeaderValue>; 2],
    /// When its version is asked for next.
    version_at: Instant,
    /// What was published last.
    said: Option<Bytes>,
    /// Until when it is waited for kinds of which nothing is known.
    patient_until: Instant,
}

/// Why there is nothing new.
#[derive(Debug, thiserror::Error)]
enum Unheard {
    #[error(transparent)]
    Cluster(#[from] Error),
    #[error("its discovery is of no use")]
    Discovery(#[from] Unfit),
    #[error("its version is of no use")]
    Version(#[from] serde_json::Error),
}

/// Follows what the cluster says of itself for as long as the hub runs.
pub async fn follow(hub: Arc<Hub>, client: Client, shutdown: Shutdown) -> Result<(), Infallible> {
    let clock = hub.times().clock().clone();
    let mut listener = Listener {
        client,
        hub,
        halves: Halves::default(),
        etags: [None, None],
        version_at: clock.now(),
        said: None,
        patient_until: clock.now() + PARTIAL_TIME_MAX,
    };
    let (mut dice, mut told) = (Dice::new(), false);
    let mut pace = Pace::new(clock.now());
    loop {
        let wait = match listener.ask(clock.now()).await {
            Ok(heard) => pace.after(heard, clock.now()),
            Err(error) => {
                if !told {
                    let why = chain(&error);
                    warn!(
                        why,
                        "cannot ask the cluster what it has: nodes keep what they know"
                    );
                }
                told = true;
                AGAIN
            }
        };
        told &= wait == AGAIN;
        // Hubs that were started together do not ask together.
        let wait = wait.mul_f64(0.75 + dice.roll() / 2.0);
        tokio::select! {
            () = clock.sleep_until(clock.now() + wait) => {}
            () = shutdown.triggered() => return Ok(()),
        }
    }
}

impl Listener {
    /// Asks for everything once, and publishes what is new.
    async fn ask(&mut self, now: Instant) -> Result<Heard, Unheard> {
        if now >= self.version_at {
            let version = self.client.get_as("/version", JSON, None).await?;
            if let Reading::New { bytes, .. } = version {
                self.hub.publish(VERSION, Some(checked(bytes)?));
            }
            self.version_at = now + VERSION_EVERY;
        }
        for (half, etag) in Half::ALL.into_iter().zip(&mut self.etags) {
            let asked = self.client.get_as(half.path(), AGGREGATED, etag.as_ref());
            if let Reading::New { bytes, etag: named } = asked.await? {
                self.halves.handle(half, &bytes)?;
                *etag = named;
            }
        }
        if self.halves.is_partial() && now < self.patient_until {
            return Ok(Heard::Same);
        }
        let document = self.halves.document();
        if document.is_none() || document == self.said {
            return Ok(Heard::Same);
        }
        let bytes = document.as_ref().map_or(0, Bytes::len);
        info!(bytes, "nodes are told which kinds the cluster has");
        self.said.clone_from(&document);
        self.hub.publish(DISCOVERY, document);
        Ok(Heard::News)
    }
}

/// A version as clients understand it.
fn checked(bytes: Bytes) -> Result<Bytes, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        #[serde(rename = "gitVersion")]
        _git: String,
    }
    serde_json::from_slice::<Version>(&bytes).map(|_| bytes)
}
