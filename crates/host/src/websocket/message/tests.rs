//! Frames in any pieces -> the same messages, and what is held meanwhile.

use proptest::prelude::*;

use super::super::frame::{CloseCode, Mask};
use super::*;

const BYTES_MAX: usize = 64 * 1024;
const MASK: [u8; 4] = [7, 0, 200, 13];

fn frame(opcode: Opcode, part: Part, content: &[u8]) -> Vec<u8> {
    let head = Head {
        opcode,
        part,
        mask: Some(Mask(MASK)),
        length: content.len() as u64,
    };
    let mut bytes = Vec::new();
    head.encode(&mut bytes);
    let start = bytes.len();
    bytes.extend(content);
    Mask(MASK).apply(0, &mut bytes[start..]);
    bytes
}

fn head_only(opcode: Opcode, part: Part, length: u64) -> Vec<u8> {
    let mask = Some(Mask(MASK));
    let head = Head {
        opcode,
        part,
        mask,
        length,
    };
    let mut bytes = Vec::new();
    head.encode(&mut bytes);
    bytes
}

/// What a client's bytes say, up to the end.
fn read(incoming: &mut Incoming, mut bytes: &[u8]) -> Result<Vec<Received>, Violation> {
    let mut all = Vec::new();
    while let Some(received) = incoming.take(&mut bytes, BYTES_MAX)? {
        let closed = matches!(received, Received::Closed(_));
        all.push(received);
        if closed {
            break;
        }
    }
    Ok(all)
}

fn broken(frames: &[Vec<u8>]) -> Violation {
    let mut incoming = Incoming::new(Role::Client);
    let violation = read(&mut incoming, &frames.concat()).expect_err("a violation");
    assert_eq!(incoming.held_bytes(), 0);
    violation
}

fn message(text: &'static str) -> Received {
    Received::Message(Bytes::from_static(text.as_bytes()))
}

#[test]
fn a_message_in_parts_is_put_together_around_the_pings_within_it() {
    let bytes = [
        frame(Opcode::Binary, Part::More, b"hold"),
        frame(Opcode::Ping, Part::Last, b"there?"),
        frame(Opcode::Continuation, Part::More, b""),
        frame(Opcode::Pong, Part::Last, b"nobody asked"),
        frame(Opcode::Continuation, Part::Last, b"fast"),
        frame(Opcode::Binary, Part::Last, b""),
    ];
    let said = read(&mut Incoming::new(Role::Client), &bytes.concat()).unwrap();
    let ping = Received::Ping(Bytes::from_static(b"there?"));
    assert_eq!(said, [ping, message("holdfast"), message("")]);
}

#[test]
fn parts_must_follow_each_other() {
    let part = |opcode, part| frame(opcode, part, b"x");
    let alone = [part(Opcode::Continuation, Part::Last)];
    assert_eq!(broken(&alone), Violation::NothingToContinue);
    let after = [
        part(Opcode::Binary, Part::Last),
        part(Opcode::Continuation, Part::More),
    ];
    assert_eq!(broken(&after), Violation::NothingToContinue);
    for last in [Part::More, Part::Last] {
        let within = [part(Opcode::Binary, Part::More), part(Opcode::Binary, last)];
        assert_eq!(broken(&within), Violation::NotEnded);
    }
    // An empty first part is a first part too.
    let within = [
        frame(Opcode::Binary, Part::More, b""),
        part(Opcode::Binary, Part::Last),
    ];
    assert_eq!(broken(&within), Violation::NotEnded);
}

#[test]
fn a_message_that_claims_too_much_is_refused_by_its_head() {
    let too_long = Violation::TooLong {
        bytes_max: BYTES_MAX,
    };
    for length in [BYTES_MAX as u64 + 1, 1 << 30, i64::MAX as u64] {
        let head = head_only(Opcode::Binary, Part::Last, length);
        assert_eq!(broken(&[head]), too_long);
    }
    assert_eq!(too_long.code(), CloseCode::TOO_LONG);
    let exact = frame(Opcode::Binary, Part::Last, &vec![0; BYTES_MAX]);
    let said = read(&mut Incoming::new(Role::Client), &exact).unwrap();
    assert_eq!(said, [Received::Message(vec![0; BYTES_MAX].into())]);
}

#[test]
fn a_gigabyte_in_parts_is_refused_at_the_part_that_is_too_much() {
    let mut incoming = Incoming::new(Role::Client);
    let part = vec![1; 1024];
    let first = frame(Opcode::Binary, Part::More, &part);
    assert_eq!(read(&mut incoming, &first), Ok(vec![]));
    for _ in 1..64 {
        let next = frame(Opcode::Continuation, Part::More, &part);
        assert_eq!(read(&mut incoming, &next), Ok(vec![]));
        assert!(incoming.held_bytes() <= BYTES_MAX);
    }
    let one_more = frame(Opcode::Continuation, Part::More, &[1]);
    let refused = read(&mut incoming, &one_more).unwrap_err();
    assert_eq!(refused.code(), CloseCode::TOO_LONG);
    assert_eq!(incoming.held_bytes(), 0);
}

#[test]
fn the_limit_may_be_another_one_for_each_message() {
    let mut incoming = Incoming::new(Role::Client);
    let bytes = frame(Opcode::Binary, Part::Last, &[1; 1000]).repeat(2);
    let mut bytes = &bytes[..];
    let first = incoming.take(&mut bytes, 1000);
    assert!(matches!(first, Ok(Some(Received::Message(_)))));
    let second = incoming.take(&mut bytes, 999);
    assert_eq!(second, Err(Violation::TooLong { bytes_max: 999 }));
}

#[test]
fn a_length_that_is_only_claimed_reserves_little() {
    let mut incoming = Incoming::new(Role::Client);
    let head = head_only(Opcode::Binary, Part::Last, BYTES_MAX as u64);
    assert_eq!(read(&mut incoming, &head), Ok(vec![]));
    assert_eq!(incoming.held_bytes(), 0);
    for arrived in 1..BYTES_MAX {
        read(&mut incoming, &[0]).unwrap();
        assert_eq!(incoming.arrived_bytes(), arrived);
        let held = incoming.held_bytes();
        assert!(
            held <= (2 * arrived).max(GROWTH_BYTES_MIN),
            "{arrived}: {held}"
        );
    }
    let said = read(&mut incoming, &[0]).unwrap();
    assert!(matches!(&said[..], [Received::Message(all)] if all.len() == BYTES_MAX));
    assert_eq!((incoming.held_bytes(), incoming.arrived_bytes()), (0, 0));
}

#[test]
fn a_message_in_many_tiny_parts_is_moved_only_a_few_times() {
    let mut incoming = Incoming::new(Role::Client);
    read(&mut incoming, &frame(Opcode::Binary, Part::More, b"x")).unwrap();
    let next = frame(Opcode::Continuation, Part::More, b"x");
    let (mut sizes, mut held) = (0, incoming.held_bytes());
    for _ in 1..BYTES_MAX {
        read(&mut incoming, &next).unwrap();
        sizes += usize::from(incoming.held_bytes() != held);
        held = incoming.held_bytes();
    }
    assert!(sizes <= 5, "{sizes}");
    let last = frame(Opcode::Continuation, Part::Last, b"");
    let said = read(&mut incoming, &last).unwrap();
    assert!(matches!(&said[..], [Received::Message(all)] if all.len() == BYTES_MAX));
}

#[test]
fn after_a_close_or_a_violation_nothing_is_read() {
    let mut incoming = Incoming::new(Role::Client);
    let close = Close::new(CloseCode::NORMAL, "enough");
    let bytes = [
        frame(Opcode::Binary, Part::More, b"never ended"),
        frame(Opcode::Close, Part::Last, &close.encode()),
        frame(Opcode::Continuation, Part::Last, b"late"),
    ];
    let closed = Received::Closed(close);
    let said = read(&mut incoming, &bytes.concat());
    assert_eq!(said, Ok(vec![closed.clone()]));
    assert_eq!(
        incoming.take(&mut &bytes[2][..], BYTES_MAX),
        Ok(Some(closed))
    );
    let mut incoming = Incoming::new(Role::Client);
    let unmasked = read(&mut incoming, &[0x82, 1, b'x']);
    assert_eq!(unmasked, Err(Violation::Unmasked));
    let later = frame(Opcode::Binary, Part::Last, b"late");
    assert_eq!(read(&mut incoming, &later), Err(Violation::Unmasked));
}

#[test]
fn a_close_that_is_wrong_breaks_the_rules() {
    let close = |content: &[u8]| broken(&[frame(Opcode::Close, Part::Last, content)]);
    assert_eq!(close(&[3]), Violation::CloseCutShort);
    assert_eq!(close(&[0x03, 0xed]), Violation::CloseCode(1005));
    assert_eq!(close(&[0x03, 0xe8, 0xc3]), Violation::CloseWords);
}

/// A message and how it is cut into parts, with pings between them.
fn any_message() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let part = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..140),
        prop::collection::vec(any::<u8>(), 4000..9000),
    ];
    prop::collection::vec(part, 1..4)
}

fn written(parts: &[Vec<u8>], ping: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, content) in parts.iter().enumerate() {
        let opcode = if index == 0 {
            Opcode::Binary
        } else {
            Opcode::Continuation
        };
        let last = index + 1 == parts.len();
        let part = if last { Part::Last } else { Part::More };
        bytes.extend(frame(Opcode::Ping, Part::Last, ping));
        bytes.extend(frame(opcode, part, content));
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn messages_arrive_the_same_wherever_their_bytes_are_cut(
        messages in prop::collection::vec(any_message(), 1..5),
        ping in prop::collection::vec(any::<u8>(), 0..=CONTROL_BYTES_MAX),
        cuts in prop::collection::vec(1..2000_usize, 1..20),
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|parts| written(parts, &ping)).collect();
        let mut incoming = Incoming::new(Role::Client);
        let (mut said, mut rest, mut cuts) = (Vec::new(), &bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            said.extend(read(&mut incoming, piece).unwrap());
            rest = later;
        }
        let (pings, said): (Vec<_>, Vec<_>) =
            said.into_iter().partition(|said| matches!(said, Received::Ping(_)));
        let sent = messages.iter().map(|parts| Received::Message(parts.concat().into()));
        prop_assert_eq!(said, sent.collect::<Vec<_>>());
        prop_assert_eq!(pings.len(), messages.iter().map(Vec::len).sum::<usize>());
        prop_assert!(pings.iter().all(|said| *said == Received::Ping(ping.clone().into())));
        prop_assert_eq!(incoming.held_bytes(), 0);
    }

    #[test]
    fn any_bytes_mean_the_same_whole_and_in_pieces(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        first in prop_oneof![Just(0x82), Just(0x02), Just(0x88), Just(0x89), any::<u8>()],
        piece_bytes in 1..40_usize,
    ) {
        // Most heads of random bytes are wrong at once: these get further.
        bytes.splice(..0, [first, 0x80 | 20]);
        let (mut whole, mut cut) = (Incoming::new(Role::Client), Incoming::new(Role::Client));
        let mut said = Ok(Vec::new());
        for piece in bytes.chunks(piece_bytes) {
            let Ok(so_far) = &mut said else { break };
            match read(&mut cut, piece) {
                Ok(more) => so_far.extend(more),
                Err(violation) => said = Err(violation),
            }
            if cut.end().is_some() {
                break;
            }
        }
        prop_assert_eq!(read(&mut whole, &bytes), said);
        prop_assert_eq!(whole.held_bytes(), cut.held_bytes());
    }
}
