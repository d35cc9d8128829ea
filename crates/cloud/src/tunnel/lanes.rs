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
    /// Nothing once the hub stops: then each request has a connection of its own, which ends with
    /// it, so that none is left.
    open: Mutex<Option<Vec<Lane>>>,
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
        let open = Mutex::new(Some(Vec::new()));
        Self {
            config,
            crowd,
            clock,
            open,
        }
    }

    /// A place on the fullest connection that has one. So connections that are not needed any more
    /// become empty, and go.
    pub(super) fn take(&self) -> Taken {
        let mut open = self.open.lock();
        let Some(open) = &mut *open else {
            return self.lane().taken();
        };
        let mut empty = open.iter().filter(|lane| lane.used() == 0).count();
        open.retain(|lane| {
            // One stays for the next.
            let goes = lane.used() == 0 && empty > 1;
            empty -= usize::from(goes);
            !goes
        });
        let free = open.iter().filter(|lane| lane.used() < REQUESTS_MAX);
        let found = free.max_by_key(|lane| lane.used()).map(Lane::taken);
        found.unwrap_or_else(|| {
            let lane = self.lane();
            let taken = lane.taken();
            open.push(lane);
            taken
        })
    }

    /// The hub stops: connections end with the requests that use them.
    pub(super) fn close(&self) {
        *self.open.lock() = None;
    }

    fn lane(&self) -> Lane {
        let (config, crowd) = (self.config.clone(), self.crowd.clone());
        Lane {
            client: Client::with_windows(config, crowd, self.clock.clone(), WINDOWS),
            used: Arc::default(),
        }
    }
}

impl Lane {
    /// How many requests use it.
    fn used(&self) -> usize {
        Arc::strong_count(&self.used) - 1
    }

    fn taken(&self) -> Taken {
        Taken {
            client: self.client.clone(),
            _used: Arc::clone(&self.used),
        }
    }
}
