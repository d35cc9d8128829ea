//! A local caller, the agent's end of a tunnel, and a hub that answers itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use edge::tunnel::{Answers, REQUESTS_MAX, Tunnel, Whose};
use host::{Clock, Shutdown, Tasks, Times};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tunnel::{Board, Tube};
use wire::frame::Frame;
use wire::stream::{Limits, Side};

const DEADLINE: Duration = Duration::from_secs(60);

type Answer = Response<UnsyncBoxBody<Bytes, hyper::Error>>;

/// A node whose tunnel leads to a hub in this process.
struct Node {
    tunnel: Tunnel,
    running: JoinSet<()>,
    _tasks: Tasks,
}

impl Node {
    fn start() -> Self {
        let mut tasks = Tasks::new(Shutdown::new());
        let crowd = tasks.crowd("requests", REQUESTS_MAX);
        let times = Times::new(Clock::machine());
        let tunnel = Tunnel::new(crowd, times, Arc::default());
        let ends = [Side::Agent, Side::Hub].map(|side| {
            let woken = Arc::new(Notify::new());
            let wake = Arc::clone(&woken);
            let board = Board::new(side, Limits::default(), move || wake.notify_one());
            (board, woken)
        });
        tunnel.begin(Some(ends[0].0.opener()), Answers::Plain);
        let ends = Arc::new(ends);
        let mut running = JoinSet::new();
        for from in [0, 1] {
            let ends = Arc::clone(&ends);
            running.spawn(async move { carry(&ends, from).await });
        }
        Self {
            tunnel,
            running,
            _tasks: tasks,
        }
    }

    /// A connection of a local caller, whose requests all go through the tunnel.
    async fn caller(&mut self) -> client::SendRequest<Full<Bytes>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let tunnel = self.tunnel.clone();
        self.running.spawn(serve_locally(tunnel, theirs));
        let (sender, connection) = client::handshake(TokioIo::new(ours)).await.unwrap();
        self.running.spawn(async move {
            drop(connection.with_upgrades().await);
        });
        sender
    }
}

async fn carry(ends: &[(Board, Arc<Notify>); 2], from: usize) {
    let mut serving = JoinSet::new();
    let ((board, woken), (other, wakes)) = (&ends[from], &ends[1 - from]);
    loop {
        woken.notified().await;
        while let Some(Frame::Stream { id, said }) = board.next(16 * 1024) {
            if let Some(arrived) = other.take(id, said).unwrap() {
                serving.spawn(serve_as_hub(arrived.tube));
            }
            wakes.notify_one();
            tokio::task::yield_now().await;
        }
    }
}

/// The local API: it passes on everything, and changes of the protocol as well.
async fn serve_locally(tunnel: Tunnel, stream: DuplexStream) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        let tunnel = tunnel.clone();
        async move {
            let near = hyper::upgrade::on(&mut request);
            let mut answer = tunnel.pass(request, Whose::Node).await.unwrap();
            if answer.status() == 101 {
                let far = hyper::upgrade::on(&mut answer);
                tunnel.splice(near, far).unwrap();
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let served = server::Builder::new().serve_connection(TokioIo::new(stream), service);
    drop(served.with_upgrades().await);
}

/// A hub that says again what it hears.
async fn serve_as_hub(tube: Tube) {
    let upgraded = Arc::new(parking_lot::Mutex::new(None));
    let slot = Arc::clone(&upgraded);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let upgrade = hyper::upgrade::on(&mut request);
        let answer = match request.uri().path() {
            "/echo" => {
                *slot.lock() = Some(upgrade);
                let answer = Response::builder()
                    .status(101)
                    .header("connection", "Upgrade");
                let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
                answer.header("upgrade", "echo/1").body(body).unwrap()
            }
            _ => {
                let heard = format!("{:?}", request.headers());
                let mut answer = Response::new(request.into_body().boxed_unsync());
                answer
                    .headers_mut()
                    .insert("x-heard", heard.parse().unwrap());
                answer
            }
        };
        async move { Ok::<Answer, Infallible>(answer) }
    });
    let mut http = server::Builder::new();
    http.keep_alive(false);
    let served = http.serve_connection(TokioIo::new(tube), service);
    drop(served.with_upgrades().await);
    let upgrade = upgraded.lock().take();
    if let Some(upgrade) = upgrade {
        let mut stream = TokioIo::new(upgrade.await.unwrap());
        let (mut reader, mut writer) = tokio::io::split(&mut stream);
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
        writer.shutdown().await.unwrap();
    }
}

fn request(path: &str, headers: &[(&str, &str)], body: &str) -> Request<Full<Bytes>> {
    let mut request = Request::post(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    request.body(body).unwrap()
}

#[tokio::test]
async fn requests_of_a_local_caller_go_through_one_after_the_other_and_beside_each_other() {
    let mut node = Node::start();
    let (mut one, mut other) = (node.caller().await, node.caller().await);
    for round in 0..5 {
        let said = round.to_string().repeat(100_000);
        let headers = [("connection", "x-own"), ("x-own", "1"), ("accept", "a/b")];
        let asked = request("/api", &headers, &said);
        let beside = request("/api", &[], "short");
        let both = async { tokio::join!(one.send_request(asked), other.send_request(beside)) };
        let (long, short) = timeout(DEADLINE, both).await.unwrap();
        let (head, body) = long.unwrap().into_parts();
        let heard = head.headers["x-heard"].to_str().unwrap();
        assert!(heard.contains("a/b") && !heard.contains("x-own"), "{heard}");
        assert!(heard.contains(tunnel::HOST), "{heard}");
        assert_eq!(body.collect().await.unwrap().to_bytes(), said);
        let short = short.unwrap().into_body().collect().await.unwrap();
        assert_eq!(short.to_bytes(), "short");
        one.ready().await.unwrap();
        other.ready().await.unwrap();
    }
}

#[tokio::test]
async fn a_local_connection_that_changes_its_protocol_is_carried_both_ways() {
    let mut node = Node::start();
    let mut caller = node.caller().await;
    let headers = [("connection", "Upgrade"), ("upgrade", "echo/1")];
    let answer = caller
        .send_request(request("/echo", &headers, ""))
        .await
        .unwrap();
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.headers()["upgrade"], "echo/1");
    let upgraded = hyper::upgrade::on(answer).await.unwrap();
    let mut stream = TokioIo::new(upgraded);
    let talks = async {
        for round in 0..20_u8 {
            stream.write_all(&vec![round; 30_000]).await.unwrap();
            let mut heard = vec![0; 30_000];
            stream.read_exact(&mut heard).await.unwrap();
            assert_eq!(heard, vec![round; 30_000]);
        }
        stream.write_all(b"the last").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"the last");
    };
    timeout(DEADLINE, talks).await.unwrap();
}
