//! What is staged, told so that it can be gone on with. One sentence each.

use std::sync::Arc;

use host::Clock;
use object::Object;
use object::digest::{Digest, Member};
use store::disk::memory::MemoryDisk;
use store::replica::{Onto, Stage};
use store::{Range, Replica, Scope, Staged};

use crate::bench_objects::*;

fn replica(disk: &Arc<MemoryDisk>) -> Replica {
    Replica::open(disk.clone(), small(1_000_000), Clock::machine()).unwrap()
}

fn namespace(name: &str) -> Scope {
    Scope::of(Range::Namespace(name.into()))
}

fn pod(path: &str, at: u64) -> Object {
    object(path, path, "red", at)
}

fn stage(replica: &Replica, scope: Scope, onto: Onto, puts: Vec<Object>) {
    let stage = Stage {
        resource: pods(),
        epoch: 1,
        scope,
        onto,
        puts,
        drops: vec![],
    };
    replica.stage_blocking(stage).unwrap();
}

fn names(replica: &Replica, scope: &Scope) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let there = replica.reader().each_staged(&pods(), scope, &mut |header| {
        names.push(header.name.to_string());
    });
    there.then_some(names)
}

#[test]
fn what_is_staged_is_told_after_a_crash_as_before_it() {
    let disk = Arc::new(MemoryDisk::default());
    let first = replica(&disk);
    let pages = [vec![pod("a/1", 5), pod("a/2", 7)], vec![pod("a/3", 6)]];
    let mut digest = Digest::default();
    for object in pages.iter().flatten() {
        digest.add(Member::of(&pods(), &object.header));
    }
    let [page, more] = pages;
    stage(&first, namespace("a"), Onto::Nothing, page);
    stage(&first, namespace("a"), Onto::Staged, more);
    let told = [Staged {
        resource: pods(),
        scope: namespace("a"),
        epoch: 1,
        last: name("a/3"),
        objects: 3,
        digest,
    }];
    assert_eq!(first.reader().resumable(), told);
    drop(first);
    let replica = replica(&disk);
    assert_eq!(replica.reader().resumable(), told);
    let staged = names(&replica, &namespace("a"));
    assert_eq!(staged.unwrap(), ["a/1", "a/2", "a/3"]);
}

#[test]
fn what_lies_over_what_is_held_and_what_is_empty_cannot_be_gone_on_with() {
    let disk = Arc::new(MemoryDisk::default());
    let replica = replica(&disk);
    stage(&replica, namespace("a"), Onto::Held, vec![pod("a/1", 5)]);
    stage(&replica, namespace("b"), Onto::Nothing, vec![]);
    assert_eq!(replica.reader().staged().len(), 2);
    assert_eq!(replica.reader().resumable(), []);
    assert_eq!(names(&replica, &namespace("a")), None);
    assert_eq!(names(&replica, &namespace("b")), Some(vec![]));
    assert_eq!(names(&replica, &namespace("c")), None);
}
