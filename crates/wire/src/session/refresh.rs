//! Bytes that another release made. The hub alone makes an object's bytes, and a newer hub may make
//! others of the same version: nothing is out of date then, and nothing is urgent. Seldom, while a
//! node has every version that it should, it is asked what the bytes of these come to; where that
//! is something else, they are sent anew, some at a time.
//!
//! Hubs of two releases would have a node's objects sent for ever if they were quick at this, and a
//! node that keeps what it has as well. So the first look is long after a session began, and what
//! does not become equal is looked at ever less often.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use object::{Header, Resource};

use super::compare::Asked;
use super::resume::Nonsense;
use super::sender::Compared;
use crate::difference::{self, Buckets, Entry, Repairs};
use crate::digest::{Sum, bucket};
use crate::frame::{Ask, By, Frame, Tell, Told};
use crate::outbox::Outbox;

/// How often a node is asked what its bytes come to, where nothing is wrong with them.
pub const REFRESH_EVERY: Duration = Duration::from_secs(3_600);
/// How long until the next objects of a resource are sent anew. Each time, those who watch it are
/// sent away once.
const NEXT_AFTER: Duration = Duration::from_secs(300);
/// How long until it is asked again, if it could not be told.
const UNCLEAR_AFTER: Duration = Duration::from_secs(300);
/// How long until it is asked again, at most, if what was sent anew differs still.
const PAUSE_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Objects of a resource that are sent anew at once, and their bytes. The last bucket may go beyond
/// it; the other buckets wait for their turn.
const OBJECTS_MAX: usize = 512;
const BYTES_MAX: usize = 512 * 1024;
/// Buckets that are asked about at once: some eight objects each.
const BUCKETS_MAX: usize = OBJECTS_MAX / 8;

/// What is known of a node's bytes.
#[derive(Debug)]
pub(super) struct Refresh {
    /// Whether the node can be asked.
    able: bool,
    /// When all resources are looked at.
    due: Duration,
    asked: BTreeMap<Resource, Question>,
    /// Resources that are looked at in their own time, since something is wrong with them.
    turns: BTreeMap<Resource, Turn>,
    refreshed: u64,
    in_vain: u64,
}

/// A question that is not answered yet.
#[derive(Debug)]
struct Question {
    bits: u32,
    /// The buckets whose entries are asked for, when it is known which differ.
    which: Option<Vec<usize>>,
    asked: Asked,
}

/// A resource of which something differs.
#[derive(Debug, Default)]
struct Turn {
    due: Duration,
    /// How long until it is asked again; nothing before something was in vain.
    pause: Option<Duration>,
    /// The buckets that were sent anew the last time, and how many there are, as a power of two.
    sent: (u32, Vec<usize>),
}

impl Refresh {
    pub(super) fn new(able: bool, now: Duration) -> Self {
        Self {
            able,
            due: now + REFRESH_EVERY,
            asked: BTreeMap::new(),
            turns: BTreeMap::new(),
            refreshed: 0,
            in_vain: 0,
        }
    }

    /// The first look is after this time.
    pub(super) fn wait(&mut self, wait: Duration, now: Duration) {
        self.due = now + wait;
    }

    /// Whether nothing is asked.
    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// How many objects were sent anew, and how often some differed still.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.refreshed, self.in_vain)
    }

    /// The node has every version that it should. Gives what is to be asked of their bytes now.
    pub(super) fn begin(&mut self, outbox: &Outbox, now: Duration) -> Vec<Frame> {
        if !self.able || !self.asked.is_empty() {
            return Vec::new();
        }
        let all = now >= self.due;
        if all {
            self.due = now + REFRESH_EVERY;
        }
        let turns = &self.turns;
        let due = |resource: &&Resource| {
            let turn = turns.get(resource);
            let due = turn.map_or(all, |turn| now >= turn.due);
            due && !outbox.wanted(resource).is_empty()
        };
        let resources: Vec<Resource> = outbox.resources().filter(due).cloned().collect();
        let asked = resources.into_iter();
        asked.map(|it| self.ask(&it, 0, None, now)).collect()
    }

    /// What is to be asked once more. `answered` is when the last ping was sent that was answered.
    pub(super) fn due(&mut self, now: Duration, answered: Duration) -> Vec<Frame> {
        let asked = self.asked.iter_mut();
        let due = asked.filter_map(|(resource, question)| {
            let due = question.asked.is_due(now, answered);
            due.then(|| question.frame(resource))
        });
        due.collect()
    }

    /// Takes an answer, and gives what is to be asked next. An answer that came before says
    /// nothing.
    pub(super) fn take(
        &mut self,
        tell: Tell,
        (outbox, source): (&mut Outbox, &impl Compared),
        now: Duration,
    ) -> Result<Option<Frame>, Nonsense> {
        let Tell { resource, told, .. } = tell;
        let asked = self.asked.get(&resource);
        if !asked.is_some_and(|question| question.is_answered_by(tell.bits, &told)) {
            return Ok(None);
        }
        let which = self.asked.remove(&resource).and_then(|it| it.which);
        // What is on its way may be stored, or not, when the node looks.
        let at_rest = outbox.in_flight() == 0 && outbox.is_even(&resource, source);
        let ours = at_rest.then(|| Ours::of(&resource, outbox, source));
        let Some(ours) = ours.flatten() else {
            self.unclear(resource, now);
            return Ok(None);
        };
        match (told, which) {
            (Told::Buckets(theirs), None) => {
                let differ = ours.differing(&resource, tell.bits, &theirs);
                let differ = differ.ok_or(Nonsense)?;
                Ok(self.differ(resource, (tell.bits, ours.bits()), differ, now))
            }
            (Told::Entries(_, entries), Some(which)) => {
                let (repairs, sent) = ours.repairs(&resource, (tell.bits, &which), &entries);
                if !repairs.is_empty() {
                    self.refreshed += repairs.len() as u64;
                    send_anew(&resource, &repairs, (outbox, source));
                }
                self.turns.entry(resource).or_default().sent = (tell.bits, sent);
                Ok(None)
            }
            (Told::TooMany, _) => {
                self.untold(resource, now);
                Ok(None)
            }
            (Told::Buckets(_), Some(_)) | (Told::Entries(..), None) => Err(Nonsense),
        }
    }

    /// These buckets differ. Gives what is to be asked next, if they do.
    fn differ(
        &mut self,
        resource: Resource,
        (bits, most): (u32, u32),
        differ: Vec<usize>,
        now: Duration,
    ) -> Option<Frame> {
        if differ.is_empty() {
            self.turns.remove(&resource);
            return None;
        }
        // One digest tells whether there is anything to look for.
        if bits < most {
            return Some(self.ask(&resource, most, None, now));
        }
        let turn = self.turns.entry(resource.clone()).or_default();
        let in_vain = turn.sent.0 == bits && turn.sent.1.iter().any(|it| differ.contains(it));
        let after = turn.sent.1.last().copied();
        if in_vain {
            self.in_vain += 1;
            turn.pause = Some(turn.longer());
        }
        turn.due = now + turn.pause.unwrap_or(NEXT_AFTER);
        let which = next_of(differ, after);
        Some(self.ask(&resource, bits, Some(which), now))
    }

    /// Nothing can be said now.
    fn unclear(&mut self, resource: Resource, now: Duration) {
        let turn = self.turns.entry(resource).or_default();
        turn.due = now + turn.pause.unwrap_or(UNCLEAR_AFTER);
    }

    /// The node has no answer.
    fn untold(&mut self, resource: Resource, now: Duration) {
        let turn = self.turns.entry(resource).or_default();
        let pause = turn.longer();
        (turn.pause, turn.due) = (Some(pause), now + pause);
    }

    fn ask(
        &mut self,
        resource: &Resource,
        bits: u32,
        which: Option<Vec<usize>>,
        now: Duration,
    ) -> Frame {
        let asked = Asked::at(now);
        let question = Question { bits, which, asked };
        let frame = question.frame(resource);
        self.asked.insert(resource.clone(), question);
        frame
    }
}

impl Turn {
    /// The next pause.
    fn longer(&self) -> Duration {
        let pause = self.pause.map_or(REFRESH_EVERY, |pause| pause * 2);
        pause.min(PAUSE_MAX)
    }
}

impl Question {
    fn frame(&self, resource: &Resource) -> Frame {
        Frame::Ask(Ask {
            resource: resource.clone(),
            bits: self.bits,
            entries_of: self.which.clone(),
            staged: None,
            by: By::Content,
        })
    }

    fn is_answered_by(&self, bits: u32, told: &Told) -> bool {
        bits == self.bits
            && match (&self.which, told) {
                (None, Told::Buckets(_)) | (_, Told::TooMany) => true,
                (Some(which), Told::Entries(theirs, _)) => which == theirs,
                _ => false,
            }
    }
}

/// What there is of a resource, by its bytes.
struct Ours(Vec<(Arc<Header>, Sum)>);

impl Ours {
    /// Nothing where the bytes of one of them are not there.
    fn of(resource: &Resource, outbox: &Outbox, source: &impl Compared) -> Option<Self> {
        let headers = source
            .headers(resource, outbox.wanted(resource))
            .into_iter();
        let of = |header: Arc<Header>| Some((header.clone(), source.sum(resource, &header)?));
        headers.map(of).collect::<Option<_>>().map(Self)
    }

    /// Into how many buckets they are divided, as a power of two.
    fn bits(&self) -> u32 {
        difference::bits_for(self.0.len() as u64)
    }

    /// Which buckets differ; nothing where there are not as many of them.
    fn differing(&self, resource: &Resource, bits: u32, theirs: &[u64]) -> Option<Vec<usize>> {
        let mut buckets = Buckets::new(resource, bits);
        for (header, sum) in &self.0 {
            buckets.add_content(&header.name, *sum);
        }
        difference::differing(&buckets.digests(), theirs)
    }

    /// What is to be sent anew in these buckets, in their order, and in which of them. A name that
    /// one of the two does not know is of no concern here: by versions, that is found soon.
    fn repairs(
        &self,
        resource: &Resource,
        (bits, which): (u32, &[usize]),
        told: &[Entry],
    ) -> (Repairs, Vec<usize>) {
        let told: BTreeMap<_, _> = told.iter().map(|entry| (&entry.name, entry.hash)).collect();
        let differs = |header: &Header, sum: Sum| {
            let hash = Entry::of_content(resource, &header.name, sum).hash;
            told.get(&header.name).is_some_and(|told| *told != hash)
        };
        let mut inside: BTreeMap<usize, Vec<&(Arc<Header>, Sum)>> = BTreeMap::new();
        for one in self.0.iter().filter(|(header, sum)| differs(header, *sum)) {
            inside
                .entry(bucket(&one.0.name, bits))
                .or_default()
                .push(one);
        }
        let (mut repairs, mut sent, mut bytes) = (Repairs::new(), Vec::new(), 0);
        for index in which {
            if repairs.len() >= OBJECTS_MAX || bytes >= BYTES_MAX {
                break;
            }
            for (header, sum) in inside.remove(index).unwrap_or_default() {
                bytes += sum.bytes();
                repairs.insert(header.name.clone(), Some(header.clone()));
            }
            sent.push(*index);
        }
        (repairs, sent)
    }
}

/// The first of the buckets that differ, beginning after the last one that had its turn.
fn next_of(differ: Vec<usize>, after: Option<usize>) -> Vec<usize> {
    let start = after.map_or(0, |after| differ.partition_point(|index| *index <= after));
    let (before, behind) = differ.split_at(start);
    let turned = behind.iter().chain(before);
    turned.take(BUCKETS_MAX).copied().collect()
}

/// The node holds what it should but for the bytes of these: its scopes are reset with them, at a
/// version that nobody was shown.
fn send_anew(
    resource: &Resource,
    repairs: &Repairs,
    (outbox, source): (&mut Outbox, &impl Compared),
) {
    let Some(now) = source.ring(resource).map(|ring| ring.now().clone()) else {
        return;
    };
    outbox.doubt(resource);
    outbox.repair(resource, &now, Some(repairs));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_that_differ_have_their_turn_one_after_the_other() {
        assert_eq!(next_of(vec![1, 4, 6], None), [1, 4, 6]);
        assert_eq!(next_of(vec![1, 4, 6], Some(4)), [6, 1, 4]);
        assert_eq!(next_of(vec![1, 4, 6], Some(9)), [1, 4, 6]);
        let many = next_of((0..500).collect(), Some(99));
        assert_eq!((many.len(), many[0]), (BUCKETS_MAX, 100));
    }

    fn services() -> Resource {
        Resource::new("", "services")
    }

    /// How a resource fares that is looked at whenever it is due, and of which bucket 3 differs
    /// whatever is sent.
    #[test]
    fn what_differs_still_is_looked_at_ever_less_often() {
        let mut refresh = Refresh::new(true, Duration::ZERO);
        let (mut now, mut pauses) = (Duration::from_secs(10_000), Vec::new());
        for _ in 0..9 {
            let asked = refresh.differ(services(), (4, 4), vec![3], now);
            assert!(asked.is_some());
            let turn = refresh.turns.get_mut(&services()).unwrap();
            turn.sent = (4, vec![3]);
            pauses.push((turn.due - now).as_secs());
            now = turn.due;
        }
        assert_eq!(pauses[..5], [300, 3_600, 7_200, 14_400, 28_800]);
        assert_eq!(pauses[6..], [86_400; 3]);
        assert_eq!(refresh.counts(), (0, 8));
        // Once it is equal, it is as any other again.
        assert!(refresh.differ(services(), (0, 4), vec![], now).is_none());
        assert!(refresh.turns.is_empty());
    }

    #[test]
    fn what_is_sent_for_the_first_time_is_not_in_vain_and_the_next_follows_soon() {
        let mut refresh = Refresh::new(true, Duration::ZERO);
        let now = Duration::from_secs(10_000);
        let asked = refresh.differ(services(), (0, 4), vec![0], now);
        let whole = |frame: Option<Frame>| match frame {
            Some(Frame::Ask(ask)) => (ask.bits, ask.entries_of, ask.by),
            other => panic!("{other:?}"),
        };
        assert_eq!(whole(asked), (4, None, By::Content));
        let asked = refresh.differ(services(), (4, 4), vec![2, 3, 9], now);
        assert_eq!(whole(asked), (4, Some(vec![2, 3, 9]), By::Content));
        refresh.turns.get_mut(&services()).unwrap().sent = (4, vec![2, 3]);
        let asked = refresh.differ(services(), (4, 4), vec![9], now + NEXT_AFTER);
        assert_eq!(whole(asked), (4, Some(vec![9]), By::Content));
        let turn = &refresh.turns[&services()];
        assert_eq!((turn.due, turn.pause), (now + 2 * NEXT_AFTER, None));
    }
}
