//! How often one may be wrong, per source and in all; and how often a node may renew.
//!
//! Nobody guesses a token. The limits keep those who try from costing the hub and the cluster more
//! than a little. Who is right is not counted, so many nodes may join from one address. A node that
//! renews again and again is right each time, and is counted by its name.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use wire::join::NodeName;

/// Failed attempts that a source may make in a row.
pub const SOURCE_BURST: u32 = 10;
/// After that, one in so long.
pub const SOURCE_INTERVAL: Duration = Duration::from_secs(6);
/// Failed attempts that all sources together may make in a row.
pub const ALL_BURST: u32 = 1000;
/// After that, one in so long.
pub const ALL_INTERVAL: Duration = Duration::from_millis(20);
/// Sources that are told apart. The failures of further ones count as those of one source.
pub const SOURCES_MAX: usize = 4096;

/// Certificates that a node may be given in a row: it asks again if an answer is lost.
pub const RENEWAL_BURST: u32 = 6;
/// After that, one in so long. The shortest life of a certificate is two hours.
pub const RENEWAL_INTERVAL: Duration = Duration::from_secs(600);
/// Nodes that are told apart. Further ones count as one node, until others are forgiven.
pub const NODES_MAX: usize = 65_536;

/// Failed attempts, and when they are forgiven.
#[derive(Debug)]
pub struct Limiter {
    sources: Debts<Source>,
    all: Debt,
}

/// Certificates that nodes renewed lately.
#[derive(Debug)]
pub struct Renewals(Debts<NodeName>);

/// What each of many owes; those who are too many owe together.
#[derive(Debug)]
struct Debts<K> {
    each: HashMap<K, Debt>,
    others: Debt,
    each_max: usize,
}

/// Where somebody comes from: an IPv4 address, or the 64 bits of an IPv6 one that a site has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Source(u64);

/// When everything is forgiven; nothing is owed if there is no such moment.
#[derive(Clone, Copy, Debug, Default)]
struct Debt(Option<Instant>);

impl Default for Limiter {
    fn default() -> Self {
        Self {
            sources: Debts::new(SOURCES_MAX),
            all: Debt::default(),
        }
    }
}

impl Default for Renewals {
    fn default() -> Self {
        Self(Debts::new(NODES_MAX))
    }
}

impl Renewals {
    /// Counts a renewal of a node, if it may have one. If not, when to come again.
    pub fn take(&mut self, node: &NodeName, now: Instant) -> Result<(), Duration> {
        let owed = self.0.of(node);
        owed.check(RENEWAL_INTERVAL, RENEWAL_BURST, now)?;
        self.0.add(node.clone(), RENEWAL_INTERVAL, now);
        Ok(())
    }
}

impl<K: Eq + Hash> Debts<K> {
    fn new(each_max: usize) -> Self {
        Self {
            each: HashMap::new(),
            others: Debt::default(),
            each_max,
        }
    }

    fn of(&self, who: &K) -> Debt {
        match self.each.get(who) {
            Some(debt) => *debt,
            None if self.each.len() < self.each_max => Debt::default(),
            None => self.others,
        }
    }

    fn add(&mut self, who: K, interval: Duration, now: Instant) {
        if self.each.len() >= self.each_max && !self.each.contains_key(&who) {
            self.each.retain(|_, debt| debt.is_owed(now));
        }
        let full = self.each.len() >= self.each_max && !self.each.contains_key(&who);
        let debt = match full {
            true => &mut self.others,
            false => self.each.entry(who).or_default(),
        };
        debt.add(interval, now);
    }
}

impl Limiter {
    /// Whether somebody from there may try. If not, when to come again.
    pub fn check(&self, remote: IpAddr, now: Instant) -> Result<(), Duration> {
        let own = self.sources.of(&Source::of(remote));
        own.check(SOURCE_INTERVAL, SOURCE_BURST, now)?;
        self.all.check(ALL_INTERVAL, ALL_BURST, now)
    }

    /// Counts a failed attempt from there.
    pub fn handle_failure(&mut self, remote: IpAddr, now: Instant) {
        self.all.add(ALL_INTERVAL, now);
        self.sources.add(Source::of(remote), SOURCE_INTERVAL, now);
    }
}

impl Source {
    fn of(remote: IpAddr) -> Self {
        match remote.to_canonical() {
            IpAddr::V4(ip) => Self(u64::from(u32::from(ip))),
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Self(
                    [a, b, c, d]
                        .iter()
                        .fold(0, |bits, part| bits << 16 | u64::from(*part)),
                )
            }
        }
    }
}

impl Debt {
    /// Whether one more attempt stays within the burst.
    fn check(self, interval: Duration, burst: u32, now: Instant) -> Result<(), Duration> {
        let owed = self.owed(now);
        let most = interval * (burst - 1);
        match owed.checked_sub(most) {
            None | Some(Duration::ZERO) => Ok(()),
            Some(over) => Err(over),
        }
    }

    fn add(&mut self, interval: Duration, now: Instant) {
        self.0 = Some(now + self.owed(now) + interval);
    }

    fn owed(self, now: Instant) -> Duration {
        self.0
            .map(|until| until.saturating_duration_since(now))
            .unwrap_or_default()
    }

    fn is_owed(self, now: Instant) -> bool {
        self.owed(now) > Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Instant {
        host::Clock::machine().now()
    }

    fn fail(limiter: &mut Limiter, remote: &str, count: u32, now: Instant) {
        for _ in 0..count {
            limiter.handle_failure(remote.parse().unwrap(), now);
        }
    }

    fn may(limiter: &Limiter, remote: &str, now: Instant) -> bool {
        limiter.check(remote.parse().unwrap(), now).is_ok()
    }

    #[test]
    fn a_source_that_fails_too_often_waits_and_others_do_not() {
        let (mut limiter, now) = (Limiter::default(), start());
        fail(&mut limiter, "192.0.2.1", SOURCE_BURST - 1, now);
        assert!(may(&limiter, "192.0.2.1", now));
        fail(&mut limiter, "192.0.2.1", 1, now);
        assert!(!may(&limiter, "192.0.2.1", now));
        assert!(
            !may(&limiter, "::ffff:192.0.2.1", now),
            "the same in other words"
        );
        assert!(may(&limiter, "192.0.2.2", now));
        let wait = limiter
            .check("192.0.2.1".parse().unwrap(), now)
            .unwrap_err();
        assert_eq!(wait, SOURCE_INTERVAL);
        assert!(may(&limiter, "192.0.2.1", now + wait));
    }

    #[test]
    fn a_node_renews_a_few_times_in_a_row_and_then_now_and_then() {
        let (mut renewals, now) = (Renewals::default(), start());
        let (busy, calm): (NodeName, NodeName) = ("busy".parse().unwrap(), "calm".parse().unwrap());
        for _ in 0..RENEWAL_BURST {
            assert_eq!(renewals.take(&busy, now), Ok(()));
        }
        let wait = renewals.take(&busy, now).unwrap_err();
        assert_eq!(wait, RENEWAL_INTERVAL);
        assert_eq!(renewals.take(&calm, now), Ok(()));
        assert_eq!(renewals.take(&busy, now + wait), Ok(()));
        assert!(renewals.take(&busy, now + wait).is_err());
    }

    #[test]
    fn everything_is_forgiven_in_time() {
        let (mut limiter, now) = (Limiter::default(), start());
        fail(&mut limiter, "192.0.2.1", SOURCE_BURST, now);
        let later = now + SOURCE_INTERVAL * SOURCE_BURST;
        fail(&mut limiter, "192.0.2.1", SOURCE_BURST - 1, later);
        assert!(may(&limiter, "192.0.2.1", later));
    }

    #[test]
    fn a_site_cannot_hide_behind_its_many_addresses() {
        let (mut limiter, now) = (Limiter::default(), start());
        for host in 0..SOURCE_BURST {
            fail(&mut limiter, &format!("2001:db8::{host:x}"), 1, now);
        }
        assert!(!may(&limiter, "2001:db8::ffff", now));
        assert!(may(&limiter, "2001:db8:1::1", now));
    }

    #[test]
    fn all_together_have_a_limit_and_the_memory_of_them_too() {
        let (mut limiter, now) = (Limiter::default(), start());
        let mut refused = 0;
        for source in 0..20_000_u32 {
            let remote = IpAddr::from(source.to_be_bytes());
            match limiter.check(remote, now) {
                Ok(()) => limiter.handle_failure(remote, now),
                Err(_) => refused += 1,
            }
        }
        assert_eq!(refused, 20_000 - ALL_BURST);
        for source in 0..20_000_u32 {
            limiter.handle_failure(IpAddr::from(source.to_be_bytes()), now);
        }
        assert_eq!(limiter.sources.each.len(), SOURCES_MAX);
        let later = now + Duration::from_secs(100_000);
        fail(&mut limiter, "192.0.2.1", 1, later);
        assert_eq!(
            limiter.sources.each.len(),
            1,
            "what is forgiven is forgotten"
        );
    }
}
