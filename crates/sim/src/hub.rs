//! A hub: the real one, with a model of what feeds it and of the links to its agents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloud::cache::Limits;
use cloud::epoch::{Around as Witnessed, Verdict, Witnesses};
use cloud::epochs::Epochs;
use cloud::hub::{Happenings, Hub};
use cloud::papers::SHARED;
use cloud::talk::Desk;
use cloud::view::Policy;
use host::clock::Hands;
use host::{Clock, Times};
use jiff::Timestamp;
use object::Resource;
use wire::documents::Documents;
use wire::outbox::{Settled, Source};
use wire::session::Happening;

use crate::around::Around;
use crate::follow::{Follow, With};
use crate::objects;
use crate::owners::Publishing;
use crate::records::{Shelf, at_once};
use crate::release::Release;
use crate::server;
use crate::session::Session;
use crate::trace::trace;

/// A hub's place: the process in it may be gone.
pub(crate) struct Place {
    pub(crate) number: usize,
    pub(crate) clock: Clock,
    pub(crate) hands: Hands,
    pub(crate) running: Option<Running>,
    /// When the next process starts.
    pub(crate) starts_at: Duration,
    /// Until when it stands still.
    pub(crate) paused_until: Duration,
}

/// A hub's process.
pub(crate) struct Running {
    number: usize,
    pub(crate) release: Release,
    /// The documents that it knows nodes are to have.
    documents: Arc<Documents>,
    pub(crate) hub: Arc<Hub>,
    happenings: Happenings,
    pub(crate) times: Times,
    epochs: Epochs<Shelf>,
    follows: Vec<Follow>,
    /// Followed once it is known what says what nodes hold.
    later: Vec<Follow>,
    pub(crate) sessions: BTreeMap<u64, Session>,
    witnesses: Witnesses,
    pub(crate) publishing: Publishing,
    rewound: bool,
    /// Whether it knows a history of the cluster that is not the one that goes on.
    pub(crate) outdated: bool,
    looks_at: Duration,
    fetches_at: Duration,
    tells_at: Duration,
}

/// How often it is looked whether another hub began an epoch.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How often bytes are fetched that are not there.
const FETCH_EVERY: Duration = Duration::from_secs(1);
/// How often nodes are told how far they are.
const PROGRESS_EVERY: Duration = Duration::from_secs(60);

impl Place {
    pub(crate) fn new(number: usize) -> Self {
        let (clock, hands) = Clock::manual(Timestamp::UNIX_EPOCH);
        Self {
            number,
            clock,
            hands,
            running: None,
            starts_at: Duration::ZERO,
            paused_until: Duration::ZERO,
        }
    }

    /// Whatever is next.
    pub(crate) fn turn(&mut self, around: &mut Around) {
        if self.running.is_none() && around.now >= self.starts_at {
            self.start(around);
        }
        around.listening[self.number] = self.running.is_some();
        if around.now < self.paused_until {
            return;
        }
        if let Some(running) = &mut self.running {
            running.turn(around);
        }
    }

    fn start(&mut self, around: &mut Around) {
        let opened =
            Epochs::open_drawing(around.records.clone(), self.clock.clone(), around.draw());
        let Ok(epochs) = at_once(opened) else {
            self.starts_at = around.now + Duration::from_secs(1);
            return;
        };
        let (number, epoch) = (self.number, epochs.now());
        trace(|| format!("hub{number} starts in epoch {epoch}"));
        let shared = [objects::services(), objects::slices()];
        let policy = Policy::sharing(shared).expect("two kinds can be held whole");
        let limits = Limits {
            steps_max: around.chance.pick(&[6, 60]),
            past_bytes_max: around.chance.pick(&[2_000, 1_000_000]),
            recent_bytes_max: 4_000,
            ..Limits::default()
        };
        let release = Release::drawn(around.mixed && !around.healed, &mut around.chance);
        if release < Release::Now {
            around.seen.note("hub of an older release");
        }
        let times = Times::new(self.clock.clone());
        let (hub, happenings) = Hub::new(times.clone(), policy, epoch, limits);
        let (first, second) = hub.resources();
        let ours = objects::resources();
        for resource in first.iter().chain(&second) {
            if !ours.contains(resource) {
                hub.serves(resource, false);
            }
        }
        let mut follow = |all: Vec<Resource>| -> Vec<Follow> {
            let all = all.into_iter().filter(|it| ours.contains(it));
            all.map(|it| Follow::new(it, epoch, around.chance.number()))
                .collect()
        };
        self.running = Some(Running {
            number: self.number,
            release,
            documents: Arc::default(),
            hub: Arc::new(hub),
            happenings,
            times,
            epochs,
            follows: follow(first),
            later: follow(second),
            sessions: BTreeMap::new(),
            witnesses: Witnesses::default(),
            publishing: Publishing::new(around.chance.number()),
            rewound: false,
            outdated: false,
            looks_at: around.now + LOOK_EVERY,
            fetches_at: around.now,
            tells_at: around.now + PROGRESS_EVERY,
        });
    }
}

impl Running {
    fn turn(&mut self, around: &mut Around) {
        self.follow(around);
        self.fetch(around);
        self.configure(around);
        if around.now >= self.tells_at || self.hub.owes_progress() {
            self.tells_at = around.now + PROGRESS_EVERY;
            self.hub.tell_progress(0, 1);
        }
        self.serve(around);
        self.see_to(around);
        if around.healed || around.chance.one_in(8) {
            self.publish(&around.records.clone());
        }
    }

    /// Everything that is known of the cluster comes to an end at once.
    pub(crate) fn cut_watches(&mut self) {
        let (hub, times, number) = (&*self.hub, &self.times, self.number);
        let release = self.release;
        let with = With {
            number,
            hub,
            times,
            release,
        };
        let all = self.follows.iter_mut().chain(&mut self.later);
        all.for_each(|follow| follow.cut(&with));
    }

    /// The cluster was restored: what is known here may be of a history that ended.
    pub(crate) fn restored(&mut self, revision: u64) {
        self.cut_watches();
        let cache = self.hub.cache().read();
        let later = |resource: &Resource| {
            let known = cache.version(resource);
            known.is_some_and(|known| objects::number(known) > revision)
        };
        self.outdated |= cache.resources().any(later);
    }

    fn follow(&mut self, around: &mut Around) {
        if !self.later.is_empty() && self.hub.inputs_are_known() {
            self.follows.append(&mut self.later);
        }
        let (hub, times, number) = (&*self.hub, &self.times, self.number);
        let release = self.release;
        let with = With {
            number,
            hub,
            times,
            release,
        };
        for follow in &mut self.follows {
            self.rewound |= follow.turn(&with, around);
        }
    }

    /// Learns which documents nodes are to have. An older release knows of none.
    fn configure(&mut self, around: &mut Around) {
        let known = Arc::ptr_eq(&self.documents, &around.documents);
        let learns = around.healed || around.chance.one_in(4);
        if !known && learns && self.release == Release::Now {
            self.documents = around.documents.clone();
            for name in SHARED {
                let wanted = self.documents.get(name);
                self.hub.publish(name, wanted.map(|it| it.bytes.clone()));
            }
        }
    }

    /// Fetches bytes that are wanted and not there.
    fn fetch(&mut self, around: &mut Around) {
        if around.now < self.fetches_at {
            return;
        }
        self.fetches_at = around.now + FETCH_EVERY;
        for resource in [objects::secrets(), objects::maps()] {
            let lacking = self.hub.cache().read().lacking_all(&resource);
            for name in lacking {
                let Ok(got) = server::get(around, self.number, &resource, &name) else {
                    continue;
                };
                let Some(object) = got else {
                    self.hub.supplied(&resource, &name);
                    continue;
                };
                around.seen.note("fetched");
                let mut cache = self.hub.cache().write();
                let taken = cache.supply(&resource, &self.release.makes(&object));
                let known = cache.header(&resource, &name);
                let passed = known.is_none_or(|known| known.version < object.header.version);
                drop(cache);
                if taken || passed {
                    self.hub.supplied(&resource, &name);
                }
            }
        }
    }

    /// Every session does what is next, and new links are let in.
    fn serve(&mut self, around: &mut Around) {
        let all = around.links.iter();
        let new = all.filter(|(id, link)| {
            link.hub == self.number && link.hub_has && !self.sessions.contains_key(id)
        });
        let new: Vec<u64> = new.map(|(id, _)| *id).collect();
        for id in new {
            self.sessions.insert(id, Session::guest(id, around.now));
        }
        let ids: Vec<u64> = self.sessions.keys().copied().collect();
        for id in ids {
            let Some(mut session) = self.sessions.remove(&id) else {
                continue;
            };
            if session.turn(self, around) {
                self.sessions.insert(id, session);
            }
        }
    }

    /// Says goodbye to every node, and ends.
    pub(crate) fn drain(&mut self, around: &mut Around) {
        for (_, session) in std::mem::take(&mut self.sessions) {
            session.send_away(self, around);
        }
        self.unpublish(&around.records);
    }

    /// What happened in sessions, and what followers saw: the clerk's work.
    fn see_to(&mut self, around: &mut Around) {
        while let Ok((node, happening)) = self.happenings.try_recv() {
            let (resource, ahead) = match &happening {
                Happening::Ahead { resource, reached } => {
                    let now = server::look(around, self.number, resource);
                    (resource, now.ok().map(|now| now < *reached))
                }
                Happening::Settled(Settled::Reached { resource, .. }) => (resource, Some(false)),
                _ => continue,
            };
            let Some(ahead) = ahead else { continue };
            let witnessed = self.witnessed();
            self.witnesses.hear(&node, resource, ahead, witnessed);
        }
        let verdict = self.witnesses.verdict(self.witnessed());
        self.rewound |= verdict == Verdict::Another;
        if self.rewound {
            let next = at_once(self.epochs.next(self.epochs.now()));
            if let Ok(next) = next {
                self.rewound = false;
                if let Some(epoch) = next {
                    self.begin(epoch, around);
                    self.witnesses.forget();
                }
            }
        }
        let asked = self.hub.strangers().lock().asks();
        if asked || around.now >= self.looks_at {
            self.looks_at = around.now + LOOK_EVERY;
            match at_once(self.epochs.look()) {
                Ok(Some(epoch)) => self.begin(epoch, around),
                Ok(None) => self.hub.strangers().lock().looked(self.times.now()),
                Err(_) => {}
            }
        }
    }

    fn witnessed(&self) -> Witnessed {
        let (nodes, now) = (self.hub.nodes(), self.times.now());
        Witnessed { nodes, now }
    }

    /// Whether it is about to believe its nodes that the cluster's history is another one.
    pub(crate) fn doubts(&self) -> bool {
        self.witnesses.most_say_so()
    }

    /// Which history of the cluster it knows.
    pub(crate) fn epoch(&self) -> u64 {
        self.hub.look(|cache| cache.epoch())
    }

    fn begin(&mut self, epoch: u64, around: &mut Around) {
        let number = self.number;
        trace(|| format!("hub{number} begins epoch {epoch}"));
        around.seen.note("epoch");
        self.outdated = false;
        self.hub.begin(epoch);
        self.epochs.begin(epoch);
        self.follows.iter_mut().for_each(Follow::drop_stream);
    }

    /// Tells others of what happened in a session.
    pub(crate) fn happened(&self, node: &Arc<str>, happening: Happening) {
        self.hub.happened(node, happening);
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }
}
