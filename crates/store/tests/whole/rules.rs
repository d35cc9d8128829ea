//! One sentence each: what was wrong once, or could be.

use std::sync::Arc;

use bytes::Bytes;
use object::select::Selector;
use store::authority::{Action, Expect, Refusal, Swap};
use store::disk::Disk;
use store::disk::lossy::{Fault, LossyDisk};
use store::disk::memory::MemoryDisk;
use store::{At, Authority, Options, Part, Range, Scope, Step};

use crate::bench_objects::*;
use crate::machine::{Gate, Gated};

#[test]
fn an_object_or_labels_too_large_to_store_are_refused_and_the_store_lives_on() {
    let authority = opened(Arc::new(MemoryDisk::default()), &Options::new("test"));
    let large = |head: String, labels: usize| {
        let mut draft = draft("a/1", "u", 10);
        draft.head = Bytes::from(head);
        let labels = (0..labels).map(|index| format!(r#""label-{index:0>40}":"{index:0>50}""#));
        let labels: Vec<String> = labels.collect();
        let text = format!(
            r#"{{"metadata":{{"name":"1","namespace":"a","uid":"u","resourceVersion":"1",
                "labels":{{{}}}}}}}"#,
            labels.join(",")
        );
        draft.header = object::Header::parse(&pods(), text.as_bytes(), &[]).unwrap();
        Swap {
            resource: pods(),
            name: name("a/1"),
            expect: Expect::Absent,
            action: Action::Put(Box::new(draft)),
        }
    };
    let swaps = [
        large("x".repeat(5_000_000), 0),
        large(String::new(), 12_000),
    ];
    for swap in swaps {
        let refused = authority.swap_blocking(vec![swap]).unwrap_err();
        assert!(matches!(refused, Refusal::TooLarge { .. }), "{refused}");
    }
    create(&authority, pods(), "a/1").unwrap();
}

#[test]
fn what_was_put_before_an_emptying_does_not_outlive_it_in_one_group() {
    let inner = Arc::new(MemoryDisk::default());
    let (authority, gate, runtime) = at_the_gate(inner.clone());
    let swap = |path: &str| vec![put(pods(), path, path, Expect::Absent)];
    runtime.block_on(async {
        let first = begun(authority.swap(swap("a/0"))).await;
        // The writer is held up at its sync, so the others are of one group.
        gate.holds();
        let second = begun(authority.swap(swap("a/1"))).await;
        let emptied = begun(authority.empty_table(pods())).await;
        let last = begun(authority.swap(swap("a/2"))).await;
        gate.open();
        first.await.unwrap();
        second.await.unwrap();
        emptied.await.unwrap();
        last.await.unwrap();
    });
    let names = |authority: &Authority| {
        let wanted = want(pods(), Range::All);
        let page = authority
            .reader()
            .page(&wanted, &At::Now, &Part::default())
            .unwrap();
        let names = page
            .rows
            .iter()
            .map(|row| row.header.name.as_str().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&authority), ["a/2"]);
    drop(authority);
    assert_eq!(names(&open(inner, &Options::new("test"))), ["a/2"]);
}

#[test]
fn who_is_refused_for_what_was_staged_can_read_it_when_told() {
    let (authority, gate, runtime) = at_the_gate(Arc::new(MemoryDisk::default()));
    let swap = |path: &str, uid: &str| vec![put(pods(), path, uid, Expect::Absent)];
    runtime.block_on(async {
        let first = begun(authority.swap(swap("a/0", "u0"))).await;
        gate.holds();
        let faster = begun(authority.swap(swap("a/1", "u1"))).await;
        let slower = begun(async {
            let refused = authority.swap(swap("a/1", "u2")).await.unwrap_err();
            let seen = authority.reader().object(&pods(), &name("a/1")).unwrap();
            (refused, seen)
        });
        let slower = slower.await;
        gate.pass_one();
        first.await.unwrap();
        gate.holds();
        gate.open();
        // Whoever is told first is asked first.
        let (refused, seen) = slower.await;
        faster.await.unwrap();
        let seen = seen.map(|object| object.header.version);
        assert!(seen.is_some(), "refused for what nobody can see");
        assert!(matches!(refused, Refusal::Conflict { found, .. } if found == seen));
    });
}

#[test]
fn nobody_is_refused_for_what_was_not_stored() {
    let inner = Arc::new(LossyDisk::default());
    let (authority, gate, runtime) = at_the_gate(inner.clone());
    let swap = |path: &str, uid: &str| vec![put(pods(), path, uid, Expect::Absent)];
    runtime.block_on(async {
        let first = begun(authority.swap(swap("a/0", "u0"))).await;
        gate.holds();
        let faster = begun(authority.swap(swap("a/1", "u1"))).await;
        let slower = begun(authority.swap(swap("a/1", "u2"))).await;
        gate.pass_one();
        first.await.unwrap();
        gate.holds();
        inner.fail_at(inner.calls(), Fault::SyncFails);
        gate.open();
        for refused in [faster.await, slower.await] {
            assert!(matches!(refused, Err(Refusal::Failed(_))), "{refused:?}");
        }
    });
}

/// A store whose first sync is held up, and somewhere to ask it.
fn at_the_gate(inner: Arc<dyn Disk>) -> (Authority, Arc<Gate>, tokio::runtime::Runtime) {
    let (disk, gate) = Gated::new(inner);
    let authority = opened(Arc::new(disk), &Options::new("test"));
    gate.close();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    (authority, gate, runtime.unwrap())
}

#[test]
fn the_bytes_of_a_list_stay_readable_however_often_the_store_is_compacted() {
    let mut options = small(3_000);
    options.retention.events_max = 3;
    let disk = Arc::new(MemoryDisk::default());
    let authority = opened(disk.clone(), &options);
    create(&authority, pods(), "a/slow").unwrap();
    let wanted = want(pods(), Range::All);
    let page = authority
        .reader()
        .page(&wanted, &At::Now, &Part::default())
        .unwrap();
    let bases = || {
        let names = disk.list().unwrap();
        names
            .into_iter()
            .filter(|name| name.ends_with(".base"))
            .max()
    };
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..400 {
        create(&authority, pods(), &format!("b/{round}")).unwrap();
        seen.extend(bases());
        let held = (round == 150).then(|| vec![delete(pods(), "a/slow")]);
        if let Some(swaps) = held {
            authority.swap_blocking(swaps).unwrap();
        }
        authority
            .swap_blocking(vec![delete(pods(), &format!("b/{round}"))])
            .unwrap();
    }
    assert!(seen.len() > 4, "{seen:?}");
    let bytes = page.bytes(&page.rows[0]).unwrap();
    assert!(bytes.starts_with(br#"{"metadata":{"name":"slow""#));
}

#[test]
fn a_store_that_is_opened_again_remembers_no_more_than_it_may() {
    let mut options = Options::new("test");
    options.retention.events_max = 3;
    options.retention.events_min = 3;
    let disk = Arc::new(MemoryDisk::default());
    let wanted = want(pods(), Range::All);
    let remembered = |authority: &Authority| {
        let watch = |at: &u64| authority.reader().watch(&wanted, &version(*at)).is_ok();
        (1..=10).filter(watch).min()
    };
    let authority = opened(disk.clone(), &options);
    for number in 0..8 {
        create(&authority, pods(), &format!("a/{number}")).unwrap();
    }
    let before = remembered(&authority);
    assert!(before.is_some_and(|first| first > 2), "{before:?}");
    drop(authority);
    assert_eq!(remembered(&opened(disk, &options)), before);
}

#[test]
fn a_watch_from_the_future_gets_what_comes_after_it_only() {
    let authority = opened(Arc::new(MemoryDisk::default()), &Options::new("test"));
    let wanted = want(pods(), Range::All);
    let mut watch = authority.reader().watch(&wanted, &version(3)).unwrap();
    assert!(matches!(watch.step(), Ok(Step::Progress(at)) if number(&at) == 3));
    for path in ["a/2", "a/3", "a/4"] {
        create(&authority, pods(), path).unwrap();
    }
    let Ok(Step::Events(events)) = watch.step() else {
        panic!("an event")
    };
    assert_eq!(events.len(), 1);
    assert_eq!(number(&events[0].version), 4);
}

#[test]
fn a_scope_with_a_selector_covers_the_same_question_only() {
    let red = || Selector::parse("app=red", "").unwrap();
    let scope = Scope {
        range: Range::All,
        selector: red(),
    };
    let mut wanted = want(pods(), Range::Namespace("a".into()));
    assert!(!scope.covers(&wanted));
    wanted.selector = red();
    assert!(scope.covers(&wanted));
    wanted.selector = Selector::parse("app=blue", "").unwrap();
    assert!(!scope.covers(&wanted));
}

#[test]
fn a_full_inbox_of_refused_requests_does_not_hold_up_the_others() {
    let authority = opened(Arc::new(MemoryDisk::default()), &Options::new("test"));
    create(&authority, pods(), "a/1").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    create(&authority, pods(), "a/1").unwrap_err();
                }
            });
        }
        for round in 0..50 {
            create(&authority, pods(), &format!("b/{round}")).unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
