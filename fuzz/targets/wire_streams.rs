//! What a peer says of streams, in any order: what is held stays bounded, and nothing is sent that
//! was not granted.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use wire::frame::{Cause, Frame, MESSAGE_BYTES_MAX, Said, frames};
use wire::stream::{Event, Limits, Side, Streams, UNASKED_BYTES};

fuzz_target!(|input: (u8, &[u8])| {
    let (how, message) = input;
    let Ok(read) = frames(message, MESSAGE_BYTES_MAX) else {
        return;
    };
    let side = [Side::Agent, Side::Hub][usize::from(how % 2)];
    let limits = Limits {
        session: 1024 * 1024,
        ..Limits::default()
    };
    let mut streams = Streams::new(side, limits);
    let mut credit: BTreeMap<u64, u64> = BTreeMap::new();
    for _ in 0..how % 8 {
        let Ok(id) = streams.open("fuzz") else { break };
        credit.insert(id, UNASKED_BYTES);
        assert!(streams.write(id, &[7; 20_000]).is_ok());
    }
    for (turn, frame) in read.into_iter().enumerate() {
        // Other frames stand for what the user of this end does.
        let Frame::Stream { id, said } = frame else {
            if let Ok(id) = streams.open("another") {
                credit.insert(id, UNASKED_BYTES);
            }
            continue;
        };
        match &said {
            Said::Open { window, .. } => drop(credit.entry(id).or_insert(*window)),
            Said::Window { bytes } => {
                let granted = credit.entry(id).or_default();
                *granted = granted.saturating_add(*bytes);
            }
            Said::Data { .. } | Said::Close { .. } => {}
        }
        let Ok(event) = streams.take(id, said) else {
            return;
        };
        match event {
            Some(Event::Opened { id, .. }) if turn % 5 == 4 => {
                streams.close(id, Cause::NotServed, "no");
            }
            Some(Event::Opened { id, .. }) => {
                streams.accept(id);
                assert!(streams.write(id, &[7; 100_000]).is_ok());
            }
            Some(Event::Received { id, bytes, .. }) if turn % 2 == 0 => {
                streams.consumed(id, bytes.len());
                streams.end(id);
            }
            Some(Event::Received { .. } | Event::Closed { .. }) | None => {}
        }
        assert!(streams.bytes() <= limits.session, "what is held is bounded");
        if how >= 128 || turn % 3 == 0 {
            send(&mut streams, &mut credit);
        }
    }
});

/// Sends everything that may go.
fn send(streams: &mut Streams, credit: &mut BTreeMap<u64, u64>) {
    while let Some(frame) = streams.next(10_000) {
        let Frame::Stream {
            id,
            said: Said::Data { bytes, .. },
        } = frame
        else {
            continue;
        };
        let granted = credit.entry(id).or_default();
        let left = granted.checked_sub(bytes.len() as u64);
        *granted = left.expect("no more than was granted");
    }
}
