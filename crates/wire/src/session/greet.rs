//! The first words: whether two ends understand each other, and on which terms.

use crate::frame::{Bye, Hello, Reason, Welcome, common};

/// On which terms a hub has sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The oldest protocol that it speaks.
    pub oldest: u64,
    /// The newest.
    pub newest: u64,
    /// What it can do beyond it, a bit for each.
    pub features: u64,
    /// Which hub it is, for people.
    pub hub: Box<str>,
    /// How often an agent says that it is there.
    pub heartbeat_seconds: u64,
    /// How many deliveries may be in flight.
    pub window: u64,
}

/// Whether there can be a session, and on which terms.
pub fn greet(hello: &Hello, terms: &Terms) -> Result<Welcome, Bye> {
    let Some(protocol) = common(hello, terms.oldest, terms.newest) else {
        let words = format!(
            "the agent speaks protocol {} to {}, this hub {} to {}: update the older one",
            hello.oldest, hello.newest, terms.oldest, terms.newest
        );
        return Err(Bye {
            reason: Reason::NoCommonProtocol,
            words: words.into(),
            wait_seconds: 300,
        });
    };
    Ok(Welcome {
        protocol,
        features: hello.features & terms.features,
        hub: terms.hub.clone(),
        heartbeat_seconds: terms.heartbeat_seconds,
        window: terms.window,
    })
}
