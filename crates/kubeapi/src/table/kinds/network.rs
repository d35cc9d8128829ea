//! Services, their endpoints, ingresses, policies, and the addresses that are given out.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::labels::{format_labels, format_selector};
use super::super::subject::{Part, Subject, word, words};
use super::{
    AGE, NAME, Printer, SPEC, SPEC_AND_STATUS, first_few, or, or_none, qualified, text, wide,
};

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "Service" => &SERVICE,
        "Endpoints" => &ENDPOINTS,
        "EndpointSlice" => &ENDPOINT_SLICE,
        "Ingress" => &INGRESS,
        "IngressClass" => &INGRESS_CLASS,
        "NetworkPolicy" => &NETWORK_POLICY,
        "ServiceCIDR" => &SERVICE_CIDR,
        "IPAddress" => &IP_ADDRESS,
        _ => return None,
    })
}

/// Addresses, hosts and ports that are shown; the rest is counted.
const SHOWN: usize = 3;

static SERVICE: Printer = Printer {
    columns: &[
        NAME,
        text("Type", "How far the service is reachable."),
        text("Cluster-IP", "Its address within the cluster."),
        text("External-IP", "Its addresses from outside."),
        text(
            "Port(s)",
            "Its ports, with the ports of nodes that lead to them.",
        ),
        AGE,
        wide(text("Selector", "The labels of the pods behind it.")),
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let first = or(
            subject.text("/spec/clusterIPs/0"),
            subject.text("/spec/clusterIP"),
        );
        let ports: Vec<String> = subject
            .list("/spec/ports")
            .iter()
            .map(service_port)
            .collect();
        vec![
            subject.name().into(),
            subject.text("/spec/type").into(),
            or_none(first).into(),
            external_ip(subject).into(),
            or_none(&ports.join(",")).into(),
            subject.age().into(),
            format_labels(subject.at("/spec/selector")).into(),
        ]
    },
    outcome: None,
};

static ENDPOINTS: Printer = Printer {
    columns: &[
        NAME,
        text("Endpoints", "The first addresses and ports."),
        AGE,
    ],
    keep: &[Part::Whole("subsets")],
    cells: |subject| {
        let endpoints = endpoints(subject.list("/subsets"));
        vec![
            subject.name().into(),
            endpoints.into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static ENDPOINT_SLICE: Printer = Printer {
    columns: &[
        NAME,
        text("AddressType", "Whether addresses are IPv4, IPv6 or names."),
        text("Ports", "The first ports."),
        text("Endpoints", "The first addresses."),
        AGE,
    ],
    keep: &[
        Part::Whole("addressType"),
        Part::Whole("ports"),
        Part::Whole("endpoints"),
    ],
    cells: |subject| {
        let ports: Vec<String> = subject.list("/ports").iter().map(slice_port).collect();
        let addresses: Vec<String> = subject
            .list("/endpoints")
            .iter()
            .flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten())
            .filter_map(|address| address.as_str().map(str::to_owned))
            .collect();
        vec![
            subject.name().into(),
            subject.text("/addressType").into(),
            or(&first_few(&ports, SHOWN, ","), "<unset>").into(),
            or(&first_few(&addresses, SHOWN, ","), "<unset>").into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static INGRESS: Printer = Printer {
    columns: &[
        NAME,
        text("Class", "The class that says who serves it."),
        text("Hosts", "The first host names."),
        text("Address", "Where it is reachable."),
        text("Ports", "Its ports."),
        AGE,
    ],
    keep: SPEC_AND_STATUS,
    cells: |subject| {
        let ports = match subject.list("/spec/tls") {
            [] => "80",
            _ => "80, 443",
        };
        vec![
            subject.name().into(),
            subject.text_or("/spec/ingressClassName", "<none>").into(),
            hosts(subject.list("/spec/rules")).into(),
            balancer(subject.list("/status/loadBalancer/ingress")).into(),
            ports.into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static INGRESS_CLASS: Printer = Printer {
    columns: &[
        NAME,
        text("Controller", "Who serves ingresses of the class."),
        text("Parameters", "The object with more about the class."),
        AGE,
    ],
    keep: SPEC,
    cells: |subject| {
        let annotations = subject.meta("annotations");
        let is_default = word(annotations, "ingressclass.kubernetes.io/is-default-class") == "true";
        let name = match is_default {
            true => format!("{} (default)", subject.name()),
            false => subject.name().to_owned(),
        };
        let parameters = match subject.at("/spec/parameters") {
            Value::Null => "<none>".to_owned(),
            found => {
                let kind = qualified(word(found, "kind"), word(found, "apiGroup"));
                format!("{kind}/{}", word(found, "name"))
            }
        };
        let controller = subject.text("/spec/controller");
        vec![
            name.into(),
            controller.into(),
            parameters.into(),
            subject.age().into(),
        ]
    },
    outcome: None,
};

static NETWORK_POLICY: Printer = Printer {
    columns: &[
        NAME,
        text("Pod-Selector", "The labels of the pods it is about."),
        AGE,
    ],
    keep: SPEC,
    cells: |subject| {
        let selector = format_selector(subject.at("/spec/podSelector"));
        vec![subject.name().into(), selector.into(), subject.age().into()]
    },
    outcome: None,
};

static SERVICE_CIDR: Printer = Printer {
    columns: &[
        NAME,
        text(
            "CIDRs",
            "The ranges that addresses of services are taken from.",
        ),
        AGE,
    ],
    keep: SPEC,
    cells: |subject| {
        let ranges = words(subject.list("/spec/cidrs")).join(",");
        vec![subject.name().into(), ranges.into(), subject.age().into()]
    },
    outcome: None,
};

static IP_ADDRESS: Printer = Printer {
    columns: &[NAME, text("ParentRef", "The object that has the address.")],
    keep: SPEC,
    cells: |subject| {
        let parent = match subject.at("/spec/parentRef") {
            Value::Null => "<none>".to_owned(),
            found => {
                let resource = qualified(word(found, "resource"), word(found, "group"));
                let place = match word(found, "namespace") {
                    "" => String::new(),
                    namespace => format!("/{namespace}"),
                };
                format!("{}{place}/{}", resource.to_lowercase(), word(found, "name"))
            }
        };
        vec![subject.name().into(), parent.into()]
    },
    outcome: None,
};

fn service_port(port: &Value) -> String {
    let number = port["port"].as_i64().unwrap_or_default();
    let protocol = or(word(port, "protocol"), "TCP");
    match port["nodePort"].as_i64().unwrap_or_default() {
        node if node > 0 => format!("{number}:{node}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

fn external_ip(service: &Subject<'_>) -> String {
    let fixed = words(service.list("/spec/externalIPs")).join(",");
    match service.text("/spec/type") {
        "ClusterIP" | "NodePort" => or_none(&fixed).to_owned(),
        "LoadBalancer" => {
            let given = balancer(service.list("/status/loadBalancer/ingress"));
            match (given.as_str(), fixed.as_str()) {
                ("", "") => "<pending>".to_owned(),
                ("", one) | (one, "") => one.to_owned(),
                (given, fixed) => format!("{given},{fixed}"),
            }
        }
        "ExternalName" => service.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses or names of a load balancer, each once, in order.
fn balancer(ingress: &[Value]) -> String {
    let given = ingress
        .iter()
        .map(|entry| or(word(entry, "ip"), word(entry, "hostname")));
    let given: BTreeSet<&str> = given.filter(|address| !address.is_empty()).collect();
    given.into_iter().collect::<Vec<_>>().join(",")
}

fn endpoints(subsets: &[Value]) -> String {
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses: Vec<&str> = subset["addresses"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| word(one, "ip"))
            .collect();
        let ports = subset["ports"].as_array().map_or(&[][..], Vec::as_slice);
        if ports.is_empty() {
            all.extend(addresses.iter().map(|address| (*address).to_owned()));
        }
        for port in ports {
            let port = port["port"].as_i64().unwrap_or_default();
            all.extend(addresses.iter().map(|address| match address.contains(':') {
                true => format!("[{address}]:{port}"),
                false => format!("{address}:{port}"),
            }));
        }
    }
    first_few(&all, SHOWN, ",")
}

fn slice_port(port: &Value) -> String {
    match (port["port"].as_i64(), port["name"].as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    }
}

/// The hosts of the first rules; how many more is told by rules, as not every rule has a host.
fn hosts(rules: &[Value]) -> String {
    let named = rules
        .iter()
        .enumerate()
        .map(|(at, rule)| (at, word(rule, "host")));
    let named = named.filter(|(_, host)| !host.is_empty()).take(SHOWN);
    let (places, hosts): (Vec<usize>, Vec<&str>) = named.unzip();
    match places.last() {
        None => "*".to_owned(),
        Some(last) if hosts.len() == SHOWN && last + 1 < rules.len() => {
            format!("{} + {} more...", hosts.join(","), rules.len() - SHOWN)
        }
        Some(_) => hosts.join(","),
    }
}
