//! What is staged, and documents: on disk, and shown to nobody. One sentence each.

use std::sync::Arc;

use bytes::Bytes;
use host::Clock;
use object::Object;
use object::digest::{Digest, Member};
use store::disk::Disk;
use store::disk::memory::MemoryDisk;
use store::replica::{Change, Cut, CutEnd, Misbehaved, Onto, Refusal, Reset, Stage, Until, fits};
use store::{At, Ended, Part, Range, Replica, Scope};

use crate::bench_objects::*;

fn replica(disk: &Arc<MemoryDisk>) -> Replica {
    Replica::open(disk.clone(), small(1_000_000), Clock::machine()).unwrap()
}

fn fresh() -> (Arc<MemoryDisk>, Replica) {
    let disk = Arc::new(MemoryDisk::default());
    let replica = replica(&disk);
    (disk, replica)
}

fn namespace(name: &str) -> Scope {
    Scope::of(Range::Namespace(name.into()))
}

fn pod(path: &str, at: u64) -> Object {
    object(path, path, "red", at)
}

fn staged(scope: Scope, onto: Onto, puts: Vec<Object>) -> Stage {
    Stage {
        resource: pods(),
        epoch: 1,
        scope,
        onto,
        puts,
        drops: vec![],
    }
}

fn from_staged(scope: Scope) -> Reset {
    Reset {
        scope,
        onto: Onto::Staged,
        puts: vec![],
        drops: vec![],
    }
}

fn end(at: u64, resets: Vec<Reset>) -> Cut {
    Cut {
        resource: pods(),
        epoch: 1,
        changes: vec![],
        until: Until::End(CutEnd {
            progress: version(at),
            resets,
            ended: vec![],
        }),
    }
}

fn change(at: u64, changes: Vec<Change>) -> Cut {
    let cut = end(at, vec![]);
    Cut { changes, ..cut }
}

/// Names and versions of all that is shown.
fn shown(replica: &Replica) -> Vec<String> {
    let rows = replica.reader().rows(&pods()).into_iter();
    rows.map(|row| format!("{}@{}", row.header.name, row.header.version))
        .collect()
}

fn misbehaved<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> Misbehaved {
    match answer {
        Err(Refusal::Misbehaved(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn is_not_staged<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> bool {
    matches!(answer, Err(Refusal::NothingStaged { .. }))
}

#[test]
fn what_is_staged_is_shown_to_nobody_until_a_reset_takes_all_of_it() {
    let (disk, first) = fresh();
    let stage = staged(namespace("a"), Onto::Nothing, vec![pod("a/1", 5)]);
    first.stage_blocking(stage).unwrap();
    drop(first);
    let replica = replica(&disk);
    assert_eq!(replica.reader().resources(), []);
    assert_eq!(replica.reader().staged(), [(pods(), namespace("a"))]);
    let stage = staged(namespace("a"), Onto::Staged, vec![pod("a/2", 7)]);
    replica.stage_blocking(stage).unwrap();
    let cut = end(10, vec![from_staged(namespace("a"))]);
    let (applied, _) = replica.apply_blocking(cut).unwrap();
    assert_eq!(applied.stored, 2);
    assert_eq!(shown(&replica), ["a/1@5", "a/2@7"]);
    assert_eq!(replica.reader().staged(), []);
    let read = replica.reader().object(&pods(), &name("a/2")).unwrap();
    assert_eq!(read.unwrap().bytes, pod("a/2", 7).bytes);
    let again = replica.apply_blocking(end(11, vec![from_staged(namespace("a"))]));
    assert!(is_not_staged(again), "it is taken once");
}

#[test]
fn a_reset_from_what_is_staged_writes_no_object_again() {
    let (disk, first) = fresh();
    let size = |disk: &MemoryDisk| disk.open("00000001.log").unwrap().size().unwrap();
    let empty = size(&disk);
    for page in 0..20 {
        let onto = if page == 0 {
            Onto::Nothing
        } else {
            Onto::Staged
        };
        let puts = (0..50).map(|index| pod(&format!("a/{page}-{index}"), 5));
        let stage = staged(Scope::all(), onto, puts.collect());
        first.stage_blocking(stage).unwrap();
    }
    let before = size(&disk);
    let cut = end(10, vec![from_staged(Scope::all())]);
    let (applied, _) = first.apply_blocking(cut).unwrap();
    assert_eq!(applied.stored, 1000);
    let (staging, reset) = (before - empty, size(&disk) - before);
    assert!(reset < 1_000, "{reset} bytes after {staging}");
    drop(first);
    let replica = replica(&disk);
    assert_eq!(replica.reader().count(&pods()), 1000);
    let want = want(pods(), Range::All);
    let page = replica.reader().page(&want, &At::Now, &Part::default());
    let page = page.unwrap();
    for row in &page.rows {
        page.bytes(row).unwrap();
    }
}

#[test]
fn requests_that_share_a_sync_see_what_the_ones_before_them_staged() {
    use crate::machine::Gated;
    let (disk, gate) = Gated::new(Arc::new(MemoryDisk::default()));
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let open = || Replica::open(disk.clone(), small(1_000_000), Clock::machine()).unwrap();
    let first = open();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        gate.close();
        let held = begun(first.put_document("first", Some(Bytes::from_static(b"1")))).await;
        gate.holds();
        let one = staged(
            Scope::all(),
            Onto::Nothing,
            vec![pod("a/1", 5), pod("a/2", 5)],
        );
        let one = begun(first.stage(one)).await;
        let mut two = staged(Scope::all(), Onto::Staged, vec![pod("a/3", 6)]);
        two.drops = vec![name("a/2")];
        let two = begun(first.stage(two)).await;
        let reset = end(10, vec![from_staged(Scope::all())]);
        let three = begun(first.apply(reset)).await;
        let none = begun(first.stage(staged(Scope::all(), Onto::Staged, vec![]))).await;
        gate.open();
        held.await.unwrap();
        one.await.unwrap();
        two.await.unwrap();
        assert_eq!(three.await.unwrap().0.stored, 2);
        assert!(is_not_staged(none.await), "the reset took it");
    });
    assert_eq!(shown(&first), ["a/1@5", "a/3@6"]);
    drop(first);
    assert_eq!(shown(&open()), ["a/1@5", "a/3@6"]);
}

#[test]
fn what_is_put_or_dropped_with_the_reset_comes_in_the_place_of_what_is_staged() {
    let (disk, first) = fresh();
    let puts = ["a/1", "a/2", "a/3"].map(|path| pod(path, 5)).to_vec();
    first
        .stage_blocking(staged(Scope::all(), Onto::Nothing, puts))
        .unwrap();
    let reset = Reset {
        puts: vec![pod("a/2", 8), pod("a/4", 9)],
        drops: vec![name("a/3"), name("a/9")],
        ..from_staged(Scope::all())
    };
    first.apply_blocking(end(10, vec![reset])).unwrap();
    assert_eq!(shown(&first), ["a/1@5", "a/2@8", "a/4@9"]);
    drop(first);
    assert_eq!(shown(&replica(&disk)), ["a/1@5", "a/2@8", "a/4@9"]);
}

#[test]
fn a_reset_from_what_is_held_keeps_what_it_does_not_name() {
    let (disk, first) = fresh();
    let puts = ["a/1", "a/2", "b/1"].map(|path| pod(path, 5)).to_vec();
    first
        .apply_blocking(end(10, vec![Reset::whole(Scope::all(), puts)]))
        .unwrap();
    let reset = Reset {
        scope: Scope::all(),
        onto: Onto::Held,
        puts: vec![pod("a/2", 11)],
        drops: vec![name("b/1")],
    };
    let (applied, _) = first.apply_blocking(end(12, vec![reset])).unwrap();
    assert_eq!(applied.stored, 2);
    // The same in two pieces, and what was held when the reset came counts.
    let stage = staged(Scope::all(), Onto::Held, vec![pod("c/1", 13)]);
    let stage = Stage {
        drops: vec![name("a/1")],
        ..stage
    };
    first.stage_blocking(stage).unwrap();
    let new = Change::Put(pod("d/1", 14));
    first.apply_blocking(change(14, vec![new])).unwrap();
    let cut = end(15, vec![from_staged(Scope::all())]);
    first.apply_blocking(cut).unwrap();
    let all = ["a/2@11", "c/1@13", "d/1@14"];
    assert_eq!(shown(&first), all);
    drop(first);
    assert_eq!(shown(&replica(&disk)), all);
}

#[test]
fn what_is_staged_and_held_already_is_no_change_and_needs_no_version() {
    let (_, replica) = fresh();
    let held = vec![pod("a/1", 5), pod("a/2", 7)];
    let reset = Reset::whole(namespace("a"), held);
    replica.apply_blocking(end(10, vec![reset])).unwrap();
    // Everything starts, at a version that was shown. One object is held at a newer version than
    // it was staged with, and put again.
    let stage = staged(
        Scope::all(),
        Onto::Nothing,
        vec![pod("a/1", 5), pod("a/2", 3)],
    );
    replica.stage_blocking(stage).unwrap();
    let reset = Reset {
        puts: vec![pod("a/2", 7), pod("b/1", 9)],
        ..from_staged(Scope::all())
    };
    let (applied, _) = replica.apply_blocking(end(10, vec![reset])).unwrap();
    assert_eq!(applied.stored, 1, "only what was not there");
    let stage = staged(Scope::all(), Onto::Nothing, vec![pod("a/1", 5)]);
    replica.stage_blocking(stage).unwrap();
    let cut = end(10, vec![from_staged(Scope::all())]);
    let why = misbehaved(replica.apply_blocking(cut));
    assert!(matches!(why, Misbehaved::ResetWithoutVersion { .. }));
    assert_eq!(
        replica.reader().staged().len(),
        1,
        "what is refused takes nothing"
    );
}

#[test]
fn staged_objects_keep_to_the_rules_of_their_reset() {
    let (_, replica) = fresh();
    let reset = Reset::whole(Scope::all(), vec![pod("a/1", 9)]);
    replica.apply_blocking(end(10, vec![reset])).unwrap();
    for wrong in [pod("a/1", 7), pod("a/2", 21)] {
        let stage = staged(Scope::all(), Onto::Nothing, vec![wrong]);
        replica.stage_blocking(stage).unwrap();
        let cut = end(20, vec![from_staged(Scope::all())]);
        let why = misbehaved(replica.apply_blocking(cut));
        assert!(matches!(why, Misbehaved::OutOfOrder { .. }), "{why}");
    }
    let outside = staged(namespace("b"), Onto::Nothing, vec![pod("a/1", 9)]);
    let why = misbehaved(replica.stage_blocking(outside));
    assert!(matches!(why, Misbehaved::OutsideScopes { .. }));
    let twice = staged(
        Scope::all(),
        Onto::Nothing,
        vec![pod("a/1", 9), pod("a/1", 9)],
    );
    let why = misbehaved(replica.stage_blocking(twice));
    assert!(matches!(why, Misbehaved::Twice { .. }));
    let mut large = pod("a/1", 9);
    large.bytes = vec![b'x'; 4 * 1024 * 1024 + 1].into();
    assert!(!fits(&large.header, large.bytes.len()) && fits(&large.header, 1));
    let large = staged(Scope::all(), Onto::Nothing, vec![large]);
    let why = misbehaved(replica.stage_blocking(large));
    assert!(matches!(why, Misbehaved::TooLarge { .. }));
}

#[test]
fn watches_end_when_staged_content_is_shown() {
    let (_, replica) = fresh();
    let reset = Reset::whole(Scope::all(), vec![pod("a/1", 9)]);
    replica.apply_blocking(end(10, vec![reset])).unwrap();
    let wanted = want(pods(), Range::All);
    let mut watch = replica.reader().watch(&wanted, &version(10)).unwrap();
    let stage = staged(Scope::all(), Onto::Held, vec![pod("a/2", 12)]);
    replica.stage_blocking(stage).unwrap();
    let cut = end(20, vec![from_staged(Scope::all())]);
    replica.apply_blocking(cut).unwrap();
    assert_eq!(watch.step().unwrap_err(), Ended::Replaced);
    assert_eq!(replica.reader().floor(&wanted).unwrap(), version(20));
    let then = At::Exactly(version(15));
    let old = replica.reader().page(&wanted, &then, &Part::default());
    assert!(matches!(old, Err(store::Refused::TooOld { .. })));
}

#[test]
fn a_scope_that_ends_a_new_epoch_and_a_discard_leave_nothing_staged() {
    let (disk, first) = fresh();
    let stage = |scope: &str| staged(namespace(scope), Onto::Nothing, vec![]);
    let reset = Reset::whole(namespace("a"), vec![]);
    first.apply_blocking(end(10, vec![reset])).unwrap();
    first.stage_blocking(stage("a")).unwrap();
    let mut ends = end(11, vec![]);
    if let Until::End(end) = &mut ends.until {
        end.ended.push(namespace("a"));
    }
    first.apply_blocking(ends).unwrap();
    assert_eq!(first.reader().staged(), []);
    for scope in ["a", "b", "c"] {
        first.stage_blocking(stage(scope)).unwrap();
    }
    first
        .unstage_blocking(pods(), Some(namespace("b")))
        .unwrap();
    assert_eq!(first.reader().staged().len(), 2);
    let other = Stage {
        epoch: 2,
        ..stage("d")
    };
    first.stage_blocking(other).unwrap();
    assert_eq!(first.reader().staged(), [(pods(), namespace("d"))]);
    let cut = end(12, vec![from_staged(namespace("d"))]);
    assert!(is_not_staged(first.apply_blocking(cut)), "of another epoch");
    first.unstage_blocking(pods(), None).unwrap();
    first.unstage_blocking(pods(), None).unwrap();
    drop(first);
    assert_eq!(replica(&disk).reader().staged(), []);
}

#[test]
fn a_new_epoch_comes_from_what_was_staged_for_it_and_never_from_what_is_held() {
    let (disk, first) = fresh();
    let reset = Reset::whole(Scope::all(), vec![pod("a/1", 90)]);
    first.apply_blocking(end(100, vec![reset])).unwrap();
    let stage = Stage {
        epoch: 2,
        ..staged(Scope::all(), Onto::Nothing, vec![pod("a/1", 5)])
    };
    let held = Stage {
        onto: Onto::Held,
        ..stage.clone()
    };
    let why = misbehaved(first.stage_blocking(held));
    assert!(matches!(why, Misbehaved::EpochWithoutReset { .. }));
    first.stage_blocking(stage).unwrap();
    let mut from_held = from_staged(Scope::all());
    from_held.onto = Onto::Held;
    let cut = |reset| Cut {
        epoch: 2,
        ..end(10, vec![reset])
    };
    let why = misbehaved(first.apply_blocking(cut(from_held)));
    assert!(matches!(why, Misbehaved::EpochWithoutReset { .. }));
    first
        .apply_blocking(cut(from_staged(Scope::all())))
        .unwrap();
    assert_eq!(shown(&first), ["a/1@5"]);
    drop(first);
    let replica = replica(&disk);
    assert_eq!(shown(&replica), ["a/1@5"]);
    assert_eq!(replica.reader().holding(&pods()).unwrap().epoch, 2);
}

#[test]
fn thousands_of_scopes_come_and_go_and_leave_nothing_behind() {
    let disk = Arc::new(MemoryDisk::default());
    let open = || Replica::open(disk.clone(), small(20_000), Clock::machine()).unwrap();
    let replica = open();
    let size = || {
        let names = disk.list().unwrap().into_iter();
        let sizes = names.map(|name| disk.open(&name).unwrap().size().unwrap());
        sizes.sum::<u64>()
    };
    for round in 0..2_000_u64 {
        let path = format!("n{round}/1");
        let scope = Scope::of(Range::Name(name(&path)));
        let stage = staged(scope.clone(), Onto::Nothing, vec![pod(&path, round + 1)]);
        replica.stage_blocking(stage).unwrap();
        let mut cut = end(round + 1, vec![from_staged(scope.clone())]);
        replica.apply_blocking(cut.clone()).unwrap();
        if let Until::End(end) = &mut cut.until {
            end.resets.clear();
            end.ended.push(scope);
        }
        replica.apply_blocking(cut).unwrap();
    }
    replica.close();
    drop(open());
    assert!(size() < 100_000, "{} bytes", size());
    assert_eq!(open().reader().staged(), []);
}

#[test]
fn a_holding_says_all_that_a_hello_needs() {
    let (disk, first) = fresh();
    assert_eq!(first.reader().holding(&pods()), None);
    let reset = Reset::whole(Scope::all(), vec![pod("a/1", 5), pod("a/2", 6)]);
    first.apply_blocking(end(10, vec![reset])).unwrap();
    let gone = Change::Delete {
        name: name("a/2"),
        uid: pod("a/2", 6).header.uid,
        version: version(11),
    };
    let mut piece = change(12, vec![gone, Change::Put(pod("a/3", 12))]);
    piece.until = Until::Piece { aim: version(15) };
    first.apply_blocking(piece).unwrap();
    let mut digest = Digest::default();
    for object in [pod("a/1", 5), pod("a/3", 12)] {
        digest.add(Member::of(&pods(), &object.header));
    }
    drop(first);
    let replica = replica(&disk);
    let holding = replica.reader().holding(&pods()).unwrap();
    let standing = holding.standing.unwrap();
    assert_eq!(standing.progress, version(10));
    assert_eq!(standing.shown(), &version(12));
    assert_eq!(holding.reached, Some(version(15)), "what it was to show");
    assert_eq!((holding.objects, holding.digest), (2, digest));
    assert_eq!((holding.epoch, holding.scopes), (1, vec![Scope::all()]));
}

#[test]
fn documents_are_durable_and_no_objects() {
    let disk = Arc::new(MemoryDisk::default());
    let open = || Replica::open(disk.clone(), small(3_000), Clock::machine()).unwrap();
    let first = open();
    assert_eq!(first.reader().document("key").unwrap(), None);
    first.put_document_blocking("gone", None).unwrap();
    let bytes = Bytes::from(vec![0_u8; 100]);
    first
        .put_document_blocking("keys/signing", Some(bytes.clone()))
        .unwrap();
    // So many that old ones are compacted away.
    for session in 0..200_u64 {
        let bytes = Bytes::from(session.to_string());
        first.put_document_blocking("session", Some(bytes)).unwrap();
    }
    first
        .put_document_blocking("gone", Some(bytes.clone()))
        .unwrap();
    first.put_document_blocking("gone", None).unwrap();
    drop(first);
    let replica = open();
    let document = |name: &str| replica.reader().document(name).unwrap();
    assert_eq!(document("keys/signing"), Some(bytes));
    assert_eq!(document("session").as_deref(), Some(&b"199"[..]));
    assert_eq!(document("gone"), None);
    assert_eq!(replica.reader().resources(), []);
    for bad in ["", "a/b/c", "a//", "new\nline", &"x".repeat(300)] {
        let bytes = Some(Bytes::new());
        let why = misbehaved(replica.put_document_blocking(bad, bytes));
        assert!(matches!(why, Misbehaved::NoDocument { .. }), "{bad:?}");
    }
}

#[test]
fn documents_have_a_number_that_they_do_not_exceed() {
    let (_, replica) = fresh();
    let put = |index: u64| {
        let bytes = Some(Bytes::from_static(b"x"));
        replica.put_document_blocking(&format!("document-{index}"), bytes)
    };
    for index in 0..4096 {
        put(index).unwrap();
    }
    let why = misbehaved(put(4096));
    assert_eq!(why, Misbehaved::TooManyDocuments);
    put(7).unwrap();
    replica.put_document_blocking("document-8", None).unwrap();
    put(4096).unwrap();
}
