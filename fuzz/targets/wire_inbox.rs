//! Deliveries in any order, with any content: numbers are acked once, in order, and never before
//! what they stand for was handed on and stored.

#![no_main]

use std::sync::Arc;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use object::{Header, ObjectName, Resource};
use wire::frame::{Frame, MESSAGE_BYTES_MAX, frames};
use wire::inbox::{Action, Held, Inbox};

struct Shelf;

impl Held for Shelf {
    fn object(&self, _: &Resource, _: &ObjectName) -> Option<Bytes> {
        Some(Bytes::from_static(b"base"))
    }
    fn selectable(&self, _: &Resource) -> Vec<Arc<str>> {
        Vec::new()
    }
    fn document(&self, _: &str) -> Option<Bytes> {
        None
    }
    fn covers(&self, _: &Resource, header: &Header) -> bool {
        header.labels.is_empty()
    }
    fn fits(&self, _: &Header, bytes: usize) -> bool {
        bytes < 1_000
    }
}

fuzz_target!(|message: &[u8]| {
    let Ok(read) = frames(message, MESSAGE_BYTES_MAX) else {
        return;
    };
    let mut inbox = Inbox::default();
    let (mut acked, mut handed) = (0, 0);
    for frame in read {
        let taken = match frame {
            Frame::Deliver { number, delivery } => inbox.take(number, delivery, &Shelf),
            Frame::Void { number } => inbox.void(number, &Shelf),
            Frame::Ack { number } => {
                inbox.stored(number.min(handed));
                Ok(Vec::new())
            }
            _ => Ok(inbox.flush().into_iter().collect()),
        };
        let Ok(actions) = taken else { return };
        for action in actions {
            let number = match action {
                Action::Store(piece) => piece.number,
                Action::Document { number, .. } => number,
                Action::Reject { .. } | Action::AckAgain => continue,
            };
            assert!(number > handed, "handed on in order");
            handed = number;
        }
        assert!(inbox.acked() >= acked, "an ack is never taken back");
        acked = inbox.acked();
    }
});
