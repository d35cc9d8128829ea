//! Real handshakes over a link of which the speed is known. Its time is not that of the machine.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until};
use tokio_rustls::{Accept, Connect, TlsAcceptor, TlsConnector};

use super::*;
use crate::clock::Clock;
use crate::pki::{Authority, Wanted};
use crate::tls::{self, Shown};

/// How a link carries bytes, each way.
#[derive(Clone, Copy)]
struct Link {
    bytes_per_second: u32,
    /// How long each of them takes.
    far: Duration,
}

/// 9,600 bits a second, each byte with a start and a stop bit, over two satellites.
const SLOWEST: Link = Link {
    bytes_per_second: 960,
    far: Duration::from_millis(1500),
};
const QUICK: Link = Link {
    bytes_per_second: 1_000_000,
    far: Duration::from_millis(10),
};

struct Ends {
    server: TlsAcceptor,
    client: TlsConnector,
}

/// Both ends show a certificate.
fn ends() -> Ends {
    let clock = Clock::machine();
    let authority = Authority::create("test-ca", clock.wall()).unwrap();
    let issue = |wanted| authority.issue(&wanted, clock.wall()).unwrap();
    let shown = Shown::new(&issue(Wanted::Server {
        name: "hub".into(),
        dns: vec!["localhost".into()],
        ips: vec![],
    }));
    let own = issue(Wanted::Client {
        user: "node".into(),
        groups: vec!["nodes".into()],
    });
    let server = tls::server(shown.unwrap(), authority.certificate(), &clock).unwrap();
    let client = tls::client(authority.certificate(), Some(&own), &clock).unwrap();
    Ends {
        server: server.into(),
        client: client.into(),
    }
}

/// Carries bytes one way.
async fn carry(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, link: Link) {
    let (sent, mut coming) = mpsc::channel::<(Instant, Vec<u8>)>(1024);
    let send = async {
        let mut packet = [0; 256];
        while let Ok(count @ 1..) = from.read(&mut packet).await {
            sleep(Duration::from_secs(1) * count as u32 / link.bytes_per_second).await;
            let bytes = packet[..count].to_vec();
            sent.send((Instant::now() + link.far, bytes)).await.unwrap();
        }
    };
    let receive = async {
        while let Some((at, bytes)) = coming.recv().await {
            sleep_until(at).await;
            to.write_all(&bytes).await.ok();
        }
    };
    tokio::join!(send, receive);
}

/// Runs something that has a link between the two ends that it gets.
async fn over_link<F: Future>(
    link: Link,
    run: impl FnOnce(DuplexStream, DuplexStream) -> F,
) -> F::Output {
    let (client, here) = duplex(64);
    let (there, server) = duplex(64);
    let (here_out, here_in) = split(here);
    let (there_out, there_in) = split(there);
    let carried = async {
        tokio::join!(
            carry(here_out, there_in, link),
            carry(there_out, here_in, link)
        );
        std::future::pending::<()>().await
    };
    tokio::select! {
        output = run(client, server) => output,
        () = carried => unreachable!("it never ends"),
    }
}

type Shaken<S> = Result<tokio_rustls::server::TlsStream<Counted<S>>, Failed>;

async fn accept<S>(handshakes: &Handshakes, tls: &TlsAcceptor, stream: S) -> Shaken<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let begin = || tls.accept(Counted::new(stream));
    let arrived = |accept: &Accept<Counted<S>>| accept.get_ref().map_or(0, Counted::arrived);
    handshakes.shake(begin, arrived).await
}

/// What the server has after a handshake over a link, and when both ends were done.
async fn shaken(handshakes: &Handshakes, link: Link) -> (Result<(), Failed>, Duration) {
    let ends = ends();
    let began = Instant::now();
    let server = over_link(link, |client, server| async {
        let name = "localhost".try_into().unwrap();
        let connect = ends.client.connect(name, Counted::new(client));
        let arrived = |connect: &Connect<Counted<_>>| connect.get_ref().map_or(0, Counted::arrived);
        let client = paced(connect, PACE, Instant::now(), arrived);
        let (server, client) = tokio::join!(accept(handshakes, &ends.server, server), client);
        let server = server?;
        assert!(server.get_ref().1.peer_certificates().is_some());
        assert!(client.is_ok());
        Ok(())
    });
    let server = server.await;
    (server, began.elapsed())
}

/// The beginning of a first word which is never whole.
fn endless_hello() -> Vec<u8> {
    let mut hello = vec![0; 16 * 1024 + 5];
    hello[..9].copy_from_slice(&[0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc]);
    hello
}

/// How long a peer is listened to that sends so many bytes every second, and why no longer.
async fn trickle(bytes_each_second: usize) -> (Failed, Duration) {
    let (mut peer, server) = duplex(64 * 1024);
    let began = Instant::now();
    let send = async {
        for part in endless_hello().chunks(bytes_each_second) {
            peer.write_all(part).await.ok();
            sleep(Duration::from_secs(1)).await;
        }
        std::future::pending::<()>().await;
    };
    let (handshakes, ends) = (Handshakes::new(), ends());
    let failed = tokio::select! {
        shaken = accept(&handshakes, &ends.server, server) => shaken.err().unwrap(),
        () = send => unreachable!("it never ends"),
    };
    (failed, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_handshake_over_the_slowest_link_succeeds_though_it_takes_long() {
    let (done, took) = shaken(&Handshakes::new(), SLOWEST).await;
    done.unwrap();
    assert!(took > TURN_TIME_MAX && took < PACE.longest, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_link_that_is_slower_than_any_we_serve_is_given_up() {
    let link = Link {
        bytes_per_second: 64,
        ..QUICK
    };
    let (done, took) = shaken(&Handshakes::new(), link).await;
    assert!(matches!(done, Err(Failed::Broken(_))), "{done:?}");
    assert!(took > PACE.first && took < PACE.longest, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_closed_after_a_turn() {
    let (_peer, server) = duplex(64);
    let began = Instant::now();
    let silent = accept(&Handshakes::new(), &ends().server, server).await;
    assert!(matches!(silent, Err(Failed::Silent)));
    assert_eq!(began.elapsed().as_secs(), TURN_TIME_MAX.as_secs());
}

#[tokio::test(start_paused = true)]
async fn who_sends_a_byte_now_and_then_is_closed_soon() {
    let (failed, took) = trickle(1).await;
    assert!(matches!(failed, Failed::Broken(_)), "{failed}");
    assert_eq!(took.as_secs(), PACE.first.as_secs());
}

#[tokio::test(start_paused = true)]
async fn who_is_fast_enough_is_not_listened_to_for_ever() {
    let per_second = PACE.bytes_per_second as usize + 4;
    let (failed, took) = trickle(per_second).await;
    assert!(matches!(failed, Failed::Broken(_)), "{failed}");
    assert_eq!(took.as_secs(), PACE.longest.as_secs());
}

fn handshakes(turns: usize, slow: usize) -> Handshakes {
    Handshakes {
        turns: Arc::new(Semaphore::new(turns)),
        slow: Arc::new(Semaphore::new(slow)),
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_slow_does_not_keep_the_turn_of_one_who_is_quick() {
    let handshakes = handshakes(1, 1);
    let slow = shaken(&handshakes, SLOWEST);
    let quick = shaken(&handshakes, QUICK);
    let ((slow, _), (quick, waited)) = tokio::join!(slow, quick);
    slow.unwrap();
    quick.unwrap();
    assert!(
        waited > TURN_TIME_MAX && waited < WAIT_TIME_MAX,
        "{waited:?}"
    );
    assert_eq!(handshakes.turns.available_permits(), 1);
    assert_eq!(handshakes.slow.available_permits(), 1);
}

#[tokio::test(start_paused = true)]
async fn there_is_room_for_so_many_who_are_slow() {
    let handshakes = handshakes(2, 1);
    let one = shaken(&handshakes, SLOWEST);
    let another = shaken(&handshakes, SLOWEST);
    let ((one, _), (another, _)) = tokio::join!(one, another);
    let results = [&one, &another];
    assert_eq!(results.iter().filter(|done| done.is_ok()).count(), 1);
    let turned_away = results.iter().find_map(|done| done.as_ref().err());
    assert!(
        matches!(turned_away, Some(Failed::NoRoom)),
        "{turned_away:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_turn_for_ever() {
    let (none, waited) = shaken(&handshakes(0, 1), SLOWEST).await;
    assert!(matches!(none, Err(Failed::NoTurn)), "{none:?}");
    assert!(waited >= WAIT_TIME_MAX, "{waited:?}");
}
