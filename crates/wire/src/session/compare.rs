//! What a node is asked, to find out what it holds: first the digests of buckets, then what is in
//! those that differ.

use object::{Resource, Version};

use super::sender::Compared;
use crate::difference::{self, Repairs};
use crate::frame::{Ask, Frame, Told};
use crate::outbox::Outbox;

/// A question that is not answered yet.
#[derive(Debug)]
pub(super) struct Question {
    bits: u32,
    about: About,
}

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
    Ask(Question, Frame),
    /// With these repairs it has what there was at this version; without any it is sent everything.
    Repair(Version, Option<Repairs>),
    /// It cannot be told now: something is on its way.
    Unclear,
}

impl Question {
    /// Asks a node what it holds of a resource: it said how many objects these are. `sure` says
    /// that something is wrong, and that nothing is sent until it is known what.
    pub(super) fn new(resource: &Resource, objects: u64, sure: bool) -> (Self, Frame) {
        let bits = difference::bits_for(objects);
        let question = Self {
            bits,
            about: About::Buckets { sure },
        };
        (question, ask(resource, bits, None))
    }

    /// Takes the answer; nothing if it does not answer this.
    pub(super) fn answer(
        self,
        resource: &Resource,
        (bits, told): (u32, Told),
        (outbox, source): (&mut Outbox, &impl Compared),
    ) -> Option<Outcome> {
        if bits != self.bits {
            return None;
        }
        let now = source.ring(resource)?.now().clone();
        match (self.about, told) {
            (About::Buckets { sure }, Told::Buckets(theirs)) => {
                if !sure && !outbox.is_even(resource, source) {
                    return Some(Outcome::Unclear);
                }
                let ours = source.headers(resource, outbox.wanted(resource));
                let ours = difference::buckets(resource, ours.iter().map(|it| &**it), bits);
                let which = difference::differing(&ours, &theirs)?;
                if which.is_empty() && !sure {
                    return Some(Outcome::Equal);
                }
                outbox.doubt(resource);
                if which.is_empty() {
                    return Some(Outcome::Repair(now, Some(Repairs::new())));
                }
                let frame = ask(resource, bits, Some(which.clone()));
                let about = About::Entries { which, since: now };
                Some(Outcome::Ask(Self { bits, about }, frame))
            }
            (About::Entries { which, since }, Told::Entries(theirs, entries)) => {
                let ours = source.headers(resource, outbox.wanted(resource));
                let repairs = difference::repairs(resource, ours, (bits, &which), &entries);
                let repairs = repairs.filter(|_| theirs == which);
                Some(Outcome::Repair(since, repairs))
            }
            (_, Told::TooMany) => {
                outbox.doubt(resource);
                Some(Outcome::Repair(now, None))
            }
            (About::Buckets { .. }, Told::Entries(..))
            | (About::Entries { .. }, Told::Buckets(_)) => None,
        }
    }
}

fn ask(resource: &Resource, bits: u32, entries_of: Option<Vec<usize>>) -> Frame {
    Frame::Ask(Ask {
        resource: resource.clone(),
        bits,
        entries_of,
    })
}
