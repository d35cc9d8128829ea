//! What is told follows from what happened.

use std::time::Duration;

use host::Clock;

use super::*;

/// A moment so many seconds after the start.
fn moment(clock: &Clock, seconds: u64) -> Instant {
    clock.now() + Duration::from_secs(seconds)
}

fn clock() -> Clock {
    Clock::manual(at(0)).0
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn welcome() -> Welcome {
    Welcome {
        protocol: 1,
        features: 0,
        hub: "hub-a".into(),
        heartbeat_seconds: 30,
        window: 8,
    }
}

fn bytes(class: Class, count: u64) -> Weight {
    let mut weight = Weight::default();
    weight.add(class, count);
    weight
}

fn report(status: &Status, now: Instant) -> Report {
    let pods = Held {
        resource: "pods".to_owned(),
        version: Some("42".to_owned()),
        objects: 2,
        scopes: 1,
        digest: "00".to_owned(),
    };
    status.report("n", vec![pods], now)
}

#[test]
fn a_session_is_told_with_its_transport_until_it_ends_with_its_reason() {
    let (status, clock) = (Status::default(), clock());
    status.opened("quic", 7);
    assert_eq!(
        report(&status, moment(&clock, 0)).transport,
        None,
        "nobody agreed yet"
    );
    status.welcomed(&welcome(), at(100));
    status.received(bytes(Class::Control, 9), moment(&clock, 3));
    let connected = report(&status, moment(&clock, 8));
    assert_eq!(
        (connected.transport, connected.session),
        (Some("quic"), Some(7))
    );
    assert_eq!(
        (connected.since, connected.silent_seconds),
        (Some(at(100)), Some(5))
    );
    status.ended("lost", "link lost", at(160));
    status.ended("unlinked", "nobody answers", at(170));
    let alone = report(&status, moment(&clock, 70));
    assert_eq!((alone.connected, alone.transport), (false, None));
    assert_eq!(alone.since, Some(at(160)), "not since the last attempt");
    assert_eq!(alone.trouble.as_deref(), Some("nobody answers"));
}

#[test]
fn numbers_are_told_to_programs_as_well() {
    let (status, clock) = (Status::default(), clock());
    status.opened("websocket", 1);
    status.welcomed(&welcome(), at(100));
    status.received(bytes(Class::Configuration, 30), clock.now());
    status.sent(bytes(Class::Control, 4));
    status.delivered(false);
    status.delivered(true);
    status.given_up();
    status.rejected(Fault::NoBase);
    status.waiting(3);
    let open = Visits {
        connections: 5,
        watches: 4,
    };
    let report = report(&status, moment(&clock, 0)).with_visits(open, 2);
    let text = report.metrics();
    for line in [
        "holdfast_agent_api_connections 5",
        "holdfast_agent_api_watches 4",
        "holdfast_agent_tunnels 2",
        "holdfast_agent_connected 1",
        "holdfast_agent_transport{transport=\"websocket\"} 1",
        "holdfast_agent_transport{transport=\"quic\"} 0",
        "holdfast_agent_since_seconds 100",
        "holdfast_agent_sent_bytes_total{class=\"control\"} 4",
        "holdfast_agent_received_bytes_total{class=\"configuration\"} 30",
        "holdfast_agent_deliveries_total{what=\"received\"} 2",
        "holdfast_agent_deliveries_total{what=\"again\"} 1",
        "holdfast_agent_deliveries_total{what=\"void\"} 1",
        "holdfast_agent_rejected_total{reason=\"no-base\"} 1",
        "holdfast_agent_waiting 3",
        "holdfast_agent_objects{resource=\"pods\"} 2",
        "holdfast_agent_version{resource=\"pods\"} 42",
    ] {
        assert!(
            text.lines().any(|it| it == line),
            "{line} is missing in\n{text}"
        );
    }
}
