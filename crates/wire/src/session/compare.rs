//! What a node is asked, to find out what it holds: first the digests of buckets, then what is in
//! those that differ.

use std::time::Duration;

use object::{Resource, Version};

use super::sender::Compared;
use crate::difference::{self, Repairs};
use crate::frame::{Ask, By, Frame, Told};
use crate::outbox::Outbox;

/// A question that is not answered yet.
#[derive(Debug)]
pub(super) struct Question {
    bits: u32,
    about: About,
    asked: Asked,
}

/// When something was asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked(Duration);

impl Asked {
    /// It is asked now.
    pub(super) fn at(now: Duration) -> Self {
        Self(now)
    }

    /// Whether it is to be asked again: the node answered to a ping that was sent later, and not to
    /// this. Then it counts as asked now.
    pub(super) fn is_due(&mut self, now: Duration, answered: Duration) -> bool {
        let due = answered > self.0 && now >= self.0 + ASK_AGAIN;
        if due {
            self.0 = now;
        }
        due
    }
}

/// How long an answer may take on a link that is alive, before it is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(10);

#[derive(Debug)]
enum About {
    /// The digests of all buckets.
    Buckets {
        /// Whether something is wrong for sure, or may be.
        sure: bool,
    },
    /// What is in these buckets.
    Entries {
        which: Vec<usize>,
        /// Everything that changed later is sent anyway.
        since: Version,
    },
}

/// What comes of an answer.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The node has what it should.
    Equal,
    /// There is something else to ask.
    Ask(Question),
    /// With these repairs it has what there was at this version; without any it is sent everything.
    Repair(Version, Option<Repairs>),
    /// It cannot be told now: something is on its way.
    Unclear,
}

impl Question {
    /// What a node holds of a resource, of which it has so many objects. `sure` says
    /// that something is wrong, and that nothing is sent until it is known what.
    pub(super) fn new(objects: u64, sure: bool, now: Duration) -> Self {
        Self {
            bits: difference::bits_for(objects),
            about: About::Buckets { sure },
            asked: Asked::at(now),
        }
    }

    /// The question as it is sent.
    pub(super) fn frame(&self, resource: &Resource) -> Frame {
        let entries_of = match &self.about {
            About::Buckets { .. } => None,
            About::Entries { which, .. } => Some(which.clone()),
        };
        Frame::Ask(Ask {
            resource: resource.clone(),
            bits: self.bits,
            entries_of,
            staged: None,
            by: By::Version,
        })
    }

    /// Whether it is to be asked again. Then it counts as asked now.
    pub(super) fn is_due(&mut self, now: Duration, answered: Duration) -> bool {
        self.asked.is_due(now, answered)
    }

    /// Whether nothing may be wrong at all.
    pub(super) fn may_be_right(&self) -> bool {
        matches!(self.about, About::Buckets { sure: false })
    }

    /// Whether this is what was asked for.
    pub(super) fn is_answered_by(&self, bits: u32, told: &Told) -> bool {
        bits == self.bits
            && match (&self.about, told) {
                (About::Buckets { .. }, Told::Buckets(_)) | (_, Told::TooMany) => true,
                (About::Entries { which, .. }, Told::Entries(theirs, _)) => which == theirs,
                _ => false,
            }
    }

    /// Takes the answer; nothing if it makes no sense.
    pub(super) fn answer(
        self,
        resource: &Resource,
        told: Told,
        (outbox, source): (&mut Outbox, &impl Compared),
    ) -> Option<Outcome> {
        let bits = self.bits;
        // Another history of the cluster began meanwhile: the session is about to end.
        let Some(ring) = source.ring(resource) else {
            return Some(Outcome::Unclear);
        };
        let now = ring.now().clone();
        // What is on its way may be stored, or not, when the node looks.
        let at_rest = outbox.in_flight() == 0 && outbox.is_even(resource, source);
        if self.may_be_right() && !at_rest {
            return Some(Outcome::Unclear);
        }
        let Self { about, asked, .. } = self;
        match (about, told) {
            (About::Buckets { sure }, Told::Buckets(theirs)) => {
                let ours = source.headers(resource, outbox.wanted(resource));
                let ours = difference::buckets(resource, ours.iter().map(|it| &**it), bits);
                let which = difference::differing(&ours, &theirs)?;
                if which.is_empty() && !sure {
                    return Some(Outcome::Equal);
                }
                if which.is_empty() {
                    return Some(Outcome::Repair(now, Some(Repairs::new())));
                }
                if !sure {
                    outbox.doubt(resource);
                }
                let about = About::Entries { which, since: now };
                Some(Outcome::Ask(Self { bits, about, asked }))
            }
            (About::Entries { which, since }, Told::Entries(_, entries)) => {
                let ours = source.headers(resource, outbox.wanted(resource));
                let repairs = difference::repairs(resource, ours, (bits, &which), &entries);
                Some(Outcome::Repair(since, repairs))
            }
            (about, Told::TooMany) => {
                if matches!(about, About::Buckets { sure: false }) {
                    outbox.doubt(resource);
                }
                Some(Outcome::Repair(now, None))
            }
            (About::Buckets { .. }, Told::Entries(..))
            | (About::Entries { .. }, Told::Buckets(_)) => None,
        }
    }
}
