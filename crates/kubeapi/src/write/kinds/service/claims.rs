//! What each service has, remembered from one write to the next: a service is read and parsed once
//! for each of its versions, not at every write of any other.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use object::{ObjectName, Version};
use serde_json::Value;
use store::Row;

use crate::write::field;

/// What services have, as far as they were looked at. It never says more than the services do: what
/// it is asked for is brought up to date before.
#[derive(Debug, Default)]
pub struct Claims {
    of: HashMap<ObjectName, (Version, Claim)>,
}

/// Whether a service that is about to be written has nothing that it did not have: then nobody has
/// to wait for it.
pub(in crate::write) fn takes_nothing(new: &Value, old: Option<&Value>) -> bool {
    let had = old.map(Claim::of).unwrap_or_default();
    let Claim { addresses, ports } = Claim::of(new);
    let known = addresses
        .iter()
        .all(|address| had.addresses.contains(address));
    known && ports.iter().all(|port| had.ports.contains(port))
}

/// What one service has.
#[derive(Debug, Default)]
pub(super) struct Claim {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) ports: Vec<u16>,
}

impl Claims {
    /// Brings it up to date with all services that there are. `read` gives the object of a row.
    pub fn renew<E>(
        &mut self,
        rows: &[Arc<Row>],
        read: impl Fn(&Row) -> Result<Value, E>,
    ) -> Result<(), E> {
        let mut before = std::mem::take(&mut self.of);
        for row in rows {
            let header = &row.header;
            let known = before.remove(&header.name);
            let known = known.filter(|(version, _)| *version == header.version);
            let claim = match known {
                Some((_, claim)) => claim,
                None => Claim::of(&read(row)?),
            };
            let entry = (header.version.clone(), claim);
            self.of.insert(header.name.clone(), entry);
        }
        Ok(())
    }

    /// What every service but this one has.
    pub(super) fn of_others(&self, except: &ObjectName) -> impl Iterator<Item = &Claim> {
        let others = self.of.iter().filter(move |(name, _)| *name != except);
        others.map(|(_, (_, claim))| claim)
    }
}

impl Claim {
    pub(super) fn of(service: &Value) -> Self {
        let spec = field::child(service, "spec");
        let addresses = field::texts(spec, "clusterIPs").into_iter();
        let addresses = addresses.chain(std::iter::once(field::text(spec, "clusterIP")));
        let ports = field::list(spec, "ports").iter();
        let ports = ports.filter_map(|port| field::number(port, "nodePort"));
        let ports = ports.chain(field::number(spec, "healthCheckNodePort"));
        Self {
            addresses: addresses.filter_map(|text| text.parse().ok()).collect(),
            ports: ports.filter_map(|port| u16::try_from(port).ok()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_service_that_keeps_or_gives_back_takes_nothing() {
        let full = json!({"spec": {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"],
            "ports": [{"port": 1, "nodePort": 30001}]}});
        let less = json!({"spec": {"clusterIP": "10.0.0.7", "ports": [{"port": 1}]}});
        let headless = json!({"spec": {"clusterIP": "None", "ports": [{"port": 1}]}});
        assert!(takes_nothing(&headless, None));
        assert!(takes_nothing(&full, Some(&full)));
        assert!(takes_nothing(&less, Some(&full)));
        assert!(!takes_nothing(&less, None));
        assert!(!takes_nothing(&full, Some(&less)), "a node port");
        let other = json!({"spec": {"clusterIP": "10.0.0.8"}});
        assert!(!takes_nothing(&other, Some(&full)), "an address");
    }
}
