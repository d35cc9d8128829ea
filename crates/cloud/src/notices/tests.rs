//! The same event again is one with a count; too many are dropped, and counted.

use std::time::Duration;

use jiff::Timestamp;
use object::{ObjectName, Resource};
use serde_json::Value;
use wire::frame::Fault;
use wire::window::Why;

use super::board::{NOTICES_MAX, STRANGERS_MAX};
use super::*;
use crate::join;

fn wall() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn joined(node: &str) -> Notice {
    Notice::Joined {
        node: node.into(),
        pool: None,
    }
}

fn aside(name: &str) -> Notice {
    Notice::SetAside {
        node: "n".into(),
        resource: Resource::new("", "secrets"),
        name: ObjectName::new("shop", name),
        why: Why::Rejected(Fault::TooLarge),
    }
}

fn refused(number: u8) -> Notice {
    Notice::Refused {
        node: Some("n".into()),
        remote: [10, 0, number, 1].into(),
        why: join::Why::WrongSecret,
    }
}

fn written(board: &mut Board, now: Duration) -> (Write, Value) {
    match board.next(now) {
        Next::Write(write) => {
            let body = serde_json::from_slice(&write.body).unwrap();
            (write, body)
        }
        Next::Wait(until) => panic!("nothing before {until:?}"),
    }
}

#[test]
fn an_event_says_of_which_node_and_what() {
    let mut board = Board::new("0");
    board.tell(aside("a"), Duration::ZERO, wall());
    let (write, event) = written(&mut board, Duration::ZERO);
    assert!(write.fresh);
    assert_eq!(event["metadata"]["namespace"], "default");
    assert_eq!(event["involvedObject"]["kind"], "Node");
    assert_eq!(event["involvedObject"]["name"], "n");
    assert_eq!(event["type"], "Warning");
    let words = "secrets shop/a is not on the node: it is larger than the node takes";
    assert_eq!(event["message"], words);
}

#[test]
fn what_happens_again_is_counted_and_written_once_a_minute() {
    let mut board = Board::new("0");
    board.tell(aside("a"), Duration::ZERO, wall());
    let (first, _) = written(&mut board, Duration::ZERO);
    // It happens again while it is written.
    board.tell(aside("b"), Duration::ZERO, wall());
    board.done(&first, Outcome::Done, Duration::ZERO);
    for second in 1..60 {
        board.tell(aside("c"), seconds(second), wall());
        assert!(matches!(board.next(seconds(second)), Next::Wait(_)));
    }
    let (again, patch) = written(&mut board, seconds(60));
    assert!(!again.fresh && again.name == first.name);
    assert_eq!(patch["count"], 61);
    // The event is gone: events end after an hour.
    board.done(&again, Outcome::Missing, seconds(60));
    let (anew, event) = written(&mut board, seconds(60));
    assert!(anew.fresh);
    assert_eq!(event["count"], 61);
    board.done(&anew, Outcome::Done, seconds(60));
    // After a long time it is another one.
    board.tell(aside("a"), seconds(2000), wall());
    let (other, _) = written(&mut board, seconds(2000));
    assert!(other.fresh && other.name != first.name);
    assert_eq!(board.counts().dropped, 0);
}

#[test]
fn what_fails_is_tried_again_and_dropped_in_the_end() {
    let mut board = Board::new("0");
    board.tell(joined("n"), Duration::ZERO, wall());
    let mut now = Duration::ZERO;
    let mut tries = 0;
    loop {
        match board.next(now) {
            Next::Write(write) => {
                tries += 1;
                board.done(&write, Outcome::Failed, now);
            }
            Next::Wait(Some(until)) => now = until,
            Next::Wait(None) => break,
        }
    }
    assert_eq!((tries, board.counts().dropped), (10, 1));
}

#[test]
fn a_few_are_written_each_second_and_too_many_are_dropped() {
    let mut board = Board::new("0");
    for number in 0..NOTICES_MAX * 2 {
        board.tell(joined(&format!("n{number}")), Duration::ZERO, wall());
    }
    assert_eq!(board.counts().dropped, NOTICES_MAX as u64);
    let mut now = Duration::ZERO;
    while now < seconds(60) {
        match board.next(now) {
            Next::Write(write) => board.done(&write, Outcome::Done, now),
            Next::Wait(until) => now = until.unwrap(),
        }
    }
    let written = board.counts().written;
    assert!((295..=315).contains(&written), "{written}");
}

#[test]
fn strangers_take_no_room_from_others() {
    let mut board = Board::new("0");
    for number in 0..u8::MAX {
        for _ in 0..3 {
            board.tell(refused(number), Duration::ZERO, wall());
        }
    }
    for network in 0..u8::MAX {
        let notice = Notice::Refused {
            node: None,
            remote: [10, 1, network, 1].into(),
            why: join::Why::NoSuchToken,
        };
        board.tell(notice, Duration::ZERO, wall());
    }
    let dropped = board.counts().dropped;
    assert_eq!(dropped, 2 * u64::from(u8::MAX) - STRANGERS_MAX as u64);
    board.tell(joined("n"), Duration::ZERO, wall());
    assert_eq!(board.counts().dropped, dropped);
}

#[test]
fn one_that_is_written_makes_room_for_one_that_is_not() {
    let mut board = Board::new("0");
    for number in 0..NOTICES_MAX {
        board.tell(joined(&format!("n{number}")), Duration::ZERO, wall());
    }
    let (write, _) = written(&mut board, Duration::ZERO);
    board.done(&write, Outcome::Done, Duration::ZERO);
    board.tell(joined("late"), Duration::ZERO, wall());
    assert_eq!(board.counts().dropped, 0);
    board.tell(joined("later"), Duration::ZERO, wall());
    assert_eq!(board.counts().dropped, 1);
}
