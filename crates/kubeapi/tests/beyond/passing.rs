//! What a node passes on: whatever it does not answer, as it came.

use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use kubeapi::serve::Limits;
use tokio::sync::mpsc;

use crate::stage::{self, CALLED, DEADLINE, Http, Stage, send};

const PROXY: &str = "/api/v1/namespaces/a/services/web/proxy";

/// A path, a query and a selector that say nothing here may say something there.
#[tokio::test]
async fn what_makes_no_sense_here_is_passed_on_unless_it_means_harm() {
    let exec = "command=x&".repeat(300);
    stage::on_node(async |stage, _| {
        for is_open in [true, false] {
            stage.link.store(is_open, Ordering::Relaxed);
            let passed = if is_open { CALLED } else { 503 };
            for (method, path, code) in [
                (Method::GET, format!("{PROXY}//x"), passed),
                (Method::GET, format!("{PROXY}/a%2Fb"), passed),
                (Method::GET, format!("{PROXY}/100%25"), passed),
                (Method::GET, format!("{PROXY}/?q=%ff"), passed),
                (
                    Method::POST,
                    format!("/api/v1/namespaces/a/pods/x/exec?{exec}"),
                    passed,
                ),
                // Nothing of it is held, so it is not known on which fields it can be selected.
                (
                    Method::GET,
                    "/api/v1/secrets?fieldSelector=spec.new%3Dx".into(),
                    passed,
                ),
                (Method::GET, format!("{PROXY}/%2e%2e/x"), 404),
                (Method::GET, format!("{PROXY}//../x"), 404),
                (Method::GET, format!("{PROXY}/a%2F..%2Fb"), 404),
                (Method::GET, format!("{PROXY}/a%0d%0ab"), 404),
                (Method::GET, "/api/v1/pods?a=%ff".into(), 400),
            ] {
                let reply = stage.client.ask(send(method, &path)).await;
                assert_eq!(reply.status, code, "{path}: {}", reply.text());
            }
            // What is held is selected as we know it, while nobody can be asked.
            let path = "/api/v1/pods?fieldSelector=spec.new%3Dx";
            let code = if is_open { CALLED } else { 400 };
            assert_eq!(stage.client.get(path).await.status, code);
            assert_eq!(
                stage.stranger().get(&format!("{PROXY}//x")).await.status,
                401
            );
        }
    })
    .await;
}

/// That there is no such path only the cluster knows.
#[tokio::test]
async fn paths_that_are_not_known_here_are_not_said_to_lead_nowhere() {
    stage::on_node(async |stage, _| {
        for code in [CALLED, 503] {
            for path in ["/metrics", "/apis/new.test", "/apis/new.test/v1", "/api/v2"] {
                let reply = stage.client.get(path).await;
                assert_eq!(reply.status, code, "{path}: {}", reply.text());
            }
            stage.link.store(false, Ordering::Relaxed);
        }
        for path in ["/livez/none", "/openapi/v3/apis/new.test/v1"] {
            assert_eq!(stage.client.get(path).await.status, 404, "{path}");
        }
    })
    .await;
}

/// A body that comes piece by piece.
struct Fed(mpsc::Receiver<io::Result<Bytes>>);

impl Body for Fed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = self.0.poll_recv(cx);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// The cluster answers the next request piece by piece, until nobody takes them any more.
fn fed(stage: &Stage) -> mpsc::Sender<io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(1);
    stage.script.say_this(Response::new(Fed(receiver).boxed()));
    sender
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_what_the_cluster_answers_is_cut() {
    for http in [Http::One, Http::Two] {
        let limits = Limits {
            stall_time_max: Duration::from_millis(300),
            ..Limits::default()
        };
        stage::on_node_with(http, limits, async |stage, _| {
            let sender = fed(stage);
            let stream = stage
                .client
                .open(send(Method::GET, "/api/v1/secrets"))
                .await;
            let piece = Bytes::from(vec![b'x'; 64 * 1024]);
            let cut = async { while sender.send(Ok(piece.clone())).await.is_ok() {} };
            let cut = tokio::time::timeout(DEADLINE, cut).await;
            cut.expect("it was not cut");
            assert!(
                stream.breaks_within(DEADLINE).await,
                "it ended as if all were well"
            );
        })
        .await;
    }
}

#[tokio::test]
async fn a_watch_of_the_cluster_without_events_is_left_alone() {
    for http in [Http::One, Http::Two] {
        let limits = Limits {
            stall_time_max: Duration::from_millis(50),
            ..Limits::default()
        };
        stage::on_node_with(http, limits, async |stage, _| {
            let sender = fed(stage);
            let path = "/api/v1/secrets?watch=1";
            let mut stream = stage.client.open(send(Method::GET, path)).await;
            for _ in 0..5 {
                // Time in which it would be cut, were it taken for stuck.
                tokio::time::sleep(Duration::from_millis(120)).await;
                let event = "{\"type\":\"ADDED\",\"object\":{}}\n";
                sender.send(Ok(event.into())).await.unwrap();
                stream.expect_kind("ADDED").await;
            }
        })
        .await;
    }
}

/// A watch may end at any time, and its client goes on; of anything else a part is no answer.
#[tokio::test]
async fn when_the_link_breaks_a_watch_of_the_cluster_ends_and_a_list_breaks() {
    for http in [Http::One, Http::Two] {
        stage::on_node_with(http, Limits::default(), async |stage, _| {
            let begun = "{\"type\":\"ADDED\",\"object\":{}}\n";
            let open = async |path: &str| {
                let sender = fed(stage);
                let mut stream = stage.client.open(send(Method::GET, path)).await;
                sender.send(Ok(begun.into())).await.unwrap();
                stream.expect_kind("ADDED").await;
                let broken = Err(io::ErrorKind::ConnectionReset.into());
                sender.send(broken).await.unwrap();
                stream
            };
            open("/api/v1/secrets?watch=1").await.expect_end().await;
            let list = open("/api/v1/secrets").await;
            assert!(list.breaks_within(DEADLINE).await, "{http:?}");
        })
        .await;
    }
}
