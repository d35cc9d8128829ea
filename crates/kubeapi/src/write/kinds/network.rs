//! Ingresses, network policies, endpoints and endpoint slices.

use std::net::IpAddr;

use serde_json::Value;

use super::selector;
use super::service::{
    self, NOT_A_RANGE, check_endpoint_address, check_port_or_name, check_protocol,
};
use crate::write::fault::{Faults, Path};
use crate::write::{field, names};

pub(super) fn check(plural: &str, object: &Value, faults: &mut Faults) {
    let spec = field::child(object, "spec");
    let path = Path::new("spec");
    match plural {
        "ingresses" => check_ingress(spec, &path, faults),
        "networkpolicies" => check_policy(spec, &path, faults),
        "ingressclasses" => {
            let controller = field::text(spec, "controller");
            if controller.len() > 250 {
                faults.too_long(&path.child("controller"), 250);
            }
            if controller.is_empty() {
                faults.required(&path.child("controller"), "");
            } else if !controller.contains('/') {
                let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
                faults.invalid(&path.child("controller"), controller, why);
            }
        }
        _ => {}
    }
}

pub(super) fn check_endpoints(endpoints: &Value, faults: &mut Faults) {
    for (index, subset) in field::list(endpoints, "subsets").iter().enumerate() {
        let path = Path::new("subsets").index(index);
        let (ready, unready) = (
            field::list(subset, "addresses"),
            field::list(subset, "notReadyAddresses"),
        );
        if ready.is_empty() && unready.is_empty() {
            faults.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for (list, addresses) in [("addresses", ready), ("notReadyAddresses", unready)] {
            for (at, address) in addresses.iter().enumerate() {
                let path = path.child(list).index(at).child("ip");
                let text = field::text(address, "ip");
                check_endpoint_address(text, &path, faults);
                // Kubernetes looks a second time, with other words.
                if text.parse::<IpAddr>().is_err() {
                    faults.invalid(&path, text, "must be a valid IP address");
                }
            }
        }
        let ports = field::list(subset, "ports");
        for (at, port) in ports.iter().enumerate() {
            let path = path.child("ports").index(at);
            let name = field::text(port, "name");
            if name.is_empty() && ports.len() > 1 {
                faults.required(&path.child("name"), "");
            } else if !name.is_empty() {
                faults.invalid_each(&path.child("name"), name, names::label_faults(name));
            }
            let number = field::number(port, "port").unwrap_or_default();
            for fault in names::port_faults(number) {
                faults.invalid(&path.child("port"), number, fault);
            }
            check_protocol(port, &path.child("protocol"), faults);
        }
    }
}

pub(super) fn check_endpoint_slice(slice: &Value, faults: &mut Faults) {
    let family = field::text(slice, "addressType");
    match family {
        "" => faults.required(&Path::new("addressType"), ""),
        "IPv4" | "IPv6" | "FQDN" => {}
        other => {
            let known = ["FQDN", "IPv4", "IPv6"];
            faults.unsupported(&Path::new("addressType"), other, &known);
        }
    }
    let mut seen = Vec::new();
    for (index, port) in field::list(slice, "ports").iter().enumerate() {
        let path = Path::new("ports").index(index);
        let name = field::text(port, "name");
        if !name.is_empty() {
            faults.invalid_each(&path.child("name"), name, names::label_faults(name));
        }
        if seen.contains(&name) {
            faults.duplicate(&path.child("name"), name);
        }
        seen.push(name);
        check_protocol(port, &path.child("protocol"), faults);
    }
    for (index, endpoint) in field::list(slice, "endpoints").iter().enumerate() {
        let path = Path::new("endpoints").index(index).child("addresses");
        let addresses = field::texts(endpoint, "addresses");
        if addresses.is_empty() {
            faults.required(&path, "must contain at least 1 address");
        }
        for (at, address) in addresses.into_iter().enumerate() {
            check_slice_address(family, address, &path.index(at), faults);
        }
    }
}

pub(super) fn check_endpoint_slice_update(new: &Value, old: &Value, faults: &mut Faults) {
    let (now, was) = (
        field::child(new, "addressType"),
        field::child(old, "addressType"),
    );
    if !field::same(now, was) {
        faults.invalid(&Path::new("addressType"), now.clone(), "field is immutable");
    }
}

fn check_slice_address(family: &str, address: &str, path: &Path, faults: &mut Faults) {
    match (family, address.parse::<IpAddr>()) {
        ("FQDN", _) => {
            faults.invalid_each(path, address, names::subdomain_faults(address));
        }
        ("IPv4", Ok(IpAddr::V6(_))) => faults.invalid(path, address, "must be an IPv4 address"),
        ("IPv6", Ok(IpAddr::V4(_))) => faults.invalid(path, address, "must be an IPv6 address"),
        _ => check_endpoint_address(address, path, faults),
    }
}

fn check_ingress(spec: &Value, path: &Path, faults: &mut Faults) {
    let rules = field::list(spec, "rules");
    let backend = field::child(spec, "defaultBackend");
    if rules.is_empty() && !backend.is_object() {
        let why = "either `defaultBackend` or `rules` must be specified";
        faults.invalid(path, field::child(spec, "rules").clone(), why);
    }
    if backend.is_object() {
        check_backend(backend, &path.child("defaultBackend"), faults);
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.child("rules").index(index);
        let host = field::text(rule, "host");
        if host.parse::<IpAddr>().is_ok() {
            faults.invalid(
                &path.child("host"),
                host,
                "must be a DNS name, not an IP address",
            );
        } else if !host.is_empty() {
            let name = host.strip_prefix("*.").unwrap_or(host);
            let wrong = names::subdomain_faults(name);
            faults.invalid_each(&path.child("host"), host, wrong);
        }
        let http = field::child(rule, "http");
        if !http.is_object() {
            continue;
        }
        let path = path.child("http").child("paths");
        let paths = field::list(http, "paths");
        if paths.is_empty() {
            faults.required(&path, "");
        }
        for (at, entry) in paths.iter().enumerate() {
            check_ingress_path(entry, &path.index(at), faults);
        }
    }
    let class = field::text(spec, "ingressClassName");
    if !class.is_empty() {
        let wrong = names::subdomain_faults(class);
        faults.invalid_each(&path.child("ingressClassName"), class, wrong);
    }
}

fn check_ingress_path(entry: &Value, path: &Path, faults: &mut Faults) {
    let place = field::text(entry, "path");
    match field::text(entry, "pathType") {
        "" => faults.required(&path.child("pathType"), "pathType must be specified"),
        "Exact" | "Prefix" => {
            if !place.starts_with('/') {
                faults.invalid(&path.child("path"), place, "must be an absolute path");
            }
            for wrong in ["//", "/./", "/../", "%2f", "%2F"] {
                if place.contains(wrong) {
                    let why = format!("must not contain '{wrong}'");
                    faults.invalid(&path.child("path"), place, why);
                }
            }
        }
        "ImplementationSpecific" => {
            if !place.is_empty() && !place.starts_with('/') {
                faults.invalid(&path.child("path"), place, "must be an absolute path");
            }
        }
        other => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            faults.unsupported(&path.child("pathType"), other, &known);
        }
    }
    check_backend(
        field::child(entry, "backend"),
        &path.child("backend"),
        faults,
    );
}

fn check_backend(backend: &Value, path: &Path, faults: &mut Faults) {
    let (service, resource) = (
        field::child(backend, "service"),
        field::child(backend, "resource"),
    );
    match (service.is_object(), resource.is_object()) {
        (true, true) => faults.invalid(path, "", "cannot set both resource and service backends"),
        (false, false) => faults.invalid(path, "", "resource or service backend is required"),
        (false, true) => {}
        (true, false) => {
            let at = path.child("service");
            match field::text(service, "name") {
                "" => faults.required(&at.child("name"), ""),
                name => faults.invalid_each(&at.child("name"), name, names::label_faults(name)),
            }
            let port = field::child(service, "port");
            let (name, number) = (field::text(port, "name"), field::number(port, "number"));
            match (name, number.unwrap_or_default()) {
                ("", 0) => faults.required(path, "port name or number is required"),
                ("", number) => {
                    for fault in names::port_faults(number) {
                        let path = at.child("port").child("number");
                        faults.invalid(&path, number, fault);
                    }
                }
                (name, 0) => {
                    let wrong = names::port_name_faults(name);
                    faults.invalid_each(&at.child("port").child("name"), name, wrong);
                }
                _ => faults.invalid(path, "", "cannot set both port name & port number"),
            }
        }
    }
}

fn check_policy(spec: &Value, path: &Path, faults: &mut Faults) {
    selector::check(
        field::child(spec, "podSelector"),
        &path.child("podSelector"),
        faults,
    );
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in field::list(spec, direction).iter().enumerate() {
            let path = path.child(direction).index(index);
            for (at, port) in field::list(rule, "ports").iter().enumerate() {
                let path = path.child("ports").index(at);
                match field::text(port, "protocol") {
                    "" | "TCP" | "UDP" | "SCTP" => {}
                    other => {
                        let known = ["TCP", "UDP", "SCTP"];
                        faults.unsupported(&path.child("protocol"), other, &known);
                    }
                }
                check_port_or_name(field::child(port, "port"), &path.child("port"), faults);
            }
            for (at, peer) in field::list(rule, peers).iter().enumerate() {
                check_peer(peer, &path.child(peers).index(at), faults);
            }
        }
    }
    let kinds = field::texts(spec, "policyTypes");
    let path = path.child("policyTypes");
    if kinds.len() > 2 {
        let why = "may not specify more than two policyTypes";
        faults.invalid(&path, field::child(spec, "policyTypes").clone(), why);
    }
    for (index, kind) in kinds.into_iter().enumerate() {
        if !matches!(kind, "Ingress" | "Egress") {
            faults.unsupported(&path.index(index), kind, &["Ingress", "Egress"]);
        }
    }
}

fn check_peer(peer: &Value, path: &Path, faults: &mut Faults) {
    let block = field::child(peer, "ipBlock");
    let mut others = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if field::is_set(peer, key) {
            others += 1;
            selector::check(field::child(peer, key), &path.child(key), faults);
        }
    }
    if !block.is_object() {
        if others == 0 {
            faults.required(path, "must specify a peer");
        }
        return;
    }
    if others > 0 {
        faults.forbidden(path, "may not specify both ipBlock and another peer");
    }
    let path = path.child("ipBlock");
    let whole = field::text(block, "cidr");
    if !service::is_range(whole) {
        faults.invalid(&path.child("cidr"), whole, NOT_A_RANGE);
        return;
    }
    for (index, part) in field::texts(block, "except").into_iter().enumerate() {
        let path = path.child("except").index(index);
        if !service::is_range(part) {
            faults.invalid(&path, part, NOT_A_RANGE);
        } else if !is_part(part, whole) {
            faults.invalid(&path, part, "must be a strict subset of `cidr`");
        }
    }
}

/// Whether a range of addresses lies within another and is smaller.
fn is_part(part: &str, whole: &str) -> bool {
    let read = |range: &str| {
        let (address, length) = range.split_once('/')?;
        Some((address.parse::<IpAddr>().ok()?, length.parse::<u32>().ok()?))
    };
    let Some(((part, longer), (whole, shorter))) = read(part).zip(read(whole)) else {
        return false;
    };
    let (part, whole, width) = match (part, whole) {
        (IpAddr::V4(part), IpAddr::V4(whole)) => {
            (u128::from(part.to_bits()), u128::from(whole.to_bits()), 32)
        }
        (IpAddr::V6(part), IpAddr::V6(whole)) => (part.to_bits(), whole.to_bits(), 128),
        _ => return false,
    };
    let host: u32 = width - shorter.min(width);
    // A prefix of no length has every address in it.
    let same = part.checked_shr(host) == whole.checked_shr(host);
    longer > shorter && same
}
