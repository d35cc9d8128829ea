//! A hub's end of a link: what `cloud::serve` and `cloud::talk` do with a real one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use cloud::sessions::{Begun, Bell, Word};
use cloud::talk::Desk;
use object::{ObjectName, Resource, Version};
use wire::frame::{
    Bye, Delivery, FIRST_MESSAGE_BYTES_MAX, Frame, Hello, MESSAGE_BYTES_MAX, Reason, Reported,
    frames,
};
use wire::outbox::{Settled, Source};
use wire::session::{
    Ended, Happening, PROTOCOL_NEWEST, PROTOCOL_OLDEST, Patience, RESUMES, Sender, Terms, greet,
};
use wire::window::Limits;

use crate::around::Around;
use crate::hub::Running;
use crate::link::Said;
use crate::objects::NODES;
use crate::seen::Seen;
use crate::trace::trace;

/// Bytes of frames that are put into one message.
const MESSAGE_BYTES: usize = 32 * 1024;
/// How long a node may take for its hello.
const HELLO_TIME_MAX: Duration = Duration::from_secs(10);
/// How long until the bytes of a node are looked at, which in truth are hours.
const REFRESH_AFTER: Duration = Duration::from_secs(20);
/// How much may be on its way to a node.
pub(crate) const LIMITS: Limits = Limits {
    deliveries: 24,
    bytes: 8_000,
    retry_after: Duration::from_secs(10),
    retries: 5,
    rejections: 3,
};

pub(crate) struct Session {
    link: u64,
    since: Duration,
    talk: Option<Talk>,
}

pub(crate) struct Talk {
    agent: usize,
    disk: u64,
    node: Arc<str>,
    pub(crate) number: u64,
    bell: Arc<Bell>,
    pub(crate) sender: Sender,
    sent: Sent,
    /// Reports that are brought to where they belong, and when they are there.
    bringing: VecDeque<(Duration, Reported)>,
    /// In which epoch it began. It does not outlive it.
    epoch: u64,
}

/// Why it is over.
enum Over {
    /// The other end closed it, or it broke.
    Lost,
    Away(Bye),
    Ended(Ended),
}

impl Session {
    /// A link that was let in, and has not said hello yet.
    pub(crate) fn guest(link: u64, now: Duration) -> Self {
        Self {
            link,
            since: now,
            talk: None,
        }
    }

    /// The session, once there was a hello.
    pub(crate) fn talk(&self) -> Option<&Talk> {
        self.talk.as_ref()
    }

    /// Whatever is next. Says whether it goes on.
    pub(crate) fn turn(&mut self, hub: &Running, around: &mut Around) -> bool {
        let Err(over) = self.go_on(hub, around) else {
            return true;
        };
        self.leave(over, hub, around);
        false
    }

    pub(crate) fn send_away(mut self, hub: &Running, around: &mut Around) {
        let bye = away(Reason::Stopping, "this hub stops", 0);
        self.leave(Over::Away(bye), hub, around);
    }

    fn leave(&mut self, over: Over, hub: &Running, around: &mut Around) {
        let number = hub.number();
        let node = self.talk.as_ref().map_or("?", |talk| &talk.node);
        let (bye, words) = match &over {
            Over::Lost => (None, "lost".to_owned()),
            Over::Away(bye) => (Some(bye.clone()), bye.words.to_string()),
            Over::Ended(ended) => (ended.bye(), ended.to_string()),
        };
        trace(|| format!("hub{number} session of {node} over: {words}"));
        match &over {
            Over::Ended(Ended::Silent { .. }) => around.seen.note("silent"),
            Over::Ended(Ended::Misbehaved(words)) => panic!("the agent misbehaved: {words}"),
            Over::Ended(Ended::Stuck(broken)) => panic!("stuck: {broken}"),
            Over::Away(bye) if bye.reason == Reason::Superseded => around.seen.note("superseded"),
            _ => {}
        }
        if let Some(talk) = &self.talk {
            hub.hub.sessions().end(&talk.node, talk.number);
            hub.hub.owners().lock().ended(&talk.node, talk.number);
        }
        let now = around.now;
        let Some(link) = around.links.get_mut(&self.link) else {
            return;
        };
        if let Some(bye) = bye.filter(|_| link.down.has_room()) {
            let mut words = Vec::new();
            Frame::Bye(bye).encode(&mut words);
            link.down.say(words, now);
        }
        link.down.close(now);
        link.hub_has = false;
    }

    fn go_on(&mut self, hub: &Running, around: &mut Around) -> Result<(), Over> {
        loop {
            let link = around.links.get(&self.link).ok_or(Over::Lost)?;
            let path = around.path(link);
            let link = around.links.get_mut(&self.link).ok_or(Over::Lost)?;
            match link.up.hear(around.now, path.up) {
                Some(Said::Message(message)) => self.receive(&message, hub, around)?,
                Some(Said::Closed) => return Err(Over::Lost),
                None => break,
            }
        }
        let Some(talk) = &mut self.talk else {
            return match around.now >= self.since + HELLO_TIME_MAX {
                true => Err(Over::Away(away(Reason::Misbehaved, "no hello", 0))),
                false => Ok(()),
            };
        };
        talk.heed(hub)?;
        talk.speak(self.link, hub, around)
    }

    fn receive(&mut self, message: &[u8], hub: &Running, around: &mut Around) -> Result<(), Over> {
        match &mut self.talk {
            Some(talk) => talk.receive(message, hub, around),
            None => {
                let first = frames(message, FIRST_MESSAGE_BYTES_MAX);
                let first = first.expect("an agent is understood").pop();
                let Some(Frame::Hello(hello)) = first else {
                    panic!("the first words are a hello");
                };
                let talk = Talk::new(self.link, hello, hub, around)?;
                self.talk = Some(talk);
                Ok(())
            }
        }
    }
}

impl Talk {
    fn new(id: u64, hello: Hello, hub: &Running, around: &mut Around) -> Result<Self, Over> {
        let agent = around.links[&id].agent;
        let node: Arc<str> = NODES[agent % NODES.len()].into();
        if around.revoked.contains(&*node) {
            let bye = away(Reason::Revoked, "this node is revoked", 300);
            return Err(Over::Away(bye));
        }
        let terms = Terms {
            oldest: PROTOCOL_OLDEST,
            newest: PROTOCOL_NEWEST,
            features: hub.release.features(),
            hub: format!("hub{}", hub.number()).into(),
            heartbeat_seconds: 30,
            window: LIMITS.deliveries as u64,
        };
        let welcome = greet(&hello, &terms).map_err(Over::Away)?;
        if !hub.hub.knows_epochs_of(&hello) {
            around.seen.note("epoch looked up");
            return Err(Over::Away(away(Reason::Busy, "the epoch is looked up", 3)));
        }
        let (number, now) = (hello.session, hub.times.now());
        let bell = match hub.hub.sessions().begin(&node, number, now) {
            Begun::Yes { bell, .. } => bell,
            Begun::Older { number } => {
                let words = format!("the node has a newer session, number {number}");
                return Err(Over::Away(away(Reason::Superseded, &words, 20)));
            }
        };
        hub.hub.owners().lock().began(&node, number);
        let at = hub.number();
        trace(|| {
            let standings: Vec<String> = hello.holdings.iter().map(holding).collect();
            format!("hub{at} session {number} of {node} (agent{agent}): {standings:?}")
        });
        bell.ring(Word::View);
        // An older release does not read what it does not know.
        let staged = match welcome.features & RESUMES {
            0 => Vec::new(),
            _ => hello.staged,
        };
        let holds = (hello.holdings, staged);
        let mut sender = Sender::new(welcome, holds, (LIMITS, Patience::HUB), now);
        sender.learn(hello.documents, hello.aside);
        sender.refresh_after(REFRESH_AFTER, now);
        Ok(Self {
            agent,
            disk: around.links[&id].disk,
            node,
            number,
            bell,
            sender,
            sent: Sent::default(),
            bringing: VecDeque::new(),
            epoch: hub.hub.look(|cache| cache.epoch()),
        })
    }

    fn heed(&mut self, hub: &Running) -> Result<(), Over> {
        let words = self.bell.words();
        if words.has(Word::Revoked) {
            let bye = away(Reason::Revoked, "this node was revoked", 300);
            return Err(Over::Away(bye));
        }
        if words.has(Word::Superseded) {
            let bye = away(Reason::Superseded, "the node has a newer session", 1);
            return Err(Over::Away(bye));
        }
        if words.has(Word::Epoch) {
            let bye = away(Reason::Stopping, "another history", 1);
            return Err(Over::Away(bye));
        }
        if words.has(Word::Progress) {
            self.sender.tell_progress();
        }
        let views = words.has(Word::View) || self.sender.wants_view();
        if views {
            self.sender.view(&hub.hub.view(&self.node));
        }
        let papers = views || words.has(Word::Papers);
        if papers && let Some(documents) = hub.hub.documents(&self.node) {
            self.sender.documents(&documents);
        }
        Ok(())
    }

    fn speak(&mut self, id: u64, hub: &Running, around: &mut Around) -> Result<(), Over> {
        let now = hub.times.now();
        while let Some((_, done)) = self.bringing.pop_front_if(|(at, _)| around.now >= *at) {
            self.sender.reported(done);
        }
        loop {
            let link = around.links.get(&id).ok_or(Over::Lost)?;
            if !link.down.has_room() {
                return self.sender.wait(now).map(drop).map_err(Over::Ended);
            }
            let arrives = around.now + around.path(link).delay;
            let mut message = Vec::new();
            let mut happenings = Vec::new();
            let sender = &mut self.sender;
            let spoken = hub.hub.look(|cache| {
                while message.len() < MESSAGE_BYTES {
                    let (frame, happened) = sender.next(cache, now)?;
                    happenings.extend(happened);
                    let Some(frame) = frame else { break };
                    trace(|| format!("  -> {} {}", self.node, crate::talk::frame(&frame)));
                    if let Frame::Void { number } = &frame {
                        around.seen.note("void");
                        if around.disks[self.agent] == self.disk {
                            let lacks = &mut around.lacks[self.agent];
                            lacks.extend(self.sent.object(*number));
                        }
                    }
                    if let Frame::Deliver { number, delivery } = &frame {
                        self.sent.note(*number, delivery);
                        note_document(delivery, &mut around.seen);
                    }
                    frame.encode(&mut message);
                }
                Ok::<(), Ended>(())
            });
            self.tell(happenings, hub, around);
            spoken.map_err(Over::Ended)?;
            let in_flight = self.sender.in_flight();
            // I12: what is on its way to a node has its bound.
            assert!(in_flight <= LIMITS.deliveries, "{in_flight} in flight");
            if message.is_empty() {
                return Ok(());
            }
            around
                .links
                .get_mut(&id)
                .expect("it was there a moment ago")
                .down
                .say(message, arrives);
        }
    }

    fn receive(&mut self, message: &[u8], hub: &Running, around: &mut Around) -> Result<(), Over> {
        let now = hub.times.now();
        let mut happenings = Vec::new();
        let sender = &mut self.sender;
        let frames = frames(message, MESSAGE_BYTES_MAX).expect("an agent is understood");
        let taken = hub.hub.look(|cache| {
            for frame in frames {
                trace(|| format!("  <- {} {}", self.node, crate::talk::frame(&frame)));
                if matches!(frame, Frame::Reject { .. }) {
                    around.seen.note("rejected");
                }
                happenings.extend(sender.take(frame, cache, now)?);
            }
            Ok::<(), Ended>(())
        });
        self.tell(happenings, hub, around);
        taken.map_err(Over::Ended)
    }

    fn tell(&mut self, happenings: Vec<Happening>, hub: &Running, around: &mut Around) {
        let counts = self.sender.counts();
        for (count, what) in [
            (counts.again, "sent again"),
            (counts.asked, "asked"),
            (counts.refreshed, "refreshed"),
        ] {
            if count > 0 {
                around.seen.note(what);
            }
        }
        for happening in happenings {
            match &happening {
                Happening::Settled(Settled::Reached {
                    resource, version, ..
                }) => {
                    around.seen.note("reached");
                    let acked = (self.epoch, version.clone());
                    if around.disks[self.agent] == self.disk {
                        around.acked[self.agent].insert(resource.clone(), acked);
                    }
                }
                Happening::Settled(Settled::SetAside { resource, name, .. }) => {
                    trace(|| format!("  set aside {resource} {name}"));
                    around.seen.note("set aside");
                }
                Happening::Report(report) => {
                    let place = self.agent % NODES.len();
                    around.reported[place].take(self.number, report);
                    let done = Reported {
                        queue: report.queue,
                        series: report.series,
                        number: report.number,
                    };
                    let last = self.bringing.back().map_or(around.now, |(at, _)| *at);
                    let at = last.max(around.now + around.chance.millis(2_000));
                    self.bringing.push_back((at, done));
                }
                Happening::Compared { even } => {
                    around.seen.note(if *even { "even" } else { "uneven" });
                    if *even && around.disks[self.agent] == self.disk {
                        around.lacks[self.agent].clear();
                    }
                }
                _ => {}
            }
            hub.happened(&self.node, happening);
        }
    }

    /// The node.
    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// Whether nothing is on its way, and everything that the node said is judged.
    pub(crate) fn is_quiet(&self) -> bool {
        self.sender.in_flight() == 0 && self.sender.unjudged().count() == 0
    }
}

/// The objects that may still be given up, and the cut that each is of.
#[derive(Debug, Default)]
struct Sent {
    last: u64,
    cut: Option<(u64, Resource, Version)>,
    all: BTreeMap<u64, (u64, Resource, ObjectName, Version)>,
}

impl Sent {
    /// A delivery is sent, or sent again.
    fn note(&mut self, number: u64, delivery: &Delivery) {
        if number <= self.last {
            return;
        }
        self.last = number;
        match delivery {
            Delivery::Cut {
                resource,
                epoch,
                aim,
            } => self.cut = Some((*epoch, resource.clone(), aim.clone())),
            // What is not there any more when it is staged comes with the reset as it is then.
            Delivery::Stage { .. } => self.cut = None,
            Delivery::Put { name, .. } => {
                let object = self.cut.clone().map(|(epoch, resource, aim)| {
                    let name = name.clone();
                    (number, (epoch, resource, name, aim))
                });
                self.all.extend(object);
            }
            _ => {}
        }
        while self.all.len() > 2 * LIMITS.deliveries {
            self.all.pop_first();
        }
    }

    /// The object that a delivery is.
    fn object(&self, number: u64) -> Option<(u64, Resource, ObjectName, Version)> {
        self.all.get(&number).cloned()
    }
}

fn note_document(delivery: &Delivery, seen: &mut Seen) {
    match delivery {
        Delivery::Document { .. } => seen.note("document"),
        Delivery::DocumentGone { .. } => seen.note("document gone"),
        _ => {}
    }
}

fn holding(holding: &wire::frame::Holding) -> String {
    let standing = holding.standing.as_ref();
    let standing = standing.map(|at| format!("{}+{}", at.progress, at.parts.as_slice().len()));
    let resource = &holding.resource;
    format!(
        "{resource} {standing:?} e{} {}",
        holding.epoch, holding.objects
    )
}

fn away(reason: Reason, words: &str, wait_seconds: u64) -> Bye {
    Bye {
        reason,
        words: words.into(),
        wait_seconds,
    }
}
