//! Who else is there: hubs know each other by their leases.
//!
//! Clocks of two machines may differ, so no time of another hub is compared with one of ours: a hub
//! is there while its lease keeps changing.

use std::collections::HashMap;
use std::time::Duration;

/// How long hubs wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// How often a hub renews its lease.
    pub renew_every: Duration,
    /// After how long without a change a hub counts as gone.
    pub gone_after: Duration,
    /// After how long its lease and its records are collected.
    pub collected_after: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            renew_every: Duration::from_secs(10),
            gone_after: Duration::from_secs(30),
            collected_after: Duration::from_secs(300),
        }
    }
}

/// Hubs that are known at once. Further ones are not seen; nobody runs so many.
const PEERS_MAX: usize = 1024;

/// The other hubs, as far as their leases tell.
#[derive(Debug, Default)]
pub struct Peers {
    waits: Waits,
    all: HashMap<Box<str>, Known>,
}

#[derive(Debug)]
struct Known {
    /// What its lease said when it last changed.
    said: Box<str>,
    changed: Duration,
}

/// A hub, by its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub hub: Box<str>,
    /// What changes when it is renewed: who holds it, and when it was renewed.
    pub said: Box<str>,
}

/// What follows from a look at all leases.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Hubs that are there.
    pub alive: Vec<Box<str>>,
    /// Hubs that are not, or not for now.
    pub gone: Vec<Box<str>>,
    /// Of those, the ones whose things are to be collected.
    pub collect: Vec<Box<str>>,
}

impl Peers {
    /// Nobody is known yet.
    pub fn new(waits: Waits) -> Self {
        Self {
            waits,
            all: HashMap::new(),
        }
    }

    /// Takes all leases there are. One that is new is believed to be fresh.
    pub fn look(&mut self, found: Vec<Peer>, now: Duration) -> Standing {
        let mut before = std::mem::take(&mut self.all);
        let mut standing = Standing::default();
        for Peer { hub, said } in found.into_iter().take(PEERS_MAX) {
            let known = match before.remove(&hub) {
                Some(known) if known.said == said => known,
                _ => Known { said, changed: now },
            };
            let age = now.saturating_sub(known.changed);
            match age < self.waits.gone_after {
                true => standing.alive.push(hub.clone()),
                false => standing.gone.push(hub.clone()),
            }
            if age >= self.waits.collected_after {
                standing.collect.push(hub.clone());
            }
            self.all.insert(hub, known);
        }
        // Those that took their lease with them.
        standing.gone.extend(before.into_keys());
        standing
    }

    /// Whether a hub has a lease at all.
    pub fn knows(&self, hub: &str) -> bool {
        self.all.contains_key(hub)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(said: &str) -> Vec<Peer> {
        vec![Peer {
            hub: "a".into(),
            said: said.into(),
        }]
    }

    fn names(names: &[&str]) -> Vec<Box<str>> {
        names.iter().map(|name| (*name).into()).collect()
    }

    #[test]
    fn a_hub_is_there_while_its_lease_changes() {
        let waits = Waits::default();
        let mut peers = Peers::new(waits);
        let mut now = Duration::ZERO;
        for renewal in 0..10 {
            let standing = peers.look(peer(&renewal.to_string()), now);
            assert_eq!(standing.alive, names(&["a"]));
            now += waits.gone_after - Duration::from_secs(1);
        }
        let still = peers.look(peer("9"), now);
        assert_eq!(still.alive, names(&["a"]));
        now += Duration::from_secs(1);
        let gone = peers.look(peer("9"), now);
        assert_eq!((gone.alive, gone.gone), (names(&[]), names(&["a"])));
        assert_eq!(gone.collect, names(&[]));
        let long_gone = peers.look(peer("9"), now + waits.collected_after);
        assert_eq!(long_gone.collect, names(&["a"]));
        // It comes back.
        let back = peers.look(peer("10"), now + waits.collected_after);
        assert_eq!(back.alive, names(&["a"]));
    }

    #[test]
    fn a_hub_that_takes_its_lease_away_is_gone_at_once() {
        let mut peers = Peers::default();
        peers.look(peer("1"), Duration::ZERO);
        assert!(peers.knows("a"));
        let standing = peers.look(Vec::new(), Duration::from_secs(1));
        assert_eq!(standing.gone, names(&["a"]));
        assert!(!peers.knows("a"));
        let later = peers.look(Vec::new(), Duration::from_secs(2));
        assert_eq!(later, Standing::default());
    }

    #[test]
    fn more_hubs_than_anybody_runs_are_not_remembered() {
        let many = (0..5_000).map(|number| Peer {
            hub: number.to_string().into(),
            said: "x".into(),
        });
        let standing = Peers::default().look(many.collect(), Duration::ZERO);
        assert_eq!(standing.alive.len(), PEERS_MAX);
    }
}
