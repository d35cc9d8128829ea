//! Connections to the cluster for what is tunnelled: as many as are needed, and none of those that
//! the hub itself works with.
//!
//! A server takes a limited number of requests on a connection at a time, and further ones wait. A
//! watch lasts for hours, so whoever waits behind it waits for hours too.

use std::sync::Arc;

use host::Clock;
use host::tasks::Crowd;
use parking_lot::Mutex;

use crate::cluster::{Client, Config, Windows};

/// Requests on one connection. Servers take a hundred at least.
const REQUESTS_MAX: usize = 60;
/// Bytes of an answer that wait in the hub until its node takes them. A node that takes none stops
/// its own requests and no other: the window of the connection is never used up by those of its
/// streams. It is far larger than they are, since HTTP/2 libraries also end a connection on which
/// more tiny pieces wait than would cost 256 times their bytes within half of it.
const WINDOWS: Windows = Windows {
    stream: 32 * 1024,
    connection: 1024 * 1024 * 1024,
};

/// Connections with one credential, or with none.
pub(super) struct Lanes {
    config: Config,
    crowd: Crowd,
    clock: Clock,
    open: Mutex<Vec<Lane>>,
}

struct Lane {
    client: Client,
    /// Counts who uses it.
    used: Arc<()>,
}

/// A place on a connection.
pub(super) struct Taken {
    /// Whom to ask.
    pub(super) client: Client,
    _used: Arc<()>,
}

impl Lanes {
    pub(super) fn new(config: Config, crowd: Crowd, clock: Clock) -> Self {
        let open = Mutex::default();
        Self {
            config,
            crowd,
            clock,
            open,
        }
    }

    /// A place on the fullest connection that has one; there are few, and those that are not needed
    /// any more become empty and go.
    pub(super) fn take(&self) -> Taken {
        let mut open = self.open.lock();
        let used = |lane: &Lane| Arc::strong_count(&lane.used) - 1;
        if open.len() > 1 {
            let mut spare = open.iter().filter(|lane| used(lane) == 0).count();
            // One stays for the next.
            open.retain(|lane| {
                let goes = used(lane) == 0 && spare > 1;
                spare -= usize::from(goes);
                !goes
            });
        }
        let free = open.iter().filter(|lane| used(lane) < REQUESTS_MAX);
        let found = free.max_by_key(|lane| used(lane)).map(Lane::taken);
        found.unwrap_or_else(|| {
            let (config, clock) = (self.config.clone(), self.clock.clone());
            let lane = Lane {
                client: Client::with_windows(config, self.crowd.clone(), clock, WINDOWS),
                used: Arc::default(),
            };
            let taken = lane.taken();
            open.push(lane);
            taken
        })
    }
}

impl Lane {
    fn taken(&self) -> Taken {
        Taken {
            client: self.client.clone(),
            _used: Arc::clone(&self.used),
        }
    }
}
