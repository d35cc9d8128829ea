//! An agent over a link on which everything takes long.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use edge::keep::Keep;
use edge::status::Status;
use edge::talk::Talk;
use edge::tunnel::{NotPassed, REQUESTS_MAX, Tunnel, Whose};
use host::websocket::{Received, Role, Socket};
use host::{Clock, Shutdown, Tasks, Times};
use http_body_util::Empty;
use store::disk::memory::MemoryDisk;
use store::{Options, Replica};
use tokio::io::DuplexStream;
use tokio::time::sleep;
use wire::frame::{Asides, Frame, Hello, Machine, Welcome};
use wire::session::TUNNELS;

fn hello() -> Hello {
    Hello {
        oldest: 1,
        newest: 1,
        session: 1,
        features: 0,
        program: "test".into(),
        holdings: Vec::new(),
        machine: Machine::default(),
        staged: Vec::new(),
        documents: Vec::new(),
        aside: Asides::default(),
    }
}

fn welcome(features: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let welcome = Welcome {
        protocol: 1,
        features,
        hub: "hub".into(),
        heartbeat_seconds: 30,
        window: 10,
    };
    Frame::Welcome(welcome).encode(&mut bytes);
    bytes
}

/// How long a session lasts over a link that holds so many bytes, with a hub that does this.
async fn session(holds: usize, hub: impl AsyncFnOnce(DuplexStream)) -> Duration {
    let (ours, theirs) = tokio::io::duplex(holds);
    let times = Times::new(Clock::machine());
    let disk = Arc::new(MemoryDisk::default());
    let replica = Replica::open(disk, Options::new("node"), Clock::machine()).unwrap();
    let (keep, status) = (Keep::new(replica), Status::default());
    let socket = Socket::new(ours, Role::Client, Bytes::new());
    let talk = Talk::new(socket, hello(), &keep, (&times, &status));
    tokio::select! {
        _ = talk.run(std::future::pending()) => {}
        () = hub(theirs) => {}
    }
    times.now()
}

/// How long a session lasts with a hub that listens for so long before it welcomes the agent, and
/// says nothing after that.
async fn lasted(listens: Duration) -> Duration {
    let hub = async |link| {
        let socket = Socket::new(link, Role::Server, Bytes::new());
        let (mut reader, mut writer) = socket.split();
        let said = reader.read(4096).await.unwrap();
        assert!(matches!(said, Received::Message(_)));
        for _ in 0..listens.as_secs() / 3 {
            writer.ping().await.unwrap();
            sleep(Duration::from_secs(3)).await;
        }
        writer.write_message(&welcome(0)).await.unwrap();
        std::future::pending::<()>().await;
    };
    session(64 * 1024, hub).await
}

#[tokio::test(start_paused = true)]
async fn a_link_that_takes_nothing_any_more_is_noticed_as_soon_as_a_silent_one() {
    let hub = async |link| {
        let _open: DuplexStream = link;
        std::future::pending::<()>().await;
    };
    // Not even the hello is out.
    let lasted = session(8, hub).await;
    let most = Duration::from_secs(10);
    assert!(
        lasted >= Duration::from_secs(9) && lasted <= most,
        "{lasted:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_waits_for_its_welcome_while_the_hub_says_that_it_listens() {
    let long = Duration::from_secs(120);
    // The first heartbeat is 30 s after the welcome, and its answer does not come.
    let end = long + Duration::from_secs(39);
    let lasted = lasted(long).await;
    assert!(
        lasted >= end && lasted <= end + Duration::from_secs(6),
        "{lasted:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_welcome_that_was_late_does_not_make_the_session_short() {
    let end = Duration::from_secs(6 + 39);
    let lasted = lasted(Duration::from_secs(6)).await;
    assert!(
        lasted >= end && lasted <= end + Duration::from_secs(6),
        "{lasted:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn while_a_caller_waits_for_an_answer_a_dead_link_is_noticed_within_ten_seconds() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let times = Times::new(Clock::machine());
    let disk = Arc::new(MemoryDisk::default());
    let replica = Replica::open(disk, Options::new("node"), Clock::machine()).unwrap();
    let (keep, status) = (Keep::new(replica), Arc::new(Status::default()));
    let mut tasks = Tasks::new(Shutdown::new());
    let crowd = tasks.crowd("requests", REQUESTS_MAX);
    let tunnel = Tunnel::new(crowd, times.clone(), Arc::clone(&status));
    let socket = Socket::new(ours, Role::Client, Bytes::new());
    let talk = Talk::new(socket, hello(), &keep, (&times, &status));
    let talk = talk.with_tunnel(Some(&tunnel));
    let hub = async {
        let (mut reader, mut writer) = Socket::new(theirs, Role::Server, Bytes::new()).split();
        reader.read(4096).await.unwrap();
        writer.write_message(&welcome(TUNNELS)).await.unwrap();
        std::future::pending::<()>().await;
    };
    let asks = async {
        while !tunnel.is_open() {
            sleep(Duration::from_millis(100)).await;
        }
        let began = times.now();
        let request = http::Request::get("/version").body(Empty::<Bytes>::new());
        let broke = tunnel
            .pass(request.unwrap(), Whose::Node)
            .await
            .unwrap_err();
        assert!(matches!(broke, NotPassed::Broke(_)), "{broke}");
        times.now() - began
    };
    let noticed = tokio::select! {
        () = hub => unreachable!("it goes on"),
        (noticed, _) = async { tokio::join!(asks, talk.run(std::future::pending())) } => noticed,
    };
    assert!(noticed <= Duration::from_secs(10), "{noticed:?}");
    assert!(!tunnel.is_open());
}
