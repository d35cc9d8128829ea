//! Each rule of streams, at one end or between two.

use super::*;

const KIB: usize = 1024;

fn agent() -> Streams {
    Streams::new(Side::Agent, Limits::default())
}

fn hub() -> Streams {
    Streams::new(Side::Hub, Limits::default())
}

fn open(window: u64) -> Said {
    Said::Open {
        purpose: "test".into(),
        window,
    }
}

fn some(length: usize, end: End) -> Said {
    let bytes = vec![7; length].into();
    Said::Data { bytes, end }
}

fn close() -> Said {
    Said::Close {
        cause: Cause::Cancelled,
        words: "".into(),
    }
}

/// Everything that may be sent now, in short.
fn sent(streams: &mut Streams) -> Vec<(u64, String)> {
    let next = || streams.next(usize::MAX);
    let said = |frame| match frame {
        Frame::Stream { id, said } => (id, short(&said)),
        frame => panic!("{frame:?} is not about a stream"),
    };
    std::iter::from_fn(next).map(said).collect()
}

fn short(said: &Said) -> String {
    match said {
        Said::Open { window, .. } => format!("open {window}"),
        Said::Data { bytes, end } => format!("{} {end:?}", bytes.len()),
        Said::Window { bytes } => format!("window {bytes}"),
        Said::Close { cause, .. } => format!("close {cause:?}"),
    }
}

fn is(all: &[(u64, &str)]) -> Vec<(u64, String)> {
    let owned = |(id, said): &(u64, &str)| (*id, (*said).to_owned());
    all.iter().map(owned).collect()
}

/// The agent's stream 1, accepted by the hub, and nothing on its way.
fn pair() -> (Streams, Streams) {
    let (mut agent, mut hub) = (agent(), hub());
    assert_eq!(agent.open("test"), Ok(1));
    carry(&mut agent, &mut hub);
    hub.accept(1);
    carry(&mut hub, &mut agent);
    (agent, hub)
}

fn carry(from: &mut Streams, to: &mut Streams) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(Frame::Stream { id, said }) = from.next(usize::MAX) {
        events.extend(to.take(id, said).unwrap());
    }
    events
}

#[test]
fn an_agent_opens_odd_streams_and_a_hub_even_ones_ascending() {
    for (mut streams, ids) in [(agent(), [1, 3, 5]), (hub(), [2, 4, 6])] {
        assert_eq!(ids.map(|_| streams.open("x").unwrap()), ids);
    }
}

#[test]
fn an_opener_need_not_wait_for_its_first_bytes_and_no_longer_than_for_those() {
    let mut agent = agent();
    let id = agent.open("x").unwrap();
    assert_eq!(agent.write(id, &[7; 20 * KIB]), Ok(20 * KIB));
    assert_eq!(
        sent(&mut agent),
        is(&[(1, "open 65536"), (1, "16384 More")])
    );
    agent.take(1, Said::Window { bytes: 100 }).unwrap();
    assert_eq!(sent(&mut agent), is(&[(1, "100 More")]));
}

#[test]
fn a_stream_that_is_accepted_has_its_whole_window() {
    let mut hub = hub();
    let opened = hub.take(1, open(0)).unwrap();
    assert!(
        matches!(opened, Some(Event::Opened { id: 1, .. })),
        "{opened:?}"
    );
    assert_eq!(sent(&mut hub), is(&[]));
    hub.accept(1);
    hub.take(1, some(1, End::More)).unwrap();
    hub.consumed(1, 1);
    hub.accept(1);
    assert_eq!(sent(&mut hub), is(&[(1, "window 49152")]));
}

#[test]
fn a_writer_is_told_how_much_was_taken_and_has_room_again_when_it_was_sent() {
    let (mut agent, _) = pair();
    assert_eq!(agent.write(1, &[7; 100 * KIB]), Ok(64 * KIB));
    assert_eq!(agent.write(1, &[7; 100 * KIB]), Ok(0));
    assert_eq!(agent.room(1), 0);
    agent.next(1_000);
    assert_eq!(agent.room(1), 1_000);
    assert_eq!(agent.write(1, &[7; 100 * KIB]), Ok(1_000));
}

#[test]
fn nothing_is_sent_beyond_what_was_granted() {
    let (mut agent, mut hub) = pair();
    agent.write(1, &[7; 64 * KIB]).unwrap();
    carry(&mut agent, &mut hub);
    assert_eq!(agent.write(1, &[7; 10]), Ok(10));
    assert_eq!(sent(&mut agent), is(&[]));
    hub.consumed(1, 64 * KIB);
    carry(&mut hub, &mut agent);
    assert_eq!(sent(&mut agent), is(&[(1, "10 More")]));
}

#[test]
fn who_sends_beyond_what_was_granted_misbehaves() {
    let mut hub = hub();
    hub.take(1, open(0)).unwrap();
    hub.take(1, some(16 * KIB, End::More)).unwrap();
    let beyond = Misbehaved::BeyondWindow {
        id: 1,
        bytes: 1,
        granted: 0,
    };
    assert_eq!(hub.take(1, some(1, End::More)), Err(beyond));
}

#[test]
fn room_is_granted_again_when_half_of_the_window_was_consumed() {
    let (mut agent, mut hub) = pair();
    agent.write(1, &[7; 64 * KIB]).unwrap();
    carry(&mut agent, &mut hub);
    hub.consumed(1, 32 * KIB - 1);
    assert_eq!(sent(&mut hub), is(&[]));
    hub.consumed(1, 1);
    assert_eq!(sent(&mut hub), is(&[(1, "window 32768")]));
    // More than was received cannot be given back.
    hub.consumed(1, usize::MAX);
    assert_eq!(sent(&mut hub), is(&[(1, "window 32768")]));
}

#[test]
fn each_direction_ends_by_itself_behind_what_is_queued() {
    let (mut agent, mut hub) = pair();
    agent.write(1, b"request").unwrap();
    agent.end(1);
    assert_eq!(agent.write(1, b"x"), Err(NotWritten::Ended { id: 1 }));
    let events = carry(&mut agent, &mut hub);
    let request = Event::Received {
        id: 1,
        bytes: Bytes::from_static(b"request"),
        end: End::Last,
    };
    assert_eq!(events, [request]);
    hub.consumed(1, 7);
    hub.write(1, b"answer").unwrap();
    assert_eq!(carry(&mut hub, &mut agent).len(), 1);
    hub.end(1);
    assert_eq!((agent.len(), hub.len()), (1, 1));
    carry(&mut hub, &mut agent);
    assert_eq!((agent.len(), hub.len()), (0, 0));
    assert_eq!(agent.write(1, b"x"), Err(NotWritten::Closed { id: 1 }));
}

#[test]
fn nothing_comes_after_the_end() {
    let (_, mut hub) = pair();
    hub.take(1, some(1, End::Last)).unwrap();
    assert_eq!(
        hub.take(1, some(1, End::More)),
        Err(Misbehaved::AfterEnd { id: 1 })
    );
}

#[test]
fn who_closes_drops_what_is_queued_and_tells_the_peer() {
    let (mut agent, mut hub) = pair();
    agent.write(1, &[7; KIB]).unwrap();
    agent.close(1, Cause::Broken, "disk");
    agent.close(1, Cause::Broken, "again");
    assert_eq!(agent.bytes(), 0);
    let closed = Event::Closed {
        id: 1,
        cause: Cause::Broken,
        words: "disk".into(),
    };
    assert_eq!(carry(&mut agent, &mut hub), [closed]);
    assert!(hub.is_empty() && sent(&mut hub).is_empty());
}

#[test]
fn what_comes_for_a_stream_that_was_just_closed_is_ignored() {
    let (mut agent, mut hub) = pair();
    hub.close(1, Cause::Cancelled, "");
    for said in [some(100 * KIB, End::More), Said::Window { bytes: 1 }] {
        assert_eq!(hub.take(1, said), Ok(None));
    }
    carry(&mut hub, &mut agent);
    assert_eq!(agent.take(1, some(1, End::Last)), Ok(None));
    for _ in 0..2 {
        assert_eq!(hub.take(1, close()), Ok(None));
    }
}

#[test]
fn a_stream_that_is_closed_before_it_was_announced_was_never_there() {
    let mut agent = agent();
    let id = agent.open("x").unwrap();
    agent.write(id, b"x").unwrap();
    agent.close(id, Cause::Cancelled, "");
    assert_eq!(sent(&mut agent), is(&[]));
    assert_eq!(agent.open("x"), Ok(3));
}

#[test]
fn who_opens_what_is_not_its_own_or_goes_back_misbehaves() {
    let mut hub = hub();
    for id in [0, 2, 4] {
        assert_eq!(hub.take(id, open(0)), Err(Misbehaved::NotItsOwn { id }));
    }
    hub.take(5, open(0)).unwrap();
    hub.close(5, Cause::NotServed, "");
    for id in [1, 3, 5] {
        let back = Misbehaved::WentBack { id, last: 5 };
        assert_eq!(hub.take(id, open(0)), Err(back));
    }
    assert!(hub.take(9, open(0)).is_ok());
}

#[test]
fn who_speaks_of_a_stream_that_never_was_misbehaves() {
    let mut hub = hub();
    hub.open("not told yet").unwrap();
    for id in [0, 1, 2, 4, u64::MAX] {
        for said in [some(1, End::More), Said::Window { bytes: 1 }, close()] {
            assert_eq!(hub.take(id, said), Err(Misbehaved::NeverOpen { id }));
        }
    }
}

#[test]
fn who_grants_more_than_anybody_may_misbehaves() {
    let (mut agent, mut hub) = pair();
    for bytes in [WINDOW_BYTES_MAX, u64::MAX] {
        let granted = agent.take(1, Said::Window { bytes });
        assert_eq!(granted, Err(Misbehaved::WindowTooLarge { id: 1, bytes }));
    }
    let opened = hub.take(3, open(WINDOW_BYTES_MAX + 1));
    assert!(matches!(opened, Err(Misbehaved::WindowTooLarge { .. })));
}

#[test]
fn an_end_opens_only_so_many_streams_and_both_ends_know_how_many() {
    let (mut agent, mut hub) = (agent(), hub());
    let ids: Vec<u64> = (0..STREAMS_MAX).map(|_| agent.open("x").unwrap()).collect();
    assert_eq!(agent.open("x"), Err(NotOpened::TooMany));
    assert_eq!(carry(&mut agent, &mut hub).len(), STREAMS_MAX);
    let next = ids[STREAMS_MAX - 1] + 2;
    let many = Err(Misbehaved::TooMany { id: next });
    assert_eq!(hub.take(next, open(0)), many);
    // The peer does not know yet that one of its streams is closed, so it cannot mean another.
    hub.close(ids[0], Cause::Cancelled, "");
    assert_eq!(hub.take(next, open(0)), many);
    carry(&mut hub, &mut agent);
    assert_eq!(agent.open("x"), Ok(next));
    assert_eq!(carry(&mut agent, &mut hub).len(), 1);
}

#[test]
fn who_is_done_with_a_stream_may_open_another_before_it_hears_of_its_close() {
    let (mut agent, mut hub) = (agent(), hub());
    let ids: Vec<u64> = (0..STREAMS_MAX).map(|_| agent.open("x").unwrap()).collect();
    carry(&mut agent, &mut hub);
    // It gives one up that the hub closes at the same time.
    hub.close(ids[0], Cause::Broken, "");
    agent.close(ids[0], Cause::Cancelled, "");
    agent.open("x").unwrap();
    assert_eq!(carry(&mut agent, &mut hub).len(), 1);
    assert!(!hub.has_next(), "both know that it is closed");
    // It ends one that the hub has answered, and does not want the rest of.
    hub.end(ids[1]);
    carry(&mut hub, &mut agent);
    hub.close(ids[1], Cause::Cancelled, "");
    agent.end(ids[1]);
    carry(&mut agent, &mut hub);
    agent.open("x").unwrap();
    assert_eq!(carry(&mut agent, &mut hub).len(), 1);
    assert!(!hub.has_next());
    // One that has not been answered is not over by its own last word.
    hub.close(ids[2], Cause::Broken, "");
    agent.end(ids[2]);
    carry(&mut agent, &mut hub);
    assert_eq!(agent.open("x"), Err(NotOpened::TooMany));
    assert_eq!(sent(&mut hub), is(&[(ids[2], "close Broken")]));
}

#[test]
fn memory_is_set_apart_for_each_stream_and_who_finds_none_is_turned_away() {
    let limits = Limits {
        session: 300 * KIB,
        ..Limits::default()
    };
    let mut hub = Streams::new(Side::Hub, limits);
    hub.open("x").unwrap();
    hub.take(1, open(0)).unwrap();
    assert_eq!(hub.open("x"), Err(NotOpened::NoMemory));
    assert_eq!(hub.take(3, open(0)), Ok(None));
    assert_eq!(sent(&mut hub), is(&[(2, "open 65536"), (3, "close Busy")]));
    assert_eq!(hub.take(3, some(16 * KIB, End::Last)), Ok(None));
    hub.take(2, close()).unwrap();
    assert!(hub.take(5, open(0)).unwrap().is_some());
}

#[test]
fn a_stream_that_is_over_keeps_its_memory_until_it_was_read() {
    let limits = Limits {
        session: 128 * KIB,
        ..Limits::default()
    };
    let mut hub = Streams::new(Side::Hub, limits);
    hub.take(1, open(0)).unwrap();
    hub.take(1, some(KIB, End::Last)).unwrap();
    hub.end(1);
    assert_eq!(sent(&mut hub), is(&[(1, "0 Last")]));
    assert_eq!((hub.len(), hub.bytes()), (0, KIB));
    assert_eq!(hub.open("x"), Err(NotOpened::NoMemory));
    hub.consumed(1, KIB);
    assert_eq!(hub.open("x"), Ok(2));
}

#[test]
fn streams_that_have_something_to_send_take_turns() {
    let (mut agent, mut hub) = (agent(), hub());
    for id in [1, 3, 5] {
        assert_eq!(agent.open("x"), Ok(id));
    }
    carry(&mut agent, &mut hub);
    for id in [1, 3, 5] {
        hub.accept(id);
    }
    carry(&mut hub, &mut agent);
    agent.write(1, &[7; 40 * KIB]).unwrap();
    agent.write(5, &[7; 20 * KIB]).unwrap();
    agent.end(3);
    let turns = [
        (1, "16384 More"),
        (3, "0 Last"),
        (5, "16384 More"),
        (1, "16384 More"),
        (5, "4096 More"),
        (1, "8192 More"),
    ];
    assert_eq!(sent(&mut agent), is(&turns));
}

#[test]
fn what_opens_grants_and_closes_goes_before_bytes() {
    let (mut agent, _) = pair();
    agent.write(1, &[7; 40 * KIB]).unwrap();
    agent.next(usize::MAX);
    agent.open("x").unwrap();
    let Some(Frame::Stream { id: 3, .. }) = agent.next(0) else {
        panic!("the open waits behind bytes");
    };
    assert_eq!(agent.next(0), None);
    assert_eq!(
        agent.next(10).map(|frame| frame_bytes(&frame)),
        Some(10),
        "a chunk is as small as the session wants it"
    );
}

fn frame_bytes(frame: &Frame) -> usize {
    match frame {
        Frame::Stream {
            said: Said::Data { bytes, .. },
            ..
        } => bytes.len(),
        _ => 0,
    }
}

#[test]
fn a_purpose_that_cannot_be_said_is_refused() {
    let bytes = PURPOSE_BYTES_MAX + 1;
    let refused = agent().open(&"x".repeat(bytes));
    assert_eq!(refused, Err(NotOpened::Purpose { bytes }));
}
