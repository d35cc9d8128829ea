//! What a node said in its hello that it holds, judged resource by resource, as soon as a resource
//! is known here completely.

use std::time::Duration;

use object::{Header, Resource};

use super::compare::Question;
use super::news::Happening;
use super::sender::{Compared, Sender};
use crate::cut;
use crate::digest::Member;
use crate::frame::{Holding, Staged};
use crate::outbox::Settled;

impl Sender {
    /// Judges what the node said that it holds, of resources that are known by now.
    pub(super) fn judge(&mut self, source: &impl Compared, now: Duration) -> Vec<Happening> {
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
        let reached = holding.reached.filter(|_| same);
        let member = |header: &Header| Member::of(resource, header);
        let now = (source.digest(resource, &holding.scopes), member);
        let standing = holding.standing.filter(|standing| {
            let known = cut::digest_at(ring, &holding.scopes, standing, now);
            same && known == Ok(holding.digest)
        });
        let doubtful = standing.is_none() && same && !holding.scopes.is_empty();
        let ahead = reached.clone().filter(|reached| reached > ring.now());
        let ahead = ahead.map(|reached| Happening::Ahead {
            resource: resource.clone(),
            reached,
        });
        // What it said is what there was: as good as an ack.
        let whole = standing.as_ref().filter(|at| at.parts.is_empty());
        let stands = whole.map(|at| {
            Happening::Settled(Settled::Reached {
                resource: resource.clone(),
                version: at.progress.clone(),
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
}
