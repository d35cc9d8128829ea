//! What nodes report is written into the cluster, in the name of the node that said it.
//!
//! The reports of a queue of a node are written one after the other; those of different queues and
//! nodes side by side, a bounded number at once. Each is acked when it is in the cluster, or when
//! it never will be: because the object is gone, or another one has its name, or the node may not.
//! What may work later is tried again. Statuses of other objects do not wait for it meanwhile;
//! events do, for each of them counts. What the cluster fails at for long while it does other
//! things is given up.

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
use wire::frame::{Form, Queue, Report, Reported};
use wire::report::Statement;

use crate::cluster::Client;
use crate::sessions::{Bell, NodeName, Word};
use lanes::{AGAIN_MIN, Full, Lanes, Left, Load, Moment, Ticket};
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

/// What is known beside the reports.
pub trait Witness: Send + Sync + 'static {
    /// How often the cluster did something else for this hub so far.
    fn works(&self) -> u64;

    /// Whether a session of a node is still its session.
    fn standing(&self, node: &NodeName, session: u64) -> Standing;
}

/// Whether what a session said may be written. The node says it again to the next hub that it
/// finds, and something newer after it: what was said here must not come over that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Live,
    /// The node was not heard of for a while. It may be elsewhere by now.
    Silent,
    /// The session is over.
    Over,
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
        let (bytes, queue) = (weight(&statement), statement.queue());
        let name = match queue.form() {
            Some(Form::NewestWins) => statement.key(),
            // Each counts, so they are written one after the other.
            Some(Form::AppendOnly) | None => String::new(),
        };
        let (way, item) = ((Arc::clone(node), queue), Item { statement, receipt });
        let load = Load { item, name, bytes };
        self.lanes.lock().push(&way, session, load)?;
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
        witness: Arc<impl Witness>,
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
                let (clock, witness) = (clock.clone(), Arc::clone(&witness));
                place.spawn(async move {
                    replay.write_all(&way, &client, &clock, &*witness).await;
                });
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
    async fn write_all(&self, way: &Way, client: &Client, clock: &Clock, witness: &impl Witness) {
        let (node, _) = way;
        loop {
            let look = |item: &Item| item.statement.clone();
            let first = self.lanes.lock().first(way, clock.now(), look);
            let Some((statement, ticket)) = first else {
                // What is set aside has to be waited for.
                return self.woken.notify_one();
            };
            match witness.standing(node, ticket.session) {
                Standing::Live => {}
                Standing::Silent => {
                    let soon = Some(AGAIN_MIN);
                    self.lanes.lock().rest(way, soon, clock.now());
                    return self.woken.notify_one();
                }
                Standing::Over => {
                    self.lanes.lock().ended(way, ticket.session);
                    continue;
                }
            }
            let outcome = write::write(client, node, &statement).await;
            let works = witness.works().saturating_add(self.works());
            let at = Moment {
                now: clock.now(),
                works,
            };
            if self.heed(way, (&statement, ticket), outcome, at) == Goes::Later {
                return self.woken.notify_one();
            }
        }
    }

    /// Sees to what became of a statement.
    fn heed(
        &self,
        way: &Way,
        (statement, ticket): (&Statement, Ticket),
        outcome: Outcome,
        at: Moment,
    ) -> Goes {
        let ((node, _), about) = (way, write::about(statement));
        self.count(&outcome);
        let done = match outcome {
            Outcome::Done => self.lanes.lock().pop(way, ticket),
            Outcome::Dropped(why) => {
                warn!(%node, about, why, "what the node reported was not written: dropped");
                self.lanes.lock().pop(way, ticket)
            }
            Outcome::Again { after, why } => {
                debug!(%node, why, "what a node reported is written later");
                self.lanes.lock().rest(way, after, at.now);
                return Goes::Later;
            }
            Outcome::Aside { doubt, after, why } => {
                debug!(%node, about, why, "what a node reported is written later");
                let why_not = (doubt, after);
                let left = self.lanes.lock().set_aside(way, ticket, why_not, at);
                match left {
                    Left::Aside | Left::Gone => return Goes::On,
                    Left::Resting => return Goes::Later,
                    Left::GivenUp(item) => {
                        warn!(%node, about, why, "the cluster never took a report: dropped");
                        self.count(&Outcome::Dropped(why));
                        Some(item)
                    }
                }
            }
        };
        if let Some(item) = done {
            item.receipt.sign();
        }
        Goes::On
    }

    /// How often the cluster took a report.
    fn works(&self) -> u64 {
        let [written, ..] = &self.counts;
        written.load(Ordering::Relaxed)
    }
}

/// Whether a queue goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    Later,
}

/// Bytes that a statement takes, about.
fn weight(statement: &Statement) -> usize {
    match statement {
        Statement::Kubelet(_) | Statement::Wants(_) => 0,
        Statement::Status { patch, .. } => patch.len(),
        Statement::Event { body, .. } => body.len(),
    }
}
