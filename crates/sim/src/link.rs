//! A link: messages on their way, in order. It loses nothing while it lasts; what was on its way
//! when it breaks may be lost. A path may be silent without being broken.

use std::collections::VecDeque;
use std::time::Duration;

use wire::frame::{Frame, MESSAGE_BYTES_MAX, frames};

/// Messages that a socket takes before it waits for the other end.
const MESSAGES_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) agent: usize,
    pub(crate) hub: usize,
    /// Which disk the agent had when it opened it.
    pub(crate) disk: u64,
    pub(crate) down: Pipe,
    pub(crate) up: Pipe,
    /// Whether each end still has it.
    pub(crate) agent_has: bool,
    pub(crate) hub_has: bool,
}

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    queue: VecDeque<(Duration, Said)>,
    /// Messages that were heard.
    heard: u64,
    /// Nothing arrives any more, and nobody is told.
    pub(crate) silent: bool,
}

/// What can happen to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hurt {
    Lost,
    Twice,
    /// The one after it comes first.
    Early,
}

#[derive(Debug)]
pub(crate) enum Said {
    Message(Vec<u8>),
    /// The other end closed it, or it broke.
    Closed,
}

/// Whether a message has reports in it, or says which have arrived.
fn reports(message: &[u8]) -> bool {
    let frames = frames(message, MESSAGE_BYTES_MAX).unwrap_or_default();
    let report = |frame: &Frame| matches!(frame, Frame::Report(_) | Frame::Reported(_));
    frames.iter().any(report)
}

/// How it is between an agent and a hub.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) down: bool,
    pub(crate) up: bool,
    pub(crate) delay: Duration,
}

impl Link {
    pub(crate) fn new(agent: usize, hub: usize, disk: u64) -> Self {
        Self {
            agent,
            hub,
            disk,
            down: Pipe::default(),
            up: Pipe::default(),
            agent_has: true,
            hub_has: true,
        }
    }

    /// It breaks: some of what was on its way arrives, and both ends are told.
    pub(crate) fn break_off(&mut self, now: Duration, keep: usize) {
        for pipe in [&mut self.down, &mut self.up] {
            pipe.queue.truncate(keep);
            pipe.queue.push_back((now, Said::Closed));
        }
    }
}

impl Pipe {
    pub(crate) fn has_room(&self) -> bool {
        self.queue.len() < MESSAGES_MAX
    }

    pub(crate) fn say(&mut self, message: Vec<u8>, arrives: Duration) {
        self.push(Said::Message(message), arrives);
    }

    pub(crate) fn close(&mut self, arrives: Duration) {
        self.push(Said::Closed, arrives);
    }

    fn push(&mut self, said: Said, arrives: Duration) {
        assert!(self.queue.len() < 2 * MESSAGES_MAX, "a link has its limit");
        let last = self.queue.back().map_or(arrives, |(last, _)| *last);
        self.queue.push_back((arrives.max(last), said));
    }

    /// Something happens to the next message. The first words of both ends are not hurt: who says
    /// them twice is not one of ours. Says whether there was one.
    pub(crate) fn hurt(&mut self, hurt: Hurt) -> bool {
        let message = |at: usize| match self.queue.get(at) {
            Some((_, Said::Message(message))) => Some(message.clone()),
            Some((_, Said::Closed)) | None => None,
        };
        let (Some(next), second) = (message(0), message(1)) else {
            return false;
        };
        // Nor what goes up and its acks: a connection that lives is what makes these sure.
        let sure = reports(&next) || second.as_deref().is_some_and(reports);
        if self.heard == 0 || sure {
            return false;
        }
        match hurt {
            Hurt::Lost => drop(self.queue.pop_front()),
            Hurt::Twice => {
                let at = self.queue[0].0;
                self.queue.push_front((at, Said::Message(next)));
            }
            Hurt::Early if second.is_some() => self.queue.swap(0, 1),
            Hurt::Early => return false,
        }
        true
    }

    /// The next that has arrived by now.
    pub(crate) fn hear(&mut self, now: Duration, open: bool) -> Option<Said> {
        let arrived = self.queue.front().is_some_and(|(at, _)| *at <= now);
        match arrived && open && !self.silent {
            true => {
                self.heard += 1;
                self.queue.pop_front().map(|(_, said)| said)
            }
            false => None,
        }
    }
}
