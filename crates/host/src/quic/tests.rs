//! Real streams over loopback: who gets in, who does not, and what arrives.

use std::net::SocketAddr;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::clock::Clock;
use crate::pki::{Authority, Credential, Leaf, Wanted};
use crate::shutdown::Shutdown;
use crate::tasks::Tasks;
use crate::tls::{self, Shown};

struct Server {
    tasks: Tasks,
    authority: Authority,
    address: SocketAddr,
}

const SOON: Duration = Duration::from_secs(5);

/// A server that says who it sees, echoes what it is told to the end, and then ends itself.
fn server(places: u32) -> Server {
    let clock = Clock::machine();
    let authority = Authority::create("test-ca", clock.wall()).unwrap();
    let wanted = Wanted::Server {
        name: "test".into(),
        dns: vec!["localhost".into()],
        ips: vec![[127, 0, 0, 1].into()],
    };
    let shown = Shown::new(&authority.issue(&wanted, clock.wall()).unwrap()).unwrap();
    let config = tls::server(shown, authority.certificate(), &clock).unwrap();
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.address();
    let shutdown = Shutdown::new();
    let mut tasks = Tasks::new(shutdown.clone());
    let crowd = tasks.crowd("connections", places);
    tasks.add("listen", listener.run(config, crowd, shutdown, echo));
    Server {
        tasks,
        authority,
        address,
    }
}

async fn echo(mut accepted: Accepted) {
    let user = match &accepted.peer {
        Some(certificate) => Leaf::read(certificate).unwrap().common_name,
        None => "nobody".into(),
    };
    let greeting = format!("{user}\n");
    accepted.stream.write_all(greeting.as_bytes()).await.ok();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = accepted.stream.read(&mut buffer).await {
        accepted.stream.write_all(&buffer[..count]).await.ok();
    }
    // What was written arrives though the stream is dropped right after this.
    accepted.stream.shutdown().await.ok();
}

impl Server {
    async fn dial(&self, name: &str, own: Option<&Credential>) -> std::io::Result<Stream> {
        let tls = tls::client(self.authority.certificate(), own, &Clock::machine()).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        dial(&self.address.to_string(), &name, &tls, SOON).await
    }

    /// Everything that comes back when this is said.
    async fn said(&self, own: Option<&Credential>, words: &[u8]) -> std::io::Result<Vec<u8>> {
        let stream = self.dial("localhost", own).await?;
        let (mut reads, mut writes) = tokio::io::split(stream);
        let mut heard = Vec::new();
        let write = async {
            writes.write_all(words).await?;
            writes.shutdown().await
        };
        let (wrote, read) = tokio::join!(write, reads.read_to_end(&mut heard));
        wrote?;
        read?;
        Ok(heard)
    }

    async fn stop(self) {
        self.tasks.shutdown().trigger();
        self.tasks.join(SOON).await.unwrap();
    }
}

fn ada(authority: &Authority) -> Credential {
    let wanted = Wanted::Client {
        user: "ada".into(),
        groups: vec![],
    };
    authority.issue(&wanted, Clock::machine().wall()).unwrap()
}

#[tokio::test]
async fn a_client_is_known_by_its_certificate_or_is_nobody() {
    let server = server(8);
    let ada = ada(&server.authority);
    assert_eq!(server.said(Some(&ada), b"x").await.unwrap(), b"ada\nx");
    assert_eq!(server.said(None, b"x").await.unwrap(), b"nobody\nx");
    server.stop().await;
}

#[tokio::test]
async fn much_goes_both_ways_and_the_last_of_it_arrives() {
    let server = server(8);
    let words: Vec<u8> = (0..5_000_000u32).map(|index| index as u8).collect();
    let heard = server.said(None, &words).await.unwrap();
    assert!(heard.strip_prefix(b"nobody\n") == Some(&words[..]));
    server.stop().await;
}

#[tokio::test]
async fn a_stranger_s_certificate_and_another_name_are_refused() {
    let server = server(8);
    let now = Clock::machine().wall();
    let stranger = ada(&Authority::create("test-ca", now).unwrap());
    assert!(server.said(Some(&stranger), b"x").await.is_err());
    assert!(server.dial("elsewhere", None).await.is_err());
    server.stop().await;
}

#[tokio::test]
async fn without_a_free_place_a_connection_is_refused_and_later_it_is_not() {
    let server = server(1);
    let mut first = server.dial("localhost", None).await.unwrap();
    first.write_all(b"x").await.unwrap();
    let mut heard = [0; 8];
    first.read_exact(&mut heard).await.unwrap();
    assert!(server.dial("localhost", None).await.is_err());
    drop(first);
    let again = tokio::time::timeout(SOON, async {
        while server.said(None, b"x").await.is_err() {
            tokio::task::yield_now().await;
        }
    });
    again.await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn where_nobody_answers_it_is_given_up_in_time() {
    // A port that swallows everything.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let clock = Clock::machine();
    let authority = Authority::create("test-ca", clock.wall()).unwrap();
    let tls = tls::client(authority.certificate(), None, &clock).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let within = Duration::from_millis(300);
    let silent = dial(&address, &name, &tls, within).await;
    assert_eq!(silent.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
}
