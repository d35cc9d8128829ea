//! An agent's end of a link: what `edge::talk` does with a real one.

use std::collections::VecDeque;
use std::time::Duration;

use edge::keep::{Begun, Stored};
use store::replica::Refusal;
use wire::frame::{Bye, Delivery, Frame, Hello, MESSAGE_BYTES_MAX, Reason, frames};
use wire::session::{Ended, Receiver, Task};

use crate::agent::{Died, Machine, Running};
use crate::around::Around;
use crate::link::Said;
use crate::records::at_once;
use crate::report::Desk;
use crate::trace::trace;

/// Pieces that wait for the disk. Beyond it nothing more is read.
const WAITING_MAX: usize = 64;
/// Bytes of frames that are put into one message.
const MESSAGE_BYTES: usize = 32 * 1024;

pub(crate) struct Talk {
    pub(crate) link: u64,
    pub(crate) began: Duration,
    receiver: Receiver,
    queue: VecDeque<Stored>,
    begun: Begun,
    /// What is being stored, and when that is done.
    storing: Option<(Stored, Duration)>,
}

/// Why a session is over.
#[derive(Debug)]
pub(crate) enum Closed {
    Lost,
    Silent,
    Told(Bye),
    NotStored(Refusal),
}

impl Talk {
    /// Whether the hub greeted it.
    pub(crate) fn is_greeted(&self) -> bool {
        self.receiver.welcome().is_some()
    }

    pub(crate) fn new(link: u64, hello: Hello, now: Duration) -> Self {
        Self {
            link,
            began: now,
            receiver: Receiver::new(hello, now),
            queue: VecDeque::new(),
            begun: Begun::default(),
            storing: None,
        }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.storing.is_none()
    }

    /// Whatever is next. Says why it is over, if it is.
    pub(crate) fn turn(
        &mut self,
        agent: &Running,
        machine: &mut Machine,
        around: &mut Around,
    ) -> Result<Option<Closed>, Died> {
        if let Err(closed) = self.listen(agent, &mut machine.desk, around) {
            return Ok(Some(closed));
        }
        loop {
            match self.store(agent, machine, around)? {
                Some(Ok(number)) => self.receiver.stored(number),
                Some(Err(refusal)) => return Ok(Some(Closed::NotStored(refusal))),
                None => break,
            }
        }
        match self.speak(agent, &mut machine.desk, around) {
            Ok(()) => Ok(None),
            Err(closed) => Ok(Some(closed)),
        }
    }

    fn listen(
        &mut self,
        agent: &Running,
        desk: &mut Desk,
        around: &mut Around,
    ) -> Result<(), Closed> {
        while self.queue.len() < WAITING_MAX {
            let link = around.links.get(&self.link).ok_or(Closed::Lost)?;
            let path = around.path(link);
            let link = around.links.get_mut(&self.link).ok_or(Closed::Lost)?;
            let message = match link.down.hear(around.now, path.down) {
                Some(Said::Message(message)) => message,
                Some(Said::Closed) => return Err(Closed::Lost),
                None => break,
            };
            let now = agent.times.now();
            let frames = frames(&message, MESSAGE_BYTES_MAX);
            for frame in frames.expect("a hub is understood") {
                let tasks = self.receiver.take(frame, &agent.keep, now);
                let tasks = tasks.map_err(|ended| closed(ended, around))?;
                for task in tasks {
                    if let Task::Reported(reported) = task {
                        around.seen.note("reported");
                        desk.told(reported);
                    }
                    self.queue.extend(Stored::of(task));
                }
            }
            agent.keep.note_aside(self.receiver.aside());
        }
        if self.queue.len() >= WAITING_MAX {
            self.receiver.listen(agent.times.now());
        }
        Ok(())
    }

    /// Stores what is due. Nothing if there is nothing, or it takes a while.
    fn store(
        &mut self,
        agent: &Running,
        machine: &mut Machine,
        around: &mut Around,
    ) -> Result<Option<Result<u64, Refusal>>, Died> {
        if self.storing.is_none() {
            let next = self.queue.pop_front();
            let next = next.or_else(|| self.receiver.flush().and_then(Stored::of));
            let Some(next) = next else { return Ok(None) };
            self.storing = Some((next, around.now + machine.disk_delay));
        }
        let done = self
            .storing
            .as_ref()
            .is_some_and(|(_, at)| around.now >= *at);
        let Some((task, _)) = self.storing.take_if(|_| done) else {
            return Ok(None);
        };
        trace(|| format!("agent{} stores {}", machine.number, told(&task)));
        self.keep(task, agent, machine, around).map(Some)
    }

    /// Gives something to the store.
    fn keep(
        &mut self,
        task: Stored,
        agent: &Running,
        machine: &mut Machine,
        around: &mut Around,
    ) -> Result<Result<u64, Refusal>, Died> {
        machine.note_stored(&task);
        let resource = match &task {
            Stored::Piece(piece) => Some(piece.resource.clone()),
            _ => None,
        };
        let begun = &mut self.begun;
        let kept = agent.ask(machine, around, |keep| at_once(keep.store(task, begun)))?;
        match (&kept, resource) {
            // What is held and what the hub has are of two histories, and nobody noticed.
            (Err(Refusal::Misbehaved(refusal)), Some(resource))
                if agent.has_forgotten(&resource) =>
            {
                trace(|| format!("agent{} forgets {resource}: {refusal}", machine.number));
                machine.forget_one(&resource, around);
                machine.note_kept(&agent.keep);
            }
            (Err(refusal @ (Refusal::Misbehaved(_) | Refusal::NothingStaged { .. })), _) => {
                panic!("agent{}: {refusal}", machine.number);
            }
            _ => {}
        }
        Ok(kept)
    }

    /// What was handed to the disk is finished: a later session counts on the order.
    pub(crate) fn finish(
        &mut self,
        agent: &Running,
        machine: &mut Machine,
        around: &mut Around,
    ) -> Result<(), Died> {
        if let Some((task, _)) = self.storing.take() {
            trace(|| format!("agent{} finishes {}", machine.number, told(&task)));
            drop(self.keep(task, agent, machine, around)?);
        }
        Ok(())
    }

    fn speak(
        &mut self,
        agent: &Running,
        desk: &mut Desk,
        around: &mut Around,
    ) -> Result<(), Closed> {
        loop {
            let link = around.links.get(&self.link).ok_or(Closed::Lost)?;
            let arrives = around.now + around.path(link).delay;
            if !link.up.has_room() {
                let there = self.receiver.wait(agent.times.now());
                return there.map(drop).map_err(|ended| closed(ended, around));
            }
            let mut message = Vec::new();
            while message.len() < MESSAGE_BYTES {
                let now = agent.times.now();
                let next = self.receiver.next(&agent.keep, || desk.send(), now);
                match next.map_err(|ended| closed(ended, around))? {
                    Some(frame) => frame.encode(&mut message),
                    None => break,
                }
            }
            if message.is_empty() {
                return Ok(());
            }
            let link = around.links.get_mut(&self.link).ok_or(Closed::Lost)?;
            link.up.say(message, arrives);
        }
    }

    /// The last words.
    pub(crate) fn leave(&self, closed: &Closed, around: &mut Around) {
        let now = around.now;
        let Some(link) = around.links.get_mut(&self.link) else {
            return;
        };
        if matches!(closed, Closed::NotStored(_)) && link.up.has_room() {
            let bye = Bye {
                reason: Reason::Busy,
                words: "the store refuses".into(),
                wait_seconds: 0,
            };
            let mut words = Vec::new();
            Frame::Bye(bye).encode(&mut words);
            link.up.say(words, now);
        }
        link.up.close(now);
        link.agent_has = false;
    }
}

fn closed(ended: Ended, around: &mut Around) -> Closed {
    match ended {
        Ended::Silent { .. } => {
            around.seen.note("silent");
            Closed::Silent
        }
        Ended::Told(bye) => Closed::Told(bye),
        Ended::Misbehaved(words) => panic!("the hub misbehaved: {words}"),
        Ended::Stuck(broken) => panic!("stuck: {broken}"),
    }
}

fn told(task: &Stored) -> String {
    let Stored::Piece(piece) = task else {
        return format!("{task:?}");
    };
    let change = |change: &wire::inbox::Change| match change {
        wire::inbox::Change::Put(object) => {
            format!("{}@{}", object.header.name, object.header.version)
        }
        wire::inbox::Change::Delete { name, version, .. } => format!("-{name}@{version}"),
    };
    let changes: Vec<String> = piece.changes.iter().map(change).collect();
    let resets: Vec<String> = piece
        .resets
        .iter()
        .map(|reset| {
            let puts = reset
                .puts
                .iter()
                .map(|it| format!("{}@{}", it.header.name, it.header.version));
            let puts: Vec<String> = puts.collect();
            format!(
                "{} onto {:?} {puts:?} -{:?}",
                reset.scope.range, reset.onto, reset.drops
            )
        })
        .collect();
    let ended: Vec<String> = piece
        .ended
        .iter()
        .map(|scope| scope.range.to_string())
        .collect();
    format!(
        "{} {} to {:?} {:?}: {changes:?} {resets:?} end {ended:?}",
        piece.number, piece.resource, piece.aim, piece.complete
    )
}

/// A frame, for people.
pub(crate) fn frame(frame: &Frame) -> String {
    let Frame::Deliver { number, delivery } = frame else {
        return format!("{frame:?}");
    };
    let what = match delivery {
        Delivery::Cut { resource, aim, .. } => format!("cut of {resource} to {aim}"),
        Delivery::Put { name, content } => format!("put {name} {}", content.length),
        Delivery::Delete { name, version, .. } => format!("delete {name}@{version}"),
        Delivery::Stage {
            resource,
            scope,
            from,
            ..
        } => format!("stage {resource} {} from {from:?}", scope.range),
        Delivery::Reset { scope, from } => format!("reset {} from {from:?}", scope.range),
        Delivery::End { scope } => format!("end {}", scope.range),
        other => format!("{other:?}"),
    };
    format!("{number} {what}")
}
