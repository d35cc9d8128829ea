//! What nodes report is written into the cluster, in the name of the node that said it.
//!
//! The reports of a node are written one after the other; those of different nodes side by side, a
//! bounded number at once. Each is acked when it is in the cluster, or when it never will be:
//! because the object is gone, or another one has its name, or the node may not. What may work
//! later is tried again, and what follows waits for it.

mod write; // a statement -> a request of the node
mod lanes; // which node's turn it is

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use host::{Clock, Crowd, Shutdown};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::{debug, warn};
use wire::frame::{Report, Reported};
use wire::report::Statement;

use crate::cluster::Client;
use crate::sessions::{Bell, NodeName, Word};
use lanes::{Full, Lanes};
use write::Outcome;

/// Nodes whose reports are written at once. Those of others wait.
pub const WRITERS_MAX: u32 = 32;
/// How long to wait until something is tried again, first and at most.
const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(60);

/// Reports on their way into the cluster.
#[derive(Debug, Default)]
pub struct Replay {
    lanes: Mutex<Lanes<Item>>,
    woken: Notify,
    counts: [AtomicU64; Outcome::LABELS.len()],
}

/// A report, and where it is said that it is done.
#[derive(Debug)]
struct Item {
    statement: Statement,
    receipt: Receipt,
}

/// Where a session learns that a report is done.
#[derive(Debug, Clone)]
pub struct Receipt {
    reported: Reported,
    done: Done,
    bell: Arc<Bell>,
}

/// The reports of a session that are done and were not acked yet.
pub type Done = Arc<Mutex<Vec<Reported>>>;

impl Receipt {
    /// For a report of the session that this bell wakes.
    pub fn new(report: &Report, done: &Done, bell: &Arc<Bell>) -> Self {
        Self {
            reported: Reported {
                queue: report.queue,
                series: report.series,
                number: report.number,
            },
            done: Arc::clone(done),
            bell: Arc::clone(bell),
        }
    }

    /// The report is where it belongs, or never will be.
    pub fn sign(self) {
        self.done.lock().push(self.reported);
        self.bell.ring(Word::Reported);
    }
}

impl Replay {
    /// Takes a report of a node's session.
    pub fn take(
        &self,
        node: &NodeName,
        session: u64,
        (statement, receipt): (Statement, Receipt),
    ) -> Result<(), Full> {
        let bytes = weight(&statement);
        let item = Item { statement, receipt };
        self.lanes.lock().push(node, session, (item, bytes))?;
        self.woken.notify_one();
        Ok(())
    }

    /// A session is over: what waits of it comes again in the next.
    pub fn ended(&self, node: &NodeName, session: u64) {
        self.lanes.lock().ended(node, session);
    }

    /// Something cannot be read. It never will be.
    pub fn dropped(&self, node: &NodeName) {
        warn!(%node, "a report that makes no sense was dropped");
        self.count(&Outcome::Dropped("malformed".to_owned()));
    }

    /// What became of reports, by outcome.
    pub fn outcomes(&self) -> BTreeMap<&'static str, u64> {
        let counts = Outcome::LABELS.iter().zip(&self.counts);
        counts
            .map(|(label, count)| (*label, count.load(Ordering::Relaxed)))
            .collect()
    }

    fn count(&self, outcome: &Outcome) {
        let index = Outcome::LABELS.iter().position(|it| *it == outcome.label());
        if let Some(index) = index {
            self.counts[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes until the shutdown.
    pub async fn run(
        self: Arc<Self>,
        client: Client,
        (crowd, clock): (Crowd, Clock),
        shutdown: Shutdown,
    ) -> Result<(), Infallible> {
        let writing = async {
            loop {
                while let Some(place) = crowd.place() {
                    let Some(node) = self.lanes.lock().begin() else {
                        break;
                    };
                    let (replay, client) = (Arc::clone(&self), client.clone());
                    let clock = clock.clone();
                    place.spawn(async move { replay.write_all(&node, &client, &clock).await });
                }
                self.woken.notified().await;
            }
        };
        tokio::select! {
            () = writing => Ok(()),
            () = shutdown.triggered() => Ok(()),
        }
    }

    /// Writes what a node has to say, until there is nothing left.
    async fn write_all(&self, node: &NodeName, client: &Client, clock: &Clock) {
        let mut wait = AGAIN_MIN;
        loop {
            let Some((statement, session)) = self
                .lanes
                .lock()
                .first(node, |item: &Item| item.statement.clone())
            else {
                // A place is free again.
                return self.woken.notify_one();
            };
            let outcome = write::write(client, node, &statement).await;
            self.count(&outcome);
            match outcome {
                Outcome::Done => {}
                Outcome::Dropped(why) => {
                    let about = write::about(&statement);
                    warn!(%node, about, why, "what the node reported was not written: dropped");
                }
                Outcome::Again { after, why } => {
                    debug!(%node, why, "what a node reported is written later");
                    let until = clock.now() + after.unwrap_or(wait).min(AGAIN_MAX);
                    clock.sleep_until(until).await;
                    wait = (wait * 2).min(AGAIN_MAX);
                    continue;
                }
            }
            wait = AGAIN_MIN;
            let done = self.lanes.lock().pop(node, session);
            if let Some(item) = done {
                item.receipt.sign();
            }
        }
    }
}

/// Bytes that a statement takes, about.
fn weight(statement: &Statement) -> usize {
    match statement {
        Statement::Kubelet(_) | Statement::Wants(_) => 0,
        Statement::Status { patch, .. } => patch.len(),
        Statement::Event { body, .. } => body.len(),
    }
}
