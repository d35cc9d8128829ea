//! Writers, readers, watchers and compaction at once, on real threads and a real folder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use store::authority::{Action, Expect, Swap};
use store::disk::real::RealDisk;
use store::{At, Authority, Ended, Part, Range, Refused, Step, What};

use crate::bench_objects::*;

const LASTING: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Tally {
    written: AtomicU64,
    read: AtomicU64,
    followed: AtomicU64,
}

/// Writes two objects together, and sometimes creates or deletes a third.
fn write(authority: &Authority, writer: usize, chance: &mut Chance, tally: &Tally) {
    let path = |half: &str| format!("w{writer}/{half}");
    let filling = 20 + chance.below(3_000);
    let swap = |half: &str| {
        let there = authority.reader().row(&pods(), &name(&path(half)));
        let expect = match &there {
            Some(row) => Expect::Version(row.header.version.clone()),
            None => Expect::Absent,
        };
        Swap {
            resource: pods(),
            name: name(&path(half)),
            expect,
            action: Action::Put(Box::new(draft(&path(half), &path(half), filling))),
        }
    };
    authority
        .swap_blocking(vec![swap("left"), swap("right")])
        .expect("nobody else writes these two");
    if chance.one_in(5) {
        let extra = format!("w{writer}/extra");
        let there = authority.reader().row(&pods(), &name(&extra)).is_some();
        let swap = match there {
            true => delete(pods(), &extra),
            false => put(pods(), &extra, &extra, Expect::Absent),
        };
        authority
            .swap_blocking(vec![swap])
            .expect("nobody else writes this");
    }
    tally.written.fetch_add(1, Ordering::Relaxed);
}

fn read(authority: &Authority, chance: &mut Chance, seen: &mut u64, tally: &Tally) {
    let wanted = want(pods(), Range::All);
    let reader = authority.reader();
    let page = reader.page(&wanted, &At::Now, &Part::default()).unwrap();
    assert!(number(&page.version) >= *seen, "lists never go back");
    *seen = number(&page.version);
    if chance.one_in(10) {
        // A slow client: the bytes must still be there after some compactions.
        std::thread::sleep(Duration::from_millis(100));
    }
    for row in &page.rows {
        let bytes = page.bytes(row).unwrap();
        let parsed = object::Object::parse(&pods(), bytes, &[]).unwrap();
        assert_eq!(parsed.header, row.header);
        assert!(row.header.version <= page.version);
    }
    let again = reader.page(
        &wanted,
        &At::Exactly(page.version.clone()),
        &Part::default(),
    );
    match again {
        Ok(again) => {
            let headers = |page: &store::Page| -> Vec<_> {
                page.rows.iter().map(|row| row.header.clone()).collect()
            };
            assert_eq!(
                headers(&again),
                headers(&page),
                "a version fixes what is seen"
            );
        }
        Err(refused) => assert!(matches!(refused, Refused::TooOld { .. }), "{refused}"),
    }
    tally.read.fetch_add(1, Ordering::Relaxed);
}

/// Lists, then follows, and compares now and then with a list at the version reached.
fn follow(authority: &Authority, stop: &AtomicBool, chance: &mut Chance, tally: &Tally) {
    let wanted = want(pods(), Range::All);
    let reader = authority.reader();
    while !stop.load(Ordering::Relaxed) {
        let page = reader.page(&wanted, &At::Now, &Part::default()).unwrap();
        let header = |row: &Arc<store::Row>| (row.header.name.clone(), row.header.version.clone());
        let mut rows: BTreeMap<_, _> = page.rows.iter().map(header).collect();
        let Ok(mut watch) = reader.watch(&wanted, &page.version) else {
            continue;
        };
        let mut last = page.version.clone();
        while !stop.load(Ordering::Relaxed) {
            match watch.step() {
                Ok(Step::Events(events)) => {
                    for event in events {
                        assert!(event.version > last);
                        last = event.version.clone();
                        let What::Changed { before, after } = &event.what else {
                            panic!("an authority replaces nothing")
                        };
                        let name = event.name().unwrap();
                        let known = before.as_ref().map(|row| &row.header.version);
                        assert_eq!(rows.get(name), known, "no step is missing");
                        match after {
                            Some(row) => {
                                assert_eq!(row.header.version, event.version);
                                rows.insert(name.clone(), event.version.clone());
                            }
                            None => drop(rows.remove(name)),
                        }
                        tally.followed.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(Step::Progress(at)) => {
                    assert!(at >= last);
                    last = at.clone();
                    if let Ok(page) = reader.page(&wanted, &At::Exactly(at), &Part::default()) {
                        assert_eq!(rows, page.rows.iter().map(header).collect());
                    }
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(Ended::Lagged) => break,
                Err(other) => panic!("{other}"),
            }
            if chance.one_in(400) {
                std::thread::sleep(Duration::from_millis(60));
            }
        }
    }
}

#[test]
fn readers_and_watchers_see_one_history_while_it_is_written_and_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::open(folder.path()).unwrap());
    let authority = opened(disk, &small(60_000));
    let (stop, tally) = (AtomicBool::new(false), Tally::default());
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (authority, stop, tally) = (&authority, &stop, &tally);
            scope.spawn(move || {
                let mut chance = Chance(writer as u64);
                while !stop.load(Ordering::Relaxed) {
                    write(authority, writer, &mut chance, tally);
                }
            });
        }
        for index in 0..2 {
            let (authority, stop, tally) = (&authority, &stop, &tally);
            scope.spawn(move || {
                let (mut chance, mut seen) = (Chance(10 + index), 0);
                while !stop.load(Ordering::Relaxed) {
                    read(authority, &mut chance, &mut seen, tally);
                }
            });
            scope.spawn(move || follow(authority, stop, &mut Chance(20 + index), tally));
        }
        std::thread::sleep(LASTING);
        stop.store(true, Ordering::Relaxed);
    });
    let counted = [&tally.written, &tally.read, &tally.followed].map(|c| c.load(Ordering::Relaxed));
    println!("written, read, followed: {counted:?}");
    assert!(counted.iter().all(|count| *count > 20), "{counted:?}");
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(names.len() <= 4, "compaction keeps up: {names:?}");
}
