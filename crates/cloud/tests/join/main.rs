//! Joining, renewing and being revoked: at the desk, and over a real connection.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attempts; // who is refused, and what is used up by it
mod connection; // the same through TLS and HTTP
mod names; // who has a name
mod renewing; // the next certificate, and revocation

use std::net::SocketAddr;
use std::sync::Arc;

use cloud::join::memory::Memory;
use cloud::join::token::{self, Bound};
use cloud::join::{Answer, Desk, Happening, Question, Revocations, Signer, revoked, signer};
use host::Clock;
use host::clock::Hands;
use host::pki::{Authority, Key};
use jiff::SignedDuration;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use wire::join::{JOIN_PATH, NODES_GROUP, NodeName, RENEW_PATH, Token};

/// A cluster with a hub.
struct Stage {
    memory: Memory,
    authority: Arc<Authority>,
    revocations: Revocations,
    desk: Arc<Desk<Memory>>,
    clock: Clock,
    hands: Hands,
}

impl Stage {
    fn new() -> Self {
        let (clock, hands) = Clock::manual("2026-01-01T12:00:00Z".parse().unwrap());
        let authority = Arc::new(Authority::create("link-ca", clock.wall()).unwrap());
        let memory = Memory::default();
        let revocations = Revocations::default();
        revocations.handle_record(None);
        let desk = desk(&memory, &authority, &revocations, &clock);
        Self {
            memory,
            authority,
            revocations,
            desk,
            clock,
            hands,
        }
    }

    async fn token(&self, bound: Bound) -> Token {
        let ttl = SignedDuration::from_hours(1);
        let made = token::create(&self.memory, bound, ttl, self.clock.wall()).await;
        made.unwrap().0
    }

    async fn token_for(&self, name: &str) -> Token {
        self.token(Bound::Node(node(name))).await
    }

    /// Revokes a node, and the hub hears of it.
    async fn revoke(&self, name: &str) {
        let now = self.clock.wall();
        revoked::revoke(&self.memory, &node(name), "test", now)
            .await
            .unwrap();
        let list = revoked::fetch(&self.memory).await.unwrap();
        assert_eq!(self.revocations.handle_record(list.as_ref()), [node(name)]);
    }

    async fn join(&self, body: &Value) -> Told {
        self.ask(JOIN_PATH, body, None).await
    }

    async fn renew(&self, certificate: &CertificateDer<'static>, csr: &str) -> Told {
        let body = json!({ "csr": csr });
        self.ask(RENEW_PATH, &body, Some(certificate)).await
    }

    async fn ask(&self, path: &str, body: &Value, peer: Option<&CertificateDer<'static>>) -> Told {
        let body = body.to_string();
        let question = Question {
            path,
            body: body.as_bytes(),
            peer,
            remote: remote(1),
        };
        told(self.desk.answer(question).await)
    }

    /// The certificate of a node that joins.
    async fn joined(&self, name: &str, key: &Key) -> CertificateDer<'static> {
        let token = self.token_for(name).await;
        let told = self.join(&asking(&token.text(), name, key)).await;
        assert_eq!(told.status, 200, "{:?}", told.body);
        told.certificate()
    }
}

fn desk(
    memory: &Memory,
    authority: &Arc<Authority>,
    revocations: &Revocations,
    clock: &Clock,
) -> Arc<Desk<Memory>> {
    let signer = Signer::new(authority.clone(), signer::LIFE);
    let desk = Desk::new(memory.clone(), signer, revocations.clone(), clock.clone());
    Arc::new(desk)
}

/// What somebody was told.
#[derive(Debug)]
struct Told {
    status: u16,
    body: Value,
    later: bool,
    happened: Option<Happening>,
}

impl Told {
    fn certificate(&self) -> CertificateDer<'static> {
        let pem = self.body["certificate"].as_str().expect("a certificate");
        host::pki::certificate_from_pem(pem.as_bytes()).unwrap()
    }

    fn why(&self) -> cloud::join::Why {
        match &self.happened {
            Some(Happening::Refused { why, .. }) => *why,
            other => panic!("not refused: {other:?}"),
        }
    }
}

fn told(answer: Answer) -> Told {
    Told {
        status: answer.response.status,
        body: serde_json::from_slice(&answer.response.body).unwrap(),
        later: answer.response.retry_after.is_some(),
        happened: answer.happened,
    }
}

fn node(name: &str) -> NodeName {
    name.parse().unwrap()
}

fn remote(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 40_000))
}

fn csr(name: &str, key: &Key) -> String {
    key.request(&node(name).user(), NODES_GROUP).unwrap()
}

fn asking(token: &str, name: &str, key: &Key) -> Value {
    json!({ "token": token, "node": name, "csr": csr(name, key) })
}
