//! How the store is kept as a hub wants it.

use host::Clock;
use object::{Object, Version};
use store::Options;
use store::disk::memory::MemoryDisk;

use super::*;

fn services() -> Resource {
    Resource::new("", "services")
}

/// A whole cut that replaces everything with one service at this version.
fn piece(number: u64, at: u64, aim: u64) -> Stored {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"s","namespace":"a",
        "uid":"u","resourceVersion":"{at}"}}}}"#
    );
    let version: Version = aim.to_string().parse().unwrap();
    Stored::Piece(Piece {
        number,
        resource: services(),
        epoch: 1,
        aim: Some(version),
        starts: true,
        changes: Vec::new(),
        resets: vec![Replaced {
            scope: Scope::all(),
            onto: inbox::Onto::Nothing,
            puts: vec![Object::parse(&services(), text.into(), &[]).unwrap()],
            drops: Vec::new(),
        }],
        ended: Vec::new(),
        unstaged: Vec::new(),
        complete: Complete::Yes,
    })
}

#[tokio::test]
async fn a_document_of_a_hub_takes_the_place_of_none_of_the_nodes_own() {
    let (disk, options) = (Arc::new(MemoryDisk::default()), Options::new("n"));
    let replica = Replica::open_here(disk, options, Clock::machine()).unwrap();
    let keep = Keep::new(replica);
    assert_eq!(keep.next_session().await, Ok(1));
    let document = |number, name: &str, bytes: Option<&'static str>| Stored::Document {
        number,
        name: name.into(),
        bytes: bytes.map(Bytes::from),
    };
    let mut begun = Begun::default();
    for (number, name) in [(1, "session"), (2, "routes")] {
        let document = document(number, name, Some("41"));
        assert_eq!(keep.store(document, &mut begun).await, Ok(number));
    }
    assert_eq!(keep.next_session().await, Ok(2));
    let noted = |name: &str| Noted {
        name: name.into(),
        hash: content_hash(b"41"),
    };
    assert_eq!(keep.documents(), [noted("routes"), noted("session")]);
    assert_eq!(keep.document("routes"), Some(Bytes::from("41")));
    let gone = document(3, "session", None);
    assert_eq!(keep.store(gone, &mut begun).await, Ok(3));
    assert_eq!(keep.documents(), [noted("routes")]);
    assert_eq!(keep.next_session().await, Ok(3));
}

#[tokio::test]
async fn what_is_of_another_history_is_forgotten_and_not_refused_for_ever() {
    let (disk, options) = (Arc::new(MemoryDisk::default()), Options::new("n"));
    let replica = Replica::open_here(disk, options, Clock::machine()).unwrap();
    let keep = Keep::new(replica);
    let mut begun = Begun::default();
    assert_eq!(keep.store(piece(1, 50, 100), &mut begun).await, Ok(1));
    // A backup was restored above all versions, and brought back the service of before.
    let refused = keep.store(piece(2, 20, 900), &mut begun).await;
    assert!(
        matches!(refused, Err(Refusal::Misbehaved(_))),
        "{refused:?}"
    );
    assert!(keep.reader().scopes(&services()).is_empty());
    assert_eq!(keep.store(piece(3, 20, 900), &mut begun).await, Ok(3));
}

#[test]
fn what_a_cluster_says_of_itself_lies_where_hubs_put_it() {
    assert_eq!(TOLD.version, format!("{OF_HUBS}version"));
    assert_eq!(TOLD.discovery, format!("{OF_HUBS}discovery"));
}
