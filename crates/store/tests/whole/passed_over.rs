//! A client may have its version from the cluster itself. A replica is told only what there is at
//! the end of a cut: who stands in between, and knows of something that was made and went there,
//! would never hear that it went.

use std::sync::Arc;

use host::Clock;
use store::disk::memory::MemoryDisk;
use store::replica::{Change, Cut, CutEnd, Reset};
use store::{Ended, Range, Refused, Replica, Scope, Step, Watch};

use crate::bench_objects::*;

fn open(disk: &Arc<MemoryDisk>) -> Replica {
    Replica::open(disk.clone(), small(1_000_000), Clock::machine()).unwrap()
}

fn apply(replica: &Replica, changes: &[(&str, u64)], progress: Option<u64>) {
    let put = |(path, at): &(&str, u64)| Change::Put(object(path, path, "red", *at));
    let cut = Cut {
        resource: pods(),
        epoch: 1,
        changes: changes.iter().map(put).collect(),
        until: until(progress.map(|at| CutEnd {
            progress: version(at),
            resets: vec![],
            ended: vec![],
        })),
    };
    replica.apply_blocking(cut).unwrap();
}

/// A replica that holds everything, at version 10.
fn started() -> (Arc<MemoryDisk>, Replica) {
    let disk = Arc::new(MemoryDisk::default());
    let replica = open(&disk);
    let cut = Cut {
        resource: pods(),
        epoch: 1,
        changes: vec![],
        until: until(Some(CutEnd {
            progress: version(10),
            resets: vec![Reset::whole(Scope::all(), vec![])],
            ended: vec![],
        })),
    };
    replica.apply_blocking(cut).unwrap();
    (disk, replica)
}

fn watch(replica: &Replica, from: u64) -> Result<Watch, Refused> {
    let wanted = want(pods(), Range::All);
    replica.reader().watch(&wanted, &version(from))
}

/// Which versions of these cannot be started from.
fn passed_over(replica: &Replica, range: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    let over = |from: &u64| {
        let refused = matches!(watch(replica, *from), Err(Refused::PassedOver { .. }));
        let shown = replica.reader().may_have_shown(&pods(), &version(*from));
        assert_eq!(refused, !shown, "{from}");
        refused
    };
    range.filter(over).collect()
}

#[test]
fn who_stands_where_a_replica_never_stood_has_it_from_elsewhere() {
    let (disk, replica) = started();
    apply(&replica, &[("a/1", 12), ("a/2", 15)], Some(20));
    apply(&replica, &[], Some(25));
    apply(&replica, &[("a/3", 28)], Some(28));
    // 12 and 15 are of changes that were shown, and nothing came from 15 to 25.
    let over = [11, 13, 14, 26, 27];
    assert_eq!(passed_over(&replica, 10..=30), over);
    drop(replica);
    assert_eq!(passed_over(&open(&disk), 10..=30), over);
}

#[test]
fn in_the_middle_of_a_cut_only_what_was_shown_is_a_place_to_start_from() {
    let (_, replica) = started();
    apply(&replica, &[("a/1", 12), ("a/2", 15)], None);
    assert_eq!(passed_over(&replica, 10..=15), [11, 13, 14]);
}

#[test]
fn who_starts_ahead_is_sent_away_when_his_version_is_passed_over() {
    let (_, replica) = started();
    let mut stands: Vec<Watch> = [12, 17, 20].map(|at| watch(&replica, at).unwrap()).into();
    let mut over: Vec<Watch> = [11, 14].map(|at| watch(&replica, at).unwrap()).into();
    apply(&replica, &[("a/1", 12)], None);
    assert_eq!(over[0].step().unwrap_err(), Ended::PassedOver);
    assert!(matches!(over[1].step(), Ok(Step::Progress(at)) if number(&at) == 14));
    apply(&replica, &[("a/2", 15)], Some(20));
    for watch in &mut over {
        assert_eq!(watch.step().unwrap_err(), Ended::PassedOver);
    }
    let events = stands[0].step().unwrap();
    assert!(matches!(events, Step::Events(events) if events.len() == 1));
    for watch in &mut stands[1..] {
        assert!(matches!(watch.step(), Ok(Step::Progress(at)) if number(&at) == 20));
    }
}
