//! Reports and acks in any order: what is held stays bounded, a hub takes no number twice and acks
//! only what was done.

#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use libfuzzer_sys::fuzz_target;
use wire::frame::{Frame, MESSAGE_BYTES_MAX, frames};
use wire::report::{Collected, Limits, Reports, Taken};

const LIMITS: Limits = Limits {
    entries: 8,
    bytes: 256,
    flight: 4,
    flight_bytes: 64,
};

fuzz_target!(|message: &[u8]| {
    let Ok(read) = frames(message, MESSAGE_BYTES_MAX) else {
        return;
    };
    let mut node = Reports::new(7, LIMITS);
    let mut hub = Collected::new();
    // In this session, by queue: the series, what was taken and what of it is not done.
    let mut taken: BTreeMap<u64, (u64, BTreeSet<u64>)> = BTreeMap::new();
    for frame in read {
        match frame {
            Frame::Report(report) => {
                let (queue, number) = (report.queue.number(), report.number);
                if hub.take(&report) == Ok(Taken::New) {
                    let (series, numbers) = taken.entry(queue).or_default();
                    *series = report.series;
                    assert!(numbers.insert(number), "taken once in a session");
                    assert_eq!(numbers.last(), Some(&number), "in order");
                }
                if let Ok(persist) = node.push(report.queue, &report.key, report.bytes) {
                    node.stored(persist.write - persist.write % 2);
                }
            }
            Frame::Reported(reported) => {
                let held = node.held();
                if node.reported(reported).is_ok_and(|forget| forget.is_some()) {
                    assert!(node.held() <= held);
                }
                while node.send().is_some() {}
            }
            Frame::Ack { number } => {
                for (queue, (series, numbers)) in &taken {
                    let queue = wire::frame::Queue::from_number(*queue);
                    if let Some(reported) = hub.done(queue, *series, number) {
                        assert!(numbers.last().is_some_and(|last| reported.number <= *last));
                    }
                }
            }
            Frame::Ping { .. } => {
                hub.begin();
                taken.clear();
            }
            _ => node.lost(),
        }
        assert!(node.len() <= 4 * LIMITS.entries && node.bytes() <= 4 * LIMITS.bytes);
        assert!(node.held() <= 4 * (2 * LIMITS.entries + LIMITS.flight + 1));
    }
});
