//! A tunnel and what it says when it cannot pass anything.

use host::{Clock, Shutdown, Tasks};
use http_body_util::Empty;
use tunnel::{Board, Tube};
use wire::stream::{Limits, STREAMS_MAX, Side};

use super::*;

fn tunnel() -> (Tunnel, Tasks) {
    let mut tasks = Tasks::new(Shutdown::new());
    let crowd = tasks.crowd("requests", REQUESTS_MAX);
    let times = Times::new(Clock::machine());
    (Tunnel::new(crowd, times, Arc::default()), tasks)
}

fn request(uri: &str) -> Request<Empty<Bytes>> {
    Request::builder().uri(uri).body(Empty::new()).unwrap()
}

async fn refused(tunnel: &Tunnel) -> NotPassed {
    tunnel.pass(request("/version")).await.unwrap_err()
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
