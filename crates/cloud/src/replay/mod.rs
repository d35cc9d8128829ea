//! What nodes report is written into the cluster, in the name of the node that said it.
//!
//! The reports of a queue of a node are written one after the other; those of different queues and
//! nodes side by side, a bounded number at once. Each is acked when it is in the cluster, or when
//! it never will be: because the object is gone, or another one has its name, or the node may not.
//! What may work later is tried again, and what follows in its queue waits for it; nobody else
//! does.

mod write; // a statement -> a request of the node
mod lanes; // whose turn it is

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use host::{Clock, Crowd, Shutdown};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::{debug, warn};
use wire::frame::{Queue, Report, Reported};
use wire::report::Statement;

use crate::cluster::Client;
use crate::sessions::{Bell, NodeName, Word};
use lanes::{Full, Lanes};
use write::Outcome;

/// Queues of nodes whose reports are written at once. Others wait.
pub const WRITERS_MAX: u32 = 32;

/// Reports on their way into the cluster.
#[derive(Debug, Default)]
pub struct Replay {
    lanes: Mutex<Lanes<Way, Item>>,
    woken: Notify,
    counts: [AtomicU64; Outcome::LABELS.len()],
}

/// A queue of a node.
type Way = (NodeName, Queue);

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
        let way = (Arc::clone(node), statement.queue());
        let item = Item { statement, receipt };
        self.lanes.lock().push(&way, session, (item, bytes))?;
        self.woken.notify_one();
        Ok(())
    }

    /// A session is over: what waits of it comes again in the next.
    pub fn ended(&self, node: &NodeName, session: u64) {
        let mut lanes = self.lanes.lock();
        for queue in Queue::ALL {
            lanes.ended(&(Arc::clone(node), queue), session);
        }
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
                let place = crowd.next_place().await;
                let (begun, rested) = {
                    let mut lanes = self.lanes.lock();
                    (lanes.begin(clock.now()), lanes.rested())
                };
                let Some(way) = begun else {
                    drop(place);
                    self.until_woken(rested, &clock).await;
                    continue;
                };
                let (replay, client) = (Arc::clone(&self), client.clone());
                let clock = clock.clone();
                place.spawn(async move { replay.write_all(&way, &client, &clock).await });
            }
        };
        tokio::select! {
            () = writing => Ok(()),
            () = shutdown.triggered() => Ok(()),
        }
    }

    async fn until_woken(&self, rested: Option<Instant>, clock: &Clock) {
        let rests = async {
            match rested {
                Some(rested) => clock.sleep_until(rested).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.woken.notified() => {}
            () = rests => {}
        }
    }

    /// Writes what a node has to say in a queue, until there is nothing left or it has to wait.
    async fn write_all(&self, way: &Way, client: &Client, clock: &Clock) {
        let (node, _) = way;
        loop {
            let first = self
                .lanes
                .lock()
                .first(way, |item: &Item| item.statement.clone());
            let Some((statement, session)) = first else {
                return;
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
                    self.lanes.lock().rest(way, after, clock.now());
                    return self.woken.notify_one();
                }
            }
            let done = self.lanes.lock().pop(way, session);
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
