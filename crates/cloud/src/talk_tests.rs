//! Sessions over links on which everything takes long, and what goes together in them.

use std::pin::pin;

use host::Clock;
use host::websocket::{Role, Socket};
use tokio::io::DuplexStream;
use wire::frame::Welcome;
use wire::session::Patience;
use wire::window::Limits;

use super::*;
use crate::cache;
use crate::hub::Hub;
use crate::slow_tests::{guest, trickle, written};
use crate::view::Policy;

/// A session that waits for what the node says, and the node's end of the link.
fn talk() -> (Talk<DuplexStream, Hub>, DuplexStream, Times) {
    let times = Times::new(Clock::machine());
    let (hub, _) = Hub::new(
        times.clone(),
        Policy::default(),
        1,
        cache::Limits::default(),
    );
    let (guest, link) = guest();
    let welcome = Welcome {
        protocol: 1,
        features: 0,
        hub: "hub".into(),
        heartbeat_seconds: 30,
        window: 10,
    };
    let held = (Vec::new(), Vec::new());
    let sender = Sender::new(
        welcome,
        held,
        (Limits::default(), Patience::HUB),
        times.now(),
    );
    let desk = (Arc::new(hub), Arc::default());
    (Talk::new(guest, "n".into(), desk, sender), link, times)
}

/// How long a session lasts in which a message comes, so many bytes a second.
async fn lasted(at_once: usize) -> Duration {
    let (mut talk, mut link, times) = talk();
    let bytes = written(1_000_000, &vec![0; 200 * at_once]);
    let stop = pin!(std::future::pending());
    let closed = tokio::select! {
        closed = talk.run(stop) => closed,
        () = trickle(&mut link, &bytes, at_once) => return times.now(),
    };
    assert_eq!(closed.label(), "silent");
    times.now()
}

#[tokio::test(start_paused = true)]
async fn a_message_that_takes_long_to_arrive_is_a_sign_of_life() {
    assert!(lasted(900).await >= Duration::from_secs(200));
}

#[tokio::test(start_paused = true)]
async fn a_byte_now_and_then_is_none() {
    let idle = Patience::HUB.idle_max;
    let lasted = lasted(1).await;
    assert!(
        lasted >= idle && lasted <= idle + PACE.first * 3,
        "{lasted:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_said_soon_after_a_message_goes_together() {
    let (mut talk, link, times) = talk();
    let socket = Socket::new(link, Role::Client, Bytes::new());
    let (mut reader, mut writer) = socket.split();
    let node = async {
        let mut heard = async || match reader.read(MESSAGE_BYTES_MAX).await.unwrap() {
            Received::Message(message) => frames(&message, MESSAGE_BYTES_MAX).unwrap(),
            other => panic!("{other:?}"),
        };
        let mut ask = async |number| {
            let mut message = Vec::new();
            let holds = None;
            Frame::Ping { number, holds }.encode(&mut message);
            writer.write_message(&message).await.unwrap();
        };
        let welcome = heard().await;
        assert!(matches!(welcome[..], [Frame::Welcome(_)]));
        heard().await;
        tokio::time::sleep(GATHER).await;
        let began = times.now();
        ask(1).await;
        assert_eq!(heard().await.len(), 1);
        assert_eq!(times.now(), began);
        ask(2).await;
        ask(3).await;
        assert_eq!(heard().await.len(), 2);
        let waited = times.now() - began;
        assert!(waited >= GATHER && waited <= 2 * GATHER, "{waited:?}");
    };
    let stop = pin!(std::future::pending());
    tokio::select! {
        closed = talk.run(stop) => panic!("{closed}"),
        () = node => {}
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_on_streams_does_not_wait_until_changes_are_gathered() {
    let (mut talk, link, times) = talk();
    assert!(talk.streams.is_none(), "most sessions have none");
    let socket = Socket::new(link, Role::Client, Bytes::new());
    let (mut reader, mut writer) = socket.split();
    let node = async {
        let mut heard = async || match reader.read(MESSAGE_BYTES_MAX).await.unwrap() {
            Received::Message(message) => frames(&message, MESSAGE_BYTES_MAX).unwrap(),
            other => panic!("{other:?}"),
        };
        let mut say = async |frame: Frame| {
            let mut message = Vec::new();
            frame.encode(&mut message);
            writer.write_message(&message).await.unwrap();
        };
        heard().await;
        heard().await;
        tokio::time::sleep(GATHER).await;
        let holds = None;
        say(Frame::Ping { number: 1, holds }).await;
        heard().await;
        let began = times.now();
        // A hub without tunnels says so at once.
        for id in [1, 3] {
            let (purpose, window) = ("http".into(), 0);
            let said = Said::Open { purpose, window };
            say(Frame::Stream { id, said }).await;
            let heard = heard().await;
            let closes = |frame: &Frame| {
                let Frame::Stream { id: of, said } = frame else {
                    return false;
                };
                *of == id && matches!(said, Said::Close { .. })
            };
            assert!(heard.len() == 1 && closes(&heard[0]), "{heard:?}");
        }
        assert_eq!(times.now(), began);
        // Who speaks of a stream that never was ends the session.
        let bytes = Bytes::new();
        let said = Said::Data {
            bytes,
            end: wire::frame::End::More,
        };
        say(Frame::Stream { id: 7, said }).await;
        std::future::pending().await
    };
    let stop = pin!(std::future::pending());
    tokio::select! {
        closed = talk.run(stop) => assert_eq!(closed.label(), "misbehaved"),
        () = node => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_takes_nothing_any_more_is_noticed() {
    let (mut talk, link, times) = talk();
    // More than the link holds: the write never ends.
    let more = vec![0; 4 << 20];
    talk.pump.start(more, None);
    let closed = talk.run(pin!(std::future::pending())).await;
    assert_eq!(closed.label(), "silent");
    let most = Patience::HUB.idle_max + LAST_WORDS + Duration::from_secs(1);
    assert!(times.now() <= most, "{:?}", times.now());
    drop(link);
}
