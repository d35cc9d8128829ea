//! A tunnel and what it says when it cannot pass anything.

use host::{Clock, Shutdown, Tasks};
use http_body_util::Empty;
use object::{Object, Resource, Scope};
use store::disk::memory::MemoryDisk;
use store::{Options, Replica};
use tunnel::{Board, Tube};
use wire::inbox::{Complete, Onto, Piece, Replaced};
use wire::stream::{Limits, STREAMS_MAX, Side};

use super::*;
use crate::keep::{Begun, Keep, Stored};

fn tunnel() -> (Tunnel, Tasks) {
    let mut tasks = Tasks::new(Shutdown::new());
    let crowd = tasks.crowd("requests", REQUESTS_MAX);
    let times = Times::new(Clock::machine());
    (Tunnel::new(crowd, times, Arc::default()), tasks)
}

fn request(uri: &str) -> Request<Empty<Bytes>> {
    Request::builder().uri(uri).body(Empty::new()).unwrap()
}

async fn asked(tunnel: &Tunnel, whose: Whose) -> Result<Response<Incoming>, NotPassed> {
    tunnel.pass(request("/version"), whose).await
}

async fn refused(tunnel: &Tunnel) -> NotPassed {
    asked(tunnel, Whose::Node).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn without_a_link_it_says_since_when_there_is_none() {
    let (tunnel, _tasks) = tunnel();
    assert_eq!(refused(&tunnel).await, NotPassed::Offline { since: None });
    // A session that was never welcomed is none.
    tunnel.end();
    assert_eq!(refused(&tunnel).await, NotPassed::Offline { since: None });
    tunnel.begin(None, Answers::Plain);
    assert_eq!(refused(&tunnel).await, NotPassed::NotServed);
    tunnel.end();
    let NotPassed::Offline { since: Some(since) } = refused(&tunnel).await else {
        panic!("there was a link");
    };
    tunnel.end();
    let again = NotPassed::Offline { since: Some(since) };
    assert_eq!(refused(&tunnel).await, again);
    let report = tunnel
        .0
        .status
        .report("n", Vec::new(), Clock::machine().now());
    assert_eq!(report.tunnelled["offline"], 4);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_is_not_waited_for_for_ever() {
    let (tunnel, _tasks) = tunnel();
    let board = Board::new(Side::Agent, Limits::default(), || {});
    tunnel.begin(Some(board.opener()), Answers::Plain);
    let began = tokio::time::Instant::now();
    let NotPassed::Broke(words) = refused(&tunnel).await else {
        panic!("nobody answers");
    };
    assert!(words.contains("70 s"), "{words}");
    assert_eq!(began.elapsed().as_secs(), 70);
    // What was asked was never sent, and never is.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(board.is_empty() && !board.has_next());
}

#[tokio::test(start_paused = true)]
async fn when_the_session_ends_whoever_waits_is_told() {
    let (tunnel, _tasks) = tunnel();
    let board = Board::new(Side::Agent, Limits::default(), || {});
    tunnel.begin(Some(board.opener()), Answers::Plain);
    let ends = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        board.end("the hub was silent");
        tunnel.end();
    };
    let (refused, ()) = tokio::join!(refused(&tunnel), ends);
    let NotPassed::Broke(words) = refused else {
        panic!("{refused:?}");
    };
    assert!(words.contains("the hub was silent"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn as_many_requests_go_as_a_session_carries_and_the_next_is_told_so() {
    let (tunnel, _tasks) = tunnel();
    let board = Board::new(Side::Agent, Limits::default(), || {});
    let opener = board.opener();
    tunnel.begin(Some(opener.clone()), Answers::Plain);
    let open = |_| opener.open("x", Caller::Waits).unwrap();
    let all: Vec<Tube> = (0..STREAMS_MAX).map(open).collect();
    assert_eq!(refused(&tunnel).await, NotPassed::Busy);
    drop(all);
    assert!(matches!(refused(&tunnel).await, NotPassed::Broke(_)));
}

#[tokio::test(start_paused = true)]
async fn who_has_a_token_of_nobody_leaves_room_for_the_node() {
    let (tunnel, _tasks) = tunnel();
    let board = Board::new(Side::Agent, Limits::default(), || {});
    tunnel.begin(Some(board.opener()), Answers::Plain);
    let (mut strangers, mut busy) = (tokio::task::JoinSet::new(), 0);
    for _ in 0..STREAMS_MAX {
        let tunnel = tunnel.clone();
        strangers.spawn(async move { asked(&tunnel, Whose::Stranger).await });
    }
    while board.len() < STREAMS_MAX / 4 {
        tokio::task::yield_now().await;
    }
    let NotPassed::Broke(_) = refused(&tunnel).await else {
        panic!("the node has a place, and nobody answers");
    };
    while let Some(asked) = strangers.join_next().await {
        busy += usize::from(matches!(asked.unwrap(), Err(NotPassed::Busy)));
    }
    assert_eq!(busy, STREAMS_MAX - STREAMS_MAX / 4);
    // Who was not answered gives back its place.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let again = asked(&tunnel, Whose::Stranger).await;
    assert!(matches!(again, Err(NotPassed::Broke(_))), "{again:?}");
}

/// A body of which nothing comes.
struct Nothing;

impl Body for Nothing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, hyper::Error>>> {
        std::task::Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_which_nothing_comes_gives_its_stream_back() {
    let (tunnel, _tasks) = tunnel();
    let board = Board::new(Side::Agent, Limits::default(), || {});
    tunnel.begin(Some(board.opener()), Answers::Plain);
    let began = tokio::time::Instant::now();
    let request = Request::post("/api/v1/pods").header("content-length", "100");
    let passed = tunnel.pass(request.body(Nothing).unwrap(), Whose::Stranger);
    let late = passed.await.unwrap_err();
    assert!(matches!(late, NotPassed::Late(_)), "{late:?}");
    assert_eq!(began.elapsed().as_secs(), 30);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(board.is_empty());
}

/// A pod of so many bytes and some more.
fn pod(name: &str, bytes: usize) -> Object {
    let note = "x".repeat(bytes);
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"a",
        "uid":"u","resourceVersion":"5","annotations":{{"note":"{note}"}}}}}}"#
    );
    Object::parse(&Resource::new("", "pods"), text.into(), &[]).unwrap()
}

#[tokio::test]
async fn an_answer_is_compared_with_an_object_that_it_shows_and_that_is_not_large() {
    let (tunnel, _tasks) = tunnel();
    let disk = Arc::new(MemoryDisk::default());
    let replica = Replica::open_here(disk, Options::new("n"), Clock::machine()).unwrap();
    let keep = Keep::new(replica);
    let piece = Piece {
        number: 1,
        resource: Resource::new("", "pods"),
        epoch: 1,
        aim: Some("7".parse().unwrap()),
        starts: true,
        changes: Vec::new(),
        resets: vec![Replaced {
            scope: Scope::all(),
            onto: Onto::Nothing,
            puts: vec![pod("large", BASE_BYTES_MAX), pod("small", 1_000)],
            drops: Vec::new(),
        }],
        ended: Vec::new(),
        unstaged: Vec::new(),
        complete: Complete::Yes,
    };
    let mut begun = Begun::default();
    let stored = keep.store(Stored::Piece(piece), &mut begun).await;
    stored.unwrap();
    tunnel.compare_with(keep.reader().clone());
    let is_compared = |method: &str, path: &str| {
        let uri = format!("/api/v1/namespaces/a/pods/{path}");
        let mut request = Request::builder().method(method).uri(uri).body(()).unwrap();
        tunnel.base(&mut request);
        request.headers().contains_key(tunnel::BASE)
    };
    assert!(is_compared("GET", "small") && is_compared("PATCH", "small/status"));
    assert!(!is_compared("GET", "large") && !is_compared("GET", "none"));
    for (method, path) in [
        ("GET", "small/log"),
        ("POST", "small/exec"),
        ("DELETE", "small"),
    ] {
        assert!(!is_compared(method, path), "{method} {path}");
    }
}
