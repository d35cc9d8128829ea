//! An agent: the real keeping and coming back, over a disk that forgets what was not synced.

use std::sync::Arc;
use std::time::Duration;

use edge::keep::Keep;
use edge::reconnect::{Attempt, Lasted, Reconnect};
use host::clock::Hands;
use host::{Clock, Times};
use jiff::Timestamp;
use object::{Resource, Scope};
use store::disk::lossy::LossyDisk;
use store::replica::Refusal;
use store::{Options, Replica};
use wire::frame::{Asides, Hello, Holding, Noted};
use wire::session::{PROTOCOL_NEWEST, PROTOCOL_OLDEST};

use crate::around::{Around, Lacks};
use crate::client::Client;
use crate::disk;
use crate::objects::{self, NODES};
use crate::records::at_once;
use crate::release::Release;
use crate::report::Desk;
use crate::talk::{Closed, Talk};
use crate::trace::trace;

/// How long it may take to reach a hub.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long to wait when the store refused.
const STORE_WAIT: Duration = Duration::from_secs(10);
/// How many hubs each agent knows.
pub(crate) const HUBS: usize = 2;

/// A machine with an agent on it.
pub(crate) struct Machine {
    pub(crate) number: usize,
    pub(crate) node: &'static str,
    pub(crate) clock: Clock,
    pub(crate) hands: Hands,
    pub(crate) disk: LossyDisk,
    pub(crate) running: Option<Running>,
    pub(crate) starts_at: Duration,
    pub(crate) paused_until: Duration,
    /// Whether it is there at all: a clone is not always.
    pub(crate) exists: bool,
    pub(crate) disk_delay: Duration,
    /// What was on the disk for certain when the process was last asked.
    pub(crate) kept: Kept,
    pub(crate) clients: Vec<Client>,
    /// What was once there and must stay for ever.
    pub(crate) steady: Vec<Resource>,
    /// The disk as it was once, and what it lacked.
    pub(crate) copy: Option<(disk::Copy, Lacks)>,
    /// What was looked at already.
    pub(crate) checked: Vec<Holding>,
    pub(crate) desk: Desk,
}

/// What a store shows, and how sure that is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    pub(crate) holdings: Vec<Holding>,
    staged: Vec<(Resource, Scope)>,
    documents: Vec<Noted>,
    /// Whether the process died, or failed, while it stored something: then more may be there.
    unsure: bool,
}

impl Kept {
    /// Nothing is known of the disk.
    pub(crate) fn unknown() -> Self {
        Self {
            unsure: true,
            ..Self::default()
        }
    }

    /// Nothing is known of a resource.
    pub(crate) fn forget(&mut self, resource: &Resource) {
        self.holdings.retain(|it| it.resource != *resource);
        self.staged.retain(|(of, _)| of != resource);
    }
}

/// The agent's process.
pub(crate) struct Running {
    pub(crate) keep: Keep,
    pub(crate) times: Times,
    pub(crate) release: Release,
    reconnect: Reconnect,
    phase: Phase,
}

enum Phase {
    Waiting(Duration),
    /// Nobody answers.
    Dialling(Duration),
    Talking(Box<Talk>),
}

impl Machine {
    pub(crate) fn new(number: usize) -> Self {
        let (clock, hands) = Clock::manual(Timestamp::UNIX_EPOCH);
        let node = NODES[number % NODES.len()];
        let clients = objects::resources().map(|resource| Client::new(node, resource));
        Self {
            number,
            node,
            clock,
            hands,
            disk: LossyDisk::default(),
            running: None,
            starts_at: Duration::ZERO,
            paused_until: Duration::ZERO,
            exists: number < NODES.len(),
            disk_delay: Duration::ZERO,
            kept: Kept::default(),
            clients: clients.into(),
            steady: Vec::new(),
            copy: None,
            checked: Vec::new(),
            desk: Desk::new(100 * number as u64 + 1),
        }
    }

    /// Whatever is next.
    pub(crate) fn turn(&mut self, around: &mut Around) {
        if !self.exists || around.now < self.paused_until {
            return;
        }
        if self.running.is_none() && around.now >= self.starts_at {
            self.start(around);
        }
        let Some(mut running) = self.running.take() else {
            return;
        };
        // A clone has nothing to say.
        if !around.healed && self.number < NODES.len() && around.chance.one_in(3) {
            self.desk.push(&mut around.chance);
        }
        self.desk.sync(around.now, self.disk_delay);
        match running.turn(self, around) {
            Ok(()) => self.running = Some(running),
            Err(died) => {
                // What a process was about to do when it died is never known.
                self.kept.unsure = true;
                running.hang_up(around, died);
                self.die(died, around);
            }
        }
    }

    /// The process ends at once, from outside.
    pub(crate) fn kill(&mut self, died: Died, around: &mut Around) {
        if let Some(running) = self.running.take() {
            running.hang_up(around, died);
        }
        self.die(died, around);
    }

    fn die(&mut self, died: Died, around: &mut Around) {
        trace(|| format!("agent{} dies: {died:?}", self.number));
        self.running = None;
        let chance = &mut around.chance;
        self.disk.crash(|| match died {
            Died::Process => true,
            Died::Machine => chance.one_in(2),
        });
        self.desk.die(died, &mut around.chance);
        self.starts_at = around.now + around.chance.millis(5_000);
        for client in &mut self.clients {
            client.cut_off();
        }
    }

    fn start(&mut self, around: &mut Around) {
        let mut options = Options::new(self.node);
        options.compact_bytes_min = 6_000;
        let (disk, clock) = (Arc::new(self.disk.clone()), self.clock.clone());
        let (opened, place) = disk::with(&self.disk, || Replica::open_here(disk, options, clock));
        if let Some(place) = place {
            around.seen.note(place);
            return self.die(Died::Machine, around);
        }
        let replica = match opened {
            Ok(replica) => replica,
            Err(error) if around.healed => panic!("agent{}: {error}", self.number),
            Err(error) => {
                trace(|| format!("agent{} does not open: {error}", self.number));
                self.disk.heal();
                return self.die(Died::Process, around);
            }
        };
        let keep = Keep::new(replica);
        trace(|| format!("agent{} starts", self.number));
        assert!(keep.reader().damaged().is_empty(), "nothing was damaged");
        self.forget_what_went(&keep, around);
        self.check_kept(&keep);
        self.note_kept(&keep);
        let release = Release::drawn(around.mixed && !around.healed, &mut around.chance);
        if release < Release::Now {
            around.seen.note("agent of an older release");
        }
        self.running = Some(Running {
            release,
            keep,
            times: Times::new(self.clock.clone()),
            reconnect: Reconnect::new(HUBS, around.chance.number()),
            phase: Phase::Waiting(around.now),
        });
    }

    /// A process that died, or failed, while it stored something may have forgotten a resource
    /// before that: what it held and what the hub has are of two histories.
    fn forget_what_went(&mut self, keep: &Keep, around: &mut Around) {
        if !self.kept.unsure {
            return;
        }
        let found = keep.holdings();
        let stands = |resource: &Resource, holding: &Holding| {
            holding.resource == *resource && holding.standing.is_some()
        };
        let before = self.kept.holdings.iter();
        let before = before.filter(|before| before.standing.is_some());
        let gone = before.filter(|it| !found.iter().any(|found| stands(&it.resource, found)));
        let gone: Vec<Resource> = gone.map(|gone| gone.resource.clone()).collect();
        for resource in &gone {
            self.forget_one(resource, around);
        }
    }

    /// I3: what was on disk is there, after whatever happened.
    fn check_kept(&self, keep: &Keep) {
        let found = keep.holdings();
        if !self.kept.unsure {
            assert_eq!(found, self.kept.holdings, "what was stored is there");
            assert_eq!(keep.reader().staged(), self.kept.staged, "and staged");
            assert_eq!(keep.documents(), self.kept.documents, "and documents");
            return;
        }
        for before in &self.kept.holdings {
            let after = found.iter().find(|it| it.resource == before.resource);
            let after = after.expect("a resource stays");
            let shown = |holding: &Holding| {
                let standing = holding.standing.as_ref();
                standing.map(|standing| standing.shown().clone())
            };
            let back = after.epoch == before.epoch && shown(after) < shown(before);
            assert!(!back, "{} went back: {before:?} {after:?}", before.resource);
        }
    }

    pub(crate) fn note_kept(&mut self, keep: &Keep) {
        self.kept = Kept {
            holdings: keep.holdings(),
            staged: keep.reader().staged(),
            documents: keep.documents(),
            unsure: false,
        };
    }
}

/// How an agent ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Died {
    /// The process: what it wrote is in the machine's memory.
    Process,
    /// The machine: what was not synced may be lost.
    Machine,
}

impl Running {
    pub(crate) fn talk(&self) -> Option<&Talk> {
        match &self.phase {
            Phase::Talking(talk) => Some(talk),
            _ => None,
        }
    }

    /// Whether nothing is held of a resource, and nothing is known of what was.
    pub(crate) fn has_forgotten(&self, resource: &Resource) -> bool {
        let held = self.keep.reader().holding(resource);
        held.is_none_or(|held| held.standing.is_none() && held.objects == 0)
    }

    /// Does something with the store, and says whether that ended the process.
    pub(crate) fn ask<T>(
        &self,
        machine: &mut Machine,
        around: &mut Around,
        ask: impl FnOnce(&Keep) -> T,
    ) -> Result<T, Died> {
        let disk = machine.disk.clone();
        let (done, place) = disk::with(&disk, || ask(&self.keep));
        if let Some(place) = place {
            trace(|| format!("agent{} at {place}", machine.number));
            around.seen.note(place);
            return Err(match around.chance.one_in(2) {
                true => Died::Machine,
                false => Died::Process,
            });
        }
        match self.keep.reader().is_writable() {
            true => machine.note_kept(&self.keep),
            // After a failed sync nobody knows what is on disk.
            false => machine.kept.unsure = true,
        }
        Ok(done)
    }

    fn turn(&mut self, machine: &mut Machine, around: &mut Around) -> Result<(), Died> {
        match &self.phase {
            Phase::Waiting(until) if around.now >= *until => self.connect(machine, around),
            Phase::Dialling(until) if around.now >= *until => {
                self.come_back(Attempt::Failed, around);
                Ok(())
            }
            Phase::Waiting(_) | Phase::Dialling(_) => Ok(()),
            Phase::Talking(_) => self.go_on(machine, around),
        }
    }

    fn go_on(&mut self, machine: &mut Machine, around: &mut Around) -> Result<(), Died> {
        let now = Phase::Waiting(around.now);
        let Phase::Talking(mut talk) = std::mem::replace(&mut self.phase, now) else {
            return Ok(());
        };
        match talk.turn(self, machine, around)? {
            None => {
                self.phase = Phase::Talking(talk);
                Ok(())
            }
            Some(closed) => {
                trace(|| format!("agent{} session over: {closed:?}", machine.number));
                talk.finish(self, machine, around)?;
                talk.leave(&closed, around);
                if matches!(closed, Closed::NotStored(_)) {
                    around.seen.note("not stored");
                    // Systemd starts it anew.
                    if !self.keep.reader().is_writable() {
                        return Err(Died::Machine);
                    }
                }
                let lasted = self.times.now().saturating_sub(talk.began);
                let lasted = Lasted {
                    greeted: talk.is_greeted().then_some(lasted),
                    brought: false,
                };
                self.come_back(closed.attempt(lasted), around);
                Ok(())
            }
        }
    }

    fn come_back(&mut self, attempt: Attempt, around: &mut Around) {
        let wait = self.reconnect.after(attempt, around.chance.number());
        self.phase = Phase::Waiting(around.now + wait);
    }

    fn connect(&mut self, machine: &mut Machine, around: &mut Around) -> Result<(), Died> {
        let hub = self.reconnect.hub();
        let path = around.paths[machine.number][hub];
        if !path.down || !path.up {
            self.phase = Phase::Dialling(around.now + CONNECT_TIME_MAX);
            return Ok(());
        }
        if !around.listening[hub] {
            self.come_back(Attempt::Failed, around);
            return Ok(());
        }
        let number = self.ask(machine, around, |keep| at_once(keep.next_session()))?;
        let session = match number {
            Ok(number) => number,
            Err(refusal) if !self.keep.reader().is_writable() => {
                trace(|| format!("agent{} gives up: {refusal}", machine.number));
                return Err(Died::Machine);
            }
            Err(_) => {
                around.seen.note("not stored");
                self.come_back(Attempt::SentAway { wait: STORE_WAIT }, around);
                return Ok(());
            }
        };
        let staged = match self.release {
            Release::First => Vec::new(),
            Release::Second | Release::Now => self.keep.staged(),
        };
        let kept = staged.clone();
        let unstaged = self.ask(machine, around, move |keep| {
            at_once(keep.unstage_all_but(&kept))
        })?;
        if unstaged.is_err() {
            around.seen.note("not stored");
            self.come_back(Attempt::SentAway { wait: STORE_WAIT }, around);
            return Ok(());
        }
        let hello = Hello {
            oldest: PROTOCOL_OLDEST,
            newest: PROTOCOL_NEWEST,
            session,
            features: self.release.features(),
            program: "sim".into(),
            holdings: self.keep.holdings(),
            machine: wire::frame::Machine::default(),
            staged,
            documents: match self.release {
                Release::Now => self.keep.documents(),
                Release::First | Release::Second => Vec::new(),
            },
            aside: match self.release {
                Release::Now => self.keep.aside(),
                Release::First | Release::Second => Asides::default(),
            },
        };
        machine.desk.lost();
        let link = around.open(machine.number, hub);
        let talk = Talk::new(link, hello, self.times.now());
        self.phase = Phase::Talking(Box::new(talk));
        Ok(())
    }

    /// The process is gone: the hub is told by its machine, if that is still there.
    fn hang_up(&self, around: &mut Around, died: Died) {
        let Some(talk) = self.talk() else { return };
        let now = around.now;
        if let Some(link) = around.links.get_mut(&talk.link) {
            link.agent_has = false;
            match died {
                Died::Process => link.up.close(now),
                Died::Machine => link.up.silent = true,
            }
        }
    }
}

impl Closed {
    fn attempt(&self, lasted: Lasted) -> Attempt {
        match self {
            Self::Told(bye) => {
                let wait = Duration::from_secs(bye.wait_seconds);
                match bye.reason {
                    wire::frame::Reason::Stopping if wait.is_zero() => Attempt::Lost(lasted),
                    _ => Attempt::SentAway { wait },
                }
            }
            Self::NotStored(Refusal::Misbehaved(_)) => Attempt::Lost(lasted),
            Self::NotStored(_) => Attempt::SentAway { wait: STORE_WAIT },
            Self::Lost | Self::Silent => Attempt::Lost(lasted),
        }
    }
}
