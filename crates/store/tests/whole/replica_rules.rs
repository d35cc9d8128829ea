//! How a replica follows its source, one sentence each.

use std::sync::Arc;

use host::Clock;
use object::Object;
use store::disk::Disk;
use store::disk::memory::MemoryDisk;
use store::replica::{Applied, Change, Cut, CutEnd, Misbehaved, Refusal, Reset, Until};
use store::{At, Ended, Extent, Part, Range, Refused, Replica, Scope, Step, Want, Watch};

use crate::bench_objects::*;
use crate::machine::Gated;

fn replica(disk: &Arc<MemoryDisk>) -> Replica {
    Replica::open(disk.clone(), small(1_000_000), Clock::machine()).unwrap()
}

fn cut(changes: Vec<Change>, end: Option<CutEnd>) -> Cut {
    Cut {
        resource: pods(),
        epoch: 1,
        changes,
        until: until(end),
    }
}

fn end(at: u64, resets: Vec<Reset>, ended: Vec<Scope>) -> Option<CutEnd> {
    Some(CutEnd {
        progress: version(at),
        resets,
        ended,
    })
}

fn reset(scope: Scope, objects: Vec<Object>) -> Reset {
    Reset::whole(scope, objects)
}

fn namespace(name: &str) -> Scope {
    Scope::of(Range::Namespace(name.into()))
}

/// A replica that holds everything, with one object, at version 10.
fn started() -> (Arc<MemoryDisk>, Replica) {
    let disk = Arc::new(MemoryDisk::default());
    let replica = replica(&disk);
    let resets = vec![reset(Scope::all(), vec![object("a/1", "u", "red", 5)])];
    let cut = cut(vec![], end(10, resets, vec![]));
    replica.apply_blocking(cut).unwrap();
    (disk, replica)
}

fn misbehaved(answer: Result<(Applied, store::Durable), Refusal>) -> Misbehaved {
    match answer {
        Err(Refusal::Misbehaved(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn watch(replica: &Replica, range: Range) -> Watch {
    let from = replica.reader().version(&pods()).unwrap();
    replica.reader().watch(&want(pods(), range), &from).unwrap()
}

fn listed(replica: &Replica) -> Vec<String> {
    let wanted = want(pods(), Range::All);
    let page = replica
        .reader()
        .page(&wanted, &At::Now, &Part::default())
        .unwrap();
    let names = page
        .rows
        .iter()
        .map(|row| row.header.name.as_str().to_owned());
    names.collect()
}

#[test]
fn a_version_that_was_shown_is_a_repeat_and_changes_nothing() {
    let (_, replica) = started();
    let older = Change::Put(object("a/1", "u", "blue", 4));
    let never = Change::Put(object("a/9", "v", "red", 9));
    let (applied, _) = replica
        .apply_blocking(cut(vec![older, never], None))
        .unwrap();
    assert_eq!((applied.stored, applied.repeated), (0, 2));
    assert_eq!(listed(&replica), ["a/1"]);
}

#[test]
fn within_a_cut_a_version_below_one_that_was_shown_is_refused() {
    let (_, replica) = started();
    let first = Change::Put(object("a/2", "v", "red", 20));
    replica.apply_blocking(cut(vec![first], None)).unwrap();
    let late = Change::Put(object("a/3", "w", "red", 15));
    let why = misbehaved(replica.apply_blocking(cut(vec![late], None)));
    assert!(matches!(why, Misbehaved::OutOfOrder { .. }));
}

#[test]
fn a_delete_of_another_object_of_the_name_is_a_repeat() {
    let (_, replica) = started();
    let delete = |uid: &str| Change::Delete {
        name: name("a/1"),
        uid: uid.into(),
        version: version(20),
    };
    let (applied, _) = replica
        .apply_blocking(cut(vec![delete("other")], None))
        .unwrap();
    assert_eq!((applied.stored, applied.repeated), (0, 1));
    let again = Change::Put(object("a/1", "new", "red", 21));
    let cut = cut(vec![delete("u"), again], None);
    let (applied, _) = replica.apply_blocking(cut).unwrap();
    assert_eq!(applied.stored, 2, "a new object may have the name at once");
}

#[test]
fn progress_never_goes_back_nor_below_a_change_of_its_own_cut() {
    let (_, replica) = started();
    let why = misbehaved(replica.apply_blocking(cut(vec![], end(9, vec![], vec![]))));
    assert!(matches!(why, Misbehaved::ProgressBackwards { .. }));
    let change = Change::Put(object("a/2", "v", "red", 20));
    let why = misbehaved(replica.apply_blocking(cut(vec![change], end(19, vec![], vec![]))));
    assert!(matches!(why, Misbehaved::ProgressBackwards { .. }));
    assert_eq!(listed(&replica), ["a/1"], "nothing of a refused cut counts");
}

#[test]
fn a_reset_may_bring_what_was_not_asked_for_before_at_a_version_that_was_shown() {
    let disk = Arc::new(MemoryDisk::default());
    let replica = replica(&disk);
    let start = |scope, path| vec![reset(scope, vec![object(path, path, "red", 3)])];
    let first = cut(vec![], end(10, start(namespace("a"), "a/1"), vec![]));
    replica.apply_blocking(first).unwrap();
    let mut other = watch(&replica, Range::Namespace("a".into()));
    let second = cut(vec![], end(10, start(namespace("b"), "b/1"), vec![]));
    replica.apply_blocking(second).unwrap();
    assert!(matches!(other.step(), Ok(Step::Progress(at)) if number(&at) == 10));
    // But it may not alter what was shown at that version.
    let third = cut(vec![], end(10, start(namespace("a"), "a/2"), vec![]));
    let why = misbehaved(replica.apply_blocking(third));
    assert!(matches!(why, Misbehaved::ResetWithoutVersion { .. }));
}

#[test]
fn a_reset_is_refused_if_it_names_one_twice_or_a_stranger_or_an_older_one() {
    let (_, replica) = started();
    let apply = |scope, objects| {
        let resets = vec![reset(scope, objects)];
        misbehaved(replica.apply_blocking(cut(vec![], end(20, resets, vec![]))))
    };
    let twice = vec![object("a/2", "v", "red", 11), object("a/2", "v", "red", 12)];
    assert!(matches!(
        apply(Scope::all(), twice),
        Misbehaved::Twice { .. }
    ));
    let stranger = vec![object("b/1", "v", "red", 11)];
    let why = apply(namespace("a"), stranger);
    assert!(matches!(why, Misbehaved::OutsideScopes { .. }));
    let older = vec![object("a/1", "u", "red", 4)];
    assert!(matches!(
        apply(Scope::all(), older),
        Misbehaved::OutOfOrder { .. }
    ));
    let future = vec![object("a/1", "u", "red", 21)];
    assert!(matches!(
        apply(Scope::all(), future),
        Misbehaved::OutOfOrder { .. }
    ));
}

#[test]
fn a_reset_ends_the_watches_that_it_touches_and_no_others() {
    let (_, replica) = started();
    let mut touched = watch(&replica, Range::All);
    let mut spared = watch(&replica, Range::Namespace("b".into()));
    let objects = vec![object("a/1", "u", "red", 5), object("a/2", "v", "red", 7)];
    let resets = vec![reset(Scope::all(), objects)];
    replica
        .apply_blocking(cut(vec![], end(20, resets, vec![])))
        .unwrap();
    assert_eq!(touched.step().unwrap_err(), Ended::Replaced);
    assert!(matches!(spared.step(), Ok(Step::Progress(at)) if number(&at) == 20));
    let wanted = want(pods(), Range::All);
    let early = replica.reader().watch(&wanted, &version(19));
    assert!(
        matches!(early, Err(Refused::TooOld { .. })),
        "the floor is the reset"
    );
}

#[test]
fn a_scope_that_ends_at_a_version_that_was_shown_ends_its_watches() {
    let (_, replica) = started();
    let mut watch = watch(&replica, Range::All);
    assert!(matches!(watch.step(), Ok(Step::Progress(_))));
    let ended = vec![Scope::all()];
    replica
        .apply_blocking(cut(vec![], end(10, vec![], ended)))
        .unwrap();
    assert!(watch.step().is_err(), "nothing more can be said about it");
    let wanted = want(pods(), Range::All);
    let refused = replica.reader().page(&wanted, &At::Now, &Part::default());
    assert!(
        matches!(refused, Err(Refused::NotCovered)),
        "and it is not shown as empty"
    );
}

#[test]
fn a_scope_that_ended_and_came_back_does_not_carry_its_old_watches_on() {
    let (_, replica) = started();
    // Another scope keeps the one object, so that neither step changes a row.
    let kept = object("a/1", "u", "red", 5);
    let beside = vec![reset(
        Scope::of(Range::Name(name("a/1"))),
        vec![kept.clone()],
    )];
    replica
        .apply_blocking(cut(vec![], end(11, beside, vec![])))
        .unwrap();
    let mut watch = watch(&replica, Range::All);
    let ended = vec![Scope::all()];
    replica
        .apply_blocking(cut(vec![], end(12, vec![], ended)))
        .unwrap();
    let again = vec![reset(Scope::all(), vec![kept])];
    replica
        .apply_blocking(cut(vec![], end(20, again, vec![])))
        .unwrap();
    assert_eq!(watch.step().unwrap_err(), Ended::Replaced);
}

#[test]
fn resets_that_share_a_version_survive_trimming_compaction_and_a_restart() {
    let disk = Arc::new(MemoryDisk::default());
    let open = || Replica::open(disk.clone(), small(2_000), Clock::machine()).unwrap();
    let replica = open();
    for round in 0..80_u64 {
        let (at, even) = (10 + round, round % 2 == 0);
        let content = |path: &str| match even {
            true => vec![object(path, path, "red", 5)],
            false => vec![],
        };
        let resets =
            ["a", "b", "c"].map(|name| reset(namespace(name), content(&format!("{name}/1"))));
        let cut = cut(vec![], end(at, resets.into(), vec![namespace("d")]));
        replica.apply_blocking(cut).unwrap();
    }
    let shown = replica.reader().count(&pods());
    drop(replica);
    assert!(
        disk.list()
            .unwrap()
            .iter()
            .any(|name| name.ends_with(".base"))
    );
    let replica = open();
    assert_eq!(replica.reader().count(&pods()), shown);
    assert!(
        replica
            .reader()
            .covers(&want(pods(), Range::Namespace("a".into())))
    );
}

#[test]
fn a_new_epoch_is_one_step_to_readers_and_the_end_to_watchers() {
    let (disk, replica) = started();
    let mut watch = watch(&replica, Range::All);
    let resets = vec![reset(Scope::all(), vec![object("b/1", "x", "red", 2)])];
    let restored = Cut {
        epoch: 2,
        ..cut(vec![], end(4, resets, vec![]))
    };
    replica.apply_blocking(restored).unwrap();
    assert_eq!(watch.step().unwrap_err(), Ended::Replaced);
    assert_eq!(listed(&replica), ["b/1"]);
    assert_eq!(number(&replica.reader().version(&pods()).unwrap()), 4);
    drop(replica);
    assert_eq!(listed(&self::replica(&disk)), ["b/1"]);
}

#[test]
fn a_refused_cut_makes_no_table() {
    let disk = Arc::new(MemoryDisk::default());
    let replica = replica(&disk);
    let change = Change::Put(object("a/1", "u", "red", 5));
    let why = misbehaved(replica.apply_blocking(cut(vec![change], None)));
    assert!(matches!(why, Misbehaved::OutsideScopes { .. }));
    assert!(replica.reader().resources().is_empty());
}

#[test]
fn more_scopes_than_a_record_holds_are_refused_and_thousands_are_cheap() {
    let (disk, replica) = started();
    let scopes = |count: usize| {
        let scope = |index| Scope::of(Range::Name(name(&format!("secrets/{index:0>40}"))));
        (0..count)
            .map(scope)
            .map(|scope| reset(scope, vec![]))
            .collect::<Vec<_>>()
    };
    let why = misbehaved(replica.apply_blocking(cut(vec![], end(20, scopes(30_000), vec![]))));
    assert!(matches!(why, Misbehaved::TooManyScopes { count: 30_001 }));
    replica
        .apply_blocking(cut(vec![], end(20, scopes(5_000), vec![])))
        .unwrap();
    let size = || disk.open("00000001.log").unwrap().size().unwrap();
    let before = size();
    let change = Change::Put(object("a/1", "u", "red", 21));
    replica.apply_blocking(cut(vec![change], None)).unwrap();
    assert!(
        size() - before < 1_000,
        "a change does not repeat the scopes"
    );
    drop(replica);
    let again = self::replica(&disk);
    assert_eq!(again.reader().scopes(&pods()).len(), 5_001);
}

#[test]
fn a_word_that_says_nothing_new_needs_no_sync() {
    let (disk, gate) = Gated::new(Arc::new(MemoryDisk::default()));
    let replica = Replica::open(Arc::new(disk), small(1_000_000), Clock::machine()).unwrap();
    let first = cut(vec![], end(10, vec![reset(Scope::all(), vec![])], vec![]));
    replica.apply_blocking(first).unwrap();
    let before = gate.syncs.load(std::sync::atomic::Ordering::SeqCst);
    replica
        .apply_blocking(cut(vec![], end(10, vec![], vec![])))
        .unwrap();
    assert_eq!(gate.syncs.load(std::sync::atomic::Ordering::SeqCst), before);
}

#[test]
fn a_table_that_is_forgotten_and_sent_again_in_one_group_has_all_its_rows() {
    let inner = Arc::new(MemoryDisk::default());
    let (disk, gate) = Gated::new(inner.clone());
    let replica = Replica::open(Arc::new(disk), small(1_000_000), Clock::machine()).unwrap();
    let all = |at| {
        let objects = vec![object("a/1", "u", "red", 5)];
        cut(vec![], end(at, vec![reset(Scope::all(), objects)], vec![]))
    };
    replica.apply_blocking(all(10)).unwrap();
    gate.close();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let first = begun(replica.apply(cut(vec![], end(11, vec![], vec![])))).await;
        // The writer is held up at its sync, so the others are of one group.
        gate.holds();
        let forgotten = begun(replica.forget(pods())).await;
        let sent = begun(replica.apply(all(12))).await;
        gate.open();
        first.await.unwrap();
        forgotten.await.unwrap();
        sent.await.unwrap();
    });
    assert_eq!(listed(&replica), ["a/1"]);
    drop(replica);
    assert_eq!(listed(&self::replica(&inner)), ["a/1"]);
}

#[test]
fn how_far_a_cut_got_that_was_cut_off_is_known_after_a_restart() {
    let (disk, first) = started();
    let piece = |changes, aim| Cut {
        until: Until::Piece { aim: version(aim) },
        ..cut(changes, None)
    };
    let put = |path: &str, at| Change::Put(object(path, path, "red", at));
    first
        .apply_blocking(piece(vec![put("a/2", 12)], 20))
        .unwrap();
    first
        .apply_blocking(piece(vec![put("a/3", 14)], 20))
        .unwrap();
    first
        .apply_blocking(piece(vec![put("a/4", 22)], 30))
        .unwrap();
    let beyond = first.apply_blocking(piece(vec![put("a/5", 31)], 30));
    assert!(matches!(
        misbehaved(beyond),
        Misbehaved::ProgressBackwards { .. }
    ));
    drop(first);
    let again = replica(&disk);
    let (epoch, standing) = again.reader().standing(&pods()).unwrap();
    let parts = standing.parts.as_slice().iter();
    let parts: Vec<(u64, u64)> = parts
        .map(|part| (number(&part.aim), number(&part.shown)))
        .collect();
    assert_eq!((epoch, number(&standing.progress)), (1, 10));
    assert_eq!(parts, [(20, 14), (30, 22)]);
    again
        .apply_blocking(cut(vec![], end(30, vec![], vec![])))
        .unwrap();
    let (_, standing) = again.reader().standing(&pods()).unwrap();
    assert_eq!(number(standing.shown()), 30);
    assert!(standing.parts.is_empty());
}

#[test]
fn what_is_held_of_several_scopes_is_listed_and_watched_until_it_is_another_part() {
    let replica = replica(&Arc::new(MemoryDisk::default()));
    let reader = replica.reader();
    let held = Want {
        extent: Extent::Held,
        ..want(pods(), Range::All)
    };
    let part = || {
        let page = reader.page(&held, &At::Now, &Part::default()).unwrap();
        let names = page
            .rows
            .iter()
            .map(|row| row.header.name.as_str().to_owned());
        (page.version.clone(), names.collect::<Vec<String>>())
    };
    assert!(
        reader.page(&held, &At::Now, &Part::default()).is_err(),
        "nothing is held"
    );
    let resets = vec![
        reset(namespace("a"), vec![object("a/1", "u", "red", 5)]),
        reset(namespace("b"), vec![object("b/1", "v", "red", 6)]),
    ];
    let first = cut(vec![], end(10, resets, vec![]));
    replica.apply_blocking(first).unwrap();
    let (at, names) = part();
    assert_eq!(names, ["a/1", "b/1"]);
    assert!(
        !reader.covers(&want(pods(), Range::All)),
        "there may be more"
    );
    let mut watch = reader.watch(&held, &at).unwrap();
    let change = Change::Put(object("b/1", "v", "blue", 12));
    replica
        .apply_blocking(cut(vec![change], end(12, vec![], vec![])))
        .unwrap();
    assert!(matches!(watch.step(), Ok(Step::Events(events)) if events.len() == 1));
    // Another scope is another part: what was seen before cannot be gone on from.
    let resets = vec![reset(namespace("c"), vec![object("c/1", "w", "red", 3)])];
    replica
        .apply_blocking(cut(vec![], end(20, resets, vec![])))
        .unwrap();
    assert_eq!(watch.step().unwrap_err(), Ended::Replaced);
    assert!(matches!(
        reader.watch(&held, &at),
        Err(Refused::TooOld { .. })
    ));
    let (at, names) = part();
    assert_eq!(names, ["a/1", "b/1", "c/1"]);
    let mut watch = reader.watch(&held, &at).unwrap();
    let ended = cut(vec![], end(30, vec![], vec![namespace("a")]));
    replica.apply_blocking(ended).unwrap();
    assert_eq!(watch.step().unwrap_err(), Ended::Replaced);
    assert_eq!(part().1, ["b/1", "c/1"]);
}

#[test]
fn who_watches_what_is_held_is_told_of_a_scope_that_starts_or_ends_where_he_stands() {
    let (_, replica) = started();
    let held = Want {
        extent: Extent::Held,
        ..want(pods(), Range::All)
    };
    let watch = || replica.reader().watch(&held, &version(10)).unwrap();
    let mut starts = watch();
    let scope = Scope::of(Range::Name(name("b/1")));
    let resets = vec![reset(scope.clone(), vec![object("b/1", "v", "red", 7)])];
    replica
        .apply_blocking(cut(vec![], end(10, vec![], vec![Scope::all()])))
        .unwrap();
    assert_eq!(starts.step().unwrap_err(), Ended::Replaced);
    replica
        .apply_blocking(cut(vec![], end(10, resets, vec![])))
        .unwrap();
    let mut ends = watch();
    replica
        .apply_blocking(cut(vec![], end(10, vec![], vec![scope])))
        .unwrap();
    assert_eq!(ends.step().unwrap_err(), Ended::Replaced);
}
