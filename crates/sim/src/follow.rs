//! A hub that follows one resource: what `cloud::watch` does with a real server.

use cloud::cache::{Cache, Relisted};
use cloud::hub::Hub;
use cloud::watch::{Act, Dice, Failure, Follower, Told};
use host::Times;
use object::Resource;
use parking_lot::RwLock;

use crate::around::Around;
use crate::objects::version;
use crate::release::Release;
use crate::server::{self, Listing};
use crate::trace::trace;

pub(crate) struct Follow {
    pub(crate) resource: Resource,
    follower: Follower,
    stream: Stream,
}

/// What is being read.
enum Stream {
    Nothing,
    List(Listing),
    /// The next event of the watch.
    Watch(usize),
}

/// What a follower works with.
pub(crate) struct With<'w> {
    pub(crate) number: usize,
    pub(crate) hub: &'w Hub,
    pub(crate) times: &'w Times,
    pub(crate) release: Release,
}

impl With<'_> {
    fn cache(&self) -> &RwLock<Cache> {
        self.hub.cache()
    }
}

impl Follow {
    pub(crate) fn new(resource: Resource, epoch: u64, seed: u64) -> Self {
        let follower = Follower::new(resource.clone(), epoch, Dice::seeded(seed));
        Self {
            resource,
            follower,
            stream: Stream::Nothing,
        }
    }

    /// What was being read is of no use any more.
    pub(crate) fn drop_stream(&mut self) {
        self.stream = Stream::Nothing;
    }

    /// Cuts what is being read, as a server does that ends.
    pub(crate) fn cut(&mut self, with: &With<'_>) {
        if !matches!(self.stream, Stream::Nothing) {
            self.fail(with, Failure::Broken("the connection ended".into()));
        }
    }

    /// Does what is next. Says whether the cluster went back.
    pub(crate) fn turn(&mut self, with: &With<'_>, around: &mut Around) -> bool {
        let told = match std::mem::replace(&mut self.stream, Stream::Nothing) {
            Stream::Nothing => self.begin(with, around),
            Stream::List(listing) => self.read_list(listing, with, around),
            Stream::Watch(next) => self.read_watch(next, with, around),
        };
        let mut rewound = false;
        match told {
            Ok(told) => {
                for told in told {
                    rewound |= self.tell(&told, with, around);
                }
            }
            Err(failure) => self.fail(with, failure),
        }
        rewound
    }

    fn tell(&self, told: &Told, with: &With<'_>, around: &mut Around) -> bool {
        let number = with.number;
        match told {
            Told::Listed(resource, relisted) => {
                trace(|| format!("hub{number} listed {resource}"));
                around.seen.note(match relisted {
                    Relisted::First => "listed",
                    Relisted::InOrder(_) => "relisted in order",
                    Relisted::Anew(_) => "relisted anew",
                });
            }
            Told::Rewound { resource, .. } => {
                trace(|| format!("hub{number} rewound {resource}"));
                around.seen.note("rewound");
            }
            _ => {}
        }
        with.hub.hear(told);
        matches!(told, Told::Rewound { .. })
    }

    fn fail(&mut self, with: &With<'_>, failure: Failure) {
        let number = with.number;
        trace(|| format!("hub{number} {} fails: {failure:?}", self.resource));
        let now = with.times.clock().now();
        self.stream = Stream::Nothing;
        let told = self
            .follower
            .failed(&mut with.cache().write(), failure, now);
        if let Some(told) = told {
            with.hub.hear(&told);
        }
    }

    fn begin(&mut self, with: &With<'_>, around: &mut Around) -> Result<Vec<Told>, Failure> {
        let now = with.times.clock().now();
        let act = self.follower.next(&with.cache().read(), now);
        match act {
            Act::List(_) => {
                let listing = server::list(around, with.number, &self.resource)?;
                self.follower.list_started(&mut with.cache().write());
                self.stream = Stream::List(listing);
                Ok(Vec::new())
            }
            Act::Look => {
                let version = server::look(around, with.number, &self.resource)?;
                self.follower.looked(&with.cache().read(), &version);
                Ok(Vec::new())
            }
            Act::Watch(from) => {
                let next = server::watch(around, with.number, &self.resource, &from)?;
                let told = self.follower.watch_started(&mut with.cache().write(), now);
                self.stream = Stream::Watch(next);
                Ok(told.into_iter().collect())
            }
            Act::Wait(_) => Ok(Vec::new()),
        }
    }

    fn read_list(
        &mut self,
        mut listing: Listing,
        with: &With<'_>,
        around: &mut Around,
    ) -> Result<Vec<Told>, Failure> {
        server::answers(around, with.number, &self.resource)?;
        if around.mishap(40, "list broken") {
            return Err(match around.chance.one_in(2) {
                true => Failure::Broken("the list ended early".into()),
                false => Failure::Expired,
            });
        }
        for _ in 0..4 + around.chance.below(20) {
            let Some(object) = listing.left.pop() else {
                break;
            };
            self.follower
                .listed(&mut with.cache().write(), with.release.makes(&object));
        }
        if !listing.left.is_empty() {
            self.stream = Stream::List(listing);
            return Ok(Vec::new());
        }
        let now = with.times.clock().now();
        let mut cache = with.cache().write();
        let told = self
            .follower
            .list_done(&mut cache, &version(listing.version), now);
        Ok(told.into_iter().collect())
    }

    fn read_watch(
        &mut self,
        mut next: usize,
        with: &With<'_>,
        around: &mut Around,
    ) -> Result<Vec<Told>, Failure> {
        server::answers(around, with.number, &self.resource)?;
        if around.mishap(150, "watch ended") {
            self.follower.watch_ended(with.times.clock().now());
            return Ok(Vec::new());
        }
        if around.mishap(150, "watch cut") {
            return Err(match around.chance.one_in(4) {
                true => Failure::Expired,
                false => Failure::Broken("the connection broke".into()),
            });
        }
        let mut told = Vec::new();
        let history = &around.cluster.history;
        let events = &history.tables[&self.resource].events;
        let mut cache = with.cache().write();
        while let Some(event) = events.get(next) {
            if !around.healed && around.chance.one_in(4) {
                break;
            }
            next += 1;
            told.extend(match event.went {
                true => self.follower.delete(&mut cache, &event.object.header),
                false => self
                    .follower
                    .put(&mut cache, with.release.makes(&event.object)),
            });
        }
        if next == events.len() && (around.healed || around.chance.one_in(10)) {
            let at = version(history.revision);
            told.extend(self.follower.bookmark(&mut cache, &at));
        }
        drop(cache);
        match self.follower.is_watching() {
            true => self.stream = Stream::Watch(next),
            false => return Err(Failure::Broken("a watch that goes back".into())),
        }
        Ok(told)
    }
}
