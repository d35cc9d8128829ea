//! Who is registered, whose lease is renewed, and when; who is said to be away.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use wire::frame::Machine;
use wire::report::statement::Pulse;

use super::absence::{AWAY_MAX, Absence, Sight};
use super::roll::{Look, PERIOD, SILENCE_MAX};
use super::*;
use crate::sessions::NodeName;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn ours(condition: Condition) -> Look {
    Look {
        registered: Registered::Ours {
            uid: "u".into(),
            condition,
        },
        silent_for: Duration::ZERO,
    }
}

fn is(registered: Registered) -> Look {
    Look {
        registered,
        silent_for: Duration::ZERO,
    }
}

fn foreign() -> Look {
    is(Registered::Foreign { uid: "k".into() })
}

fn begun(leases: Leases) -> (Roll, NodeName) {
    let (mut roll, node) = (Roll::new(leases), "n".into());
    roll.began(&node, 1, Machine::default(), Duration::ZERO);
    (roll, node)
}

fn step(roll: &mut Roll, look: &Look, now: Duration) -> Task {
    match roll.next(now, |_| look.clone()) {
        Next::Do(task) => task,
        Next::Wait(until) => panic!("nothing before {until:?}"),
    }
}

fn wait(roll: &mut Roll, look: &Look, now: Duration) -> Duration {
    match roll.next(now, |_| look.clone()) {
        Next::Wait(Some(until)) => until,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_is_registered_then_has_a_lease_that_is_renewed() {
    let (mut roll, _) = begun(Leases::On);
    let task = step(&mut roll, &is(Registered::Missing), Duration::ZERO);
    assert_eq!(task.step, Step::Register(Machine::default()));
    roll.done(&task, Outcome::Done, Duration::ZERO);
    let ready = ours(Condition::Ready);
    let now = wait(&mut roll, &ready, Duration::ZERO);
    let task = step(&mut roll, &ready, now);
    assert_eq!(task.step, Step::Renew);
    roll.done(&task, Outcome::Missing, now);
    let task = step(&mut roll, &ready, now);
    assert_eq!(task.step, Step::Lease("u".into()));
    roll.done(&task, Outcome::Done, now);
    let next = wait(&mut roll, &ready, now);
    assert!(next - now >= PERIOD / 2 && next - now <= PERIOD * 3 / 2);
    assert_eq!(step(&mut roll, &ready, next).step, Step::Renew);
}

#[test]
fn a_node_of_somebody_else_is_left_alone() {
    let (mut roll, _) = begun(Leases::On);
    let mut now = Duration::ZERO;
    for _ in 0..10 {
        now = wait(&mut roll, &foreign(), now);
    }
    // Nor is one made while it is not known whether there is one.
    for _ in 0..10 {
        now = wait(&mut roll, &is(Registered::Unknown), now);
    }
    // It was deleted: now it is ours to make.
    let task = step(&mut roll, &is(Registered::Missing), now);
    assert!(matches!(task.step, Step::Register(_)));
}

#[test]
fn a_node_that_was_given_up_is_ready_again_once() {
    let (mut roll, _) = begun(Leases::On);
    let given_up = ours(Condition::NotReady);
    let task = step(&mut roll, &given_up, Duration::ZERO);
    assert_eq!(task.step, Step::Ready);
    roll.done(&task, Outcome::Done, Duration::ZERO);
    // Those who follow the cluster have not seen it yet.
    let task = step(&mut roll, &given_up, Duration::ZERO);
    assert_eq!(task.step, Step::Renew);
    roll.done(&task, Outcome::Done, Duration::ZERO);
    let now = wait(&mut roll, &given_up, Duration::ZERO);
    assert_eq!(step(&mut roll, &given_up, now).step, Step::Ready);
}

#[test]
fn a_silent_session_is_not_vouched_for() {
    let (mut roll, _) = begun(Leases::On);
    let mut silent = ours(Condition::Ready);
    silent.silent_for = SILENCE_MAX + seconds(1);
    let now = wait(&mut roll, &silent, Duration::ZERO);
    assert_eq!(
        step(&mut roll, &ours(Condition::Ready), now).step,
        Step::Renew
    );
}

#[test]
fn without_leases_nodes_are_registered_and_no_more() {
    let (mut roll, _) = begun(Leases::Off);
    let task = step(&mut roll, &is(Registered::Missing), Duration::ZERO);
    roll.done(&task, Outcome::Done, Duration::ZERO);
    let mut now = wait(&mut roll, &ours(Condition::NotReady), Duration::ZERO);
    for _ in 0..10 {
        now = wait(&mut roll, &ours(Condition::NotReady), now);
    }
}

#[test]
fn a_session_that_is_over_has_no_turn_and_an_older_end_is_no_news() {
    let (mut roll, node) = begun(Leases::On);
    roll.began(&node, 2, Machine::default(), Duration::ZERO);
    roll.ended(&node, 1);
    let ready = ours(Condition::Ready);
    let task = step(&mut roll, &ready, Duration::ZERO);
    roll.ended(&node, 2);
    roll.done(&task, Outcome::Done, Duration::ZERO);
    assert_eq!(roll.next(seconds(100), |_| ready.clone()), Next::Wait(None));
    assert!(roll.is_empty());
}

#[test]
fn nine_thousand_nodes_are_spread_and_none_runs_out() {
    let mut roll = Roll::new(Leases::On);
    let mut renewed: BTreeMap<NodeName, Duration> = BTreeMap::new();
    for number in 0..9_000 {
        let node: NodeName = format!("node-{number}").into();
        roll.began(&node, 1, Machine::default(), Duration::ZERO);
        renewed.insert(node, Duration::ZERO);
    }
    let ready = ours(Condition::Ready);
    let (mut now, mut count, mut worst) = (Duration::ZERO, 0_u64, Duration::ZERO);
    let mut in_second = BTreeMap::<u64, u64>::new();
    while now < seconds(200) {
        match roll.next(now, |_| ready.clone()) {
            Next::Do(task) => {
                let before = renewed.insert(task.node.clone(), now).unwrap();
                worst = worst.max(now - before);
                *in_second.entry(now.as_secs()).or_default() += 1;
                count += 1;
                roll.done(&task, Outcome::Done, now);
            }
            Next::Wait(until) => now = until.unwrap(),
        }
    }
    assert!(worst <= seconds(40), "{worst:?}");
    let most = in_second.iter().skip(1).map(|(_, count)| *count).max();
    assert!(most <= Some(401), "{most:?} in a second");
    // Once they are spread, each is renewed every 25 s.
    assert!(count <= 9_000 * 200 / 25 + 2 * 9_000, "{count}");
}

#[test]
fn what_fails_is_tried_again_and_what_is_refused_later() {
    let (mut roll, _) = begun(Leases::On);
    let ready = ours(Condition::Ready);
    let task = step(&mut roll, &ready, Duration::ZERO);
    roll.done(&task, Outcome::Failed, Duration::ZERO);
    let soon = wait(&mut roll, &ready, Duration::ZERO);
    assert!(soon <= seconds(5));
    let task = step(&mut roll, &ready, soon);
    roll.done(&task, Outcome::Refused, soon);
    assert!(wait(&mut roll, &ready, soon) - soon >= PERIOD / 2);
}

#[test]
fn who_stays_away_is_looked_at_once_for_each_version() {
    let mut absence = Absence::default();
    let sight = |version: &str, connected| Sight {
        node: "n".into(),
        version: version.parse().unwrap(),
        connected,
    };
    let away = [sight("5", false)];
    assert!(absence.look(&away, Duration::ZERO).is_empty());
    assert_eq!(absence.look(&away, AWAY_MAX), ["n".into()]);
    assert_eq!(absence.look(&away, AWAY_MAX), ["n".into()]);
    absence.settle("n", "5".parse().unwrap());
    assert!(absence.look(&away, AWAY_MAX * 2).is_empty());
    assert_eq!(
        absence.look(&[sight("6", false)], AWAY_MAX * 2),
        ["n".into()]
    );
    // It comes back: its time away begins anew.
    assert!(absence.look(&[sight("6", true)], AWAY_MAX * 3).is_empty());
    assert!(absence.look(&[sight("6", false)], AWAY_MAX * 4).is_empty());
}

#[test]
fn what_a_machine_claims_is_no_label_if_it_cannot_be_one() {
    let now: Timestamp = "2026-01-01T12:00:00.25Z".parse().unwrap();
    let labels = |host: &str, name: &str| -> Value {
        let machine = Machine {
            host: host.into(),
            os: "linux".into(),
            arch: "-".into(),
        };
        let node: Value = serde_json::from_slice(&text::node(name, &machine, now)).unwrap();
        node["metadata"]["labels"].clone()
    };
    let good = labels("shop", "n");
    assert_eq!(good["kubernetes.io/hostname"], "shop");
    assert_eq!(good["kubernetes.io/os"], "linux");
    assert_eq!(good["kubernetes.io/arch"], Value::Null);
    assert_eq!(good[MARK], "true");
    let long = "x".repeat(64);
    for bad in ["", "a b", "ü", "shop.", &long] {
        assert_eq!(labels(bad, "n")["kubernetes.io/hostname"], "n");
    }
    assert_eq!(labels("", &long)["kubernetes.io/hostname"], Value::Null);
    let lease: Value = serde_json::from_slice(&text::lease("n", "u", now)).unwrap();
    assert_eq!(lease["spec"]["renewTime"], "2026-01-01T12:00:00.250000Z");
}

#[test]
fn the_lease_of_a_kubelet_is_renewed_while_it_lives_and_its_node_is_left_alone() {
    let (mut roll, node) = (Roll::new(Leases::On), NodeName::from("n"));
    roll.kubelet(&node, 1, Pulse::Stopped, Duration::ZERO);
    assert!(roll.is_empty());
    roll.kubelet(&node, 1, Pulse::Alive, Duration::ZERO);
    // Without a Node there is no lease, and none is made.
    let now = wait(&mut roll, &is(Registered::Missing), Duration::ZERO);
    let task = step(&mut roll, &foreign(), now);
    assert_eq!(task.step, Step::Renew);
    roll.done(&task, Outcome::Missing, now);
    let task = step(&mut roll, &foreign(), now);
    assert_eq!(task.step, Step::Lease("k".into()));
    roll.done(&task, Outcome::Done, now);
    let now = wait(&mut roll, &foreign(), now);
    let silent = Look {
        silent_for: SILENCE_MAX + seconds(1),
        ..foreign()
    };
    let now = wait(&mut roll, &silent, now);
    assert_eq!(step(&mut roll, &foreign(), now).step, Step::Renew);
    roll.kubelet(&node, 1, Pulse::Stopped, now);
    assert!(roll.is_empty());
}

#[test]
fn a_late_word_of_an_older_session_changes_nothing_of_the_newer_one() {
    let (mut roll, node) = begun(Leases::On);
    roll.began(&node, 2, Machine::default(), Duration::ZERO);
    roll.kubelet(&node, 1, Pulse::Alive, Duration::ZERO);
    // The newer one is still there: its machine is known, and its end ends it.
    let task = step(&mut roll, &is(Registered::Missing), Duration::ZERO);
    assert_eq!(
        (task.number, task.step),
        (2, Step::Register(Machine::default()))
    );
    roll.ended(&node, 2);
    assert!(roll.is_empty());
}

#[test]
fn what_an_older_session_said_of_a_kubelet_goes_with_it() {
    let (mut roll, node) = (Roll::new(Leases::On), NodeName::from("n"));
    roll.kubelet(&node, 1, Pulse::Alive, Duration::ZERO);
    roll.ended(&node, 1);
    assert!(roll.is_empty());
    let (mut roll, node) = begun(Leases::On);
    roll.kubelet(&node, 1, Pulse::Alive, Duration::ZERO);
    assert_eq!(
        step(&mut roll, &foreign(), Duration::ZERO).step,
        Step::Renew
    );
    roll.began(&node, 2, Machine::default(), Duration::ZERO);
    wait(&mut roll, &foreign(), Duration::ZERO);
}
