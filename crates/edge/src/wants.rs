//! What clients on the node ask for that no node holds by itself: the hub is told, and carries it
//! here as far as an account of a pod on the node may have it. What is not used for long goes.

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
use crate::reports::{Hub, Reports};

/// How long what was asked for is thought to be on its way, so that clients wait a moment for it.
/// What did not come by then is not given, or is too much: the cluster is asked instead.
const COMES_WITHIN: Duration = Duration::from_secs(15);
/// When the hub is asked again for what did not come.
const ASKED_AGAIN: Duration = Duration::from_secs(600);
/// What nobody used for so long is not carried any more. No watch lasts longer: one that is open is
/// begun again before.
const USED_WITHIN: Duration = Duration::from_secs(7200);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(300);
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
    /// Whether a hub may know of something.
    said: bool,
}

#[derive(Debug)]
struct Entry {
    asked: Duration,
    used: Duration,
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
        if !matches!(self.0.reports.hub(), Hub::Takes { scopes: true, .. }) {
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
        state.touch(resource, range, self.0.times.now());
    }

    /// Tells hubs what is asked for, until the shutdown.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Infallible> {
        let mut sessions = self.0.reports.sessions();
        loop {
            let look = self.0.times.moment(self.0.times.now() + LOOK_EVERY);
            tokio::select! {
                changed = sessions.changed() => if changed.is_err() { return Ok(()) },
                () = self.0.changed.notified() => self.keep().await,
                () = self.0.times.clock().sleep_until(look) => {
                    if !self.0.state.lock().end_unused(self.0.times.now()) {
                        continue;
                    }
                    self.keep().await;
                }
                () = shutdown.triggered() => return Ok(()),
            }
            self.tell().await;
        }
    }

    async fn tell(&self) {
        if !matches!(self.0.reports.hub(), Hub::Takes { scopes: true, .. }) {
            return;
        }
        let wants = {
            let mut state = self.0.state.lock();
            if state.all.is_empty() && !state.said {
                return;
            }
            state.said = true;
            state.list()
        };
        if let Err(error) = self.0.reports.tell(Statement::Wants(wants)).await {
            warn!(%error, "the hub is not told what clients ask for");
        }
    }

    /// Keeps it for the time after a restart. Without that it is asked for again.
    async fn keep(&self) {
        let wants = self.0.state.lock().list();
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
            let entry = Entry {
                asked: now,
                used: now,
            };
            (wanted.clone(), entry)
        };
        Self {
            all: wants.iter().map(entry).collect(),
            said: !wants.is_empty(),
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
        let entry = Entry {
            asked: now,
            used: now,
        };
        self.all.insert(wanted, entry);
        Comes::Now
    }

    fn touch(&mut self, resource: &Resource, range: &Range, now: Duration) {
        for (wanted, entry) in &mut self.all {
            if wanted.resource == *resource && holds(&wanted.range, range) {
                entry.used = now;
            }
        }
    }

    /// Ends what was not used for long. Says whether there was anything.
    fn end_unused(&mut self, now: Duration) -> bool {
        let before = self.all.len();
        self.all.retain(|_, entry| now < entry.used + USED_WITHIN);
        self.all.len() < before
    }

    /// What waits longest to be used makes room, if it was not used for a while.
    fn make_room(&mut self, now: Duration) -> bool {
        let oldest = self.all.iter().min_by_key(|(_, entry)| entry.used);
        let oldest = oldest.filter(|(_, entry)| now >= entry.used + ASKED_AGAIN);
        match oldest.map(|(wanted, _)| wanted.clone()) {
            Some(wanted) => self.all.remove(&wanted).is_some(),
            None => false,
        }
    }

    fn list(&self) -> Vec<Wanted> {
        self.all.keys().cloned().collect()
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

#[cfg(test)]
mod tests {
    use object::ObjectName;

    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn wanted(plural: &str, range: Range) -> Wanted {
        let resource = Resource::new("example.com", plural);
        Wanted { resource, range }
    }

    #[test]
    fn what_does_not_come_is_asked_of_the_cluster_and_tried_again_later() {
        let mut state = State::default();
        let mut ask = |now| state.ask(wanted("widgets", Range::All), at(now));
        assert_eq!(ask(100), Comes::Now);
        assert_eq!(ask(114), Comes::Soon);
        assert_eq!(ask(115), Comes::Not);
        assert_eq!(ask(699), Comes::Not);
        assert_eq!(ask(700), Comes::Now);
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let widgets = wanted("widgets", Range::Namespace("a".into()));
        let gadgets = wanted("gadgets", Range::All);
        let mut state = State::of(&[widgets.clone(), gadgets], at(0));
        let name = Range::Name(ObjectName::new("a", "x"));
        state.touch(&widgets.resource, &name, at(3000));
        let other = Range::Name(ObjectName::new("b", "x"));
        state.touch(&widgets.resource, &other, at(9000));
        assert!(!state.end_unused(at(7199)));
        assert!(state.end_unused(at(7200)));
        assert_eq!(state.list(), [widgets]);
        assert!(state.end_unused(at(10200)));
        assert!(state.list().is_empty() && state.said);
    }

    #[test]
    fn there_is_room_for_so_many_and_what_lies_idle_makes_room() {
        let mut state = State::default();
        for number in 0..WANTED_MAX {
            let name = format!("k{number}");
            let comes = state.ask(wanted(&name, Range::All), at(number as u64));
            assert_eq!(comes, Comes::Now);
        }
        let one_more = || wanted("more", Range::All);
        assert_eq!(state.ask(one_more(), at(599)), Comes::Not);
        assert_eq!(state.ask(one_more(), at(600)), Comes::Now);
        assert_eq!(state.all.len(), WANTED_MAX);
        assert!(!state.all.contains_key(&wanted("k0", Range::All)));
    }
}
