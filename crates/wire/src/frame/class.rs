//! What frames are for: how bytes are told apart when they are counted, and what goes first.

use object::codec::Taker;

use super::{CLOSE, DATA, DELIVER, OPEN, REPORT, VOID, WINDOW};

/// What a frame is for. What is named first goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Words of the session itself: heartbeats, acks, questions.
    Control,
    /// Objects and documents for the node.
    Configuration,
    /// Everything else: what is reported, what is tunnelled.
    Bulk,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Control, Self::Configuration, Self::Bulk];

    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Configuration => "configuration",
            Self::Bulk => "bulk",
        }
    }

    fn of(kind: u64) -> Self {
        match kind {
            DELIVER | VOID => Self::Configuration,
            OPEN | DATA | WINDOW | CLOSE | REPORT => Self::Bulk,
            _ => Self::Control,
        }
    }
}

/// Bytes, by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight([u64; 3]);

impl Weight {
    /// The bytes of a message. What makes no sense is counted as control.
    pub fn of(message: &[u8]) -> Self {
        let mut weight = Self::default();
        let mut taker = Taker::new(message);
        let mut seen = 0_usize;
        while let (Ok(kind), Ok(body)) = (taker.number(), taker.bytes()) {
            // The body ends where the frame ends; before it stand its kind and its length.
            let head = number_len(kind) + number_len(body.len() as u64);
            let bytes = head + body.len();
            weight.add(Class::of(kind), bytes as u64);
            seen += bytes;
        }
        let rest = message.len().saturating_sub(seen);
        weight.add(Class::Control, rest as u64);
        weight
    }

    /// Some more of a class.
    pub fn add(&mut self, class: Class, bytes: u64) {
        self.0[class as usize] += bytes;
    }

    /// These and others.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for class in Class::ALL {
            self.add(class, other.get(class));
        }
        self
    }

    /// Those of a class.
    pub fn get(&self, class: Class) -> u64 {
        self.0[class as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// How many bytes a number takes when it is written.
fn number_len(number: u64) -> usize {
    let bits = (u64::BITS - number.leading_zeros()).max(1);
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Delivery, Frame};

    #[test]
    fn every_byte_of_a_message_is_counted_once_by_what_it_is_for() {
        let delivery = Delivery::Progress;
        let all = [
            Frame::Ack { number: 3 },
            Frame::Deliver {
                number: 300,
                delivery,
            },
            Frame::Void { number: 9 },
        ];
        let mut message = Vec::new();
        let mut sizes = Vec::new();
        for frame in &all {
            let before = message.len();
            frame.encode(&mut message);
            sizes.push((message.len() - before) as u64);
        }
        let weight = Weight::of(&message);
        assert_eq!(weight.get(Class::Control), sizes[0]);
        assert_eq!(weight.get(Class::Configuration), sizes[1] + sizes[2]);
        assert_eq!(weight.get(Class::Bulk), 0);
        assert_eq!(weight.total(), message.len() as u64);
    }

    #[test]
    fn what_makes_no_sense_is_counted_too() {
        for message in [&[0xff; 40][..], &[11, 200, 1, 2], &[], &[11]] {
            assert_eq!(Weight::of(message).total(), message.len() as u64);
        }
    }
}
