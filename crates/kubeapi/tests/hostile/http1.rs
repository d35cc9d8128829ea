//! C12 over HTTP/1.1: bytes that two readers could take for different requests.

use std::time::Duration;

use cluster::catalogue::{self, HIDDEN, TOLD, status};
use kubeapi::serve::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stage::{self, DEADLINE, Http, pod};

#[tokio::test]
async fn an_ambiguous_request_is_refused_and_nothing_after_it_is_answered() {
    stage::on_server(Http::One, Limits::default(), async |stage| {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        for request in catalogue::ambiguous(path) {
            let answer = stage.client.raw(request.as_bytes()).await;
            let shown = request.replace(path, "…").replace(HIDDEN, "");
            let code = status(&answer);
            assert!(
                code == 0 || (400..500).contains(&code),
                "{shown:?}: {answer}"
            );
            assert!(
                !answer.contains(TOLD),
                "{shown:?}: the hidden request was answered"
            );
        }
        assert!(stage.client.raw(HIDDEN.as_bytes()).await.contains(TOLD));
    })
    .await;
}

/// Where both framings are given the chunks count and the connection ends, or all is refused: in no
/// case is the rest a request.
#[tokio::test]
async fn two_framings_do_not_make_two_requests() {
    stage::on_server(Http::One, Limits::default(), async |stage| {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let request = catalogue::twice_framed(path);
        let answer = stage.client.raw(request.as_bytes()).await;
        assert!(!answer.contains(TOLD), "{answer}");
    })
    .await;
}

/// A body that is too large is refused before it is sent, and what follows is not a request.
#[tokio::test]
async fn a_body_that_is_announced_too_large_is_not_waited_for() {
    stage::on_server(Http::One, Limits::default(), async |stage| {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let request = catalogue::announced_too_large(path);
        let mut stream = stage.client.dial(Http::One).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        let read = tokio::time::timeout(DEADLINE, stream.read_exact(&mut head)).await;
        read.expect("it waits for the body").unwrap();
        assert_eq!(&head, b"HTTP/1.1 413");
    })
    .await;
}

/// Slowloris: a head that dribbles in, and a connection that is kept for nothing.
#[tokio::test]
async fn a_head_that_does_not_end_is_given_up() {
    stage::on_server(Http::One, Limits::default(), async |stage| {
        stage.put(&pod("a", "x")).await;
        let mut dribbling = stage.client.dial(Http::One).await;
        dribbling
            .write_all(b"GET /api/v1/pods HTTP/1.1\r\nX: ")
            .await
            .unwrap();
        let mut idle = stage.client.dial(Http::One).await;
        let ask = "GET /version HTTP/1.1\r\nHost: x\r\n\r\n";
        idle.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        idle.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        // The server has taken in the first bytes by the time it has answered another request.
        stage.client.json("/api/v1/pods").await;
        stage.hands.advance(Duration::from_secs(11));
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(DEADLINE, dribbling.read_to_end(&mut rest)).await;
        let _ = closed.expect("a head may dribble in for ever");
        // One that is only kept for later is kept for a while.
        idle.write_all(ask.as_bytes()).await.unwrap();
        idle.read_exact(&mut answer).await.unwrap();
        stage.hands.advance(Duration::from_secs(200));
        let closed = tokio::time::timeout(DEADLINE, idle.read_to_end(&mut rest)).await;
        let _ = closed.expect("a connection may be idle for ever");
    })
    .await;
}
