//! Clients that ask again as soon as they are answered, each on a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use tokio::task::JoinSet;

use crate::client::{Client, Protocol};
use crate::generator::figures::{Latencies, Measured, Stretch};
use crate::server::Server;

/// When a measurement is over.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    Time(Duration),
    Count(usize),
}

/// Open HTTP/1.1 connections.
pub(crate) struct Callers(Vec<Client>);

impl Callers {
    pub(crate) async fn open(server: &Server, connections: usize) -> Self {
        let mut clients = Vec::new();
        for _ in 0..connections {
            clients.push(server.door.connect(Protocol::Http1).await);
        }
        Self(clients)
    }

    /// Sends what `asked` makes of the number of the turn, over all connections at once.
    pub(crate) async fn run(
        &mut self,
        server: &Server,
        until: Until,
        asked: impl Fn(usize) -> Request<Full<Bytes>> + Clone + Send + 'static,
    ) -> Measured {
        let (time, turns_max) = match until {
            Until::Time(time) => (time, usize::MAX),
            Until::Count(count) => (Duration::from_secs(3600), count),
        };
        let turns = Arc::new(AtomicUsize::new(0));
        let stretch = Stretch::start(server);
        let end = Instant::now() + time;
        let mut working = JoinSet::new();
        for mut client in self.0.drain(..) {
            let (turns, asked) = (turns.clone(), asked.clone());
            working.spawn(async move {
                let (mut latencies, mut bytes) = (Latencies::default(), 0);
                loop {
                    let turn = turns.fetch_add(1, Ordering::Relaxed);
                    if turn >= turns_max || Instant::now() >= end {
                        return (client, latencies, bytes);
                    }
                    let started = Instant::now();
                    bytes += drain(&mut client, asked(turn)).await;
                    latencies.add(started.elapsed());
                }
            });
        }
        let ended = working.join_all().await;
        let count = ended.iter().map(|(_, latencies, _)| latencies.len()).sum();
        let mut measured = stretch.end(server, count);
        for (client, latencies, bytes) in ended {
            self.0.push(client);
            measured.latencies = measured.latencies.join(latencies);
            measured.bytes += bytes;
        }
        measured
    }
}

/// Reads an answer and keeps nothing of it but its length.
async fn drain(client: &mut Client, request: Request<Full<Bytes>>) -> usize {
    let answer = client.ask(request).await;
    assert!(answer.status().is_success(), "{}", answer.status());
    let mut body = answer.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.expect("a whole body");
        bytes += frame.data_ref().map_or(0, Bytes::len);
    }
    bytes
}
