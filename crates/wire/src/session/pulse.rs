//! Whether the other end is still there. A link can be dead and say nothing: then only an answer
//! that does not come tells.

use std::time::Duration;

use super::Ended;

/// How patient an end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Silence after which the other end is asked, while something is awaited from it.
    pub ask_after: Duration,
    /// Silence after which it counts as gone, while something is awaited from it.
    pub give_up_after: Duration,
    /// How often it is asked though nothing is awaited; never, if nothing.
    pub heartbeat: Option<Duration>,
    /// Silence after which it counts as gone though nothing is awaited.
    pub idle_max: Duration,
}

impl Patience {
    /// An agent: it says that it is there every 30 s, and knows of a dead link 9 s later.
    pub const AGENT: Self = Self {
        ask_after: Duration::from_secs(4),
        give_up_after: Duration::from_secs(9),
        heartbeat: Some(Duration::from_secs(30)),
        idle_max: Duration::from_secs(45),
    };

    /// A hub: it waits for what the agent says, and asks only while deliveries are on their way.
    pub const HUB: Self = Self {
        ask_after: Duration::from_secs(4),
        give_up_after: Duration::from_secs(9),
        heartbeat: None,
        idle_max: Duration::from_secs(75),
    };
}

/// When each end was heard last.
#[derive(Debug)]
pub(super) struct Pulse {
    patience: Patience,
    /// When anything was heard.
    heard: Duration,
    /// When something of a message was heard that is not there yet.
    listened: Duration,
    /// When anything was said.
    spoke: Duration,
    /// Since when something is awaited.
    awaiting: Option<Duration>,
    /// When the last ping was sent, and whether it is not answered.
    pinged: Duration,
    open: bool,
    number: u64,
    /// When the last ping was sent that was answered.
    answered: Duration,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// Nothing.
    Rest,
    /// The other end is asked.
    Ping(u64),
    /// It is gone: for so long nothing was heard.
    Gone(Duration),
}

impl Pulse {
    pub(super) fn new(patience: Patience, now: Duration) -> Self {
        Self {
            patience,
            heard: now,
            listened: now,
            spoke: now,
            awaiting: None,
            pinged: now,
            open: false,
            number: 0,
            answered: Duration::ZERO,
        }
    }

    /// Something was heard.
    pub(super) fn hear(&mut self, now: Duration) {
        self.heard = self.heard.max(now);
    }

    /// Something of a message was heard that is not there yet.
    pub(super) fn listen(&mut self, now: Duration) {
        self.hear(now);
        self.listened = self.heard;
    }

    /// Something was said.
    pub(super) fn speak(&mut self, now: Duration) {
        self.spoke = self.spoke.max(now);
    }

    /// The heartbeat is as often as the other end wants it.
    pub(super) fn set_heartbeat(&mut self, every: Duration) {
        self.patience.heartbeat = Some(every);
    }

    /// The answer to a ping came. Answers to older ones say nothing new.
    pub(super) fn pong(&mut self, number: u64) {
        if self.open && number == self.number {
            self.open = false;
            self.answered = self.pinged;
        }
    }

    /// When the last ping was sent that was answered.
    pub(super) fn answered(&self) -> Duration {
        self.answered
    }

    /// Whether something is awaited from the other end, beside the answer to a ping.
    pub(super) fn await_answer(&mut self, awaits: bool, now: Duration) {
        match awaits {
            true => drop(self.awaiting.get_or_insert(now)),
            false => self.awaiting = None,
        }
    }

    /// What is to be done now. A ping that is given out counts as sent.
    pub(super) fn beat(&mut self, now: Duration) -> Beat {
        if let Some(silent) = self.gone(now) {
            return Beat::Gone(silent);
        }
        if now < self.ping_at() {
            return Beat::Rest;
        }
        self.number += 1;
        self.pinged = now;
        self.open = true;
        Beat::Ping(self.number)
    }

    /// For while nothing can be said. Gives when to look again.
    pub(super) fn wait(&self, now: Duration) -> Result<Duration, Ended> {
        match self.gone(now) {
            Some(silence) => Err(Ended::silent(silence)),
            None => Ok(self.gone_at()),
        }
    }

    /// When [`Pulse::beat`] has something to do, if nothing happens until then.
    pub(super) fn wakes_at(&self) -> Duration {
        self.gone_at().min(self.ping_at())
    }

    /// Since when an answer is awaited.
    fn waits_since(&self) -> Option<Duration> {
        let pinged = self.open.then_some(self.pinged);
        let since = match (self.awaiting, pinged) {
            (Some(one), Some(other)) => one.min(other),
            (one, other) => one.or(other)?,
        };
        Some(since.max(self.heard))
    }

    /// For how long nothing was heard, if the other end counts as gone.
    fn gone(&self, now: Duration) -> Option<Duration> {
        (now >= self.gone_at()).then(|| now.saturating_sub(self.heard))
    }

    /// When it counts as gone, if nothing is heard until then.
    fn gone_at(&self) -> Duration {
        let idle = self.heard + self.patience.idle_max;
        match self.waits_since() {
            Some(since) => idle.min(since + self.patience.give_up_after),
            None => idle,
        }
    }

    fn ping_at(&self) -> Duration {
        let asked = match self.awaiting {
            // One question is enough for each silence.
            Some(_) if !self.open || self.heard > self.pinged => self
                .waits_since()
                .map(|since| since + self.patience.ask_after),
            _ => None,
        };
        // A large message can take long to arrive. Who says nothing meanwhile would seem gone.
        let owed = (self.listened > self.spoke).then(|| self.spoke + self.patience.ask_after);
        let beat = self.patience.heartbeat.map(|every| self.pinged + every);
        let soonest = [asked, owed, beat].into_iter().flatten().min();
        soonest.unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1_000);

    fn seconds(count: u64) -> Duration {
        START + Duration::from_secs(count)
    }

    #[test]
    fn an_idle_agent_says_that_it_is_there_and_notices_a_dead_link_within_45_seconds() {
        let mut pulse = Pulse::new(Patience::AGENT, START);
        assert_eq!(pulse.beat(seconds(29)), Beat::Rest);
        assert_eq!(pulse.wakes_at(), seconds(30));
        assert_eq!(pulse.beat(seconds(30)), Beat::Ping(1));
        pulse.speak(seconds(30));
        assert_eq!(pulse.beat(seconds(38)), Beat::Rest);
        let gone = Beat::Gone(Duration::from_secs(39));
        assert_eq!(pulse.beat(seconds(39)), gone);
    }

    #[test]
    fn an_answered_ping_waits_for_the_next_heartbeat() {
        let mut pulse = Pulse::new(Patience::AGENT, START);
        assert_eq!(pulse.beat(seconds(30)), Beat::Ping(1));
        pulse.speak(seconds(30));
        pulse.hear(seconds(31));
        pulse.pong(1);
        assert_eq!(pulse.answered(), seconds(30));
        assert_eq!(pulse.wakes_at(), seconds(60));
        // An answer that nobody asked for says nothing.
        pulse.pong(7);
        assert_eq!(pulse.answered(), seconds(30));
    }

    #[test]
    fn while_something_is_awaited_a_dead_link_is_noticed_within_ten_seconds() {
        let mut pulse = Pulse::new(Patience::HUB, START);
        pulse.await_answer(true, seconds(20));
        assert_eq!(pulse.beat(seconds(23)), Beat::Rest);
        assert_eq!(pulse.beat(seconds(24)), Beat::Ping(1));
        assert_eq!(pulse.beat(seconds(28)), Beat::Rest);
        assert_eq!(pulse.beat(seconds(29)), Beat::Gone(Duration::from_secs(29)));
    }

    #[test]
    fn a_hub_that_waits_for_nothing_is_patient() {
        let mut pulse = Pulse::new(Patience::HUB, START);
        assert_eq!(pulse.beat(seconds(74)), Beat::Rest);
        assert!(matches!(pulse.beat(seconds(75)), Beat::Gone(_)));
    }

    #[test]
    fn who_cannot_say_anything_notices_silence_all_the_same() {
        let mut pulse = Pulse::new(Patience::HUB, START);
        pulse.await_answer(true, seconds(20));
        // A ping is due, and is not sent.
        assert_eq!(pulse.wait(seconds(25)), Ok(seconds(29)));
        pulse.hear(seconds(26));
        assert_eq!(pulse.wait(seconds(29)), Ok(seconds(35)));
        let gone = Err(Ended::Silent { seconds: 9 });
        assert_eq!(pulse.wait(seconds(35)), gone);
    }

    #[test]
    fn who_only_listens_says_now_and_then_that_it_is_there() {
        let mut pulse = Pulse::new(Patience::AGENT, START);
        for second in 1..4 {
            pulse.listen(seconds(second));
            assert_eq!(pulse.beat(seconds(second)), Beat::Rest);
        }
        pulse.listen(seconds(4));
        assert_eq!(pulse.beat(seconds(4)), Beat::Ping(1));
    }
}
