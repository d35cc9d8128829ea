//! Over what a link goes: WebSocket, QUIC, or whichever of the two gets through.

use std::str::FromStr;
use std::time::Duration;

use host::dial::Packets;

/// What an agent is to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// WebSocket over TLS: one TCP port, and through proxies.
    #[default]
    WebSocket,
    /// QUIC: the same port number over UDP.
    Quic,
    /// QUIC where it gets through, otherwise WebSocket.
    Auto,
}

/// A text that is no transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a transport: websocket, quic or auto")]
pub struct NotATransport;

impl FromStr for Transport {
    type Err = NotATransport;

    fn from_str(text: &str) -> Result<Self, NotATransport> {
        match text {
            "websocket" => Ok(Self::WebSocket),
            "quic" => Ok(Self::Quic),
            "auto" => Ok(Self::Auto),
            _ => Err(NotATransport),
        }
    }
}

/// How long QUIC has to get through before WebSocket is tried.
pub const QUIC_TIME_MAX: Duration = Duration::from_secs(3);
/// A session over QUIC that is lost before this never worked: a path may let the first packets
/// through and none that are larger.
const WORKS_AFTER: Duration = Duration::from_secs(30);
/// How long QUIC is not tried again where it did not get through.
const REST: Duration = Duration::from_secs(600);

/// What is tried first, by what worked.
#[derive(Debug, Default)]
pub struct Choice {
    transport: Transport,
    /// When QUIC last failed, if it has not worked since.
    failed: Option<Duration>,
    packets: Packets,
}

impl Choice {
    /// Nothing was tried yet.
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            failed: None,
            packets: Packets::Usual,
        }
    }

    /// Whether QUIC is tried now.
    pub fn tries_quic(&self, now: Duration) -> bool {
        match self.transport {
            Transport::WebSocket => false,
            Transport::Quic => true,
            Transport::Auto => self.failed.is_none_or(|failed| now >= failed + REST),
        }
    }

    /// Whether WebSocket is tried, if QUIC is not or did not get through.
    pub fn tries_websocket(&self) -> bool {
        self.transport != Transport::Quic
    }

    /// QUIC did not get through.
    pub fn quic_failed(&mut self, now: Duration) {
        self.failed = Some(now);
    }

    /// A session over QUIC was lost after so long.
    pub fn quic_lost(&mut self, lasted: Duration, now: Duration) {
        self.failed = (lasted < WORKS_AFTER).then_some(now);
    }

    /// A link over WebSocket was lost, or never came to a session. The path may swallow packets
    /// that are large: from now on they are small, which costs a few bytes more.
    pub fn websocket_lost(&mut self) {
        self.packets = Packets::Small;
    }

    /// How large packets may be.
    pub fn packets(&self) -> Packets {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_that_was_named_is_the_only_one() {
        let mut quic = Choice::new("quic".parse().unwrap());
        quic.quic_failed(seconds(1));
        assert!(quic.tries_quic(seconds(2)) && !quic.tries_websocket());
        let web = Choice::new("websocket".parse().unwrap());
        assert!(!web.tries_quic(seconds(2)) && web.tries_websocket());
        assert_eq!("udp".parse::<Transport>(), Err(NotATransport));
    }

    #[test]
    fn what_did_not_get_through_rests_and_is_tried_again() {
        let mut auto = Choice::new(Transport::Auto);
        assert!(auto.tries_quic(seconds(0)));
        auto.quic_failed(seconds(10));
        assert!(!auto.tries_quic(seconds(600)) && auto.tries_websocket());
        assert!(auto.tries_quic(seconds(610)));
    }

    #[test]
    fn after_a_link_was_lost_packets_are_small() {
        let mut choice = Choice::new(Transport::Auto);
        choice.quic_failed(seconds(1));
        assert_eq!(choice.packets(), Packets::Usual);
        choice.websocket_lost();
        assert_eq!(choice.packets(), Packets::Small);
    }

    #[test]
    fn a_session_that_was_lost_at_once_did_not_get_through_and_a_longer_one_did() {
        let mut auto = Choice::new(Transport::Auto);
        auto.quic_lost(seconds(9), seconds(100));
        assert!(!auto.tries_quic(seconds(101)));
        auto.quic_lost(seconds(40), seconds(800));
        assert!(auto.tries_quic(seconds(801)));
    }
}
