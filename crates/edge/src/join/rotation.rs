//! The next certificate, again and again, for as long as the agent runs.

use std::sync::Arc;
use std::time::Duration;

use host::{Clock, Shutdown, chain};
use tokio::sync::watch;
use tracing::{error, warn};

use super::enrol::{Failed, Hub, pause, renew};
use super::home::{Home, Identity};
use super::schedule::Standing;

/// Renews a node's certificate in time. Whoever opens a link takes [`Rotation::current`].
pub struct Rotation {
    home: Home,
    hubs: Vec<Hub>,
    clock: Clock,
    current: watch::Sender<Arc<Identity>>,
}

impl Rotation {
    /// Keeps this identity fresh.
    pub fn new(home: Home, identity: Identity, hubs: Vec<Hub>, clock: Clock) -> Self {
        Self {
            home,
            hubs,
            clock,
            current: watch::Sender::new(Arc::new(identity)),
        }
    }

    /// The identity, now and when it changes. A link that is open stays open: the next one is
    /// opened with the new certificate.
    pub fn current(&self) -> watch::Receiver<Arc<Identity>> {
        self.current.subscribe()
    }

    /// Renews until the shutdown. It never fails: a certificate that cannot be renewed is told of,
    /// and what is on disk is served all the same.
    pub async fn run(self, shutdown: Shutdown) {
        let renewing = async {
            let mut failures = 0;
            loop {
                let wait = match self.step().await {
                    Ok(()) => {
                        failures = 0;
                        LOOK_EVERY
                    }
                    Err(failed) => {
                        failures += 1;
                        self.tell(&failed);
                        pause(failures, RETRY_MAX).max(failed.wait().unwrap_or_default())
                    }
                };
                self.clock.sleep_until(self.clock.now() + wait).await;
            }
        };
        tokio::select! {
            () = renewing => {}
            () = shutdown.triggered() => {}
        }
    }

    /// One look: renews if it is time.
    pub async fn step(&self) -> Result<(), Failed> {
        let identity = self.current.borrow().clone();
        match identity.standing(self.clock.wall()) {
            Standing::Good => Ok(()),
            Standing::Due | Standing::NotYet | Standing::Expired => {
                let next = renew(&self.home, &identity, &self.hubs, &self.clock).await?;
                self.current.send_replace(Arc::new(next));
                Ok(())
            }
        }
    }

    fn tell(&self, failed: &Failed) {
        let error = chain(failed);
        match failed.is_final() {
            true => error!(error, "the link certificate is not renewed"),
            false => warn!(error, "cannot renew the link certificate yet"),
        }
    }
}

/// How often the time is looked at. The clock may be set meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(600);
/// The longest pause after failures: a fifth of a certificate's life is days.
const RETRY_MAX: Duration = Duration::from_secs(1800);
