//! What load balancers write into a service.

use std::net::IpAddr;

use serde_json::Value;

use super::NOT_AN_ADDRESS;
use crate::write::fault::{Faults, Path};
use crate::write::field;

/// What a load balancer says of itself.
pub(in crate::write::kinds) fn check(service: &Value, faults: &mut Faults) {
    let path = Path::new("status").child("loadBalancer").child("ingress");
    let ingress = field::at(service, &["status", "loadBalancer"]);
    for (index, point) in field::list(ingress, "ingress").iter().enumerate() {
        let path = path.index(index);
        let (address, mode) = (field::text(point, "ip"), field::text(point, "ipMode"));
        if !address.is_empty() && address.parse::<IpAddr>().is_err() {
            faults.invalid(&path.child("ip"), address, NOT_AN_ADDRESS);
        }
        let path = path.child("ipMode");
        match (address, mode) {
            ("", "") | (_, "VIP" | "Proxy") if address.is_empty() == mode.is_empty() => {}
            (_, "") => faults.required(&path, "must be specified when `ip` is set"),
            ("", _) => faults.forbidden(&path, "may not be specified when `ip` is not set"),
            (_, other) => faults.unsupported(&path, other, &["Proxy", "VIP"]),
        }
    }
}
