//! Bytes that another release made of the same version: they are taken with a reset that has a
//! version of its own, and never at a version at which others were shown.

use std::sync::Arc;

use host::Clock;
use object::Object;
use object::digest::Sum;
use store::disk::memory::MemoryDisk;
use store::replica::{Cut, CutEnd, Onto, Reset, Stage};
use store::{Range, Replica, Scope};

use crate::bench_objects::*;

/// How the bytes come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comes {
    /// In the reset itself.
    Put,
    /// Staged over what is held.
    Staged,
}

fn replica(disk: &Arc<MemoryDisk>) -> Replica {
    Replica::open_here(disk.clone(), small(1_000_000), Clock::machine()).unwrap()
}

/// The object, as a release makes it.
fn made(release: &str) -> Object {
    let object = object("a/1", "u", "red", 5);
    let text = String::from_utf8(object.bytes.to_vec()).unwrap();
    let bytes = text.replacen('{', &format!("{{\"by\":\"{release}\","), 1);
    Object {
        bytes: bytes.into(),
        ..object
    }
}

fn reset(replica: &Replica, scope: Scope, at: u64, object: Option<Object>, comes: Comes) {
    let puts: Vec<Object> = object.into_iter().collect();
    let (puts, staged) = match comes {
        Comes::Put => (puts, None),
        Comes::Staged => (Vec::new(), Some(puts)),
    };
    let mut onto = Onto::Held;
    if let Some(puts) = staged {
        let stage = Stage {
            resource: pods(),
            epoch: 1,
            scope: scope.clone(),
            onto,
            puts,
            drops: Vec::new(),
        };
        replica.stage_blocking(stage).unwrap();
        onto = Onto::Staged;
    }
    let reset = Reset {
        scope,
        onto,
        puts,
        drops: Vec::new(),
    };
    let end = CutEnd {
        progress: version(at),
        resets: vec![reset],
        ended: Vec::new(),
    };
    let cut = Cut {
        resource: pods(),
        epoch: 1,
        changes: Vec::new(),
        until: until(Some(end)),
    };
    replica.apply_blocking(cut).unwrap();
}

/// What is held, read; and what its bytes are said to come to is what they come to.
fn held(replica: &Replica) -> Object {
    let reader = replica.reader();
    let held = reader.object(&pods(), &name("a/1")).unwrap().unwrap();
    let mut sums = Vec::new();
    assert!(reader.each_content(&pods(), &mut |_, sum| sums.push(sum)));
    assert_eq!(sums, [Sum::of(&held.bytes)]);
    held
}

#[test]
fn other_bytes_of_the_same_version_are_taken_at_a_version_that_nobody_was_shown() {
    for comes in [Comes::Put, Comes::Staged] {
        let disk = Arc::new(MemoryDisk::default());
        let store = replica(&disk);
        reset(&store, Scope::all(), 10, Some(made("one")), Comes::Put);
        let digest = store.reader().holding(&pods()).unwrap().digest;
        reset(&store, Scope::all(), 11, Some(made("two")), comes);
        assert_eq!(held(&store).bytes, made("two").bytes);
        assert_eq!(store.reader().holding(&pods()).unwrap().digest, digest);
        store.close();
        assert_eq!(held(&replica(&disk)).bytes, made("two").bytes);
    }
}

#[test]
fn at_a_version_that_was_shown_an_object_keeps_its_bytes_and_nothing_is_refused() {
    for comes in [Comes::Put, Comes::Staged] {
        let disk = Arc::new(MemoryDisk::default());
        let store = replica(&disk);
        reset(&store, Scope::all(), 10, Some(made("one")), Comes::Put);
        // A hub of another release starts a scope that has the object as well.
        let own = Scope::of(Range::Namespace("a".into()));
        reset(&store, own, 10, Some(made("two")), comes);
        assert_eq!(held(&store).bytes, made("one").bytes);
        assert!(store.reader().staged().is_empty());
        store.close();
        let again = replica(&disk);
        assert_eq!(held(&again).bytes, made("one").bytes);
        assert_eq!(again.reader().scopes(&pods()).len(), 2);
    }
}
