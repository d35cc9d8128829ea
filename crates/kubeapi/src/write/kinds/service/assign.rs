//! Gives a service its families, addresses and node ports.

use std::net::IpAddr;

use serde_json::Value;

use super::network::{Family, Network, Unavailable};
use super::{addresses, check_addresses, families, headless, kind, needs_health_check, policy};
use crate::Status;
use crate::write::fault::{Faults, Path};
use crate::write::field::{self, object_mut, set};
use crate::write::update::Update;
use crate::write::{Stamp, Target, meta};

/// A service that comes into being.
pub(in crate::write::kinds) fn assign_new(
    target: &Target,
    service: &mut Value,
    network: &Network,
    stamp: &Stamp,
) -> Result<(), Status> {
    let first = field::at(service, &["spec", "clusterIP"]).clone();
    if !field::is_empty(&first) && addresses(service).is_empty() {
        set(object_mut(service, "spec"), "clusterIPs", vec![first]);
    }
    let mut assignment = Assignment::new(target, network, stamp);
    assignment.settle_families(service, None)?;
    assignment.assign_addresses(service, None)?;
    assignment.assign_ports(service)
}

/// A service that changes. What it has it keeps; what it no longer needs is given back by not being
/// there.
pub(in crate::write::kinds) fn assign_update(
    update: &Update,
    new: &mut Value,
    old: &Value,
    network: &Network,
) -> Result<(), Status> {
    keep_unsaid(new, old);
    align_addresses(new, old);
    let mut assignment = Assignment::new(&update.target, network, update.stamp);
    assignment.settle_families(new, Some(old))?;
    assignment.assign_addresses(new, Some(old))?;
    assignment.assign_ports(new)?;
    drop_needless(new, old);
    Ok(())
}

/// One service's turn at the network.
struct Assignment<'a> {
    target: &'a Target<'a>,
    network: Network,
    random: u64,
}

impl<'a> Assignment<'a> {
    fn new(target: &'a Target, network: &Network, stamp: &Stamp) -> Self {
        let network = network.clone();
        Self {
            target,
            network,
            random: u64::from_le_bytes(stamp.random),
        }
    }

    /// Makes ipFamilyPolicy and ipFamilies say what the service gets.
    fn settle_families(&self, service: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        if kind(service) == "ExternalName" || old.is_some_and(|old| prefers_the_same(service, old))
        {
            return Ok(());
        }
        let bare = headless(service) && field::is_empty(field::at(service, &["spec", "selector"]));
        if policy(service).is_empty() {
            let inherited = old.map(policy).filter(|policy| !policy.is_empty());
            let policy = match inherited {
                Some(policy) => policy.to_owned(),
                None if bare => "RequireDualStack".into(),
                None => "SingleStack".into(),
            };
            set(object_mut(service, "spec"), "ipFamilyPolicy", policy);
        }
        let mut faults = Faults::default();
        check_addresses(service, &mut faults);
        faults.refuse(self.target.kind, meta::name(service))?;
        let mut faults = Faults::default();
        shrink(service, old, &mut faults);
        check_single(service, &mut faults);
        self.infer_families(service, &mut faults);
        if !bare {
            self.check_configured(service, &mut faults);
        }
        faults.refuse(self.target.kind, meta::name(service))?;
        self.complete_families(service, bare);
        Ok(())
    }

    /// An address that is asked for says which family is meant.
    fn infer_families(&self, service: &mut Value, faults: &mut Faults) {
        let given = addresses(service);
        let mut known = families(service);
        for (index, text) in given.iter().enumerate().skip(known.len()) {
            let Ok(address) = text.parse::<IpAddr>() else {
                return;
            };
            let family = Family::of(address);
            if self.network.has(family) {
                known.push(family);
            } else {
                let path = Path::new("spec").child("clusterIPs").index(index);
                let why = format!("{} is not configured on this cluster", family.as_str());
                faults.invalid(&path, given.clone(), why);
            }
        }
        write_families(service, &known);
    }

    fn check_configured(&self, service: &Value, faults: &mut Faults) {
        let spec = Path::new("spec");
        if policy(service) == "RequireDualStack" && !self.network.is_dual() {
            let why = "this cluster is not configured for dual-stack services";
            faults.invalid(&spec.child("ipFamilyPolicy"), policy(service), why);
        }
        for (index, family) in families(service).into_iter().enumerate() {
            if !self.network.has(family) {
                let path = spec.child("ipFamilies").index(index);
                faults.invalid(&path, family.as_str(), "not configured on this cluster");
            }
        }
    }

    fn complete_families(&self, service: &mut Value, bare: bool) {
        let mut known = families(service);
        if known.is_empty() {
            known.push(self.network.family());
        }
        let second = policy(service) != "SingleStack" && (bare || self.network.is_dual());
        if let ([only], true) = (known.as_slice(), second) {
            let other = only.other();
            known.push(other);
        }
        write_families(service, &known);
    }

    /// Takes the addresses that are asked for and finds those that are not.
    fn assign_addresses(&mut self, service: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        if kind(service) == "ExternalName" || headless(service) {
            return Ok(());
        }
        // A service that was headless keeps what it says, and validation refuses the change.
        if old.is_some_and(headless) {
            return Ok(());
        }
        let mut given = addresses(service);
        let had = old.map(addresses).unwrap_or_default();
        for (index, family) in families(service).into_iter().enumerate() {
            let asked = given.get(index).cloned().unwrap_or_default();
            let address = match asked.parse::<IpAddr>() {
                Ok(_) if had.contains(&asked) => continue,
                Ok(address) => self.network.claim(address).map(|()| asked.clone()),
                Err(_) => self.pick(family),
            };
            let address = address.map_err(|why| self.no_address(service, &asked, why))?;
            match given.get_mut(index) {
                Some(slot) => *slot = address,
                None => given.push(address),
            }
        }
        let spec = object_mut(service, "spec");
        if let Some(first) = given.first() {
            set(spec, "clusterIP", first.as_str());
        }
        set(spec, "clusterIPs", given);
        Ok(())
    }

    fn pick(&mut self, family: Family) -> Result<String, Unavailable> {
        self.network
            .pick(family, self.random)
            .map(|address| address.to_string())
    }

    fn no_address(&self, service: &Value, asked: &str, why: Unavailable) -> Status {
        let name = meta::name(service);
        if why == Unavailable::Full {
            return Status::internal(format!(
                "failed to allocate a serviceIP for Service {name:?}: {}",
                why.address_words()
            ));
        }
        let mut faults = Faults::default();
        let words = format!("failed to allocate IP {asked}: {}", why.address_words());
        let path = Path::new("spec").child("clusterIPs");
        faults.invalid(&path, addresses(service), words);
        let kind = self.target.kind;
        Status::invalid(&kind.group, &kind.kind, name, faults.causes())
    }

    /// Node ports, and the port of the health check where there is one.
    fn assign_ports(&mut self, service: &mut Value) -> Result<(), Status> {
        let name = meta::name(service).to_owned();
        let spec = object_mut(service, "spec");
        let wanted = match field::text(spec, "type") {
            "NodePort" => true,
            "LoadBalancer" => field::flag(spec, "allocateLoadBalancerNodePorts"),
            _ => return Ok(()),
        };
        let mut ports = field::list(spec, "ports").to_vec();
        self.claim_asked_ports(&ports, &name)?;
        for index in 0..ports.len() {
            let port = field::number(&ports[index], "port").unwrap_or_default();
            if node_port(&ports[index]) != 0 || !wanted {
                continue;
            }
            // The same port over TCP and UDP shares its node port.
            let shared = ports
                .iter()
                .find(|other| field::number(other, "port") == Some(port) && node_port(other) != 0);
            let shared = shared.map(node_port).filter(|found| {
                !ports.iter().any(|other| {
                    node_port(other) == *found
                        && field::text(other, "protocol") == field::text(&ports[index], "protocol")
                })
            });
            let number = match shared {
                Some(number) => number,
                None => self.pick_port()?,
            };
            set(&mut ports[index], "nodePort", number);
        }
        set(spec, "ports", ports);
        self.assign_health_port(service)
    }

    fn claim_asked_ports(&mut self, ports: &[Value], name: &str) -> Result<(), Status> {
        let mut claimed = Vec::new();
        for (index, port) in ports.iter().enumerate() {
            let number = node_port(port);
            if number == 0 || claimed.contains(&number) {
                continue;
            }
            claimed.push(number);
            let result = match u16::try_from(number) {
                Ok(number) => self.network.claim_port(number),
                Err(_) => Err(Unavailable::OutOfRange),
            };
            if let Err(why) = result {
                let mut faults = Faults::default();
                let path = Path::new("spec")
                    .child("ports")
                    .index(index)
                    .child("nodePort");
                faults.invalid(&path, number, why.port_words(self.network.ports()));
                faults.refuse(self.target.kind, name)?;
            }
        }
        Ok(())
    }

    fn assign_health_port(&mut self, service: &mut Value) -> Result<(), Status> {
        if !needs_health_check(service) {
            return Ok(());
        }
        let spec = object_mut(service, "spec");
        let asked = field::number(spec, "healthCheckNodePort").unwrap_or_default();
        if asked == 0 {
            let number = self.pick_port()?;
            set(spec, "healthCheckNodePort", number);
            return Ok(());
        }
        let claimed = match u16::try_from(asked) {
            Ok(number) => self.network.claim_port(number),
            Err(_) => Err(Unavailable::OutOfRange),
        };
        claimed.map_err(|why| {
            Status::internal(format!(
                "failed to allocate requested HealthCheck NodePort {asked}: {}",
                why.port_words(self.network.ports())
            ))
        })
    }

    fn pick_port(&mut self) -> Result<i64, Status> {
        let full = |why: Unavailable| {
            let words = why.port_words((0, 0));
            Status::internal(format!("failed to allocate a nodePort: {words}"))
        };
        self.network
            .pick_port(self.random)
            .map(i64::from)
            .map_err(full)
    }
}

/// What the client left out of an update it means to keep.
fn keep_unsaid(new: &mut Value, old: &Value) {
    let was = field::child(old, "spec");
    if kind(old) != "ExternalName" && kind(new) != "ExternalName" {
        let spec = object_mut(new, "spec");
        for key in ["clusterIP", "clusterIPs"] {
            if field::is_empty(field::child(spec, key)) {
                field::copy(spec, was, key);
            }
        }
    }
    if has_node_ports(old) && has_node_ports(new) {
        let used: Vec<i64> = field::list(field::child(new, "spec"), "ports")
            .iter()
            .map(node_port)
            .collect();
        for port in field::items_mut(object_mut(new, "spec"), "ports") {
            let name = field::text(port, "name");
            let same = |other: &&Value| field::text(other, "name") == name;
            let before = field::list(was, "ports")
                .iter()
                .find(same)
                .map_or(0, node_port);
            if node_port(port) == 0 && before != 0 && !used.contains(&before) {
                set(port, "nodePort", before);
            }
        }
    }
    if needs_health_check(old) && needs_health_check(new) {
        let spec = object_mut(new, "spec");
        if field::number(spec, "healthCheckNodePort").unwrap_or_default() == 0 {
            field::copy(spec, was, "healthCheckNodePort");
        }
    }
}

/// `clusterIP` and `clusterIPs` are two ways of saying one thing. A client that changes the one
/// means both.
fn align_addresses(new: &mut Value, old: &Value) {
    let single = |service: &Value| field::at(service, &["spec", "clusterIP"]).clone();
    let (now, was) = (single(new), single(old));
    if field::same(&now, &was) || addresses(new) != addresses(old) {
        return;
    }
    let spec = object_mut(new, "spec");
    match field::is_empty(&now) {
        true => drop(field::remove(spec, "clusterIPs")),
        false => set(spec, "clusterIPs", vec![now]),
    }
}

/// Takes out what the new type has no use for, unless the client changed it and must hear about it.
fn drop_needless(new: &mut Value, old: &Value) {
    let was = field::child(old, "spec");
    let (now_kind, was_kind) = (kind(new).to_owned(), kind(old).to_owned());
    let (now_health, was_health) = (needs_health_check(new), needs_health_check(old));
    let (now_outside, was_outside) = (super::external(new), super::external(old));
    let gives_ports = has_node_ports(old) && !has_node_ports(new);
    let spec = object_mut(new, "spec");
    let mut drop_same = |keys: &[&str]| {
        for key in keys {
            if field::same(field::child(spec, key), field::child(was, key)) {
                field::remove(spec, key);
            }
        }
    };
    if was_kind != "ExternalName" && now_kind == "ExternalName" {
        drop_same(&["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]);
        drop_same(&["internalTrafficPolicy"]);
    }
    if was_health && !now_health {
        drop_same(&["healthCheckNodePort"]);
    }
    if was_kind == "LoadBalancer" && now_kind != "LoadBalancer" {
        drop_same(&["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if was_outside && !now_outside {
        drop_same(&["externalTrafficPolicy"]);
    }
    if gives_ports {
        let before: Vec<i64> = field::list(was, "ports").iter().map(node_port).collect();
        let kept = field::list(spec, "ports").iter().map(node_port);
        if kept
            .filter(|port| *port != 0)
            .all(|port| before.contains(&port))
        {
            for port in field::items_mut(spec, "ports") {
                field::remove(port, "nodePort");
            }
        }
    }
    if now_kind != "LoadBalancer" {
        set(
            object_mut(new, "status"),
            "loadBalancer",
            serde_json::json!({}),
        );
    }
}

/// A service that prefers two families and changed nothing about them stays as it is, whatever the
/// cluster now has.
fn prefers_the_same(service: &Value, old: &Value) -> bool {
    let prefers = |service: &Value| policy(service) == "PreferDualStack";
    prefers(service)
        && prefers(old)
        && kind(service) == kind(old)
        && addresses(service) == addresses(old)
        && families(service) == families(old)
}

/// Going back to one family gives up the second address; keeping two policies while giving one up
/// is a mistake.
fn shrink(service: &mut Value, old: Option<&Value>, faults: &mut Faults) {
    let Some(old) = old else { return };
    let (now, was) = (addresses(service), addresses(old));
    let (now_families, was_families) = (families(service), families(old));
    if policy(service) == "SingleStack" {
        if now == was && now.len() > 1 {
            set(object_mut(service, "spec"), "clusterIPs", now[..1].to_vec());
        }
        if now_families == was_families && now_families.len() > 1 {
            write_families(service, &now_families[..1]);
        }
        return;
    }
    let path = Path::new("spec").child("ipFamilyPolicy");
    if !now.is_empty() && now.len() < was.len() {
        let why = "must be 'SingleStack' to release the secondary cluster IP";
        faults.invalid(&path, policy(service), why);
    }
    if !now_families.is_empty() && now_families.len() < was_families.len() {
        let why = "must be 'SingleStack' to release the secondary IP family";
        faults.invalid(&path, policy(service), why);
    }
}

fn check_single(service: &Value, faults: &mut Faults) {
    if policy(service) != "SingleStack" {
        return;
    }
    let path = Path::new("spec").child("ipFamilyPolicy");
    let mut refuse = |what: &str| {
        let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what}");
        faults.invalid(&path, "SingleStack", why);
    };
    if addresses(service).len() == 2 {
        refuse("cluster IPs are specified");
    }
    if families(service).len() == 2 {
        refuse("IP families are specified");
    }
}

fn write_families(service: &mut Value, families: &[Family]) {
    if families.is_empty() {
        return;
    }
    let names: Vec<Value> = families
        .iter()
        .map(|family| family.as_str().into())
        .collect();
    set(object_mut(service, "spec"), "ipFamilies", names);
}

fn has_node_ports(service: &Value) -> bool {
    matches!(kind(service), "NodePort" | "LoadBalancer")
}

fn node_port(port: &Value) -> i64 {
    field::number(port, "nodePort").unwrap_or_default()
}
