//! Two ends with a link between them, and whatever their users do: all bytes arrive, in order,
//! within what was granted, and nothing stands still for ever.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use wire::frame::{Cause, End, Frame, Said};
use wire::stream::{Event, Limits, Side, Streams, UNASKED_BYTES};

const WINDOW: u64 = 40 * 1024;
const LIMITS: Limits = Limits {
    streams: 4,
    window: WINDOW,
    queue: 10 * 1024,
    // Enough for six: the seventh is turned away.
    session: 6 * 50 * 1024,
};

/// What the user of an end does, or the link. The stream is one of those that were ever open.
#[derive(Debug, Clone)]
enum Operation {
    Open(usize),
    Of(usize, usize, What),
    Send(usize, usize),
    Arrive(usize, usize),
}

#[derive(Debug, Clone, Copy)]
enum What {
    Accept,
    Write(usize),
    Read(usize),
    End,
    Close,
}

fn operation() -> impl Strategy<Value = Operation> {
    let (end, bytes) = (0..2_usize, 0..30_000_usize);
    let what = prop_oneof![
        3 => Just(What::Accept),
        6 => bytes.clone().prop_map(What::Write),
        6 => bytes.clone().prop_map(What::Read),
        1 => Just(What::End),
        1 => Just(What::Close),
    ];
    let of = (end.clone(), 0..12_usize, what);
    prop_oneof![
        2 => end.clone().prop_map(Operation::Open),
        17 => of.prop_map(|(end, which, what)| Operation::Of(end, which, what)),
        8 => (end.clone(), bytes).prop_map(|(end, bytes)| Operation::Send(end, bytes)),
        8 => (end, 1..6_usize).prop_map(|(end, frames)| Operation::Arrive(end, frames)),
    ]
}

struct World {
    ends: [Streams; 2],
    /// What each end has sent and the other has not taken.
    links: [VecDeque<(u64, Said)>; 2],
    /// Every stream that was ever opened.
    ids: Vec<u64>,
    /// Streams that somebody closed: of those, a part arrives.
    closed: BTreeSet<u64>,
    /// By the end that writes and the stream.
    directions: BTreeMap<(usize, u64), Direction>,
}

#[derive(Default)]
struct Direction {
    written: usize,
    ended: Option<usize>,
    arrived: usize,
    unread: usize,
    /// What the writer may still send, as anybody sees who reads along.
    credit: u64,
}

impl World {
    fn new() -> Self {
        Self {
            ends: [Side::Agent, Side::Hub].map(|side| Streams::new(side, LIMITS)),
            links: Default::default(),
            ids: Vec::new(),
            closed: BTreeSet::new(),
            directions: BTreeMap::new(),
        }
    }

    fn does(&mut self, operation: &Operation) {
        match *operation {
            Operation::Open(end) => {
                self.ids.extend(self.ends[end].open("model").ok());
            }
            Operation::Of(end, which, what) => {
                if let Some(id) = self.ids.get(which % self.ids.len().max(1)) {
                    self.does_of(end, *id, what);
                }
            }
            Operation::Send(end, bytes) => {
                self.send(end, bytes);
            }
            Operation::Arrive(end, frames) => {
                for _ in 0..frames {
                    self.arrive(end);
                }
            }
        }
        for end in &self.ends {
            assert!(end.bytes() <= LIMITS.session);
        }
    }

    fn does_of(&mut self, end: usize, id: u64, what: What) {
        match what {
            What::Accept => self.ends[end].accept(id),
            What::Write(bytes) => self.write(end, id, bytes),
            What::Read(bytes) => self.read(end, id, bytes),
            What::End => self.end(end, id),
            What::Close => self.close(end, id),
        }
    }

    fn write(&mut self, end: usize, id: u64, bytes: usize) {
        let direction = self.directions.entry((end, id)).or_default();
        let at = direction.written;
        let bytes: Vec<u8> = (at..at + bytes).map(|at| byte(end, id, at)).collect();
        let room = self.ends[end].room(id);
        if let Ok(taken) = self.ends[end].write(id, &bytes) {
            assert_eq!(taken, room.min(bytes.len()));
            direction.written += taken;
        }
    }

    fn read(&mut self, end: usize, id: u64, bytes: usize) {
        if let Some(direction) = self.directions.get_mut(&(1 - end, id)) {
            let bytes = bytes.min(direction.unread);
            direction.unread -= bytes;
            self.ends[end].consumed(id, bytes);
        }
    }

    fn end(&mut self, end: usize, id: u64) {
        // An end that was told of the stream can end it.
        if self.ends[end].write(id, b"").is_ok() {
            self.ends[end].end(id);
            let direction = self.directions.entry((end, id)).or_default();
            direction.ended = Some(direction.written);
        }
    }

    fn close(&mut self, end: usize, id: u64) {
        self.closed.insert(id);
        self.ends[end].close(id, Cause::Cancelled, "");
    }

    fn send(&mut self, end: usize, bytes_max: usize) -> Option<()> {
        let Frame::Stream { id, said } = self.ends[end].next(bytes_max)? else {
            panic!("only streams are asked");
        };
        let direction = self.directions.entry((end, id)).or_default();
        match &said {
            Said::Open { .. } => direction.credit = UNASKED_BYTES,
            Said::Data { bytes, .. } => {
                assert!(bytes.len() <= bytes_max);
                let left = direction.credit.checked_sub(bytes.len() as u64);
                direction.credit = left.expect("no more than was granted");
            }
            Said::Window { bytes } => assert!(*bytes >= WINDOW / 2, "many small windows"),
            Said::Close { .. } => {
                self.closed.insert(id);
            }
        }
        self.links[end].push_back((id, said));
        Some(())
    }

    /// The other end takes a frame that this one sent.
    fn arrive(&mut self, from: usize) -> Option<()> {
        let (id, said) = self.links[from].pop_front()?;
        let to = 1 - from;
        let back = self.directions.entry((to, id)).or_default();
        match &said {
            Said::Open { window, .. } => back.credit = *window,
            Said::Window { bytes } => back.credit += bytes,
            Said::Data { .. } | Said::Close { .. } => {}
        }
        match self.ends[to].take(id, said).expect("both keep the rules") {
            Some(Event::Received { bytes, end, .. }) => {
                let direction = self.directions.entry((from, id)).or_default();
                for got in bytes {
                    assert_eq!(got, byte(from, id, direction.arrived), "in order");
                    direction.arrived += 1;
                    direction.unread += 1;
                }
                assert!(u64::try_from(direction.unread).unwrap() <= WINDOW);
                if end == End::Last {
                    assert_eq!(direction.ended, Some(direction.arrived));
                }
            }
            Some(Event::Closed { .. }) => {
                self.closed.insert(id);
            }
            Some(Event::Opened { .. }) | None => {}
        }
        Some(())
    }

    /// Everybody reads and nobody writes any more: whatever is there must go through.
    fn heal(&mut self) {
        for _ in 0..10_000 {
            let mut moved = false;
            for end in [0, 1] {
                for id in self.ids.clone() {
                    self.ends[end].accept(id);
                    self.read(end, id, usize::MAX);
                    self.end(end, id);
                }
                while self.send(end, usize::MAX).is_some() || self.arrive(end).is_some() {
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
        panic!("they never come to rest");
    }
}

fn byte(end: usize, id: u64, at: usize) -> u8 {
    let mixed = (at as u64 ^ (id << 32) ^ ((end as u64) << 60)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn all_bytes_arrive_in_order_within_the_windows_and_nothing_stands_still(
        operations in prop::collection::vec(operation(), 0..300),
    ) {
        let mut world = World::new();
        for operation in &operations {
            world.does(operation);
        }
        world.heal();
        for end in &world.ends {
            prop_assert!(end.is_empty() && end.bytes() == 0, "{end:?}");
        }
        for ((end, id), direction) in &world.directions {
            if !world.closed.contains(id) {
                prop_assert_eq!(direction.ended, Some(direction.written), "{} {}", end, id);
                prop_assert_eq!(direction.arrived, direction.written, "{} {}", end, id);
            }
        }
    }
}
