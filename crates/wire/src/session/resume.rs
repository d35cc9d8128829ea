//! What a node is asked about what is staged there since before, so that a first sync goes on where
//! it was cut off. Only what is up to the last staged name is compared: the rest follows anyway.

use std::sync::Arc;
use std::time::Duration;

use object::{Header, ObjectName, Resource, Scope, Version};

use super::compare::Asked;
use super::sender::Compared;
use crate::difference::{self, Repairs};
use crate::digest::{Digest, Member};
use crate::frame::{Ask, By, Frame, Tell, Told};
use crate::outbox::Outbox;

/// Buckets whose entries are asked for at once. With some eight objects each, an answer fits into a
/// message; the others are asked for next.
const BUCKETS_AT_ONCE: usize = 1024;

/// All scopes of which a node is being asked what is staged for them.
#[derive(Debug, Default)]
pub(super) struct Resumption {
    /// At most one of each scope: an outbox gives out each once.
    asked: Vec<Resuming>,
}

/// An answer that makes no sense.
pub(super) struct Nonsense;

impl Resumption {
    /// Begins with what is to be gone on with, and gives what is to be asked.
    pub(super) fn begin(
        &mut self,
        (outbox, source): (&mut Outbox, &impl Compared),
        now: Duration,
    ) -> Vec<Frame> {
        let mut questions = Vec::new();
        while let Some((resource, scope, found)) = outbox.ask_staged() {
            let Some(since) = source.ring(&resource).map(|ring| ring.now().clone()) else {
                continue;
            };
            let digest = found.digest;
            let resuming = Resuming::new((resource, scope), found.last, now);
            let ours = resuming.ours(source);
            match digest == Some(digest_of(&resuming.resource, &ours)) {
                true => {
                    let right = Some(Repairs::new());
                    outbox.resume(&resuming.resource, &resuming.scope, &since, right);
                }
                false => questions.push(self.ask(resuming.about(&ours))),
            }
        }
        questions
    }

    /// Takes an answer, and gives what is to be asked next. An answer that came before, or to a
    /// question that was given up, says nothing.
    pub(super) fn take(
        &mut self,
        scope: &Scope,
        tell: Tell,
        (outbox, source): (&mut Outbox, &impl Compared),
    ) -> Result<Option<Frame>, Nonsense> {
        let Tell { resource, bits, .. } = tell;
        let asked = self.asked.iter().position(|resuming| {
            resuming.of() == (&resource, scope) && resuming.is_answered_by(bits, &tell.told)
        });
        let Some(asked) = asked else { return Ok(None) };
        let outcome = self.asked.remove(asked).answer(tell.told, source);
        match outcome.ok_or(Nonsense)? {
            Outcome::Ask(resuming) => Ok(Some(self.ask(resuming))),
            Outcome::Resume(since, repairs) => {
                outbox.resume(&resource, scope, &since, repairs);
                Ok(None)
            }
        }
    }

    /// What is to be asked once more. `answered` is when the last ping was sent that was answered.
    pub(super) fn due(&mut self, now: Duration, answered: Duration) -> Vec<Frame> {
        let asked = self.asked.iter_mut();
        let due = asked.filter_map(|resuming| {
            let due = resuming.asked.is_due(now, answered);
            due.then(|| resuming.frame())
        });
        due.collect()
    }

    /// Whether nothing is asked.
    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    fn ask(&mut self, resuming: Resuming) -> Frame {
        let frame = resuming.frame();
        self.asked.retain(|other| other.of() != resuming.of());
        self.asked.push(resuming);
        frame
    }
}

/// A scope of which the node is being asked what is staged for it.
#[derive(Debug)]
struct Resuming {
    resource: Resource,
    scope: Scope,
    /// The last name of what is staged; nothing if it may be any.
    last: Option<ObjectName>,
    bits: u32,
    /// The buckets that differ, when that is known.
    differ: Option<Differ>,
    asked: Asked,
}

/// Where what is staged is not what it should be.
#[derive(Debug)]
struct Differ {
    /// Everything that changed later comes with the reset.
    since: Version,
    /// The buckets that are asked about now.
    which: Vec<usize>,
    /// Those that are next.
    left: Vec<usize>,
    /// What is to be put right in those that were told of.
    repairs: Repairs,
}

/// What comes of an answer.
#[derive(Debug)]
enum Outcome {
    /// There is something else to ask.
    Ask(Resuming),
    /// With these repairs it is what there was at this version; without any it starts anew.
    Resume(Version, Option<Repairs>),
}

impl Resuming {
    fn new((resource, scope): (Resource, Scope), last: Option<ObjectName>, now: Duration) -> Self {
        Self {
            resource,
            scope,
            last,
            bits: 0,
            differ: None,
            asked: Asked::at(now),
        }
    }

    /// With as many buckets as so many objects need.
    fn about(self, ours: &[Arc<Header>]) -> Self {
        let bits = difference::bits_for(ours.len() as u64);
        Self { bits, ..self }
    }

    /// What it is about.
    fn of(&self) -> (&Resource, &Scope) {
        (&self.resource, &self.scope)
    }

    /// The question as it is sent.
    fn frame(&self) -> Frame {
        Frame::Ask(Ask {
            resource: self.resource.clone(),
            bits: self.bits,
            entries_of: self.differ.as_ref().map(|differ| differ.which.clone()),
            staged: Some(self.scope.clone()),
            by: By::Version,
        })
    }

    /// Whether this is what was asked for.
    fn is_answered_by(&self, bits: u32, told: &Told) -> bool {
        bits == self.bits
            && match (&self.differ, told) {
                (None, Told::Buckets(_)) | (_, Told::TooMany) => true,
                (Some(differ), Told::Entries(which, _)) => differ.which == *which,
                _ => false,
            }
    }

    /// Takes the answer; nothing if it makes no sense.
    fn answer(self, told: Told, source: &impl Compared) -> Option<Outcome> {
        let now = source.ring(&self.resource)?.now().clone();
        let ours = self.ours(source);
        match (told, self.differ) {
            (Told::TooMany, _) => Some(Outcome::Resume(now, None)),
            (Told::Buckets(theirs), None) => {
                let headers = ours.iter().map(|header| &**header);
                let buckets = difference::buckets(&self.resource, headers, self.bits);
                let left = difference::differing(&buckets, &theirs)?;
                let differ = Differ {
                    since: now,
                    which: Vec::new(),
                    left,
                    repairs: Repairs::new(),
                };
                Some(
                    Self {
                        differ: None,
                        ..self
                    }
                    .next(differ),
                )
            }
            (Told::Entries(_, entries), Some(mut differ)) => {
                let of = (self.bits, differ.which.as_slice());
                let found = difference::repairs(&self.resource, ours, of, &entries)?;
                differ.repairs.extend(found);
                Some(
                    Self {
                        differ: None,
                        ..self
                    }
                    .next(differ),
                )
            }
            (Told::Buckets(_), Some(_)) | (Told::Entries(..), None) => None,
        }
    }

    /// Asks about the next buckets that differ, if there are any.
    fn next(self, mut differ: Differ) -> Outcome {
        if differ.left.is_empty() {
            return Outcome::Resume(differ.since, Some(differ.repairs));
        }
        let rest = differ
            .left
            .split_off(differ.left.len().min(BUCKETS_AT_ONCE));
        differ.which = std::mem::replace(&mut differ.left, rest);
        let differ = Some(differ);
        Outcome::Ask(Self { differ, ..self })
    }

    /// What should be staged by now.
    fn ours(&self, source: &impl Compared) -> Vec<Arc<Header>> {
        let mut ours = source.headers(&self.resource, std::slice::from_ref(&self.scope));
        if let Some(last) = &self.last {
            ours.retain(|header| header.name <= *last);
        }
        ours
    }
}

fn digest_of(resource: &Resource, headers: &[Arc<Header>]) -> Digest {
    let mut digest = Digest::default();
    for header in headers {
        digest.add(Member::of(resource, header));
    }
    digest
}
