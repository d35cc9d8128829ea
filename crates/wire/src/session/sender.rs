//! The end that sends: the hub, or a pool's leader.
//!
//! What a node says that it holds is judged resource by resource, as soon as the resource is known
//! here completely: if it is what there was at the node's version, the node is sent what changed
//! since; otherwise it is asked what it holds. Until a resource is known, nothing is said of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use object::{Header, Resource, Scope};

use super::compare::{Outcome, Question};
use super::judge::Claim;
use super::lagging::Lagging;
use super::news::{Counts, Happening, Standings};
use super::pace::Pace;
use super::pulse::{Beat, Patience, Pulse};
use super::refresh::Refresh;
use super::resume::{Nonsense, Resumption};
use super::{CONTENTS, DOCUMENTS, Ended};
use crate::digest::{Digest, Sum};
use crate::few::Few;
use crate::frame::{Aside, By, Frame, Holding, Reported, Staged, Tell, Welcome};
use crate::outbox::{Outbox, Settled, Source};
use crate::report::{Collected, Taken};
use crate::window::Limits;

/// What is there to be sent, and can be compared with what a node holds.
pub trait Compared: Source {
    /// The digest of everything in these scopes.
    fn digest(&self, resource: &Resource, scopes: &[Scope]) -> Digest;
    /// Everything in these scopes, each object once.
    fn headers(&self, resource: &Resource, scopes: &[Scope]) -> Vec<Arc<Header>>;
    /// What the bytes of an object come to, at exactly this version, if they are still there.
    fn sum(&self, resource: &Resource, header: &Header) -> Option<Sum> {
        let bytes = self.bytes(resource, header)?;
        Some(Sum::of(&bytes))
    }
}

/// How long a node may be busy before nothing new is sent to it for a moment, so that what it holds
/// can be compared.
const COMPARE_WITHIN: Duration = Duration::from_secs(300);

/// How long to wait for bytes that are not there.
const STARVED_AGAIN: Duration = Duration::from_secs(1);

/// Whether something new is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// It is.
    No,
    /// Not until everything on its way is stored.
    Drains,
    /// Not until the node has told what it holds.
    Asks,
}

/// A session with a node.
#[derive(Debug)]
pub struct Sender {
    pub(super) outbox: Outbox,
    pulse: Pulse,
    /// What the node said that it holds, of resources that are not known here yet.
    pub(super) unjudged: BTreeMap<Resource, Holding>,
    /// What it said that is staged there, of the same.
    pub(super) staged: Vec<Staged>,
    /// What it said of resources of which it was told more than is known here.
    pub(super) claims: Few<(Resource, Claim)>,
    pub(super) lagging: Lagging,
    questions: BTreeMap<Resource, Question>,
    /// Questions about what is staged.
    resumption: Resumption,
    /// Questions about bytes.
    refresh: Refresh,
    /// Whether the node takes documents.
    pub(super) takes_documents: bool,
    /// Objects that it could not take, of resources that are not known here yet.
    pub(super) aside: Vec<Aside>,
    /// What is said of that, once.
    pub(super) more_aside: u64,
    /// What is said before any delivery.
    control: VecDeque<Frame>,
    reports: Collected,
    pace: Pace,
    /// When it was last known whether the node holds what it should; first, when it began.
    compared: Duration,
    pause: Pause,
    /// When bytes were missing that should be there.
    starved_at: Option<Duration>,
    /// Whether every answer since the node was asked about everything was the expected one.
    all_even: bool,
    even: Option<bool>,
    counts: Counts,
}

impl Sender {
    /// A session on these terms, with a node that holds this, and has this staged.
    pub fn new(
        welcome: Welcome,
        (holdings, staged): (Vec<Holding>, Vec<Staged>),
        (limits, patience): (Limits, Patience),
        now: Duration,
    ) -> Self {
        let mut reports = Collected::new();
        let unjudged = holdings
            .into_iter()
            .map(|holding| (holding.resource.clone(), holding));
        let takes_documents = welcome.features & DOCUMENTS != 0;
        let refresh = Refresh::new(welcome.features & CONTENTS != 0, now);
        let mut control = VecDeque::from([Frame::Welcome(welcome)]);
        control.extend(reports.begin().map(Frame::Reported));
        Self {
            outbox: Outbox::new(limits),
            pulse: Pulse::new(patience, now),
            unjudged: unjudged.collect(),
            staged,
            claims: Few::default(),
            lagging: Lagging::default(),
            questions: BTreeMap::new(),
            resumption: Resumption::default(),
            refresh,
            takes_documents,
            aside: Vec::new(),
            more_aside: 0,
            control,
            reports,
            pace: Pace::default(),
            compared: now,
            pause: Pause::No,
            starved_at: None,
            all_even: false,
            even: None,
            counts: Counts::default(),
        }
    }

    /// The node is to hold this from now on. A resource that is not named here is not known yet:
    /// nothing of it is sent, and nothing ends.
    pub fn view<S>(&mut self, view: &BTreeMap<Resource, S>)
    where
        S: Clone + Into<Arc<[Scope]>>,
    {
        for (resource, scopes) in view {
            let scopes = self.at_least(resource, scopes.clone().into());
            self.outbox.want(resource, scopes);
        }
        for frame in &mut self.control {
            self.outbox.look_again(frame);
        }
    }

    /// The node is told how far it is, also where nothing changed for it.
    pub fn tell_progress(&mut self) {
        self.outbox.tell_progress();
    }

    /// Resources whose holdings wait until they are known here.
    pub fn unjudged(&self) -> impl Iterator<Item = &Holding> {
        self.unjudged.values()
    }

    /// Takes what the node said.
    pub fn take(
        &mut self,
        frame: Frame,
        source: &impl Compared,
        now: Duration,
    ) -> Result<Vec<Happening>, Ended> {
        self.pulse.hear(now);
        match frame {
            Frame::Ping { number, holds } => {
                self.control.push_back(Frame::Pong {
                    number,
                    received: None,
                });
                Ok(self.compare(holds, source, now))
            }
            Frame::Pong { number, received } => {
                self.pulse.pong(number);
                self.outbox.receive(received.unwrap_or(0))?;
                Ok(Vec::new())
            }
            Frame::Ack { number } => {
                let settled = self.outbox.ack(number, now)?;
                let aside = |settled: &Settled| matches!(settled, Settled::SetAside { .. });
                if settled.iter().any(aside) {
                    self.pace.set_aside();
                }
                Ok(settled.into_iter().map(Happening::Settled).collect())
            }
            Frame::Reject { number, fault, .. } => {
                self.counts.rejected += 1;
                let again = self.outbox.reject(number, fault, source, now)?;
                self.say_again(again);
                Ok(Vec::new())
            }
            Frame::Tell(tell) => self.told(tell, source, now),
            Frame::Report(report) => Ok(match self.reports.take(&report)? {
                Taken::New => vec![Happening::Report(report)],
                _ => Vec::new(),
            }),
            Frame::Stream { id, said } => Ok(vec![Happening::Stream { id, said }]),
            Frame::Bye(bye) => Err(Ended::Told(bye)),
            Frame::Hello(_) | Frame::Welcome(_) | Frame::Deliver { .. } => {
                Err(Ended::out_of_place("what the node said"))
            }
            Frame::Void { .. } | Frame::Ask(_) | Frame::Reported(_) => {
                Err(Ended::out_of_place("what the node said"))
            }
        }
    }

    /// The next that is to be said, and what became known by that.
    pub fn next(
        &mut self,
        source: &impl Compared,
        now: Duration,
    ) -> Result<(Option<Frame>, Vec<Happening>), Ended> {
        let happenings = self.judge(source, now);
        let asked = self.resumption.begin((&mut self.outbox, source), now);
        self.counts.asked += asked.len() as u64;
        self.control.extend(asked);
        let frame = self.speak(source, now)?;
        if frame.is_some() {
            self.pulse.speak(now);
        }
        self.pulse.await_answer(self.awaits(), now);
        Ok((frame, happenings))
    }

    /// When to ask for the next though nothing happened.
    pub fn wakes_at(&self) -> Duration {
        let pulse = self.pulse.wakes_at();
        let again = self.starved_at.map(|at| at + STARVED_AGAIN);
        again.map_or(pulse, |again| again.min(pulse))
    }

    /// For while nothing can be said, since what was said before is not out yet: whether the agent
    /// is there all the same. Gives when to look again.
    pub fn wait(&self, now: Duration) -> Result<Duration, Ended> {
        self.pulse.wait(now)
    }

    /// Something of a message was heard that is not there yet.
    pub fn listen(&mut self, now: Duration) {
        self.pulse.listen(now);
    }

    /// A report is where it belongs.
    pub fn reported(&mut self, reported: Reported) {
        let Reported { queue, .. } = reported;
        let done = self.reports.done(queue, reported.series, reported.number);
        self.control.extend(done.map(Frame::Reported));
    }

    /// How many deliveries are on their way.
    pub fn in_flight(&self) -> usize {
        self.outbox.in_flight()
    }

    /// How many of them are objects.
    pub fn objects_in_flight(&self) -> usize {
        self.outbox.objects_in_flight()
    }

    /// Whether the node owes an ack or an answer.
    pub fn awaits(&self) -> bool {
        let asks = !self.questions.is_empty() || !self.resumption.is_empty();
        self.outbox.in_flight() > 0 || asks || !self.refresh.is_empty()
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        let (refreshed, in_vain) = self.refresh.counts();
        Counts {
            refreshed,
            in_vain,
            ..self.counts
        }
    }

    /// What the node holds is compared by its bytes after this time, and then every hour or so. A
    /// hub spreads that over its nodes.
    pub fn refresh_after(&mut self, wait: Duration, now: Duration) {
        self.refresh.wait(wait, now);
    }

    /// Whether what the node holds was what it should be, when that was last known.
    pub fn even(&self) -> Option<bool> {
        self.even
    }

    /// Where the node stands, resource by resource.
    pub fn standings(&self) -> Vec<Standings> {
        let all = self.outbox.resources();
        all.map(|resource| Standings {
            resource: resource.clone(),
            progress: self.outbox.progress(resource).cloned(),
            scopes: self.outbox.wanted(resource).len(),
        })
        .collect()
    }

    fn speak(&mut self, source: &impl Compared, now: Duration) -> Result<Option<Frame>, Ended> {
        if let Some(frame) = self.control.pop_front() {
            return Ok(Some(frame));
        }
        // A session that rests holds no memory for what was said.
        self.control = VecDeque::new();
        match self.pulse.beat(now) {
            Beat::Ping(number) => {
                return Ok(Some(Frame::Ping {
                    number,
                    holds: None,
                }));
            }
            Beat::Gone(silence) => return Err(Ended::silent(silence)),
            Beat::Rest => {}
        }
        self.ask_again(now);
        let due = self.outbox.due(source, now, self.pulse.answered())?;
        self.say_again(due);
        if let Some(frame) = self.control.pop_front() {
            return Ok(Some(frame));
        }
        match self.pause {
            Pause::No => {
                let frame = self.outbox.next(source, now);
                if self.outbox.has_spared() {
                    self.pace.set_aside();
                }
                self.starved_at = self.outbox.is_starved().then_some(now);
                self.counts.sent += u64::from(frame.is_some());
                Ok(frame)
            }
            Pause::Drains if self.outbox.in_flight() == 0 && self.questions.is_empty() => {
                self.pause = Pause::Asks;
                self.check(source, now);
                Ok(self.control.pop_front())
            }
            Pause::Asks if self.questions.is_empty() => {
                self.pause = Pause::No;
                self.compared = now;
                self.speak(source, now)
            }
            Pause::Drains | Pause::Asks => Ok(None),
        }
    }

    fn say_again(&mut self, frame: Option<Frame>) {
        match &frame {
            Some(Frame::Void { .. }) => self.counts.void += 1,
            Some(_) => self.counts.again += 1,
            None => {}
        }
        self.control.extend(frame);
    }

    pub(super) fn ask(&mut self, resource: &Resource, question: Question) {
        self.control.push_back(question.frame(resource));
        self.questions.insert(resource.clone(), question);
        self.counts.asked += 1;
    }

    /// Asks again what was not answered.
    fn ask_again(&mut self, now: Duration) {
        let answered = self.pulse.answered();
        for (resource, question) in &mut self.questions {
            if question.is_due(now, answered) {
                self.control.push_back(question.frame(resource));
            }
        }
        self.control.extend(self.resumption.due(now, answered));
        self.control.extend(self.refresh.due(now, answered));
    }

    /// Compares the digest of all that the node holds with the expected one. What is on its way
    /// makes that impossible: a later heartbeat tells.
    fn compare(
        &mut self,
        holds: Option<Digest>,
        source: &impl Compared,
        now: Duration,
    ) -> Vec<Happening> {
        let quiet = self.outbox.in_flight() == 0 && self.unjudged.is_empty();
        let quiet = quiet && self.questions.is_empty();
        let expected = quiet.then(|| self.outbox.expected(source)).flatten();
        let (Some(holds), Some(expected)) = (holds, expected) else {
            let long = now >= self.compared + COMPARE_WITHIN && self.pace.may_ask(now);
            if self.pause == Pause::No && long {
                self.pause = Pause::Drains;
                return self.pace(now);
            }
            return Vec::new();
        };
        let even = holds == expected;
        self.even = Some(even);
        self.compared = now;
        let mut happenings = vec![Happening::Compared { even }];
        if even {
            self.pace.even();
            let asked = self.refresh.begin(&self.outbox, now);
            self.counts.asked += asked.len() as u64;
            self.control.extend(asked);
        } else if self.pace.may_ask(now) {
            self.check(source, now);
            happenings.extend(self.pace(now));
        }
        happenings
    }

    /// The node is asked what it holds, now or as soon as nothing is on its way.
    fn pace(&mut self, now: Duration) -> Vec<Happening> {
        let grown = self.pace.ask(now);
        let again = grown.map(|pause| Happening::SetAsideAgain { pause });
        again.into_iter().collect()
    }

    /// Asks the node what it holds of each resource.
    fn check(&mut self, source: &impl Compared, now: Duration) {
        self.all_even = true;
        let resources: Vec<Resource> = self.outbox.resources().cloned().collect();
        for resource in resources {
            let wanted = self.outbox.wanted(&resource);
            let objects = source.headers(&resource, wanted).len() as u64;
            self.ask(&resource, Question::new(objects, false, now));
        }
    }

    fn told(
        &mut self,
        mut tell: Tell,
        source: &impl Compared,
        now: Duration,
    ) -> Result<Vec<Happening>, Ended> {
        if tell.by == By::Content {
            let both = (&mut self.outbox, source);
            let asked = self.refresh.take(tell, both, now);
            let asked = asked.map_err(|Nonsense| Ended::out_of_place("an answer"))?;
            self.counts.asked += u64::from(asked.is_some());
            self.control.extend(asked);
            return Ok(Vec::new());
        }
        if let Some(scope) = tell.staged.take() {
            // The history that it is about may just have ended; the session ends with it.
            if source.ring(&tell.resource).is_none() {
                return Ok(Vec::new());
            }
            let both = (&mut self.outbox, source);
            let asked = self.resumption.take(&scope, tell, both);
            let asked = asked.map_err(|Nonsense| Ended::out_of_place("an answer"))?;
            self.counts.asked += u64::from(asked.is_some());
            self.control.extend(asked);
            return Ok(Vec::new());
        }
        let resource = tell.resource;
        // An answer that came before, or to a question that was given up, says nothing.
        let asked = self.questions.get(&resource);
        if !asked.is_some_and(|question| question.is_answered_by(tell.bits, &tell.told)) {
            return Ok(Vec::new());
        }
        let Some(question) = self.questions.remove(&resource) else {
            return Ok(Vec::new());
        };
        let was_open = question.may_be_right();
        let both = (&mut self.outbox, source);
        let outcome = question.answer(&resource, tell.told, both);
        match outcome.ok_or_else(|| Ended::out_of_place("an answer"))? {
            Outcome::Equal => {
                let even = true;
                if self.questions.is_empty() && self.all_even {
                    self.even = Some(even);
                    self.pace.even();
                    return Ok(vec![Happening::Compared { even }]);
                }
                return Ok(vec![Happening::ComparedOne { resource, even }]);
            }
            Outcome::Unclear => {
                self.all_even = false;
                return Ok(Vec::new());
            }
            Outcome::Ask(question) => self.ask(&resource, question),
            Outcome::Repair(since, repairs) => {
                self.outbox.repair(&resource, &since, repairs.as_ref());
            }
        }
        self.all_even = false;
        self.even = Some(false);
        Ok(match was_open {
            true => Happening::uneven(resource),
            false => Vec::new(),
        })
    }
}
