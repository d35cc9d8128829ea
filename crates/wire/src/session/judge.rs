//! What a node said in its hello that it holds, judged resource by resource, as soon as a resource
//! is known here completely.
//!
//! A node may come from a hub that is ahead: it stands where nothing is known here yet. If it holds
//! what there is here, nothing happened to that in between, and it is believed: versions of a quiet
//! resource stand still, and a node must not wait for them. But in a cluster that was restored
//! unnoticed something may happen in between after all. So it is judged again when all that it
//! was told of is known here, and before it is sent anything more.

use std::time::Duration;

use object::{Header, Resource, Standing, Version};

use super::compare::Question;
use super::news::Happening;
use super::sender::{Compared, Sender};
use crate::cut;
use crate::digest::{Digest, Member};
use crate::frame::{Holding, Staged};
use crate::outbox::Settled;
use crate::ring::{Ring, TooOld};

/// What a node that is ahead said of a resource. There is at most one of each.
#[derive(Debug)]
pub(super) struct Claim {
    standing: Standing,
    digest: Digest,
    objects: u64,
    /// When this is known here, it can be judged.
    reached: Version,
}

impl Sender {
    /// Judges what the node said that it holds, of resources that are known by now.
    pub(super) fn judge(&mut self, source: &impl Compared, now: Duration) -> Vec<Happening> {
        self.catch_up(source);
        self.judge_again(source, now);
        let mut happenings = self.spare(source, now);
        if self.unjudged.is_empty() && self.staged.is_empty() {
            return happenings;
        }
        let outbox = &self.outbox;
        let known = |resource: &Resource| outbox.knows(resource) && source.ring(resource).is_some();
        let staged: Vec<Staged> = self
            .staged
            .extract_if(.., |staged| known(&staged.resource))
            .collect();
        let judged: Vec<Holding> = self
            .unjudged
            .extract_if(.., |resource, _| known(resource))
            .map(|(_, holding)| holding)
            .collect();
        let judged = judged.into_iter();
        let judged = judged.flat_map(|holding| self.judge_one(holding, source, now));
        happenings.extend(judged);
        self.keep_what_is_held();
        // What is staged is of use or not, by what is held.
        for staged in staged {
            self.outbox.found(staged, source.epoch());
        }
        happenings
    }

    fn judge_one(
        &mut self,
        holding: Holding,
        source: &impl Compared,
        at: Duration,
    ) -> Vec<Happening> {
        let resource = &holding.resource;
        let Some(ring) = source.ring(resource) else {
            return Vec::new();
        };
        let wanted = self.outbox.wanted_shared(resource);
        let same = holding.epoch == source.epoch();
        // Versions of another epoch say nothing here.
        let reached = holding.reached.clone().filter(|_| same);
        let said = holding.standing.clone().filter(|_| same);
        let standing = said.as_ref();
        let standing = standing.and_then(|said| believed(&holding, said, ring, source));
        let doubtful = standing.is_none() && same && !holding.scopes.is_empty();
        let ahead = reached.clone().filter(|reached| reached > ring.now());
        if let (Some(standing), Some(reached)) = (&standing, &ahead) {
            let claim = Claim {
                standing: standing.clone(),
                digest: holding.digest,
                objects: holding.objects,
                reached: reached.clone(),
            };
            self.claims.push((resource.clone(), claim));
        }
        if let Some(reached) = &ahead {
            self.lagging.note(resource, reached);
        }
        let ahead = ahead.map(|reached| Happening::Ahead {
            resource: resource.clone(),
            reached,
        });
        // What it said is what there was: as good as an ack.
        let whole = standing.as_ref().is_some_and(|at| at.parts.is_empty());
        let stands = said.filter(|_| whole).map(|said| {
            Happening::Settled(Settled::Reached {
                resource: resource.clone(),
                version: said.progress,
                scopes: holding.scopes.clone().into(),
            })
        });
        self.outbox
            .stands(resource.clone(), standing, reached, holding.scopes);
        self.outbox.want(resource, wanted);
        if doubtful {
            self.outbox.ask(resource);
            self.ask(resource, Question::new(holding.objects, true, at));
        }
        stands.into_iter().chain(ahead).collect()
    }

    /// Judges what was believed of a node that was ahead, once all that it was told of is known.
    fn judge_again(&mut self, source: &impl Compared, now: Duration) {
        let due = |(resource, claim): &mut (Resource, Claim)| {
            let ring = source.ring(resource);
            ring.is_some_and(|ring| *ring.now() >= claim.reached)
        };
        for (resource, claim) in self.claims.take_if(due) {
            let (Some(ring), Some(held)) = (source.ring(&resource), self.outbox.held(&resource))
            else {
                continue;
            };
            // What turned out to be wrong meanwhile is put right already.
            if self.outbox.progress(&resource) != Some(&claim.standing.progress) {
                continue;
            }
            let member = |header: &Header| Member::of(&resource, header);
            let known = (source.digest(&resource, held), member);
            let known = cut::digest_at(ring, held, &claim.standing, known);
            if known != Ok(claim.digest) {
                self.outbox.doubt(&resource);
                self.ask(&resource, Question::new(claim.objects, true, now));
            }
        }
    }
}

/// Where a node stands that said so: there, if it holds what there was then. What happened since
/// may be forgotten here, as by a hub that has just started. A node that holds exactly what there
/// is now lacks nothing of it, and stands where we do: nothing has to be put in place anew.
fn believed(
    holding: &Holding,
    said: &Standing,
    ring: &Ring,
    source: &impl Compared,
) -> Option<Standing> {
    let member = |header: &Header| Member::of(&holding.resource, header);
    let now = source.digest(&holding.resource, &holding.scopes);
    match cut::digest_at(ring, &holding.scopes, said, (now, member)) {
        Ok(then) => (then == holding.digest).then(|| said.clone()),
        Err(TooOld { .. }) => {
            let even = said.parts.is_empty() && now == holding.digest;
            even.then(|| Standing::complete(ring.now().clone()))
        }
    }
}
