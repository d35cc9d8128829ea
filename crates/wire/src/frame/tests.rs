//! What is said arrives; what is made up is refused.

use bytes::Bytes;
use object::codec::{Taker, put_text};
use object::select::Selector;
use object::standing::Part;
use object::{ObjectName, Range, Scope, Standing, Version};
use proptest::prelude::*;

use super::*;
use crate::content::Content;
use crate::difference::Entry;

fn version(number: u64) -> Version {
    number.to_string().parse().unwrap()
}

fn content() -> Content {
    Content::new(&Bytes::from_static(b"{\"kind\":\"Pod\"}"), None)
}

fn scope() -> Scope {
    Scope {
        range: Range::Node("edge-1".into()),
        selector: Selector::parse("app in (a,b)", "").unwrap(),
    }
}

fn holding(standing: Option<Standing>) -> Holding {
    Holding {
        resource: Resource::new("apps", "deployments"),
        epoch: 3,
        reached: standing.as_ref().map(|standing| standing.shown().clone()),
        scopes: vec![scope(), Scope::all()],
        standing,
        objects: 12,
        digest: Digest::from_bytes([7; 16]),
    }
}

fn staged(holding: &Holding) -> Staged {
    Staged {
        resource: holding.resource.clone(),
        scope: scope(),
        epoch: holding.epoch,
        last: ObjectName::new("n", "z"),
        objects: 7,
        digest: holding.digest,
    }
}

fn hello(holdings: Vec<Holding>) -> Hello {
    Hello {
        oldest: 1,
        newest: 2,
        session: 99,
        features: 0,
        program: "holdfast 0.1.0".into(),
        staged: holdings.iter().map(staged).collect(),
        holdings,
        machine: Machine {
            host: "shop-17".into(),
            os: "linux".into(),
            arch: "arm64".into(),
        },
        documents: Vec::new(),
        aside: Asides::default(),
    }
}

fn every_frame() -> Vec<Frame> {
    let broken = Standing {
        progress: version(5),
        parts: vec![Part {
            aim: version(9),
            shown: version(7),
        }]
        .into(),
    };
    let standings = [Some(Standing::complete(version(5))), Some(broken), None];
    let mut all = vec![
        Frame::Hello(hello(standings.map(holding).into())),
        Frame::Welcome(Welcome {
            protocol: 1,
            features: 0,
            hub: "hub-a".into(),
            heartbeat_seconds: 30,
            window: 1024,
        }),
        Frame::Ping {
            number: 1,
            holds: Some(Digest::from_bytes([1; 16])),
        },
        Frame::Ping {
            number: 1,
            holds: None,
        },
        Frame::Pong {
            number: 1,
            received: None,
        },
        Frame::Pong {
            number: 2,
            received: Some(300),
        },
        Frame::Ack { number: u64::MAX },
        Frame::Void { number: 4 },
    ];
    all.extend(every_question());
    for number in 1..8 {
        all.push(Frame::Bye(Bye {
            reason: Reason::from_number(number),
            words: "words".into(),
            wait_seconds: 30,
        }));
        all.push(Frame::Reject {
            number,
            fault: Fault::from_number(number),
            words: "words".into(),
        });
    }
    all.extend(every_word_of_a_stream());
    all.extend(every_report());
    let deliveries = every_delivery().into_iter();
    all.extend(deliveries.map(|delivery| Frame::Deliver {
        number: 300,
        delivery,
    }));
    all
}

/// What is asked and told about what is held.
fn every_question() -> Vec<Frame> {
    let mut all = Vec::new();
    let resource = || Resource::new("", "pods");
    for (entries_of, staged) in [
        (None, None),
        (Some(vec![0, 3]), None),
        (None, Some(scope())),
        (Some(vec![0, 3]), Some(scope())),
    ] {
        for by in [By::Version, By::Content] {
            all.push(Frame::Ask(Ask {
                resource: resource(),
                bits: 7,
                entries_of: entries_of.clone(),
                staged: staged.clone(),
                by,
            }));
        }
    }
    let entry = Entry {
        name: ObjectName::new("n", "a"),
        hash: 7,
    };
    for told in [
        Told::Buckets(vec![1, u64::MAX]),
        Told::Entries(vec![1], vec![entry]),
        Told::TooMany,
    ] {
        for (staged, by) in [
            (None, By::Version),
            (Some(scope()), By::Version),
            (None, By::Content),
        ] {
            all.push(Frame::Tell(Tell {
                resource: resource(),
                bits: 1,
                told: told.clone(),
                staged,
                by,
            }));
        }
    }
    all
}

fn every_report() -> Vec<Frame> {
    let mut all = Vec::new();
    for queue in (1..6).map(Queue::from_number) {
        all.push(Frame::Report(Report {
            queue,
            series: 0xfeed,
            number: 7,
            key: "n/a".into(),
            bytes: Bytes::from_static(b"{}"),
        }));
        all.push(Frame::Reported(Reported {
            queue,
            series: 0xfeed,
            number: u64::MAX,
        }));
    }
    all
}

fn every_word_of_a_stream() -> Vec<Frame> {
    let open = Said::Open {
        purpose: "api".into(),
        window: 65_536,
    };
    let with = |bytes, end| Said::Data { bytes, end };
    let mut said = vec![
        open,
        with(Bytes::from_static(b"some"), End::More),
        with(Bytes::new(), End::Last),
        Said::Window { bytes: 32_768 },
    ];
    said.extend((1..6).map(|number| Said::Close {
        cause: Cause::from_number(number),
        words: "words".into(),
    }));
    let id = |index| u64::try_from(index).unwrap() + 1;
    let frame = |(index, said)| Frame::Stream {
        id: id(index),
        said,
    };
    said.into_iter().enumerate().map(frame).collect()
}

fn every_delivery() -> Vec<Delivery> {
    let name = || ObjectName::new("n", "a");
    vec![
        Delivery::Cut {
            resource: Resource::new("", "pods"),
            epoch: 0,
            aim: version(70),
        },
        Delivery::Put {
            name: name(),
            content: content(),
        },
        Delivery::Delete {
            name: name(),
            uid: "u".into(),
            version: version(7),
        },
        Delivery::Reset {
            scope: scope(),
            from: From::Held,
        },
        Delivery::Reset {
            scope: Scope::all(),
            from: From::Nothing,
        },
        Delivery::Stage {
            resource: Resource::new("apps", "deployments"),
            epoch: 1,
            scope: scope(),
            from: From::Staged,
        },
        Delivery::Unstage {
            resource: Resource::new("", "pods"),
            scope: scope(),
        },
        Delivery::Drop { name: name() },
        Delivery::End { scope: scope() },
        Delivery::Progress,
        Delivery::Document {
            name: "keys".into(),
            content: content(),
        },
        Delivery::DocumentGone {
            name: "keys".into(),
        },
    ]
}

fn message(all: &[Frame]) -> Vec<u8> {
    let mut out = Vec::new();
    all.iter().for_each(|frame| frame.encode(&mut out));
    out
}

#[test]
fn what_is_said_arrives_several_frames_in_one_message() {
    let all = every_frame();
    let message = message(&all);
    assert_eq!(frames(&message, MESSAGE_BYTES_MAX), Ok(all));
}

#[test]
fn a_newer_end_may_say_more() {
    for frame in every_frame() {
        let mut body = Vec::new();
        let kind = frame.encode_body(&mut body);
        // A ping from a hub has no digest, and its pong no number of what it received; with more
        // than nothing they do.
        let bare = matches!(frame, Frame::Ping { holds: None, .. })
            || matches!(frame, Frame::Pong { received: None, .. });
        if bare {
            continue;
        }
        body.extend_from_slice(b"more");
        let mut out = Vec::new();
        put_number(&mut out, kind);
        put_bytes(&mut out, &body);
        assert_eq!(frames(&out, MESSAGE_BYTES_MAX), Ok(vec![frame]));
    }
}

#[test]
fn an_unknown_kind_is_passed_over_or_not_as_it_says_itself() {
    let with_kind = |kind| {
        let mut out = message(&[Frame::Pong {
            number: 1,
            received: None,
        }]);
        put_number(&mut out, kind);
        put_bytes(&mut out, b"whatever");
        out.extend(message(&[Frame::Pong {
            number: 2,
            received: None,
        }]));
        frames(&out, MESSAGE_BYTES_MAX).map(|frames| frames.len())
    };
    assert_eq!(with_kind(1_000), Ok(2));
    assert_eq!(
        with_kind(1_001),
        Err(NotUnderstood::UnknownKind { kind: 1_001 })
    );
}

#[test]
fn a_message_is_neither_empty_nor_too_large() {
    assert_eq!(frames(b"", 10), Err(NotUnderstood::Empty));
    let large = message(&vec![Frame::Ack { number: 1 }; 4]);
    assert_eq!(
        frames(&large, 11),
        Err(NotUnderstood::TooLarge { bytes: 12 })
    );
    assert!(frames(&large, 12).is_ok());
}

#[test]
fn a_length_beyond_the_message_is_refused() {
    for length in [4, 1 << 31, 1 << 32, 1 << 63, u64::MAX] {
        let mut out = Vec::new();
        put_number(&mut out, ACK);
        put_number(&mut out, length);
        out.extend_from_slice(&[1, 2, 3]);
        assert!(frames(&out, MESSAGE_BYTES_MAX).is_err(), "{length}");
    }
}

#[test]
fn an_older_agent_says_nothing_of_its_machine() {
    let mut said = hello(vec![holding(None)]);
    said.staged = Vec::new();
    let (mut body, mut machine) = (Vec::new(), Vec::new());
    said.encode(&mut body);
    for text in [&said.machine.host, &said.machine.os, &said.machine.arch] {
        put_text(&mut machine, text);
    }
    // Behind it stands that nothing is staged, no document there and nothing set aside.
    machine.extend_from_slice(&[0; 4]);
    assert!(body.ends_with(&machine));
    body.truncate(body.len() - machine.len());
    let read = Hello::decode(&mut Taker::new(&body)).unwrap();
    let machine = Machine::default();
    assert_eq!(read, Hello { machine, ..said });
    // Half a machine is none.
    body.push(3);
    assert!(Hello::decode(&mut Taker::new(&body)).is_err());
}

#[test]
fn a_hello_that_cannot_be_is_refused() {
    let refused =
        |hello: Hello| frames(&message(&[Frame::Hello(hello)]), MESSAGE_BYTES_MAX).is_err();
    assert!(!refused(hello(vec![holding(None)])));
    let mut backwards = hello(vec![]);
    backwards.oldest = 3;
    assert!(refused(backwards));
    let part = |aim, shown| Part {
        aim: version(aim),
        shown: version(shown),
    };
    for parts in [
        vec![part(9, 4)],
        vec![part(9, 10)],
        vec![part(9, 8), part(9, 7)],
        vec![part(9, 9); 9],
    ] {
        let standing = Standing {
            progress: version(5),
            parts: parts.into(),
        };
        assert!(refused(hello(vec![holding(Some(standing))])));
    }
    assert!(refused(hello(vec![holding(None); 1025])));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in [
        "",
        "/",
        "a/",
        "/a",
        "a/b/c",
        "a\n",
        "a\0b",
        &"x".repeat(254),
    ] {
        let frame = Frame::Deliver {
            number: 1,
            delivery: Delivery::Drop {
                name: ObjectName::from_path(name),
            },
        };
        assert!(
            frames(&message(&[frame]), MESSAGE_BYTES_MAX).is_err(),
            "{name:?}"
        );
    }
}

#[test]
fn a_purpose_a_key_and_a_report_have_a_limit() {
    let refused = |frame| frames(&message(&[frame]), MESSAGE_BYTES_MAX).is_err();
    let open = |bytes: usize| Frame::Stream {
        id: 1,
        said: Said::Open {
            purpose: "x".repeat(bytes).into(),
            window: 1,
        },
    };
    let report = |key: usize, bytes: usize| {
        Frame::Report(Report {
            queue: Queue::Events,
            series: 1,
            number: 1,
            key: "x".repeat(key).into(),
            bytes: vec![0; bytes].into(),
        })
    };
    assert!(!refused(open(PURPOSE_BYTES_MAX)));
    assert!(refused(open(PURPOSE_BYTES_MAX + 1)));
    assert!(!refused(report(KEY_BYTES_MAX, REPORT_BYTES_MAX)));
    assert!(refused(report(KEY_BYTES_MAX + 1, 1)));
    assert!(refused(report(1, REPORT_BYTES_MAX + 1)));
}

#[test]
fn words_for_people_are_cut_between_characters() {
    let frame = Frame::Reject {
        number: 1,
        fault: Fault::TooLarge,
        words: "ä".repeat(5_000).into(),
    };
    let read = frames(&message(&[frame]), MESSAGE_BYTES_MAX).unwrap();
    let [Frame::Reject { words, .. }] = read.as_slice() else {
        panic!("{read:?}");
    };
    assert_eq!(words.len(), WORDS_BYTES_MAX);
}

#[test]
fn a_newer_and_an_older_end_find_what_both_speak() {
    let mut hello = hello(vec![]);
    (hello.oldest, hello.newest) = (2, 4);
    for ((oldest, newest), common) in [
        ((1, 3), Some(3)),
        ((3, 9), Some(4)),
        ((1, 1), None),
        ((5, 9), None),
    ] {
        assert_eq!(hello::common(&hello, oldest, newest), common);
    }
}

proptest! {
    #[test]
    fn no_message_makes_it_panic(message in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(frames(&message, MESSAGE_BYTES_MAX));
    }

    #[test]
    fn what_is_damaged_is_refused_or_is_another_message(
        which in any::<prop::sample::Index>(),
        index in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let all = every_frame();
        let mut message = message(&[all[which.index(all.len())].clone()]);
        let index = index.index(message.len());
        message[index] = value;
        if let Ok(read) = frames(&message, MESSAGE_BYTES_MAX) {
            // Whatever was read can be said again.
            let again = self::message(&read);
            prop_assert_eq!(frames(&again, MESSAGE_BYTES_MAX).unwrap_or_default(), read);
        }
    }
}
