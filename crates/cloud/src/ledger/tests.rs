//! What is told of nodes follows from what happened.

use wire::frame::Class;

use super::*;

fn node() -> Arc<str> {
    "n".into()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn nodes() -> Resource {
    Resource::new("", "nodes")
}

/// A node whose session began at second 10.
fn begun() -> Ledger {
    let ledger = Ledger::default();
    let began = Began {
        number: 3,
        at: Duration::from_secs(1),
        remote: "192.0.2.1:4".into(),
        transport: "quic",
        program: "holdfast".into(),
    };
    ledger.began(&node(), began, at(10));
    ledger
}

fn bytes(class: Class, count: u64) -> Weight {
    let mut weight = Weight::default();
    weight.add(class, count);
    weight
}

#[test]
fn it_is_told_since_when_over_what_and_how_it_ended() {
    let ledger = begun();
    let report = ledger.node("n").unwrap();
    assert_eq!((report.connected, report.since), (true, Some(at(10))));
    assert_eq!(report.transport, Some("quic"));
    assert_eq!(report.state(), "sent");
    ledger.ended("n", 3, ("lost", "link lost"), at(20));
    let report = ledger.node("n").unwrap();
    assert_eq!((report.connected, report.since), (false, Some(at(20))));
    assert_eq!((report.transport, report.state()), (None, "away"));
    assert_eq!(report.ended.as_deref(), Some("link lost"));
}

#[test]
fn bytes_are_kept_apart_by_class_and_direction_and_outlive_their_node() {
    let ledger = begun();
    let nothing = Weight::default();
    let now = Duration::from_secs(2);
    ledger.carried("n", (bytes(Class::Control, 5), nothing), now);
    ledger.carried("n", (nothing, bytes(Class::Configuration, 70)), now);
    let report = ledger.node("n").unwrap();
    assert_eq!((report.received_bytes, report.sent_bytes), (5, 70));
    assert_eq!(report.received_by_class["control"], 5);
    assert_eq!(report.sent_by_class["configuration"], 70);
    assert_eq!(report.sent_by_class["bulk"], 0);
    ledger.ended("n", 3, ("lost", "link lost"), at(20));
    ledger.removed("n");
    assert!(ledger.node("n").is_none());
    assert_eq!(ledger.totals().sent.total(), 70);
}

#[test]
fn where_something_differs_it_is_told_which_resource_and_since_when() {
    let ledger = begun();
    let tell = |happening, second| ledger.happened("n", &happening, at(second));
    assert_eq!(ledger.even_of("n", &pods()), None);
    tell(Happening::Compared { even: true }, 40);
    tell(Happening::Compared { even: true }, 70);
    assert_eq!(ledger.even_of("n", &pods()), Some((true, at(40))));
    tell(Happening::Compared { even: false }, 100);
    let one = |resource, even| Happening::ComparedOne { resource, even };
    tell(one(pods(), false), 101);
    tell(one(pods(), false), 110);
    tell(one(nodes(), true), 102);
    assert_eq!(ledger.even_of("n", &pods()), Some((false, at(101))));
    assert_eq!(ledger.even_of("n", &nodes()), Some((true, at(102))));
    // Of the others it is not known until they are told of.
    assert_eq!(ledger.even_of("n", &Resource::new("", "secrets")), None);
    tell(Happening::Compared { even: true }, 130);
    assert_eq!(ledger.even_of("n", &pods()), Some((true, at(130))));
    let report = ledger.node("n").unwrap();
    assert_eq!(
        (report.even, report.even_since),
        (Some(true), Some(at(130)))
    );
}
