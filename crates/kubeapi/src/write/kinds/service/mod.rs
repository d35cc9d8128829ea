//! Services: types, ports, families of addresses, and what cannot change.

pub mod network; // which addresses and ports there are
mod claims; // which of them each service has
pub(in crate::write::kinds) mod status; // what load balancers write
pub(super) mod assign; // who gets which
mod warnings; // what its author should know

use std::net::IpAddr;

use serde_json::{Value, json};

pub use claims::Claims;
pub(in crate::write) use claims::takes_nothing;
pub use network::{AddressRange, Family, NODE_PORTS, Network};
pub(in crate::write) use warnings::warnings;

use crate::write::fault::{Faults, Path};
use crate::write::{field, names};

pub(super) fn check(service: &Value, faults: &mut Faults) {
    let spec = field::child(service, "spec");
    let path = Path::new("spec");
    let ports = field::list(spec, "ports");
    if ports.is_empty() && !headless(service) && kind(service) != "ExternalName" {
        faults.required(&path.child("ports"), "");
    }
    check_type(service, &path, faults);
    check_ports(ports, &path.child("ports"), faults);
    let selector = field::child(spec, "selector");
    names::check_labels(selector, &path.child("selector"), faults);
    check_affinity(spec, &path, faults);
    check_known_type(service, &path, faults);
    check_addresses(service, faults);
    check_external_addresses(spec, &path.child("externalIPs"), faults);
    check_node_ports(service, ports, &path.child("ports"), faults);
    check_balancer(service, spec, &path, faults);
    check_traffic(service, spec, &path, faults);
}

pub(super) fn check_update(new: &Value, old: &Value, faults: &mut Faults) {
    let (class, was) = (
        field::at(new, &["spec", "loadBalancerClass"]),
        field::at(old, &["spec", "loadBalancerClass"]),
    );
    let balancers = kind(new) == "LoadBalancer" && kind(old) == "LoadBalancer";
    if balancers && !field::same(class, was) {
        let path = Path::new("spec").child("loadBalancerClass");
        faults.invalid(&path, class.clone(), "may not change once set");
    }
    if kind(new) == "ExternalName" || kind(old) == "ExternalName" {
        return;
    }
    if headless(new) && headless(old) {
        return;
    }
    check_kept_addresses(new, old, faults);
    if headless(new) == headless(old) {
        check_kept_families(new, old, faults);
    }
}

/// `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` must agree with each other.
fn check_addresses(service: &Value, faults: &mut Faults) {
    if kind(service) == "ExternalName" {
        return;
    }
    let spec = Path::new("spec");
    let path = spec.child("clusterIPs");
    let given = addresses(service);
    let single = field::text(field::child(service, "spec"), "clusterIP");
    match (single, given.first()) {
        ("", None) => {}
        ("", Some(_)) => {
            let why = "must be empty when `clusterIP` is not specified";
            faults.invalid(&path, given.clone(), why);
        }
        (_, None) => faults.required(&path, ""),
        (single, Some(first)) if single != first => {
            faults.invalid(&path, given.clone(), "first value must match `clusterIP`");
        }
        _ => {}
    }
    check_family_words(service, &spec, faults);
    if !check_each_address(&given, &path, faults) {
        return;
    }
    let parsed: Vec<Family> = given
        .iter()
        .filter_map(|text| text.parse().ok())
        .map(Family::of)
        .collect();
    if let [first, second, ..] = parsed.as_slice()
        && first == second
    {
        let why = "may specify no more than one IP for each IP family";
        faults.invalid(&path, given.clone(), why);
    }
    for (index, (family, wanted)) in parsed.iter().zip(families(service)).enumerate() {
        if *family != wanted {
            let wanted = wanted.as_str();
            let why = format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
            faults.invalid(&path.index(index), given[index].as_str(), why);
        }
    }
}

fn check_family_words(service: &Value, spec: &Path, faults: &mut Faults) {
    let words = field::texts(field::child(service, "spec"), "ipFamilies");
    for (index, word) in words.iter().enumerate() {
        let path = spec.child("ipFamilies").index(index);
        if Family::parse(word).is_none() {
            faults.unsupported(&path, *word, &["IPv4", "IPv6"]);
        }
        if words[..index].contains(word) {
            faults.duplicate(&path, *word);
        }
    }
    match policy(service) {
        "" | "SingleStack" | "PreferDualStack" | "RequireDualStack" => {}
        other => {
            let known = ["PreferDualStack", "RequireDualStack", "SingleStack"];
            faults.unsupported(&spec.child("ipFamilyPolicy"), other, &known);
        }
    }
}

fn check_each_address(given: &[String], path: &Path, faults: &mut Faults) -> bool {
    let mut right = true;
    for (index, text) in given.iter().enumerate() {
        if index == 0 && text == NONE {
            if given.len() > 1 {
                faults.invalid(
                    path,
                    given.to_vec(),
                    "'None' must be the first and only value",
                );
                right = false;
            }
        } else if text.parse::<IpAddr>().is_err() {
            faults.invalid(&path.index(index), text.as_str(), NOT_AN_ADDRESS);
            right = false;
        }
    }
    if given.len() > 2 {
        faults.invalid(path, given.to_vec(), "may only hold up to 2 values");
    }
    right
}

fn check_type(service: &Value, path: &Path, faults: &mut Faults) {
    let spec = field::child(service, "spec");
    match kind(service) {
        "" => faults.required(&path.child("type"), ""),
        kind @ ("NodePort" | "LoadBalancer") if headless(service) => {
            let why = format!("may not be set to 'None' for {kind} services");
            faults.invalid(&path.child("clusterIPs").index(0), NONE, why);
        }
        "ExternalName" => {
            for key in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !field::is_empty(field::child(spec, key)) {
                    faults.forbidden(&path.child(key), "may not be set for ExternalName services");
                }
            }
            let name = field::text(spec, "externalName");
            match name.strip_suffix('.').unwrap_or(name) {
                "" => faults.required(&path.child("externalName"), ""),
                name => {
                    let wrong = names::subdomain_faults(name);
                    faults.invalid_each(&path.child("externalName"), name, wrong);
                }
            }
        }
        _ => {}
    }
}

fn check_known_type(service: &Value, path: &Path, faults: &mut Faults) {
    let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    let kind = kind(service);
    if !kind.is_empty() && !known.contains(&kind) {
        faults.unsupported(&path.child("type"), kind, &known);
    }
}

fn check_ports(ports: &[Value], path: &Path, faults: &mut Faults) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        match field::text(port, "name") {
            "" if ports.len() > 1 => faults.required(&path.child("name"), ""),
            "" => {}
            name => {
                faults.invalid_each(&path.child("name"), name, names::label_faults(name));
                if seen.contains(&name) {
                    faults.duplicate(&path.child("name"), name);
                }
                seen.push(name);
            }
        }
        let number = field::number(port, "port").unwrap_or_default();
        for fault in names::port_faults(number) {
            faults.invalid(&path.child("port"), number, fault);
        }
        check_protocol(port, &path.child("protocol"), faults);
        check_port_or_name(
            field::child(port, "targetPort"),
            &path.child("targetPort"),
            faults,
        );
        let protocol = field::text(port, "appProtocol");
        if field::is_set(port, "appProtocol") {
            let wrong = names::label_key_faults(protocol);
            faults.invalid_each(&path.child("appProtocol"), protocol, wrong);
        }
    }
}

/// `protocol` of anything that has one.
pub(super) fn check_protocol(port: &Value, path: &Path, faults: &mut Faults) {
    match field::text(port, "protocol") {
        "" => faults.required(path, ""),
        "TCP" | "UDP" | "SCTP" => {}
        other => faults.unsupported(path, other, &["SCTP", "TCP", "UDP"]),
    }
}

/// A port by its number or by its name.
pub(super) fn check_port_or_name(port: &Value, path: &Path, faults: &mut Faults) {
    if let Some(number) = port.as_i64() {
        for fault in names::port_faults(number) {
            faults.invalid(path, number, fault);
        }
    } else if let Some(name) = port.as_str() {
        faults.invalid_each(path, name, names::port_name_faults(name));
    }
}

fn check_affinity(spec: &Value, path: &Path, faults: &mut Faults) {
    match field::text(spec, "sessionAffinity") {
        "" => faults.required(&path.child("sessionAffinity"), ""),
        "None" => {}
        "ClientIP" => {
            let timeout = field::at(
                spec,
                &["sessionAffinityConfig", "clientIP", "timeoutSeconds"],
            );
            let seconds = timeout.as_i64().unwrap_or_default();
            if !(1..=86_400).contains(&seconds) {
                let path = path
                    .child("sessionAffinityConfig")
                    .child("clientIP")
                    .child("timeoutSeconds");
                faults.invalid(&path, seconds, "must be greater than 0 and less than 86400");
            }
        }
        other => {
            faults.unsupported(&path.child("sessionAffinity"), other, &["ClientIP", "None"]);
        }
    }
}

fn check_external_addresses(spec: &Value, path: &Path, faults: &mut Faults) {
    for (index, text) in field::texts(spec, "externalIPs").into_iter().enumerate() {
        check_endpoint_address(text, &path.index(index), faults);
    }
}

/// An address that traffic is sent to: not one that means this machine or this link.
pub(super) fn check_endpoint_address(text: &str, path: &Path, faults: &mut Faults) {
    let Ok(address) = text.parse::<IpAddr>() else {
        faults.invalid(path, text, NOT_AN_ADDRESS);
        return;
    };
    let (link, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => {
            let head = v6.segments()[0];
            (head & 0xffc0 == 0xfe80, head & 0xff0f == 0xff02)
        }
    };
    if address.is_unspecified() {
        faults.invalid(path, text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        faults.invalid(
            path,
            text,
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        );
    }
    if link {
        let why = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        faults.invalid(path, text, why);
    }
    if multicast {
        let why = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        faults.invalid(path, text, why);
    }
}

fn check_node_ports(service: &Value, ports: &[Value], path: &Path, faults: &mut Faults) {
    let number = |port: &Value| field::number(port, "nodePort").unwrap_or_default();
    for (index, port) in ports.iter().enumerate() {
        let protocol = field::text(port, "protocol");
        let twin = |other: &&Value, key: &str| {
            field::text(other, "protocol") == protocol
                && field::number(other, key) == field::number(port, key)
        };
        if number(port) != 0 {
            let path = path.index(index).child("nodePort");
            if kind(service) == "ClusterIP" {
                faults.forbidden(&path, "may not be used when `type` is 'ClusterIP'");
            }
            if ports[..index].iter().any(|other| twin(&other, "nodePort")) {
                faults.duplicate(&path, number(port));
            }
        }
        if ports[..index].iter().any(|other| twin(&other, "port")) {
            let key = json!({
                "protocol": protocol, "port": field::child(port, "port"), "targetPort": 0
            });
            faults.duplicate(&path.index(index), key);
        }
    }
}

fn check_balancer(service: &Value, spec: &Value, path: &Path, faults: &mut Faults) {
    let balancer = kind(service) == "LoadBalancer";
    let why = "may only be used when `type` is 'LoadBalancer'";
    let ranges = path.child("LoadBalancerSourceRanges");
    for (index, range) in field::texts(spec, "loadBalancerSourceRanges")
        .into_iter()
        .enumerate()
    {
        if !balancer {
            faults.forbidden(&ranges, why);
        }
        if !is_range(range.trim()) {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            faults.invalid(&ranges.index(index), range.trim(), why);
        }
    }
    for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if !balancer && field::is_set(spec, key) {
            faults.forbidden(&path.child(key), why);
        }
    }
    let class = field::text(spec, "loadBalancerClass");
    if balancer && field::is_set(spec, "loadBalancerClass") {
        let wrong = names::label_key_faults(class);
        faults.invalid_each(&path.child("loadBalancerClass"), class, wrong);
    }
}

fn check_traffic(service: &Value, spec: &Value, path: &Path, faults: &mut Faults) {
    let outside = path.child("externalTrafficPolicy");
    match (
        external(service),
        field::text(spec, "externalTrafficPolicy"),
    ) {
        (false, "") | (true, "Cluster" | "Local") => {}
        (false, given) => {
            faults.invalid(
                &outside,
                given,
                "may only be set for externally-accessible services",
            );
        }
        (true, "") => faults.required(&outside, ""),
        (true, other) => faults.unsupported(&outside, other, &["Cluster", "Local"]),
    }
    match field::text(spec, "internalTrafficPolicy") {
        "" | "Cluster" | "Local" => {}
        other => {
            let path = path.child("internalTrafficPolicy");
            faults.unsupported(&path, other, &["Cluster", "Local"]);
        }
    }
    let health = field::number(spec, "healthCheckNodePort").unwrap_or_default();
    if health != 0 && !needs_health_check(service) {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                   'Local'";
        faults.invalid(&path.child("healthCheckNodePort"), health, why);
    }
    match field::text(spec, "trafficDistribution") {
        "" | "PreferClose" | "PreferSameZone" | "PreferSameNode" => {}
        other => {
            let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
            faults.unsupported(&path.child("trafficDistribution"), other, &known);
        }
    }
}

fn check_kept_addresses(new: &Value, old: &Value, faults: &mut Faults) {
    let (now, was) = (addresses(new), addresses(old));
    let path = Path::new("spec").child("clusterIPs");
    let once = "may not change once set";
    if now.is_empty() && !was.is_empty() {
        faults.invalid(
            &path.index(0),
            now.clone(),
            "primary clusterIP can not be unset",
        );
    }
    let compared = match now.len() == was.len() {
        true => was.len(),
        false => 1,
    };
    for (index, (now_one, was_one)) in now.iter().zip(&was).take(compared).enumerate() {
        if now_one != was_one {
            faults.invalid(&path.index(index), now.clone(), once);
        }
    }
    if now.len() == 1 && was.len() > 1 && policy(new) != "SingleStack" {
        let path = Path::new("spec").child("ipFamilyPolicy");
        let why = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        faults.invalid(&path, policy(new), why);
    }
}

fn check_kept_families(new: &Value, old: &Value, faults: &mut Faults) {
    let (now, was) = (families(new), families(old));
    let path = Path::new("spec").child("ipFamilies").index(0);
    let compared = match now.len() == was.len() {
        true => was.len(),
        false => 1,
    };
    if now
        .iter()
        .zip(&was)
        .take(compared)
        .any(|(now, was)| now != was)
    {
        let words: Vec<Value> = now.iter().map(|family| family.as_str().into()).collect();
        faults.invalid(&path, words, "may not change once set");
    }
    if now.len() == 1 && was.len() > 1 && policy(new) != "SingleStack" {
        let path = Path::new("spec").child("ipFamilyPolicy");
        let why = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        faults.invalid(&path, policy(new), why);
    }
}

fn kind(service: &Value) -> &str {
    field::text(field::child(service, "spec"), "type")
}

fn policy(service: &Value) -> &str {
    field::text(field::child(service, "spec"), "ipFamilyPolicy")
}

fn addresses(service: &Value) -> Vec<String> {
    let texts = field::texts(field::child(service, "spec"), "clusterIPs");
    texts.into_iter().map(str::to_owned).collect()
}

fn families(service: &Value) -> Vec<Family> {
    let words = field::texts(field::child(service, "spec"), "ipFamilies");
    words.into_iter().filter_map(Family::parse).collect()
}

fn headless(service: &Value) -> bool {
    let spec = field::child(service, "spec");
    field::text(spec, "clusterIP") == NONE || field::texts(spec, "clusterIPs") == [NONE]
}

fn external(service: &Value) -> bool {
    let addresses = field::list(field::child(service, "spec"), "externalIPs");
    match kind(service) {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !addresses.is_empty(),
        _ => false,
    }
}

fn needs_health_check(service: &Value) -> bool {
    let policy = field::text(field::child(service, "spec"), "externalTrafficPolicy");
    kind(service) == "LoadBalancer" && policy == "Local"
}

/// Whether `text` is an address and the length of a prefix.
pub(super) fn is_range(text: &str) -> bool {
    let parts = text.split_once('/');
    let parts = parts.map(|(address, length)| (address.parse(), length.parse::<u8>()));
    match parts {
        Some((Ok(IpAddr::V4(_)), Ok(length))) => length <= 32,
        Some((Ok(IpAddr::V6(_)), Ok(length))) => length <= 128,
        _ => false,
    }
}

/// Kubernetes' words for what is no range.
pub(super) const NOT_A_RANGE: &str =
    "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
/// Kubernetes' words for what is no address.
pub(super) const NOT_AN_ADDRESS: &str =
    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NONE: &str = "None";
