//! What passes, and what is held for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use rustls::HandshakeKind;
use rustls::server::ServerSessionMemoryCache;
use tokio::task::JoinSet;

use super::*;
use crate::websocket::{self, CloseCode, Received};

/// Numbers that look like chance and are the same in each run.
struct Dice(u64);

impl Dice {
    fn upto(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        1 + (self.0 % most as u64) as usize
    }
}

async fn write_in_pieces(mut to: impl AsyncWrite + Unpin, bytes: Vec<u8>, mut dice: Dice) {
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(dice.upto(40_000).min(rest.len()));
        to.write_all(piece).await.unwrap();
        if dice.upto(3) == 1 {
            to.flush().await.unwrap();
        }
        rest = after;
    }
    to.shutdown().await.unwrap();
}

async fn read_in_pieces(mut from: impl AsyncRead + Unpin, mut dice: Dice) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut space = vec![0; 40_000];
    loop {
        let piece = &mut space[..dice.upto(40_000)];
        match from.read(piece).await.unwrap() {
            0 => return bytes,
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

#[tokio::test]
async fn a_client_is_met_with_and_without_its_certificate() {
    let hub = Hub::new();
    for (version, path) in VERSIONS.into_iter().flat_map(|v| PATHS.map(|p| (v, p))) {
        for own in [None, Some(node(&hub.authority))] {
            let config = hub.client(version, own.as_ref());
            let (client, lean) = hub.meet(path, config).await;
            let (mut client, mut lean) = (client.unwrap(), lean.unwrap());
            let used = client.get_ref().1.protocol_version();
            assert_eq!(used, Some(version.version));
            assert_eq!(lean.alpn_protocol(), Some(tls::HTTP1));
            let shown = lean.peer_certificates().and_then(<[_]>::first);
            let shown = shown.map(|shown| Leaf::read(shown).unwrap().common_name);
            assert_eq!(shown, own.map(|_| "node-1".to_owned()));
            assert_eq!(lean.held_bytes(), 0);
            let mut word = [0; 5];
            let ((), read) = tokio::join!(say(&mut client, b"hello"), lean.read_exact(&mut word));
            read.unwrap();
            assert_eq!(&word, b"hello", "{path:?}");
            wait_idle(&mut lean).await;
            assert_eq!(lean.held_bytes(), 0);
        }
    }
}

/// Reads and writes at both ends at once, each in a task of its own.
async fn exchange(path: Path, version: Version, length: usize, seed: u64) {
    let (client, lean) = pair(path, version).await;
    let (up, down) = (pattern(length, 1), pattern(length, 2));
    let (client_reads, client_writes) = tokio::io::split(client);
    let (lean_reads, lean_writes) = tokio::io::split(lean);
    let dice = |salt| Dice(seed * 1000 + salt);
    let mut writers = JoinSet::new();
    writers.spawn(write_in_pieces(client_writes, up.clone(), dice(1)));
    writers.spawn(write_in_pieces(lean_writes, down.clone(), dice(2)));
    let mut readers = JoinSet::new();
    let reader = dice(3);
    readers.spawn(async move { read_in_pieces(lean_reads, reader).await == up });
    let reader = dice(4);
    readers.spawn(async move { read_in_pieces(client_reads, reader).await == down });
    let intact = readers.join_all().await;
    assert_eq!(intact, [true, true], "{path:?} {length} {seed}");
    writers.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_arrives_intact_in_both_directions_at_once() {
    for version in VERSIONS {
        for (path, most) in [
            (Path::Pipe(1), 3_000),
            (Path::Drip, 3_000),
            (Path::Pipe(700), 100_000),
            (Path::Pipe(64 * 1024), 3 << 20),
            (Path::Tcp, 3 << 20),
        ] {
            for (seed, length) in [0, 1, most / 100, most].into_iter().enumerate() {
                exchange(path, version, length, seed as u64 + 1).await;
            }
        }
    }
}

#[tokio::test]
async fn nothing_is_held_after_much_has_passed() {
    for version in VERSIONS {
        for path in [Path::Pipe(700), Path::Pipe(1 << 20), Path::Tcp] {
            let (mut client, mut lean) = pair(path, version).await;
            let much = pattern(1 << 20, 3);
            let mut got = vec![0; much.len()];
            // Small reads leave something over at each step.
            let read = async {
                for piece in got.chunks_mut(1000) {
                    lean.read_exact(piece).await.unwrap();
                }
            };
            tokio::join!(say(&mut client, &much), read);
            assert!(got == much);
            wait_idle(&mut lean).await;
            assert_eq!(lean.held_bytes(), 0, "{path:?}");
            let ((), read) = tokio::join!(say(&mut lean, &much), client.read_exact(&mut got));
            read.unwrap();
            assert!(got == much);
            assert_eq!(lean.held_bytes(), 0, "{path:?}");
        }
    }
}

#[tokio::test]
async fn who_does_not_read_makes_us_wait_and_hold_one_record() {
    let (mut client, mut lean) = pair(Path::Pipe(700), &TLS13).await;
    let much = pattern(100_000, 4);
    let mut context = Context::from_waker(Waker::noop());
    let mut wrote = 0;
    while let Poll::Ready(count) = Pin::new(&mut lean).poll_write(&mut context, &much[wrote..]) {
        wrote += count.unwrap();
    }
    assert_eq!(wrote, CONTENT_BYTES_MAX);
    assert!(lean.held_bytes() <= RECORD_BYTES_MAX);
    let write = say(&mut lean, &much[wrote..]);
    let mut got = vec![0; much.len()];
    let ((), read) = tokio::join!(write, client.read_exact(&mut got));
    read.unwrap();
    assert!(got == much);
}

#[tokio::test]
async fn half_a_record_waits_for_its_rest_in_as_much_memory_as_it_has() {
    let (mut client, mut lean) = pair(Path::Pipe(64 * 1024), &TLS13).await;
    let (mut sent, mut word) = (Vec::new(), [0; 5]);
    let tls = client.get_mut().1;
    io::Write::write_all(&mut tls.writer(), b"hello").unwrap();
    tls.write_tls(&mut sent).unwrap();
    let (front, back) = sent.split_at(20);
    client.get_mut().0.write_all(front).await.unwrap();
    wait_idle(&mut lean).await;
    assert!((20..=40).contains(&lean.held_bytes()));
    // Writing is possible in between, and changes nothing.
    lean.write_all(b"hi").await.unwrap();
    client.get_mut().0.write_all(back).await.unwrap();
    lean.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"hello");
    wait_idle(&mut lean).await;
    assert_eq!(lean.held_bytes(), 0);
    client.read_exact(&mut word[..2]).await.unwrap();
    assert_eq!(&word[..2], b"hi");
}

#[tokio::test]
async fn keys_are_renewed_in_the_middle() {
    let (mut client, mut lean) = pair(Path::Pipe(64 * 1024), &TLS13).await;
    let mut word = [0; 1000];
    for salt in 0..50 {
        let said = pattern(1000, salt);
        client.get_mut().1.refresh_traffic_keys().unwrap();
        client.write_all(&said).await.unwrap();
        lean.read_exact(&mut word).await.unwrap();
        assert_eq!(&word[..], said);
        lean.write_all(&said).await.unwrap();
        client.read_exact(&mut word).await.unwrap();
        assert_eq!(&word[..], said);
    }
    wait_idle(&mut lean).await;
    assert_eq!(lean.held_bytes(), 0);
}

#[tokio::test]
async fn who_floods_us_with_new_keys_and_reads_no_answer_costs_little() {
    let (mut client, mut lean) = pair(Path::Pipe(700), &TLS13).await;
    let flood = async {
        for _ in 0..3000 {
            client.get_mut().1.refresh_traffic_keys().unwrap();
            say(&mut client, b"x").await;
        }
    };
    let listen = async {
        let mut most = 0;
        for _ in 0..3000 {
            assert_eq!(lean.read_u8().await.unwrap(), b'x');
            let mut context = Context::from_waker(Waker::noop());
            let answer = Pin::new(&mut lean).poll_write(&mut context, &[0; 100]);
            assert!(!matches!(answer, Poll::Ready(Err(_))));
            most = most.max(lean.held_bytes());
        }
        most
    };
    let ((), most) = tokio::join!(flood, listen);
    assert!(most < 10_000, "{most}");
}

#[tokio::test]
async fn many_small_records_at_once_are_kept_until_they_are_wanted() {
    for version in VERSIONS {
        let (mut client, mut lean) = pair(Path::Pipe(64 * 1024), version).await;
        let said = pattern(1000, 5);
        for byte in &said {
            client.write_all(&[*byte]).await.unwrap();
        }
        client.flush().await.unwrap();
        // Three kinds of reader: of less than a record, of one, and of many.
        let mut got = vec![0; said.len()];
        for piece in got.chunks_mut(7) {
            lean.read_exact(piece).await.unwrap();
            assert!(lean.held_bytes() <= 2 * RECORD_BYTES_MAX);
            lean.write_all(b"!").await.unwrap();
        }
        assert_eq!(got, said);
        wait_idle(&mut lean).await;
        assert_eq!(lean.held_bytes(), 0);
    }
}

#[tokio::test]
async fn pieces_are_gathered_into_one_record() {
    let (mut client, mut lean) = pair(Path::Pipe(64 * 1024), &TLS13).await;
    let pieces = [b"" as &[u8], b"one", b"", b"two", b"three"].map(IoSlice::new);
    assert_eq!(lean.write_vectored(&pieces).await.unwrap(), 11);
    let mut words = [0; 100];
    assert_eq!(client.read(&mut words).await.unwrap(), 11);
    assert_eq!(&words[..11], b"onetwothree");
    let large = pattern(20_000, 6);
    let pieces = [&large[..9_000], &large[9_000..]].map(IoSlice::new);
    let wrote = lean.write_vectored(&pieces).await.unwrap();
    assert_eq!(wrote, CONTENT_BYTES_MAX);
    let mut got = vec![0; wrote];
    client.read_exact(&mut got).await.unwrap();
    assert!(got == large[..wrote]);
}

#[tokio::test]
async fn a_session_can_be_taken_up_again_where_that_is_allowed() {
    for version in VERSIONS {
        let mut hub = Hub::new();
        let mut config = ServerConfig::clone(&hub.config);
        config.session_storage = ServerSessionMemoryCache::new(10);
        config.send_tls13_tickets = 2;
        hub.config = Arc::new(config);
        let client = hub.client(version, Some(&node(&hub.authority)));
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let (there, mut lean) = hub.meet(Path::Pipe(64 * 1024), client.clone()).await;
            let (mut there, lean) = (there.unwrap(), lean.as_mut().unwrap());
            lean.write_all(b"hello").await.unwrap();
            there.read_exact(&mut [0; 5]).await.unwrap();
            assert_eq!(there.get_ref().1.handshake_kind(), Some(kind));
            assert!(lean.peer_certificates().is_some());
            assert_eq!(lean.held_bytes(), 0);
        }
    }
}

#[tokio::test]
async fn messages_of_a_link_pass_over_it() {
    let (client, lean) = pair(Path::Pipe(1000), &TLS13).await;
    let connect = websocket::connect(client, "hub.example");
    let (client, server) = tokio::join!(connect, websocket::accept(lean));
    let (mut client_reads, mut client_writes) = client.unwrap().split();
    let (mut reads, mut writes) = server.unwrap().split();
    let echo = async {
        while let Received::Message(message) = reads.read(1 << 20).await.unwrap() {
            writes.write_message(&message).await.unwrap();
        }
        writes.close(CloseCode::NORMAL, "").await.unwrap();
        writes.end().await.unwrap();
    };
    let talk = async {
        for length in [0, 100, 16_376, 500_000] {
            let message = pattern(length, 7);
            let (wrote, read) = tokio::join!(
                client_writes.write_message(&message),
                client_reads.read(1 << 20)
            );
            wrote.unwrap();
            assert_eq!(read.unwrap(), Received::Message(message.into()));
        }
        client_writes.close(CloseCode::NORMAL, "").await.unwrap();
        let closed = client_reads.read(1 << 20).await.unwrap();
        assert!(matches!(closed, Received::Closed(_)));
    };
    tokio::join!(echo, talk);
}

/// Counts how often it was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_reader_that_asks_to_write_does_not_make_the_writer_be_forgotten() {
    let bells = [Arc::new(Bell::default()), Arc::new(Bell::default())];
    let [reader, writer] = bells.clone().map(Waker::from);
    let rung = || bells.each_ref().map(|bell| bell.0.load(Ordering::Relaxed));
    let mut waiting = Waiting::default();
    waiting.wait(Side::Writer, &writer);
    waiting.both(Side::Reader, &reader).wake();
    assert_eq!(rung(), [1, 1]);
    // The reader wrote everything, so the writer can go on.
    waiting.go(Side::Reader);
    assert_eq!(rung(), [1, 2]);
    waiting.both(Side::Reader, &reader).wake();
    assert_eq!(rung(), [2, 2]);
}
