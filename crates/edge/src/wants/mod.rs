//! What clients on the node ask for that no node holds by itself: the hub is told, and carries it
//! here as far as an account of a pod on the node may have it. What is not used for long goes.
//!
//! What is held must be followed, or it grows old unseen. So what goes is remembered until the node
//! does not hold it any more: a hub that never followed it says nothing of it, and is asked again.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use host::{Shutdown, Times};
use object::{Range, Resource};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::warn;
use wire::frame::Queue;
use wire::report::Statement;
use wire::report::statement::{WANTED_MAX, Wanted};

use crate::keep::Keep;
use crate::reports::{Hub, NotKept, Reports};

/// How long what was asked for is thought to be on its way, so that clients wait a moment for it.
/// What did not come by then is not given, or is too much: the cluster is asked instead.
const COMES_WITHIN: Duration = Duration::from_secs(15);
/// When the hub is asked again for what did not come.
const ASKED_AGAIN: Duration = Duration::from_secs(600);
/// What nobody used for so long is not carried any more. What is watched is in use.
const USED_WITHIN: Duration = Duration::from_secs(7200);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(300);
/// When a word is tried again that could not be kept.
const AGAIN: Duration = Duration::from_secs(10);
/// The document in which it lies on the node's disk.
const DOCUMENT: &str = "holdfast/wants";

/// What clients on the node ask for. Clones share it.
#[derive(Clone)]
pub struct Wants(Arc<Shared>);

struct Shared {
    keep: Keep,
    reports: Reports,
    times: Times,
    state: Mutex<State>,
    changed: Notify,
}

/// The rules, without I/O.
#[derive(Debug, Default)]
struct State {
    all: BTreeMap<Wanted, Entry>,
    /// What is not asked for any more, and since when: the node may still hold it.
    left: BTreeMap<Wanted, Duration>,
}

#[derive(Debug)]
struct Entry {
    asked: Duration,
    used: Duration,
    /// Watches that are open.
    watched: usize,
}

/// A watch of something that was asked for. It is in use until this is dropped.
pub struct Watched {
    wants: Wants,
    all: Vec<Wanted>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let now = self.wants.0.times.now();
        self.wants.0.state.lock().end_watch(&self.all, now);
    }
}

/// What becomes of a question for something that is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comes {
    /// It was not asked for before: the hub is to be told.
    Now,
    /// It is on its way.
    Soon,
    /// It does not come.
    Not,
}

impl Wants {
    /// What was asked for before, as the node's disk says.
    pub fn open(keep: Keep, reports: Reports, times: Times) -> Self {
        let state = State::of(&read(&keep), times.now());
        Self(Arc::new(Shared {
            keep,
            reports,
            times,
            state: Mutex::new(state),
            changed: Notify::new(),
        }))
    }

    /// A client asks for something that is not here, and may have it. Says whether it comes.
    pub fn brings(&self, resource: &Resource, range: &Range) -> bool {
        if !self.is_told() {
            return false;
        }
        let wanted = Wanted {
            resource: resource.clone(),
            range: range.clone(),
        };
        let comes = self.0.state.lock().ask(wanted, self.0.times.now());
        if comes == Comes::Now {
            self.0.changed.notify_one();
        }
        comes != Comes::Not
    }

    /// A client was answered with something that is here.
    pub fn uses(&self, resource: &Resource, range: &Range) {
        let mut state = self.0.state.lock();
        let again = state.touch(resource, range, self.0.times.now());
        drop(state);
        if again {
            self.0.changed.notify_one();
        }
    }

    /// A client that was answered with something that is here watches it, if it was asked for.
    pub fn watches(&self, resource: &Resource, range: &Range) -> Option<Watched> {
        let all = self.0.state.lock().begin_watch(resource, range);
        let wants = self.clone();
        (!all.is_empty()).then_some(Watched { wants, all })
    }

    /// Tells hubs what is asked for, until the shutdown.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Infallible> {
        let mut sessions = self.0.reports.sessions();
        let mut told = Ok(());
        loop {
            let wait = match &told {
                Ok(()) => LOOK_EVERY,
                Err(_) => AGAIN,
            };
            let look = self.0.times.moment(self.0.times.now() + wait);
            tokio::select! {
                changed = sessions.changed() => if changed.is_err() { return Ok(()) },
                () = self.0.changed.notified() => self.keep().await,
                () = self.0.times.clock().sleep_until(look) => {
                    if self.look() {
                        self.keep().await;
                    } else if told.is_ok() {
                        continue;
                    }
                }
                () = shutdown.triggered() => return Ok(()),
            }
            told = self.tell().await;
            if let Err(error) = &told {
                warn!(%error, "the hub is not told what clients ask for");
            }
        }
    }

    /// Ends what was not used for long, and asks again for what did not go. Without a hub nothing
    /// can go. Says whether hubs are to be told something else.
    fn look(&self) -> bool {
        if !self.is_told() {
            return false;
        }
        let reader = self.0.keep.reader();
        let held = |wanted: &Wanted| {
            let scopes = reader.scopes(&wanted.resource);
            let mut scopes = scopes.iter();
            scopes.any(|held| holds(&held.scope.range, &wanted.range))
        };
        let now = self.0.times.now();
        let mut state = self.0.state.lock();
        let stayed = state.look_at_left(now, held);
        state.end_unused(now) || stayed
    }

    /// Whether there is a hub that takes it.
    fn is_told(&self) -> bool {
        matches!(self.0.reports.hub(), Hub::Takes { scopes: true, .. })
    }

    async fn tell(&self) -> Result<(), NotKept> {
        if !self.is_told() {
            return Ok(());
        }
        // Also that it is nothing: a hub may remember what was asked for long ago, by a store that
        // was here before.
        let wants = self.0.state.lock().list();
        self.0.reports.tell(Statement::Wants(wants)).await
    }

    /// Keeps it for the time after a restart. Without that it is asked for again.
    async fn keep(&self) {
        let wants = self.0.state.lock().kept();
        let bytes = Statement::Wants(wants).encode();
        if let Err(error) = self.0.keep.put_own(DOCUMENT, Some(bytes)).await {
            warn!(%error, "what clients ask for is not on disk");
        }
    }
}

fn read(keep: &Keep) -> Vec<Wanted> {
    let Ok(Some(bytes)) = keep.reader().document(DOCUMENT) else {
        return Vec::new();
    };
    match Statement::decode(Queue::Leases, &bytes) {
        Ok(Statement::Wants(wants)) => wants,
        _ => Vec::new(),
    }
}

impl State {
    fn of(wants: &[Wanted], now: Duration) -> Self {
        let entry = |wanted: &Wanted| {
            let entry = Entry::new(now);
            (wanted.clone(), entry)
        };
        Self {
            all: wants.iter().map(entry).collect(),
            left: BTreeMap::new(),
        }
    }

    fn ask(&mut self, wanted: Wanted, now: Duration) -> Comes {
        if let Some(entry) = self.all.get_mut(&wanted) {
            entry.used = now;
            if now < entry.asked + COMES_WITHIN {
                return Comes::Soon;
            }
            if now < entry.asked + ASKED_AGAIN {
                return Comes::Not;
            }
            entry.asked = now;
            return Comes::Now;
        }
        if self.all.len() >= WANTED_MAX && !self.make_room(now) {
            return Comes::Not;
        }
        self.left.remove(&wanted);
        self.all.insert(wanted, Entry::new(now));
        Comes::Now
    }

    /// Something was used. Says whether it has to be asked for again.
    fn touch(&mut self, resource: &Resource, range: &Range, now: Duration) -> bool {
        let is = |wanted: &Wanted| wanted.resource == *resource && holds(&wanted.range, range);
        for (wanted, entry) in &mut self.all {
            if is(wanted) {
                entry.used = now;
            }
        }
        let left: Vec<Wanted> = self.left.keys().filter(|it| is(it)).cloned().collect();
        let mut again = false;
        for wanted in left {
            again |= self.ask(wanted, now) == Comes::Now;
        }
        again
    }

    /// A watch begins. Returns of what: it stays until that ends.
    fn begin_watch(&mut self, resource: &Resource, range: &Range) -> Vec<Wanted> {
        let mut begun = Vec::new();
        for (wanted, entry) in &mut self.all {
            if wanted.resource == *resource && holds(&wanted.range, range) {
                entry.watched += 1;
                begun.push(wanted.clone());
            }
        }
        begun
    }

    fn end_watch(&mut self, all: &[Wanted], now: Duration) {
        for wanted in all {
            let entry = self.all.get_mut(wanted);
            let entry = entry.expect("what is watched stays");
            entry.watched -= 1;
            entry.used = now;
        }
    }

    /// Ends what was not used for long. Says whether there was anything.
    fn end_unused(&mut self, now: Duration) -> bool {
        let idle = |_: &Wanted, entry: &mut Entry| entry.is_idle(USED_WITHIN, now);
        let ended: Vec<Wanted> = self.all.extract_if(.., idle).map(|(it, _)| it).collect();
        let any = !ended.is_empty();
        ended.into_iter().for_each(|wanted| self.leave(wanted, now));
        any
    }

    /// It is not asked for any more. What was left long ago makes room.
    fn leave(&mut self, wanted: Wanted, now: Duration) {
        if self.left.len() >= WANTED_MAX {
            let oldest = self.left.iter().min_by_key(|(_, since)| **since);
            if let Some(oldest) = oldest.map(|(wanted, _)| wanted.clone()) {
                self.left.remove(&oldest);
            }
        }
        self.left.insert(wanted, now);
    }

    /// Forgets what is not held any more, and asks again for what should have gone by now. Says
    /// whether there was any of that.
    fn look_at_left(&mut self, now: Duration, held: impl Fn(&Wanted) -> bool) -> bool {
        self.left.retain(|wanted, _| held(wanted));
        let stays = |_: &Wanted, since: &mut Duration| now >= *since + LOOK_EVERY;
        let stayed: Vec<Wanted> = self.left.extract_if(.., stays).map(|(it, _)| it).collect();
        let mut again = false;
        for wanted in stayed {
            match self.ask(wanted.clone(), now) {
                Comes::Now => again = true,
                // There is no room: later.
                _ => self.leave(wanted, now),
            }
        }
        again
    }

    /// What waits longest to be used makes room, if it was not used for a while.
    fn make_room(&mut self, now: Duration) -> bool {
        let idle = self.all.iter();
        let idle = idle.filter(|(_, entry)| entry.is_idle(ASKED_AGAIN, now));
        let oldest = idle.min_by_key(|(_, entry)| entry.used);
        match oldest.map(|(wanted, _)| wanted.clone()) {
            Some(wanted) => {
                self.all.remove(&wanted);
                self.leave(wanted, now);
                true
            }
            None => false,
        }
    }

    fn list(&self) -> Vec<Wanted> {
        self.all.keys().cloned().collect()
    }

    /// What is remembered over a restart: what was left is asked for again then.
    fn kept(&self) -> Vec<Wanted> {
        let all = self.all.keys().chain(self.left.keys());
        all.take(WANTED_MAX).cloned().collect()
    }
}

impl Entry {
    fn new(now: Duration) -> Self {
        Self {
            asked: now,
            used: now,
            watched: 0,
        }
    }

    /// Whether nobody used it for so long.
    fn is_idle(&self, long: Duration, now: Duration) -> bool {
        self.watched == 0 && now >= self.used + long
    }
}

/// Whether one part of a resource holds another.
fn holds(one: &Range, other: &Range) -> bool {
    match (one, other) {
        (Range::All, _) => true,
        (Range::Namespace(namespace), Range::Name(name)) => **namespace == *name.namespace(),
        (one, other) => one == other,
    }
}
