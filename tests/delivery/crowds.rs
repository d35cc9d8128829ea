//! Too much of everything for a node's API: frames, watches, connections, long lists, slow heads.

use std::time::Duration;

use ::cluster::catalogue;
use ::cluster::client::Protocol;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::driver::service;
use crate::hostile::{MIB, SERVICES, Siege};
use crate::links::through_a_proxy;
use crate::local::{Local, furnished, text};
use crate::world::CONVERGED;

const SOON: Duration = Duration::from_secs(30);

/// C12 over HTTP/2, and C4: watches that are opened and closed without end.
#[tokio::test(flavor = "multi_thread")]
async fn floods_of_frames_end_the_connections_that_make_them() {
    let world = furnished().await;
    let siege = Siege::begin(&world.nodes[0], "kubelet").await;
    let watch = "/api/v1/services?watch=1";
    let floods = [
        catalogue::flood_of_resets(watch, 20_000),
        catalogue::flood_of_resets("/api/v1/secrets?watch=1", 20_000),
        catalogue::flood_of_continuations(1_000),
        catalogue::wide().into_bytes(),
    ];
    let flooding = async {
        for flood in &floods {
            siege.flood(flood).await;
        }
    };
    let served = async {
        for _ in 0..20 {
            assert_eq!(siege.local.ask("GET", SERVICES, None).await.status, 200);
        }
    };
    tokio::join!(flooding, served);
    // What says nothing is answered or not, and kept nowhere.
    let mut stream = siege.door.dial(Protocol::Http2).await.unwrap();
    let nothing = catalogue::flood_of_nothing(100_000);
    let writing = timeout(Duration::from_secs(5), stream.write_all(&nothing)).await;
    drop((writing, stream));
    siege.is_over(32 * MIB).await;
}

/// C4: past their number, watches are refused with a word and connections without one; who has a
/// place keeps it, and the link has what it needs.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn too_many_watches_and_connections_are_refused_and_the_rest_goes_on() {
    const PER_USER: usize = 2048;
    const STREAMS: usize = 250;
    let (world, proxy) = through_a_proxy().await;
    let siege = Siege::begin(&world.nodes[0], "kubelet").await;
    let watch = || siege.local.request("GET", "/api/v1/services?watch=1", None);
    let (mut clients, mut held) = (Vec::new(), Vec::new());
    while held.len() < PER_USER {
        if held.len() % STREAMS == 0 {
            clients.push(siege.local.client().await);
        }
        let client = clients.last_mut().unwrap();
        let answer = client.ask(watch()).await.unwrap();
        assert_eq!(answer.status(), 200, "watch {}", held.len());
        held.push(answer);
    }
    let mut client = siege.local.client().await;
    let refused = client.exchange(watch()).await.unwrap();
    assert_eq!(refused.status, 429, "{}", text(&refused));
    assert_eq!(refused.headers["retry-after"], "1");
    // Another user has watches, and both have lists.
    let other = Local::of(&world.nodes[0], "admin");
    drop(other.watch("/api/v1/services?watch=1").await);
    assert_eq!(siege.local.ask("GET", SERVICES, None).await.status, 200);
    drop((held, clients, client));
    // A crowd that says nothing takes every place; who is refused is told so at once.
    let address = format!("127.0.0.1:{}", port(&siege.local));
    let mut crowd = Vec::new();
    for _ in 0..1_200 {
        if let Ok(stream) = TcpStream::connect(&address).await {
            crowd.push(stream);
        }
    }
    proxy.cut();
    world
        .driver
        .create("services", &service("meanwhile", "0"))
        .await;
    world.settled(CONVERGED).await;
    drop(crowd);
    let again = async {
        while siege.door.connect(Protocol::Http2).await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(SOON, again)
        .await
        .expect("nobody is let in any more");
    siege.is_survived(96 * MIB);
}

fn port(local: &Local) -> u16 {
    let text = std::fs::read_to_string(&local.kubeconfig).unwrap();
    let mut lines = text.lines().map(str::trim);
    let line = lines.find_map(|line| line.strip_prefix("server: https://127.0.0.1:"));
    line.unwrap().parse().unwrap()
}

/// C5: long lists by many at once, half of whom never read.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn long_lists_for_many_at_once_take_little_memory() {
    const LARGE: usize = 60;
    const CLIENTS: usize = 24;
    let world = furnished().await;
    let note = "x".repeat(200 * 1024);
    for number in 0..LARGE {
        let made = service(&format!("large-{number}"), &note);
        world.driver.create("services", &made).await;
    }
    world.settled(SOON).await;
    let siege = Siege::begin(&world.nodes[0], "kubelet").await;
    let mut asleep = Vec::new();
    for _ in 0..CLIENTS / 2 {
        let mut client = siege.local.client().await;
        let request = siege.local.request("GET", SERVICES, None);
        asleep.push((client.ask(request).await.unwrap(), client));
    }
    let mut awake = JoinSet::new();
    for _ in 0..CLIENTS / 2 {
        let local = Local::of(&world.nodes[0], "kubelet");
        awake.spawn(async move {
            let mut client = local.client().await;
            let request = local.request("GET", SERVICES, None);
            client.exchange(request).await.unwrap().body.len()
        });
    }
    while let Some(read) = awake.join_next().await {
        assert!(read.unwrap() >= LARGE * note.len(), "it is whole");
    }
    drop(asleep);
    // All of it at once would be 280 MiB.
    siege.is_over(64 * MIB).await;
}

/// Slowloris: heads and handshakes that dribble in.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a while: just e2e"]
async fn who_dribbles_a_head_or_a_handshake_is_given_up_and_others_are_served() {
    const CLIENTS: usize = 100;
    let world = furnished().await;
    let siege = Siege::begin(&world.nodes[0], "kubelet").await;
    let address = format!("127.0.0.1:{}", port(&siege.local));
    let mut dribbling = JoinSet::new();
    for _ in 0..CLIENTS {
        let mut head = siege.door.dial(Protocol::Http1).await.unwrap();
        dribbling.spawn(async move {
            let begin = b"GET /api/v1/services HTTP/1.1\r\nX: ";
            head.write_all(begin).await.unwrap();
            while head.write_all(b"x").await.is_ok() && head.flush().await.is_ok() {
                sleep(Duration::from_millis(500)).await;
            }
        });
        let mut hello = TcpStream::connect(&address).await.unwrap();
        dribbling.spawn(async move {
            for byte in [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3].into_iter().cycle() {
                if hello.write_all(&[byte]).await.is_err() {
                    return;
                }
                sleep(Duration::from_millis(500)).await;
            }
        });
    }
    let ended = async { while dribbling.join_next().await.is_some() {} };
    let served = async {
        for _ in 0..20 {
            assert_eq!(siege.local.ask("GET", SERVICES, None).await.status, 200);
            sleep(Duration::from_millis(200)).await;
        }
    };
    let both = async { tokio::join!(ended, served) };
    let all = timeout(Duration::from_secs(75), both).await;
    all.expect("they may dribble for ever");
    siege.is_over(32 * MIB).await;
}
