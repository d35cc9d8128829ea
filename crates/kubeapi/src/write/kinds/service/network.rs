//! Which addresses and node ports services can have, and which are taken. Derived from the services
//! that exist: there is no other record that could disagree with them.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use object::ObjectName;
use serde_json::Value;

use super::claims::{Claim, Claims};

/// The node ports of a cluster that says nothing else.
pub const NODE_PORTS: RangeInclusive<u16> = 30000..=32767;

/// The addresses and ports of a cluster's services.
///
/// It is read before a service is written, so two services written at once could take the same
/// address: whoever writes services must do it one at a time.
#[derive(Debug, Clone)]
pub struct Network {
    ranges: Vec<AddressRange>,
    ports: RangeInclusive<u16>,
    taken_addresses: HashSet<IpAddr>,
    taken_ports: HashSet<u16>,
}

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A range of addresses, as in `10.96.0.0/12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    family: Family,
    base: u128,
    /// How many addresses a service can have. The first of the range names the network, the last of
    /// an IPv4 range everyone.
    size: u128,
    end: u128,
}

/// Why text is not a range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a range of addresses is an address and the length of its prefix, such as 10.96.0.0/12")]
pub struct NotARange;

/// Why an address or port cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// It is outside of the range.
    OutOfRange,
    /// Another service has it.
    Taken,
    /// All are taken.
    Full,
}

impl Network {
    /// The network with these ranges, the first of which is the one that services get unless they
    /// ask otherwise.
    pub fn new(ranges: Vec<AddressRange>, ports: RangeInclusive<u16>) -> Self {
        Self {
            ranges,
            ports,
            taken_addresses: HashSet::new(),
            taken_ports: HashSet::new(),
        }
    }

    /// Marks what `service` has as taken. The service that is about to be written is left out by
    /// the caller.
    pub fn take(&mut self, service: &Value) {
        self.add(&Claim::of(service));
    }

    /// Marks what every service but this one has as taken.
    pub fn take_all(&mut self, claims: &Claims, except: &ObjectName) {
        claims.of_others(except).for_each(|claim| self.add(claim));
    }

    fn add(&mut self, claim: &Claim) {
        self.taken_addresses.extend(&claim.addresses);
        self.taken_ports.extend(&claim.ports);
    }

    /// The family that services get unless they ask otherwise.
    pub(super) fn family(&self) -> Family {
        self.ranges.first().map_or(Family::V4, |range| range.family)
    }

    pub(super) fn has(&self, family: Family) -> bool {
        self.ranges.iter().any(|range| range.family == family)
    }

    pub(super) fn is_dual(&self) -> bool {
        self.has(Family::V4) && self.has(Family::V6)
    }

    /// Takes `address`.
    pub(super) fn claim(&mut self, address: IpAddr) -> Result<(), Unavailable> {
        if !self.ranges.iter().any(|range| range.holds(address)) {
            return Err(Unavailable::OutOfRange);
        }
        match self.taken_addresses.insert(address) {
            true => Ok(()),
            false => Err(Unavailable::Taken),
        }
    }

    /// Takes a free address. The low end of a range is left to those who ask for one address, as
    /// long as there is a choice.
    pub(super) fn pick(&mut self, family: Family, random: u64) -> Result<IpAddr, Unavailable> {
        let mut ranges = self.ranges.iter().filter(|range| range.family == family);
        let free = ranges.find_map(|range| range.free(&self.taken_addresses, random));
        let address = free.ok_or(Unavailable::Full)?;
        self.taken_addresses.insert(address);
        Ok(address)
    }

    /// Takes the node port `port`.
    pub(super) fn claim_port(&mut self, port: u16) -> Result<(), Unavailable> {
        if !self.ports.contains(&port) {
            return Err(Unavailable::OutOfRange);
        }
        match self.taken_ports.insert(port) {
            true => Ok(()),
            false => Err(Unavailable::Taken),
        }
    }

    /// Takes a free node port, from the upper part first, as with addresses.
    pub(super) fn pick_port(&mut self, random: u64) -> Result<u16, Unavailable> {
        let (first, last) = (*self.ports.start(), *self.ports.end());
        let size = u128::from(last.saturating_sub(first)) + 1;
        let mut offsets = offsets(size, port_band(size), random);
        let port = offsets.find_map(|offset| {
            let port = u16::try_from(u128::from(first) + offset).ok()?;
            (!self.taken_ports.contains(&port)).then_some(port)
        });
        let port = port.ok_or(Unavailable::Full)?;
        self.taken_ports.insert(port);
        Ok(port)
    }

    pub(super) fn ports(&self) -> (u16, u16) {
        (*self.ports.start(), *self.ports.end())
    }
}

impl AddressRange {
    /// The first address that a service can have: that of the service `kubernetes`.
    pub fn first(&self) -> IpAddr {
        address(self.family, self.base)
    }

    fn holds(&self, candidate: IpAddr) -> bool {
        let (family, number) = split(candidate);
        family == self.family && number >= self.base && number <= self.end
    }

    fn free(&self, taken: &HashSet<IpAddr>, random: u64) -> Option<IpAddr> {
        let mut candidates = offsets(self.size, band(self.size), random)
            .map(|offset| address(self.family, self.base + offset));
        candidates.find(|candidate| !taken.contains(candidate))
    }
}

impl FromStr for AddressRange {
    type Err = NotARange;

    fn from_str(text: &str) -> Result<Self, NotARange> {
        let (ip, length) = text.split_once('/').ok_or(NotARange)?;
        let (family, number) = split(ip.parse().map_err(|_| NotARange)?);
        let length: u32 = length.parse().map_err(|_| NotARange)?;
        let bits = match family {
            Family::V4 => 32,
            Family::V6 => 128,
        };
        // A service range of one or two addresses has none to give, and one of every address is a
        // mistake.
        if length == 0 || length > bits - 2 {
            return Err(NotARange);
        }
        let span = (1_u128 << (bits - length)) - 1;
        let network = number & !span;
        let end = match family {
            Family::V4 => network + span - 1,
            Family::V6 => network + span,
        };
        let size = (end - network).min(SEARCHED_MAX);
        Ok(Self {
            family,
            base: network + 1,
            size,
            end,
        })
    }
}

impl Family {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "IPv4" => Some(Self::V4),
            "IPv6" => Some(Self::V6),
            _ => None,
        }
    }

    pub(super) fn of(address: IpAddr) -> Self {
        split(address).0
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

impl Unavailable {
    pub(super) fn address_words(self) -> &'static str {
        match self {
            Self::OutOfRange => "the provided network does not match the current range",
            Self::Taken => "provided IP is already allocated",
            Self::Full => "range is full",
        }
    }

    pub(super) fn port_words(self, (first, last): (u16, u16)) -> String {
        match self {
            Self::OutOfRange => format!(
                "provided port is not in the valid range. The range of valid ports is \
                 {first}-{last}"
            ),
            Self::Taken => "provided port is already allocated".into(),
            Self::Full => "range is full".into(),
        }
    }
}

/// Every offset below `size` once: from a random place in the part above `band` around, then below
/// it.
fn offsets(size: u128, band: u128, random: u64) -> impl Iterator<Item = u128> {
    let upper = size - band;
    let start = u128::from(random) % upper.max(1);
    let above = (0..upper).map(move |step| band + (start + step) % upper);
    above.chain(0..band)
}

/// How many addresses at the low end are given out last.
fn band(size: u128) -> u128 {
    match size {
        0..=16 => 0,
        size => (size / 16).clamp(16, 256),
    }
}

/// How many node ports at the low end are given out last.
fn port_band(size: u128) -> u128 {
    match size {
        0..=32 => 0,
        size => (size / 32).clamp(16, 128),
    }
}

fn split(address: IpAddr) -> (Family, u128) {
    match address {
        IpAddr::V4(address) => (Family::V4, u128::from(u32::from(address))),
        IpAddr::V6(address) => (Family::V6, u128::from(address)),
    }
}

fn address(family: Family, number: u128) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)).into(),
        Family::V6 => Ipv6Addr::from(number).into(),
    }
}

/// Addresses that are searched for a free one. No cluster has more services than this.
const SEARCHED_MAX: u128 = 1 << 20;
