//! A node's store between two sessions: what is staged stays, as far as the next one can use it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use bytes::Bytes;
use edge::keep::{Begun, Keep, Stored};
use host::Clock;
use object::{Object, ObjectName, Range, Resource, Scope};
use store::disk::memory::MemoryDisk;
use store::{Options, Replica};
use wire::frame::STAGED_MAX;
use wire::inbox::{Complete, Onto, Piece, Replaced};

fn pods() -> Resource {
    Resource::new("", "pods")
}

fn scope(number: usize) -> Scope {
    Scope::of(Range::Namespace(format!("n{number:04}").into()))
}

fn pod(namespace: usize, name: &str) -> Object {
    let text = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"n{namespace:04}","uid":"{name}",
            "resourceVersion":"7"}}}}"#
    );
    Object::parse(&pods(), Bytes::from(text), &[]).unwrap()
}

/// Content of a scope, staged or as a part of a cut that goes on.
fn piece(namespace: usize, onto: Onto, name: &str) -> Piece {
    Piece {
        number: 1,
        resource: pods(),
        epoch: 3,
        aim: None,
        starts: true,
        changes: vec![],
        resets: vec![Replaced {
            scope: scope(namespace),
            onto,
            puts: vec![pod(namespace, name)],
            drops: vec![],
        }],
        ended: vec![],
        unstaged: vec![],
        complete: Complete::No,
    }
}

fn keep(disk: &Arc<MemoryDisk>) -> Keep {
    let options = Options::new("node");
    Keep::new(Replica::open(disk.clone(), options, Clock::machine()).unwrap())
}

async fn store(keep: &Keep, task: Stored) {
    keep.store(task, &mut Begun::default()).await.unwrap();
}

#[tokio::test]
async fn what_is_staged_outlives_a_session_and_a_crash() {
    let disk = Arc::new(MemoryDisk::default());
    let first = keep(&disk);
    store(&first, Stored::Piece(piece(1, Onto::Nothing, "a"))).await;
    store(&first, Stored::Piece(piece(1, Onto::Piece, "b"))).await;
    let before = first.staged();
    drop(first);
    let keep = keep(&disk);
    let staged = keep.staged();
    assert_eq!(staged, before);
    keep.unstage_all_but(&staged).await.unwrap();
    assert_eq!(keep.staged(), before);
    assert_eq!(staged[0].last, ObjectName::new("n0001", "b"));
    assert_eq!((staged[0].objects, staged[0].epoch), (2, 3));
}

#[tokio::test]
async fn what_the_next_session_cannot_use_is_discarded() {
    let disk = Arc::new(MemoryDisk::default());
    let keep = keep(&disk);
    store(&keep, Stored::Piece(piece(1, Onto::Nothing, "a"))).await;
    store(&keep, Stored::Piece(piece(2, Onto::Held, "a"))).await;
    let staged = keep.staged();
    keep.unstage_all_but(&staged).await.unwrap();
    assert_eq!(keep.reader().staged(), [(pods(), scope(1))]);
    // The hub does not know of it.
    store(&keep, Stored::NothingStaged).await;
    assert_eq!(keep.reader().staged(), []);
}

#[tokio::test]
async fn a_hello_has_room_for_so_much_and_the_rest_is_discarded() {
    let disk = Arc::new(MemoryDisk::default());
    let keep = keep(&disk);
    for number in 0..STAGED_MAX {
        store(&keep, Stored::Piece(piece(number, Onto::Nothing, "a"))).await;
    }
    let staged = keep.staged();
    assert!(
        !staged.is_empty() && staged.len() < STAGED_MAX,
        "{}",
        staged.len()
    );
    keep.unstage_all_but(&staged).await.unwrap();
    assert_eq!(keep.reader().staged().len(), staged.len());
}
