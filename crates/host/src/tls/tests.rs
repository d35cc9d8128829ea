//! First contact by pin: with the right server, with another one, and at the wrong time.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::{CertificateError, ClientConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::pki::{Authority, Pin, Wanted};

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn authority() -> Authority {
    Authority::create("link-ca", now()).unwrap()
}

fn hub(authority: &Authority, introduced: &Authority) -> Arc<ServerConfig> {
    let (clock, _) = Clock::manual(now());
    let wanted = Wanted::Server {
        name: "hub".into(),
        dns: vec!["hub.example".into()],
        ips: vec![],
    };
    let shown = Shown::new(&authority.issue(&wanted, now()).unwrap()).unwrap();
    let shown = Introducing::new(shown, introduced.certificate());
    server(shown, authority.certificate(), &clock).unwrap()
}

/// How many certificates the client was shown, or why it turned away.
async fn meet(server: Arc<ServerConfig>, client: Arc<ClientConfig>) -> Result<usize, String> {
    meet_as("hub.example", server, client)
        .await
        .map_err(|error| {
            let inner = error.get_ref();
            let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
            match tls {
                Some(rustls::Error::InvalidCertificate(CertificateError::Other(other))) => {
                    other.0.to_string()
                }
                Some(other) => format!("{other:?}"),
                None => error.to_string(),
            }
        })
}

async fn meet_as(
    name: &'static str,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
) -> std::io::Result<usize> {
    let (left, right) = tokio::io::duplex(64 * 1024);
    let client = TlsConnector::from(client).connect(name.try_into().unwrap(), left);
    let server = TlsAcceptor::from(server).accept(right);
    let (client, _) = tokio::join!(client, server);
    let client = client?;
    let (_, session) = client.get_ref();
    assert_ne!(session.alpn_protocol(), Some(&b"holdfast-introduce"[..]));
    Ok(session.peer_certificates().unwrap().len())
}

#[tokio::test]
async fn the_authority_is_shown_to_who_knows_its_pin_and_spared_the_others() {
    let authority = authority();
    let (clock, _) = Clock::manual(now());
    let pin = Pin::of(authority.certificate()).unwrap();
    let hub = hub(&authority, &authority);
    let pinned = pinned_client(pin, &clock).unwrap();
    assert_eq!(meet(hub.clone(), pinned).await, Ok(2));
    let known = client(authority.certificate(), None, &clock).unwrap();
    assert_eq!(meet(hub, known).await, Ok(1));
}

#[tokio::test]
async fn another_authority_is_not_believed_whoever_it_introduces() {
    let (ours, other) = (authority(), authority());
    let (clock, _) = Clock::manual(now());
    let pin = Pin::of(ours.certificate()).unwrap();
    let pinned = || pinned_client(pin, &clock).unwrap();
    let refused = meet(hub(&other, &other), pinned()).await.unwrap_err();
    assert!(
        refused.contains("is not the one with pin sha256:"),
        "{refused}"
    );
    // The right authority is shown, but it did not issue the certificate.
    let refused = meet(hub(&other, &ours), pinned()).await.unwrap_err();
    assert!(refused.contains("BadSignature"), "{refused}");
}

#[tokio::test]
async fn the_name_and_the_time_are_checked_at_first_contact_too() {
    let authority = authority();
    let pin = Pin::of(authority.certificate()).unwrap();
    let (clock, hands) = Clock::manual(now());
    let pinned = pinned_client(pin, &clock).unwrap();
    let hub = hub(&authority, &authority);
    let other = meet_as("other.example", hub.clone(), pinned.clone()).await;
    assert!(other.is_err());
    hands.set_wall("2020-01-01T00:00:00Z".parse().unwrap());
    let early = meet(hub, pinned).await.unwrap_err();
    assert!(early.contains("NotValidYetContext"), "{early}");
}

#[test]
fn a_pin_is_written_in_one_way() {
    let pin = Pin::of(authority().certificate()).unwrap();
    let text = pin.to_string();
    assert_eq!(text.parse(), Ok(pin));
    let digits = text.strip_prefix("sha256:").unwrap();
    for wrong in [
        "",
        digits,
        &text[..text.len() - 1],
        &format!("{text}0"),
        &format!(
            "sha256:{}",
            digits
                .to_uppercase()
                .replace(|c: char| c.is_ascii_digit(), "A")
        ),
        &format!("sha1:{digits}"),
        &format!(" {text}"),
    ] {
        assert!(wrong.parse::<Pin>().is_err(), "{wrong}");
    }
}
