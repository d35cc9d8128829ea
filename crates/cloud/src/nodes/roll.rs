//! Who has a session and is registered by this hub; what is to be written for each, and when.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use wire::frame::Machine;
use wire::report::statement::Pulse;

use super::{Condition, Leases, Registered};
use crate::sessions::NodeName;

/// How often a lease is renewed. Nodes are spread over it by their names, so that as many are due
/// in each moment.
pub(super) const PERIOD: Duration = Duration::from_secs(25);
/// Requests a second, on average: enough for ten thousand nodes. With more, leases are renewed
/// later; with more than sixteen thousand they run out between, and a further hub is needed.
const REQUESTS_PER_SECOND: u32 = 400;
/// Requests that may follow each other at once.
const REQUESTS_AT_ONCE: u32 = 40;
/// When to look again though nothing could be done, or after a failure.
const AGAIN: Duration = Duration::from_secs(5);
/// How long it may take until what was written is seen by those who follow the cluster.
const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// A session that was not heard of for so long is not vouched for: a heartbeat is overdue.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(45);

/// Nodes that this hub registers, while they have a session here.
#[derive(Debug)]
pub struct Roll {
    leases: Leases,
    entries: HashMap<NodeName, Entry>,
    order: BTreeSet<(Duration, NodeName)>,
    /// Up to when the requests that were made are paid for.
    spent: Duration,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    /// The machine, if the node is registered for its agent.
    machine: Option<Machine>,
    /// Whether a kubelet lives there.
    kubelet: Pulse,
    /// When it is its turn; nothing while something is written for it.
    due: Option<Duration>,
    /// Until when what it says of itself may not be known yet.
    told_until: Duration,
    lease: Lease,
}

/// Whether a lease is believed to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lease {
    There,
    Missing,
}

/// Something to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// For which node.
    pub node: NodeName,
    /// The number of its session.
    pub number: u64,
    /// What.
    pub step: Step,
}

/// What is written for a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Its Node.
    Register(Machine),
    /// That it is ready.
    Ready,
    /// Its lease, for the first time. This is the uid of its Node.
    Lease(Box<str>),
    /// Its lease, renewed.
    Renew,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This.
    Do(Task),
    /// Nothing before this moment; ever, if there is none.
    Wait(Option<Duration>),
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// What it was about is not there.
    Missing,
    /// What it was to make is there.
    Exists,
    /// The cluster will not take it. Somebody may change that.
    Refused,
    /// It may work later.
    Failed,
}

impl Roll {
    /// Nobody has a session.
    pub fn new(leases: Leases) -> Self {
        Self {
            leases,
            entries: HashMap::new(),
            order: BTreeSet::new(),
            spent: Duration::ZERO,
        }
    }

    /// A node that is to be registered has a session.
    pub fn began(&mut self, node: &NodeName, number: u64, machine: Machine, now: Duration) {
        self.enter(node, (number, Some(machine), Pulse::Stopped), now);
    }

    /// The agent of a node says whether a kubelet lives there. It says so in each session anew.
    pub fn kubelet(&mut self, node: &NodeName, number: u64, pulse: Pulse, now: Duration) {
        let entry = self.entries.get_mut(node);
        if entry.as_ref().is_some_and(|entry| entry.number > number) {
            // It was on its way when the next session began, and that says so itself.
            return;
        }
        let entry = entry.filter(|entry| entry.number == number);
        match (entry, pulse) {
            (Some(entry), Pulse::Stopped) if entry.machine.is_none() => self.remove(node),
            (Some(entry), _) => {
                entry.kubelet = pulse;
                // Something may be written for it just now: then its turn comes after that.
                if entry.due.is_some() {
                    self.at(node, now);
                }
            }
            (None, Pulse::Alive) => self.enter(node, (number, None, pulse), now),
            (None, Pulse::Stopped) => {}
        }
    }

    fn enter(
        &mut self,
        node: &NodeName,
        (number, machine, kubelet): (u64, Option<Machine>, Pulse),
        now: Duration,
    ) {
        self.remove(node);
        let entry = Entry {
            number,
            machine,
            kubelet,
            due: None,
            told_until: Duration::ZERO,
            lease: Lease::There,
        };
        self.entries.insert(Arc::clone(node), entry);
        self.at(node, now);
    }

    /// A session is over.
    pub fn ended(&mut self, node: &NodeName, number: u64) {
        if self.entries.get(node).map(|entry| entry.number) == Some(number) {
            self.remove(node);
        }
    }

    /// How many nodes are kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is to be done now. `look` tells what the cluster has of a node, and whether the node
    /// was heard of lately.
    pub fn next(&mut self, now: Duration, look: impl Fn(&NodeName) -> Look) -> Next {
        loop {
            let Some((due, node)) = self.order.first().cloned() else {
                return Next::Wait(None);
            };
            let ahead = Duration::from_secs(1) * (REQUESTS_AT_ONCE - 1) / REQUESTS_PER_SECOND;
            let due = due.max(self.spent.saturating_sub(ahead));
            if due > now {
                return Next::Wait(Some(due));
            }
            self.order.pop_first();
            match self.step(&node, look(&node), now) {
                Ok(task) => {
                    self.spent = self.spent.max(now) + Duration::from_secs(1) / REQUESTS_PER_SECOND;
                    return Next::Do(task);
                }
                Err(again) => self.at(&node, again),
            }
        }
    }

    /// What became of something that [`Roll::next`] gave.
    pub fn done(&mut self, task: &Task, outcome: Outcome, now: Duration) {
        let slot = slot(&task.node, now);
        let entry = self.entries.get_mut(&task.node);
        let Some(entry) = entry.filter(|entry| entry.number == task.number) else {
            return;
        };
        let due = match (&task.step, outcome) {
            (_, Outcome::Failed) => now + AGAIN,
            (_, Outcome::Refused) => slot,
            // The Node is seen in a moment.
            (Step::Register(_), _) => now + AGAIN / 5,
            (Step::Ready, Outcome::Missing) => now + AGAIN,
            (Step::Ready, _) => {
                entry.told_until = now + SEEN_WITHIN;
                now
            }
            (Step::Renew, Outcome::Missing) => {
                entry.lease = Lease::Missing;
                now
            }
            (Step::Lease(_), Outcome::Missing) => slot,
            (Step::Lease(_) | Step::Renew, _) => {
                entry.lease = Lease::There;
                slot
            }
        };
        self.at(&task.node, due);
    }

    /// What a node needs now; or when to look again.
    fn step(&mut self, node: &NodeName, look: Look, now: Duration) -> Result<Task, Duration> {
        let Some(entry) = self.entries.get_mut(node) else {
            return Err(now);
        };
        entry.due = None;
        let step = match (look.registered, self.leases) {
            (Registered::Unknown, _) => return Err(now + AGAIN),
            (Registered::Missing, _) => match &entry.machine {
                Some(machine) => Step::Register(machine.clone()),
                None => return Err(now + AGAIN),
            },
            (Registered::Ours { .. } | Registered::Foreign { .. }, Leases::Off) => {
                return Err(slot(node, now));
            }
            (Registered::Foreign { .. }, _) if entry.kubelet == Pulse::Stopped => {
                return Err(slot(node, now));
            }
            _ if look.silent_for > SILENCE_MAX => return Err(now + AGAIN),
            // What a kubelet's Node says of itself, the kubelet says.
            (Registered::Ours { condition, .. }, _)
                if entry.machine.is_some()
                    && condition == Condition::NotReady
                    && now >= entry.told_until =>
            {
                Step::Ready
            }
            (Registered::Ours { uid, .. } | Registered::Foreign { uid }, _)
                if entry.lease == Lease::Missing =>
            {
                Step::Lease(uid)
            }
            (Registered::Ours { .. } | Registered::Foreign { .. }, _) => Step::Renew,
        };
        Ok(Task {
            node: Arc::clone(node),
            number: entry.number,
            step,
        })
    }

    fn at(&mut self, node: &NodeName, due: Duration) {
        if let Some(entry) = self.entries.get_mut(node) {
            if let Some(before) = entry.due.replace(due) {
                self.order.remove(&(before, Arc::clone(node)));
            }
            self.order.insert((due, Arc::clone(node)));
        }
    }

    fn remove(&mut self, node: &NodeName) {
        if let Some(entry) = self.entries.remove(node)
            && let Some(due) = entry.due
        {
            self.order.remove(&(due, Arc::clone(node)));
        }
    }
}

/// What is known of a node when its turn comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// What the cluster has of it.
    pub registered: Registered,
    /// For how long nothing was heard of it.
    pub silent_for: Duration,
}

/// The node's next turn: its own moment within the period, and not sooner than half of one.
fn slot(node: &str, now: Duration) -> Duration {
    let share = wire::digest::content_hash(node.as_bytes()) as f64 / u64::MAX as f64;
    let phase = PERIOD.mul_f64(share);
    let earliest = (now + PERIOD / 2).saturating_sub(phase);
    let periods = earliest.as_nanos().div_ceil(PERIOD.as_nanos());
    phase + PERIOD * u32::try_from(periods).unwrap_or(u32::MAX)
}
