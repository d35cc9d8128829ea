//! C12 over HTTP/2: floods of streams, resets and headers.

use std::time::Duration;

use cluster::catalogue;
use http::Request;
use kubeapi::serve::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stage::{self, DEADLINE, Http, Stage, pod};

fn get(path: &str) -> Request<()> {
    Request::get(format!("https://localhost{path}"))
        .body(())
        .unwrap()
}

/// Rapid reset (CVE-2023-44487): a client that resets streams faster than they are looked at is
/// thrown out, and nobody else notices.
#[tokio::test]
async fn a_flood_of_resets_ends_the_connection_that_makes_it() {
    stage::on_server(Http::Two, Limits::default(), async |stage: &Stage| {
        stage.put(&pod("a", "x")).await;
        let stream = stage.client("flood").dial(Http::Two).await;
        let (mut reading, mut writing) = tokio::io::split(stream);
        let flood = catalogue::flood_of_resets("/api/v1/pods?watch=1", 20_000);
        let flooding = async { drop(writing.write_all(&flood).await) };
        let mut answer = Vec::new();
        let thrown_out = async { drop(reading.read_to_end(&mut answer).await) };
        let served = async {
            for _ in 0..20 {
                assert_eq!(stage.client.get("/api/v1/pods").await.status, 200);
            }
        };
        let all = async { tokio::join!(flooding, thrown_out, served) };
        tokio::time::timeout(DEADLINE, all)
            .await
            .expect("the flood goes on");
        let forgotten = async {
            while stage.api.gate.watches() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(DEADLINE, forgotten)
            .await
            .expect("its watches are still counted");
    })
    .await;
}

/// One connection has so many streams and no more; the rest wait for a place.
#[tokio::test]
async fn a_connection_has_a_limited_number_of_streams() {
    stage::on_server(Http::Two, Limits::default(), async |stage: &Stage| {
        let client = stage.client("many");
        client.json("/api/v1/pods").await;
        let mut streams = Vec::new();
        for _ in 0..250 {
            streams.push(client.watch("/api/v1/pods?watch=1").await);
        }
        let waiting = client.watch("/api/v1/pods?watch=1");
        let mut waiting = std::pin::pin!(waiting);
        let early = tokio::time::timeout(Duration::from_millis(200), waiting.as_mut()).await;
        assert!(early.is_err(), "it got a place that is not there");
        assert_eq!(stage.api.gate.watches(), 250);
        streams.pop();
        waiting.await;
        let made = stage.put(&pod("a", "x")).await;
        for stream in &mut streams {
            stream.expect("ADDED", &made).await;
        }
    })
    .await;
}

/// Headers beyond the limit are refused without being kept.
#[tokio::test]
async fn too_many_headers_are_refused() {
    for http in [Http::One, Http::Two] {
        stage::on_server(http, Limits::default(), async |stage: &Stage| {
            let request = catalogue::wide();
            let answer = stage.client.raw(request.as_bytes()).await;
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
                "{answer}"
            );
            if http == Http::Two {
                let text = "x".repeat(1000);
                let stream = stage.client("wide").dial(Http::Two).await;
                let (sender, connection) = h2::client::handshake(stream).await.unwrap();
                let mut wide = get("/version");
                for number in 0..100 {
                    let name: http::HeaderName = format!("x-{number}").parse().unwrap();
                    wide.headers_mut().insert(name, text.parse().unwrap());
                }
                let asking = async {
                    let mut sender = sender.ready().await.ok()?;
                    let (response, _) = sender.send_request(wide, true).ok()?;
                    response
                        .await
                        .ok()
                        .map(|response| response.status().as_u16())
                };
                let code = tokio::select! {
                    code = asking => code,
                    _ = connection => None,
                };
                assert!(code.is_none_or(|code| code == 431), "{code:?}");
            }
            assert_eq!(stage.client.get("/version").await.status, 200);
        })
        .await;
    }
}
