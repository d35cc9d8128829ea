//! What to do next to follow a resource, and what came of it. No I/O and no clock: the loop around
//! it does what [`Follower::next`] says and tells it what happened.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use object::{Change, Header, Object, ObjectName, Resource, Version};

use super::backoff::{Dice, wait};
use super::{Told, WATCH_TIME_MIN, guard};
use crate::cache::{Applied, Cache, Misfit};
use crate::cluster::{Error, Paging};
use wire::outbox::Source;

/// How long before a list that is not believed is asked for again.
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// How long before something is asked again that was forbidden or is not there.
const FORBIDDEN_WAIT: Duration = Duration::from_secs(30);
/// A watch that was ended sooner was not worth asking for.
const WATCH_WORTH: Duration = Duration::from_secs(5);
/// How old a list may be before another is asked for, spread up to twice as long. A watch that
/// leaves something out, or goes on in another history that was restored, says nothing of it; a
/// list shows it.
const LIST_AGE_MAX: Duration = Duration::from_secs(6 * 3600);
/// The longest that a server's own word on when to come again is heeded.
const TOLD_WAIT_MAX: Duration = Duration::from_secs(60);

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// List everything, consistently.
    List(Paging),
    /// Look at which version the cluster is, by a consistent read: it may have gone back.
    Look,
    /// Watch from this version.
    Watch(Version),
    /// Nothing, until this moment or until an epoch begins.
    Wait(Instant),
}

/// Why something failed, as far as it matters for what is next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// What was asked for lies too far back.
    Expired,
    /// It is forbidden, or there is no such resource. A person may change that.
    Refused(String),
    /// The server wants us to come later.
    Later(Duration, String),
    /// The server has not reached the version that was asked for: it is behind others, or the
    /// cluster has gone back.
    Ahead(String),
    /// Anything else.
    Broken(String),
}

impl Failure {
    /// What an error means for the one who follows.
    pub fn of(error: &Error) -> Self {
        let words = host::chain(error);
        match error {
            Error::Refused(status) if status.is_expired() => Self::Expired,
            Error::Refused(status) if status.is_ahead => Self::Ahead(words),
            Error::Refused(status) => match (status.code, status.retry_after) {
                (401 | 403 | 404 | 405, _) => Self::Refused(words),
                (_, Some(after)) => Self::Later(after, words),
                _ => Self::Broken(words),
            },
            Error::Config(_) => Self::Refused(words),
            _ => Self::Broken(words),
        }
    }
}

/// Follows one resource.
#[derive(Debug)]
pub struct Follower {
    resource: Resource,
    epoch: u64,
    phase: Phase,
    wait_until: Option<Instant>,
    /// Failures in a row.
    failures: u32,
    paging: Paging,
    /// What the list before lacked, which was not believed.
    lacked: BTreeSet<ObjectName>,
    /// A consistent read was below what is known.
    went_back: bool,
    /// When another list is due, though nothing went wrong.
    list_due: Option<Instant>,
    /// When the watch began that is being read.
    watch_since: Option<Instant>,
    passed_over: u64,
    dice: Dice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A list is due.
    List,
    /// A list is being read.
    Listing,
    /// A look is due before the next watch.
    Look,
    /// A watch is due.
    Watch,
    /// A watch is being read.
    Watching,
}

impl Follower {
    /// One that knows nothing yet.
    pub fn new(resource: Resource, epoch: u64, dice: Dice) -> Self {
        Self {
            resource,
            epoch,
            phase: Phase::List,
            wait_until: None,
            failures: 0,
            paging: Paging::Pages,
            lacked: BTreeSet::new(),
            went_back: false,
            list_due: None,
            watch_since: None,
            passed_over: 0,
            dice,
        }
    }

    /// What to do now.
    pub fn next(&mut self, cache: &Cache, now: Instant) -> Act {
        if cache.epoch() != self.epoch {
            let passed_over = self.passed_over;
            *self = Self::new(self.resource.clone(), cache.epoch(), self.dice.clone());
            self.passed_over = passed_over;
        }
        if let Some(until) = self.wait_until.filter(|until| *until > now) {
            return Act::Wait(until);
        }
        self.wait_until = None;
        if self.phase == Phase::Watch && self.list_due.is_some_and(|due| due <= now) {
            self.phase = Phase::List;
        }
        match (self.phase, cache.version(&self.resource)) {
            (Phase::List | Phase::Listing, _) | (_, None) => Act::List(self.paging),
            (Phase::Look, Some(_)) => Act::Look,
            (Phase::Watch | Phase::Watching, Some(version)) => Act::Watch(version.clone()),
        }
    }

    /// A list begins.
    pub fn list_started(&mut self, cache: &mut Cache) {
        self.phase = Phase::Listing;
        cache.list_started(&self.resource);
    }

    /// An object was listed.
    pub fn listed(&mut self, cache: &mut Cache, object: Object) {
        cache.listed(&self.resource, object);
    }

    /// An object could not be kept, and is left out.
    pub fn passed_over(&mut self) {
        self.passed_over += 1;
    }

    /// How many objects were left out because they could not be kept.
    pub fn left_out(&self) -> u64 {
        self.passed_over
    }

    /// The list is whole.
    pub fn list_done(
        &mut self,
        cache: &mut Cache,
        version: &Version,
        now: Instant,
    ) -> Option<Told> {
        let known = cache.version(&self.resource).cloned();
        // An object never goes back within its life, but a backup may have brought back an older
        // one, though revisions were raised above all that were.
        let back = match known.filter(|known| known > version) {
            Some(known) => Some((known, version.clone())),
            None => cache.went_back(&self.resource),
        };
        if let Some((known, found)) = back {
            cache.list_dropped(&self.resource);
            self.phase = Phase::List;
            return self.back(now, known, &found);
        }
        self.went_back = false;
        if !self.believes(cache) {
            let missing = cache.missing(&self.resource);
            self.lacked = missing.iter().map(|header| header.name.clone()).collect();
            cache.list_dropped(&self.resource);
            self.phase = Phase::List;
            self.wait_until = Some(now + SECOND_LOOK);
            let why = "a list lacked more than half of something, and is asked for once more";
            cache.freeze(&self.resource, now, why);
            return Some(Told::Frozen(self.resource.clone()));
        }
        self.lacked.clear();
        self.paging = Paging::Pages;
        self.phase = Phase::Watch;
        self.list_due = Some(now + LIST_AGE_MAX.mul_f64(1.0 + self.dice.roll()));
        let relisted = cache.list_done(&self.resource, version);
        Some(Told::Listed(self.resource.clone(), relisted))
    }

    /// A consistent read found the cluster at this version.
    pub fn looked(&mut self, cache: &Cache, version: &Version) {
        let below = cache
            .version(&self.resource)
            .is_some_and(|known| version < known);
        self.went_back |= below;
        self.phase = match below {
            true => Phase::List,
            false => Phase::Watch,
        };
    }

    /// A watch has begun.
    pub fn watch_started(&mut self, cache: &mut Cache, now: Instant) -> Option<Told> {
        self.phase = Phase::Watching;
        self.watch_since = Some(now);
        let was = cache.state(&self.resource);
        cache.thaw(&self.resource);
        let thawed = was != cache.state(&self.resource);
        thawed.then(|| Told::Thawed(self.resource.clone()))
    }

    /// An object is like this from now on.
    pub fn put(&mut self, cache: &mut Cache, object: Object) -> Option<Told> {
        let applied = cache.apply(&self.resource, Change::Put(object));
        self.applied(applied)
    }

    /// An object went: this is what it was, at the version at which it went.
    pub fn delete(&mut self, cache: &mut Cache, header: &Header) -> Option<Told> {
        let change = Change::Delete {
            name: header.name.clone(),
            uid: header.uid.clone(),
            version: header.version.clone(),
        };
        self.went(cache, change)
    }

    /// The same, of which only the word is known that it went.
    pub fn went(&mut self, cache: &mut Cache, gone: Change) -> Option<Told> {
        let applied = cache.apply(&self.resource, gone);
        self.applied(applied)
    }

    /// Everything up to this version was told.
    pub fn bookmark(&mut self, cache: &mut Cache, version: &Version) -> Option<Told> {
        if cache
            .version(&self.resource)
            .is_none_or(|known| version < known)
        {
            // A watch never goes back; whether the cluster did, a list will say.
            self.phase = Phase::List;
            return None;
        }
        self.failures = 0;
        cache.advance(&self.resource, version);
        Some(Told::Advanced(self.resource.clone()))
    }

    /// Whether the watch that was begun may go on.
    pub fn is_watching(&self) -> bool {
        self.phase == Phase::Watching
    }

    /// The server ended the watch: the next one begins where it stood. Where it ended before its
    /// time, the server may have stopped and come back with another history: a watch from a
    /// version that is not there yet would wait for it and tell nothing.
    pub fn watch_ended(&mut self, now: Instant) {
        let began = self.watch_since.take();
        let lasted = began.map(|began| now.saturating_duration_since(began));
        self.phase = match lasted.is_some_and(|lasted| lasted >= WATCH_TIME_MIN) {
            true => Phase::Watch,
            false => Phase::Look,
        };
        if lasted.is_some_and(|lasted| lasted >= WATCH_WORTH) {
            self.failures = 0;
            return;
        }
        // One that is ended at once, again and again, must not be asked for without a breath.
        self.wait_until = Some(now + wait(self.failures, self.dice.roll()));
        self.failures = self.failures.saturating_add(1);
    }

    /// What was tried failed. What is known stays; it is frozen.
    pub fn failed(&mut self, cache: &mut Cache, failure: Failure, now: Instant) -> Option<Told> {
        cache.list_dropped(&self.resource);
        let spread = self.dice.roll();
        let mut pause = wait(self.failures, spread);
        self.failures = self.failures.saturating_add(1);
        let listing = matches!(self.phase, Phase::List | Phase::Listing);
        self.phase = match (listing, &failure) {
            (true, Failure::Expired) => {
                // It took longer than the server remembers; at once it needs not to.
                self.paging = Paging::Whole;
                Phase::List
            }
            // By the time of a look the cluster may have passed that version, and what is known
            // would still be of a history that ended.
            (true, _) | (false, Failure::Expired | Failure::Ahead(_)) => Phase::List,
            // Whatever broke it may have been the cluster being restored.
            (false, _) => Phase::Look,
        };
        let why = match failure {
            Failure::Expired => "the cluster does not remember what is known any more".to_owned(),
            Failure::Refused(why) => {
                pause = FORBIDDEN_WAIT.mul_f64(1.0 + spread);
                why
            }
            Failure::Later(after, why) => {
                pause += after.min(TOLD_WAIT_MAX);
                why
            }
            Failure::Ahead(why) | Failure::Broken(why) => why,
        };
        self.wait_until = Some(now + pause);
        cache.freeze(&self.resource, now, &why);
        Some(Told::Frozen(self.resource.clone()))
    }

    /// What spreads this one's doings in time.
    pub fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }

    /// A consistent read below what is known is believed when a second one says the same.
    fn back(&mut self, now: Instant, known: Version, found: &Version) -> Option<Told> {
        if !self.went_back {
            self.went_back = true;
            self.wait_until = Some(now + SECOND_LOOK);
            return None;
        }
        // Said again after a while, if nothing came of it.
        self.wait_until = Some(now + FORBIDDEN_WAIT);
        Some(Told::Rewound {
            resource: self.resource.clone(),
            known,
            found: found.clone(),
        })
    }

    fn believes(&self, cache: &Cache) -> bool {
        let missing = cache.missing(&self.resource);
        if missing.is_empty() {
            return true;
        }
        let all = cache.headers(&self.resource, &[object::Scope::all()]);
        guard::is_believed(&all, &missing, &self.lacked)
    }

    fn applied(&mut self, applied: Result<Applied, Misfit>) -> Option<Told> {
        match applied {
            Ok(applied) => {
                self.failures = 0;
                let resource = self.resource.clone();
                Some(match applied.is_change() {
                    true => Told::Changed(resource, vec![applied]),
                    false => Told::Advanced(resource),
                })
            }
            // What comes out of order cannot be put in order: everything is asked for anew.
            Err(Misfit::OutOfOrder(_) | Misfit::NotListed(_)) => {
                self.phase = Phase::List;
                None
            }
        }
    }
}
