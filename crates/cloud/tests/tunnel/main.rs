//! The hub's end of tunnels, with the frames of a link carried in memory: against a cluster that
//! tells what it was asked, and against the embedded one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "another test uses the rest")]
#[path = "../follow/stage.rs"]
mod stage;
mod identity; // who asks, as the cluster sees it
mod link;
mod replay; // what nodes report, in the cluster
mod mirror;

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tunnel::closed;
use wire::frame::Cause;

use link::{Link, request};
use mirror::{LARGE, Mirror, TICK};

const MOMENT: Duration = Duration::from_millis(300);
const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_request_goes_as_it_is_with_its_body_and_the_answer_comes_back() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    let headers = [
        ("content-type", "application/json"),
        ("user-agent", "kubectl/v1"),
        ("accept", "application/json;as=Table"),
    ];
    let body = "x".repeat(200_000);
    let path = "/api/v1/pods?dryRun=All&fieldManager=a%20b";
    let read = link.ask(request("POST", path, &headers, &body)).await;
    assert_eq!(read.status, 200);
    let told = read.json();
    assert_eq!(told["method"], "POST");
    assert_eq!(told["uri"], path);
    assert_eq!(told["body"], body);
    assert_eq!(told["http2"], true);
    let expected = [
        "accept: application/json;as=Table",
        "content-length: 200000",
        "content-type: application/json",
        "impersonate-group: system:nodes",
        "impersonate-user: system:node:n1",
        "user-agent: kubectl/v1",
    ];
    assert_eq!(told["headers"].as_array().unwrap(), &expected);
    assert_eq!(mirror.tunnels.outcomes()["node"], 1);
}

#[tokio::test]
async fn who_does_not_say_which_program_asks_is_not_given_our_name() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    let headers = [("authorization", "Bearer a.b.c")];
    let told = link.ask(request("GET", "/api", &headers, "")).await.json();
    assert_eq!(told["headers"].to_string().matches("user-agent").count(), 0);
}

#[tokio::test]
async fn what_a_server_that_says_goodbye_did_not_look_at_is_asked_once_more() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    mirror.goodbyes.store(1, Ordering::SeqCst);
    let headers = [("authorization", "Bearer a.b.c")];
    let read = link
        .ask(request("POST", "/api?x=y", &headers, "a body"))
        .await;
    assert_eq!(read.status, 200);
    let told = read.json();
    assert_eq!(
        (&told["uri"], &told["body"]),
        (&"/api?x=y".into(), &"a body".into())
    );
    // Once, and not for ever; and not with a large body, which is gone.
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    mirror.goodbyes.store(3, Ordering::SeqCst);
    let large = "x".repeat(200_000);
    let read = link.ask(request("POST", "/api", &headers, &large)).await;
    assert_eq!(read.status, 502);
    assert!(!read.headers.contains_key("retry-after"));
    let read = link.ask(request("GET", "/api", &headers, "")).await;
    assert_eq!(read.status, 502);
    assert_eq!(read.headers["retry-after"], "1");
}

#[tokio::test]
async fn a_cluster_that_speaks_the_old_protocol_only_is_asked_too() {
    let mirror = Mirror::speaking(&[b"http/1.1"]).await;
    let link = Link::open(&mirror.tunnels, "n1");
    let body = "x".repeat(200_000);
    let told = link.ask(request("PUT", "/api", &[], &body)).await.json();
    assert_eq!(
        (&told["method"], &told["body"]),
        (&"PUT".into(), &body.into())
    );
    assert_eq!(told["http2"], false);
    let watch = link.send(request("GET", "/ticks", &[], "")).await.unwrap();
    let mut body = watch.into_body();
    let first = timeout(DEADLINE, body.frame()).await.unwrap();
    assert_eq!(first.unwrap().unwrap().into_data().unwrap(), TICK);
    drop(body);
    mirror.has(0).await;
}

#[tokio::test]
async fn a_watch_streams_and_ends_in_the_cluster_when_its_reader_goes_away() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    let watch = link.send(request("GET", "/ticks", &[], "")).await.unwrap();
    let mut body = watch.into_body();
    let first = timeout(DEADLINE, body.frame()).await.unwrap();
    assert_eq!(first.unwrap().unwrap().into_data().unwrap(), TICK);
    assert!(timeout(MOMENT, body.frame()).await.is_err(), "it goes on");
    mirror.has(1).await;
    drop(body);
    mirror.has(0).await;
    // A request that was not answered yet is given up as well.
    let never = link.send(request("GET", "/never", &[], ""));
    assert!(timeout(MOMENT, never).await.is_err());
    mirror.has(0).await;
    let left = async {
        while link.streams() > 0 || mirror.tunnels.open() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, left).await.expect("nothing is left");
}

#[tokio::test]
async fn a_reader_that_stops_does_not_stop_others() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    let mut stuck = Vec::new();
    for _ in 0..10 {
        for path in ["/large", "/tiny"] {
            let asked = request("GET", path, &[], "");
            stuck.push(link.send(asked).await.unwrap());
        }
    }
    let read = timeout(DEADLINE, link.get("/large", &[])).await.unwrap();
    assert_eq!(read.body.len(), LARGE);
    // They go on where they stopped.
    for _ in 0..2 {
        let body = stuck.pop().unwrap().into_body();
        let whole = timeout(DEADLINE, body.collect()).await.unwrap().unwrap();
        assert!(whole.to_bytes().len() > 64 * 1024);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_taken_for_a_whole_one() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    let broken = link.send(request("GET", "/broken", &[], "")).await;
    let broken = match broken {
        Ok(answer) => answer.into_body().collect().await.map(drop),
        Err(error) => Err(error),
    };
    broken.unwrap_err();
    let watch = link.send(request("GET", "/ticks", &[], "")).await.unwrap();
    let mut body = watch.into_body();
    body.frame().await.unwrap().unwrap();
    link.cut();
    mirror.has(0).await;
}

#[tokio::test]
async fn a_protocol_can_be_changed_and_bytes_go_both_ways() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    let headers = [("connection", "Upgrade"), ("upgrade", "echo/1")];
    let asked = || request("GET", "/echo", &headers, "");
    echoes(&mirror, link.send(asked()).await.unwrap()).await;
    echoes(&mirror, link.send_packed(asked()).await.unwrap()).await;
    // Who asks for what the cluster does not change to is answered as ever.
    let plain = link.get("/api", &headers).await;
    assert_eq!(plain.json()["http2"], false);
    assert!(!plain.headers.contains_key("upgrade"));
}

/// What is said on a changed connection comes back, to its end.
async fn echoes(mirror: &Mirror, answer: Response<Incoming>) {
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.headers()["upgrade"], "echo/1");
    let upgraded = hyper::upgrade::on(answer).await.unwrap();
    let mut stream = TokioIo::new(upgraded);
    for round in 0..50_u8 {
        let said = vec![round; 5_000];
        stream.write_all(&said).await.unwrap();
        let mut heard = vec![0; said.len()];
        stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, said);
    }
    mirror.has(1).await;
    // One direction ends, and then the other.
    stream.write_all(b"the last").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let read = stream.read_to_end(&mut rest);
    timeout(DEADLINE, read).await.unwrap().unwrap();
    assert_eq!(rest, b"the last");
    mirror.has(0).await;
}

#[tokio::test]
async fn a_changed_connection_ends_in_the_cluster_when_the_link_does() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    let headers = [("connection", "Upgrade"), ("upgrade", "echo/1")];
    let answer = link
        .send(request("GET", "/echo", &headers, ""))
        .await
        .unwrap();
    let upgraded = hyper::upgrade::on(answer).await.unwrap();
    let mut stream = TokioIo::new(upgraded);
    stream.write_all(b"x").await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'x');
    mirror.has(1).await;
    link.cut();
    mirror.has(0).await;
}

#[tokio::test]
async fn bad_heads_and_strange_streams_end_alone() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    for (said, code) in [
        ("GET /api/../x HTTP/1.1\r\nhost: a\r\n\r\n", "400"),
        ("GET http://b/x HTTP/1.1\r\nhost: a\r\n\r\n", "400"),
        ("CONNECT b:443 HTTP/1.1\r\nhost: a\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nauthorization: Basic x\r\n\r\n", "401"),
    ] {
        let mut tube = link.tube(tunnel::HTTP);
        tube.write_all(said.as_bytes()).await.unwrap();
        let mut answer = vec![0; 12];
        let read = tube.read_exact(&mut answer);
        timeout(DEADLINE, read).await.unwrap().unwrap();
        assert_eq!(answer, format!("HTTP/1.1 {code}").as_bytes(), "{said}");
    }
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let mut tube = link.tube(tunnel::HTTP);
    // The rest of it may not be taken.
    drop(tube.write_all(long.as_bytes()).await);
    let mut answer = Vec::new();
    drop(
        timeout(DEADLINE, tube.read_to_end(&mut answer))
            .await
            .unwrap(),
    );
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");

    let mut strange = link.tube("strange");
    let refused = strange.read_u8().await.unwrap_err();
    assert_eq!(closed(&refused).unwrap().cause, Cause::NotServed);
    assert_eq!(link.get("/api", &[]).await.status, 200);
    let outcomes = mirror.tunnels.outcomes();
    assert_eq!((outcomes["strange"], outcomes["node"]), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_small_body_that_does_not_come_gives_its_place_back() {
    let mirror = Mirror::start().await;
    let link = Link::open(&mirror.tunnels, "n1");
    let mut tube = link.tube(tunnel::HTTP);
    let said = "POST /api HTTP/1.1\r\nhost: a\r\ncontent-length: 2048\r\n\r\nsome";
    tube.write_all(said.as_bytes()).await.unwrap();
    let began = tokio::time::Instant::now();
    let mut answer = Vec::new();
    tube.read_to_end(&mut answer).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 42);
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(answer.contains("did not come in time"), "{answer}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(mirror.tunnels.open(), 0);
}
