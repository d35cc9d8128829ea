//! What is on its way to a node: numbers, acks, rejections, and when something is sent again.
//!
//! A link keeps its order and loses nothing while it lasts, so hardly anything is ever sent twice.
//! Something is sent again if the node rejected it, or if it did not answer to it although it
//! answered to a ping that was sent later. After a few attempts it is given up: its number is void,
//! and whoever sent it sets its object aside.

use std::collections::VecDeque;
use std::time::Duration;

use crate::frame::Fault;

/// How much may be on its way, and how patient the sender is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Deliveries on their way.
    pub deliveries: usize,
    /// Bytes on their way. A single delivery may have more.
    pub bytes: usize,
    /// How long an answer may take before a delivery is sent again.
    pub retry_after: Duration,
    /// How often it is sent again without an answer.
    pub retries: u32,
    /// How often it may be rejected.
    pub rejections: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deliveries: 1024,
            bytes: 1024 * 1024,
            retry_after: Duration::from_secs(10),
            retries: 5,
            rejections: 3,
        }
    }
}

/// Deliveries on their way. `T` is what is needed to send one again.
#[derive(Debug)]
pub struct Window<T> {
    limits: Limits,
    /// The number of the first that is on its way, or of the next one.
    first: u64,
    flight: VecDeque<Flight<T>>,
    bytes: usize,
    /// The node has everything up to this number, on its disk or not.
    received: u64,
}

#[derive(Debug)]
struct Flight<T> {
    what: T,
    bytes: usize,
    sent: Duration,
    retries: u32,
    rejections: u32,
    /// Whether it was sent again: whole, then.
    again: bool,
    fate: Fate,
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The node has it.
    Delivered,
    /// It was given up.
    Void(Why),
}

/// Why something was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The node does not take it.
    Rejected(Fault),
    /// The node did not answer, however often it was sent.
    Unanswered,
    /// It was to be sent again and is not there any more: something newer is.
    Gone,
}

/// What is to be done about a delivery now.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'t, T> {
    /// It is sent again, under its number and whole.
    Again {
        /// Its number.
        number: u64,
        /// What it is.
        what: &'t T,
    },
    /// The node is told that it will not come.
    Void {
        /// Its number.
        number: u64,
        /// What it is.
        what: &'t T,
    },
}

/// The node answered to something that it was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the node speaks of delivery {number}, and was sent {sent}")]
pub struct NotSent {
    /// The number in the answer.
    pub number: u64,
    /// The highest number that was sent.
    pub sent: u64,
}

impl<T> Window<T> {
    /// Nothing is on its way.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            first: 1,
            flight: VecDeque::new(),
            bytes: 0,
            received: 0,
        }
    }

    /// Whether another one may be sent now.
    pub fn has_room(&self) -> bool {
        self.flight.len() < self.limits.deliveries && self.bytes < self.limits.bytes
    }

    /// How many are on their way.
    pub fn len(&self) -> usize {
        self.flight.len()
    }

    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.flight.is_empty()
    }

    /// Notes that something is sent now. Returns its number.
    pub fn send(&mut self, what: T, bytes: usize, now: Duration) -> u64 {
        self.bytes += bytes;
        self.flight.push_back(Flight {
            what,
            bytes,
            sent: now,
            retries: 0,
            rejections: 0,
            again: false,
            fate: Fate::Delivered,
        });
        self.sent()
    }

    /// Takes an ack. Gives everything that is settled by it, and how.
    pub fn ack(&mut self, number: u64) -> Result<Vec<(T, Fate)>, NotSent> {
        if number > self.sent() {
            return Err(self.not_sent(number));
        }
        let mut settled = Vec::new();
        while self.first <= number
            && let Some(flight) = self.flight.pop_front()
        {
            self.first += 1;
            self.bytes -= flight.bytes;
            settled.push((flight.what, flight.fate));
        }
        if self.flight.is_empty() {
            // A session that rests holds no memory for what was on its way.
            self.flight = VecDeque::new();
        }
        Ok(settled)
    }

    /// Notes that the node has everything up to this number, though perhaps not on its disk: there
    /// is no point in sending it again.
    pub fn receive(&mut self, number: u64) -> Result<(), NotSent> {
        if number > self.sent() {
            return Err(self.not_sent(number));
        }
        self.received = self.received.max(number);
        Ok(())
    }

    /// Takes a rejection. Nothing is to be done about what was settled before. Who lacks a base
    /// gets the whole, and that counts only from then on; what a node cannot take at all, it is not
    /// sent again.
    pub fn reject(
        &mut self,
        number: u64,
        fault: Fault,
        now: Duration,
    ) -> Result<Option<Step<'_, T>>, NotSent> {
        if number > self.sent() || number == 0 {
            return Err(self.not_sent(number));
        }
        let rejections_max = self.limits.rejections;
        let flight = self.on_its_way(number);
        let Some(flight) = flight.filter(|flight| flight.fate == Fate::Delivered) else {
            return Ok(None);
        };
        flight.sent = now;
        let free = match fault {
            Fault::NoBase | Fault::Different => !flight.again,
            Fault::NoObject | Fault::TooLarge => {
                flight.rejections = rejections_max;
                false
            }
            Fault::OutOfOrder | Fault::NotStored | Fault::Other(_) => false,
        };
        flight.rejections = flight.rejections.saturating_add(u32::from(!free));
        let what = &flight.what;
        if flight.rejections < rejections_max || free {
            flight.again = true;
            return Ok(Some(Step::Again { number, what }));
        }
        flight.fate = Fate::Void(Why::Rejected(fault));
        Ok(Some(Step::Void { number, what }))
    }

    /// What was to be sent again is given up: it is not there any more.
    pub fn give_up(&mut self, number: u64) {
        if let Some(flight) = self.on_its_way(number)
            && flight.fate == Fate::Delivered
        {
            flight.fate = Fate::Void(Why::Gone);
        }
    }

    /// What is on its way under this number.
    pub fn get(&self, number: u64) -> Option<&T> {
        let index = number.checked_sub(self.first)?;
        let flight = self.flight.get(usize::try_from(index).ok()?);
        flight.map(|flight| &flight.what)
    }

    /// All that is on its way, the oldest first.
    pub fn on_the_way(&self) -> impl Iterator<Item = &T> {
        self.flight.iter().map(|flight| &flight.what)
    }

    fn on_its_way(&mut self, number: u64) -> Option<&mut Flight<T>> {
        let index = number.checked_sub(self.first)?;
        self.flight.get_mut(usize::try_from(index).ok()?)
    }

    /// What is due now: the first that is not answered, if anything. A link keeps its order, so
    /// what follows it cannot be lost alone. `answered` is when the last ping was sent that was
    /// answered.
    pub fn due(&mut self, now: Duration, answered: Duration) -> Option<Step<'_, T>> {
        let Limits {
            retry_after,
            retries,
            ..
        } = self.limits;
        let number = self.first;
        // What the node has, it will answer to when it is stored.
        if number <= self.received {
            return None;
        }
        let flight = self.flight.front_mut()?;
        // Where no later ping was answered, the link may be dead, or slow: then nothing is sent on
        // top of it.
        if now.saturating_sub(flight.sent) < retry_after || answered <= flight.sent {
            return None;
        }
        flight.sent = now;
        flight.retries += 1;
        let what = &flight.what;
        if flight.fate == Fate::Delivered && flight.retries <= retries {
            flight.again = true;
            return Some(Step::Again { number, what });
        }
        if flight.fate == Fate::Delivered {
            flight.fate = Fate::Void(Why::Unanswered);
        }
        Some(Step::Void { number, what })
    }

    /// Everything up to this number was acked.
    pub fn acked(&self) -> u64 {
        self.first - 1
    }

    /// The highest number that was sent.
    pub fn sent(&self) -> u64 {
        self.first + self.flight.len() as u64 - 1
    }

    fn not_sent(&self, number: u64) -> NotSent {
        NotSent {
            number,
            sent: self.sent(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn window() -> Window<&'static str> {
        Window::new(Limits {
            deliveries: 3,
            bytes: 100,
            ..Limits::default()
        })
    }

    #[test]
    fn an_ack_settles_everything_up_to_it_once() {
        let mut window = window();
        assert_eq!(window.send("a", 1, SECOND), 1);
        assert_eq!(window.send("b", 1, SECOND), 2);
        assert_eq!(window.send("c", 1, SECOND), 3);
        assert!(!window.has_room());
        assert_eq!(
            window.ack(2),
            Ok(vec![("a", Fate::Delivered), ("b", Fate::Delivered)])
        );
        assert_eq!(window.ack(1), Ok(vec![]));
        assert_eq!(window.ack(2), Ok(vec![]));
        assert!(window.has_room());
        assert_eq!(window.send("d", 1, SECOND), 4);
        assert_eq!(window.len(), 2);
    }

    #[test]
    fn bytes_on_their_way_are_bounded_and_one_large_delivery_passes() {
        let mut window = window();
        window.send("large", 5_000, SECOND);
        assert!(!window.has_room());
        window.ack(1).unwrap();
        assert!(window.has_room());
    }

    #[test]
    fn who_acks_what_was_not_sent_misbehaves() {
        let mut window = window();
        assert!(window.ack(1).is_err());
        window.send("a", 1, SECOND);
        for number in [2, u64::MAX] {
            assert_eq!(window.ack(number), Err(NotSent { number, sent: 1 }));
            assert_eq!(
                window.reject(number, Fault::NotStored, SECOND),
                Err(NotSent { number, sent: 1 })
            );
        }
        assert!(window.reject(0, Fault::NotStored, SECOND).is_err());
        assert_eq!(window.len(), 1);
    }

    #[test]
    fn what_is_rejected_three_times_is_void() {
        let mut window = window();
        window.send("a", 1, SECOND);
        window.send("poison", 1, SECOND);
        for _ in 0..2 {
            let again = Some(Step::Again {
                number: 2,
                what: &"poison",
            });
            assert_eq!(window.reject(2, Fault::NotStored, SECOND), Ok(again));
        }
        let void = Some(Step::Void {
            number: 2,
            what: &"poison",
        });
        assert_eq!(window.reject(2, Fault::NotStored, SECOND), Ok(void));
        assert_eq!(window.reject(2, Fault::NotStored, SECOND), Ok(None));
        let why = Fate::Void(Why::Rejected(Fault::NotStored));
        assert_eq!(
            window.ack(2),
            Ok(vec![("a", Fate::Delivered), ("poison", why)])
        );
        assert_eq!(window.reject(1, Fault::NotStored, SECOND), Ok(None));
    }

    #[test]
    fn who_lacks_a_base_gets_the_whole_and_only_that_counts() {
        let mut window = window();
        window.send("a", 1, SECOND);
        // The first is free; with the whole in hand, nothing is.
        for _ in 0..3 {
            let again = window.reject(1, Fault::NoBase, SECOND);
            assert!(matches!(again, Ok(Some(Step::Again { .. }))), "{again:?}");
        }
        let void = window.reject(1, Fault::Different, SECOND);
        assert!(matches!(void, Ok(Some(Step::Void { .. }))), "{void:?}");
    }

    #[test]
    fn what_a_node_can_never_take_is_void_at_once() {
        for fault in [Fault::TooLarge, Fault::NoObject] {
            let mut window = window();
            window.send("a", 1, SECOND);
            let void = window.reject(1, fault, SECOND);
            assert!(matches!(void, Ok(Some(Step::Void { .. }))), "{void:?}");
            let why = Fate::Void(Why::Rejected(fault));
            assert_eq!(window.ack(1), Ok(vec![("a", why)]));
        }
    }

    #[test]
    fn what_the_node_has_is_not_sent_again_however_slow_its_disk_is() {
        let mut window = window();
        window.send("a", 1, SECOND);
        window.send("b", 1, SECOND);
        window.receive(1).unwrap();
        assert_eq!(window.due(60 * SECOND, 50 * SECOND), None);
        assert_eq!(window.receive(3), Err(NotSent { number: 3, sent: 2 }));
        window.ack(1).unwrap();
        // The one after it is missing, as far as anybody knows.
        let again = Step::Again {
            number: 2,
            what: &"b",
        };
        assert_eq!(window.due(60 * SECOND, 50 * SECOND), Some(again));
    }

    #[test]
    fn what_is_not_there_any_more_is_given_up() {
        let mut window = window();
        window.send("a", 1, SECOND);
        window.reject(1, Fault::NoBase, SECOND).unwrap();
        window.give_up(1);
        window.give_up(7);
        assert_eq!(window.reject(1, Fault::NoBase, SECOND), Ok(None));
        assert_eq!(window.ack(1), Ok(vec![("a", Fate::Void(Why::Gone))]));
    }

    #[test]
    fn without_a_later_answer_nothing_is_sent_again() {
        let mut window = window();
        window.send("a", 1, 10 * SECOND);
        assert_eq!(window.due(19 * SECOND, 15 * SECOND), None);
        assert_eq!(window.due(60 * SECOND, 10 * SECOND), None);
        let again = Step::Again {
            number: 1,
            what: &"a",
        };
        assert_eq!(window.due(60 * SECOND, 11 * SECOND), Some(again));
        // That was now: the next waits for an answer again.
        assert_eq!(window.due(65 * SECOND, 64 * SECOND), None);
        assert_eq!(window.due(70 * SECOND, 60 * SECOND), None);
    }

    #[test]
    fn after_five_times_it_is_given_up_and_the_node_told_until_it_knows() {
        let mut window = window();
        window.send("a", 1, Duration::ZERO);
        let mut now = Duration::ZERO;
        for _ in 0..5 {
            now += 10 * SECOND;
            let due = window.due(now, now);
            assert!(matches!(due, Some(Step::Again { .. })), "{due:?}");
        }
        for _ in 0..2 {
            now += 10 * SECOND;
            let due = window.due(now, now);
            assert!(matches!(due, Some(Step::Void { .. })), "{due:?}");
        }
        let why = Fate::Void(Why::Unanswered);
        assert_eq!(window.ack(1), Ok(vec![("a", why)]));
    }
}
