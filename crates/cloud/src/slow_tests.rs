//! Guests over links on which everything takes long: what is slow is waited for, and what only
//! pretends is not.

use std::time::Duration;

use bytes::Bytes;
use host::websocket::{Role, Socket};
use host::{Clock, Times};
use object::{ObjectName, Range, Resource, Scope};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use wire::digest::Digest;
use wire::frame::{Asides, Frame, Hello, Holding, Machine};

use crate::guest::Guest;
use crate::talk::Closed;

/// Both ends of a link: a guest, and what a node writes and reads.
pub(crate) fn guest() -> (Guest<DuplexStream>, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let socket = Socket::new(ours, Role::Server, Bytes::new());
    (Guest::new(socket), theirs)
}

/// A message as a node writes it: masked, if with nothing.
pub(crate) fn written(length: usize, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x82];
    match u16::try_from(length) {
        Ok(length) => {
            bytes.push(0xfe);
            bytes.extend(length.to_be_bytes());
        }
        Err(_) => {
            bytes.push(0xff);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(content);
    bytes
}

/// Writes so many bytes at once, again and again, a second apart.
pub(crate) async fn trickle(link: &mut DuplexStream, bytes: &[u8], at_once: usize) {
    for some in bytes.chunks(at_once) {
        if link.write_all(some).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// The hello of a node that holds hundreds of secrets by name.
fn hello() -> Hello {
    let name = |number| ObjectName::new("default", &format!("the-secret-number-{number}"));
    let scopes = (0..600).map(|number| Scope::of(Range::Name(name(number))));
    Hello {
        oldest: 1,
        newest: 1,
        session: 7,
        features: 0,
        program: "test".into(),
        holdings: vec![Holding {
            resource: Resource::new("", "secrets"),
            epoch: 1,
            standing: None,
            reached: None,
            scopes: scopes.collect(),
            objects: 0,
            digest: Digest::default(),
        }],
        machine: Machine::default(),
        staged: Vec::new(),
        documents: Vec::new(),
        aside: Asides::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_hello_over_the_slowest_link_is_waited_for_and_the_node_hears_that() {
    let (mut guest, mut link) = guest();
    let times = Times::new(Clock::machine());
    let mut message = Vec::new();
    Frame::Hello(hello()).encode(&mut message);
    let bytes = written(message.len(), &message);
    assert!(bytes.len() > 19_000, "{}", bytes.len());
    let (said, ()) = tokio::join!(guest.hello(&times), trickle(&mut link, &bytes, 900));
    assert_eq!(said.unwrap(), hello());
    let mut heard = [0; 256];
    let count = link.read(&mut heard).await.unwrap();
    let pings = heard[..count].chunks(2).filter(|two| *two == [0x89, 0]);
    assert!(pings.count() >= 6, "one every 3 s");
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_or_a_byte_now_and_then_is_sent_away() {
    for at_once in [0, 1, 200] {
        let (mut guest, mut link) = guest();
        let times = Times::new(Clock::machine());
        let bytes = written(100_000, &[0; 100_000]);
        let trickle = async {
            match at_once {
                0 => std::future::pending().await,
                _ => trickle(&mut link, &bytes, at_once).await,
            }
        };
        let said = tokio::select! {
            said = guest.hello(&times) => said,
            () = trickle => panic!("it was listened to"),
        };
        assert!(matches!(said, Err(Closed::NoHello)));
        assert!(times.now() <= Duration::from_secs(50), "{:?}", times.now());
    }
}
