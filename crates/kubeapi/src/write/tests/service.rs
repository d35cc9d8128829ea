//! Services: addresses, families, node ports, and what a change of type does to them.

use std::collections::HashSet;

use serde_json::json;

use super::*;
use crate::write::kinds::service::AddressRange;

fn kind() -> Kind {
    testing::kind("v1", "Service", "services")
}

fn service(spec: Value) -> Value {
    let mut spec = spec;
    if spec.get("ports").is_none() {
        spec["ports"] = json!([{"port": 80}]);
    }
    json!({"metadata": {"name": "s"}, "spec": spec})
}

fn made_in(network: &Network, spec: Value) -> Result<Value, Status> {
    let namespace = testing::namespace("default");
    let kind = kind();
    let target = Target {
        kind: &kind,
        namespace: "default",
        name: "",
    };
    let around = Surroundings {
        namespace: Some(&namespace),
        network: Some(network),
        references: None,
        user: None,
    };
    creation::create(&target, service(spec), &testing::stamp(), &around)
}

fn single() -> Network {
    Network::new(vec!["10.96.0.0/16".parse().unwrap()], NODE_PORTS)
}

#[test]
fn a_plain_service_gets_an_address_and_its_defaults() {
    let object = made(&kind(), service(json!({"selector": {"a": "b"}}))).unwrap();
    let spec = &object["spec"];
    let address = spec["clusterIP"].as_str().unwrap();
    assert!(address.starts_with("10.96."), "{address}");
    assert_eq!(spec["clusterIPs"], json!([address]));
    assert_eq!(spec["ipFamilies"], json!(["IPv4"]));
    assert_eq!(spec["ipFamilyPolicy"], "SingleStack");
    assert_eq!(spec["type"], "ClusterIP");
    assert_eq!(spec["sessionAffinity"], "None");
    assert_eq!(spec["internalTrafficPolicy"], "Cluster");
    assert_eq!(
        spec["ports"],
        json!([{"port": 80, "protocol": "TCP", "targetPort": 80}])
    );
    assert_eq!(object["status"], json!({"loadBalancer": {}}));
}

#[test]
fn an_address_that_is_asked_for_is_had_once_and_only_in_the_range() {
    let mut network = single();
    let first = made_in(&network, json!({"clusterIP": "10.96.0.10"})).unwrap();
    assert_eq!(first["spec"]["clusterIPs"], json!(["10.96.0.10"]));
    network.take(&first);
    let status = made_in(&network, json!({"clusterIP": "10.96.0.10"})).unwrap_err();
    assert_eq!(
        faults(status),
        [
            "spec.clusterIPs: Invalid value: [\"10.96.0.10\"]: failed to allocate IP 10.96.0.10: \
             provided IP is already allocated"
        ]
    );
    let status = made_in(&network, json!({"clusterIP": "10.1.0.1"})).unwrap_err();
    assert_eq!(
        faults(status),
        [
            "spec.clusterIPs: Invalid value: [\"10.1.0.1\"]: failed to allocate IP 10.1.0.1: the \
             provided network does not match the current range"
        ]
    );
    let status = made_in(&network, json!({"clusterIP": "x"})).unwrap_err();
    assert!(faults(status)[0].contains("must be a valid IP address"));
}

#[test]
fn two_families_are_given_as_they_are_asked_for() {
    let both = made(
        &kind(),
        service(json!({"ipFamilyPolicy": "PreferDualStack"})),
    )
    .unwrap();
    assert_eq!(both["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    let addresses = both["spec"]["clusterIPs"].as_array().unwrap();
    assert!(addresses[1].as_str().unwrap().starts_with("fd00:10::"));
    let six = made(&kind(), service(json!({"ipFamilies": ["IPv6"]}))).unwrap();
    assert!(
        six["spec"]["clusterIP"]
            .as_str()
            .unwrap()
            .starts_with("fd00:10::")
    );
    let asked = json!({"clusterIP": "fd00:10::7", "ipFamilyPolicy": "RequireDualStack"});
    let asked = made(&kind(), service(asked)).unwrap();
    assert_eq!(asked["spec"]["ipFamilies"], json!(["IPv6", "IPv4"]));
    let alone = made_in(&single(), json!({"ipFamilyPolicy": "PreferDualStack"})).unwrap();
    assert_eq!(alone["spec"]["ipFamilies"], json!(["IPv4"]));
    let status = made_in(&single(), json!({"ipFamilyPolicy": "RequireDualStack"})).unwrap_err();
    assert_eq!(
        faults(status),
        [
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not \
             configured for dual-stack services"
        ]
    );
    let status = made_in(&single(), json!({"ipFamilies": ["IPv6"]})).unwrap_err();
    assert_eq!(
        faults(status),
        ["spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"]
    );
    let wrong = json!({"clusterIP": "10.96.0.9", "ipFamilies": ["IPv6"]});
    assert_eq!(
        faults(made(&kind(), service(wrong)).unwrap_err()),
        [
            "spec.clusterIPs[0]: Invalid value: \"10.96.0.9\": expected an IPv6 value as \
             indicated by `ipFamilies[0]`"
        ]
    );
}

#[test]
fn headless_and_external_services_get_no_address() {
    let headless = json!({"clusterIP": "None", "selector": {"a": "b"}});
    let headless = made(&kind(), service(headless)).unwrap();
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(headless["spec"]["ipFamilies"], json!(["IPv4"]));
    let bare = made_in(&single(), json!({"clusterIP": "None"})).unwrap();
    assert_eq!(bare["spec"]["ipFamilyPolicy"], "RequireDualStack");
    assert_eq!(bare["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    let external = json!({"type": "ExternalName", "externalName": "db.example.com."});
    let external = made(&kind(), service(external)).unwrap();
    assert_eq!(external["spec"].get("clusterIP"), None);
    assert_eq!(external["spec"].get("ipFamilies"), None);
    let told = faults(made(&kind(), service(json!({"type": "ExternalName"}))).unwrap_err());
    assert_eq!(told, ["spec.externalName: Required value"]);
}

#[test]
fn node_ports_are_given_once_and_shared_between_protocols() {
    let ports = json!([
        {"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"},
        {"name": "h", "port": 80, "nodePort": 30080}
    ]);
    let object = made(
        &kind(),
        service(json!({"type": "NodePort", "ports": ports})),
    )
    .unwrap();
    let ports = object["spec"]["ports"].as_array().unwrap();
    assert_eq!(ports[0]["nodePort"], ports[1]["nodePort"]);
    assert!((30000..=32767).contains(&ports[0]["nodePort"].as_i64().unwrap()));
    assert_eq!(ports[2]["nodePort"], 30080);
    assert_eq!(object["spec"]["externalTrafficPolicy"], "Cluster");
    let mut network = network();
    network.take(&object);
    let again = json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 30080}]});
    let status = made_in(&network, again).unwrap_err();
    assert_eq!(
        faults(status),
        ["spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"]
    );
    let outside = json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 80}]});
    assert_eq!(
        faults(made(&kind(), service(outside)).unwrap_err()),
        [
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. \
             The range of valid ports is 30000-32767"
        ]
    );
}

#[test]
fn a_load_balancer_that_keeps_to_its_node_gets_a_health_port() {
    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"});
    let object = made(&kind(), service(spec)).unwrap();
    assert_eq!(object["spec"]["allocateLoadBalancerNodePorts"], true);
    assert!(object["spec"]["healthCheckNodePort"].as_i64().unwrap() >= 30000);
    let none = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
    let none = made(&kind(), service(none)).unwrap();
    assert_eq!(none["spec"]["ports"][0].get("nodePort"), None);
}

#[test]
fn everyday_mistakes_are_told() {
    let told = |spec: Value| faults(made(&kind(), service(spec)).unwrap_err());
    assert_eq!(told(json!({"ports": []})), ["spec.ports: Required value"]);
    assert_eq!(
        told(json!({"ports": [{"port": 0}]})),
        [
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive"
        ]
    );
    assert_eq!(
        told(json!({"ports": [{"port": 1}, {"port": 1}]}))[..2],
        [
            "spec.ports[0].name: Required value",
            "spec.ports[1].name: Required value"
        ]
    );
    assert_eq!(
        told(json!({"type": "Other"})),
        [
            "spec.type: Unsupported value: \"Other\": supported values: \"ClusterIP\", \
             \"ExternalName\", \"LoadBalancer\", \"NodePort\""
        ]
    );
    assert_eq!(
        told(json!({"ports": [{"port": 80, "nodePort": 30000}]})),
        ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"]
    );
    assert_eq!(
        told(json!({"type": "NodePort", "clusterIP": "None"})),
        [
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort \
             services"
        ]
    );
    let protocol = json!({"ports": [{"port": 80, "protocol": "tcp"}]});
    assert_eq!(
        told(protocol),
        [
            "spec.ports[0].protocol: Unsupported value: \"tcp\": supported values: \"SCTP\", \
             \"TCP\", \"UDP\""
        ]
    );
}

#[test]
fn a_manifest_without_addresses_keeps_them() {
    let current = stored(&kind(), service(json!({"selector": {"a": "b"}})));
    let same = put(&kind(), &current, service(json!({"selector": {"a": "b"}}))).unwrap();
    assert_eq!(same, Decision::Unchanged);
    let node_port = stored(&kind(), service(json!({"type": "NodePort"})));
    let same = put(&kind(), &node_port, service(json!({"type": "NodePort"}))).unwrap();
    assert_eq!(same, Decision::Unchanged);
}

#[test]
fn an_address_does_not_change_once_set() {
    let current = stored(&kind(), service(json!({})));
    let status = changed(&kind(), &current, |body| {
        body["spec"]["clusterIP"] = json!("10.96.7.7")
    });
    assert_eq!(
        faults(status.unwrap_err()),
        ["spec.clusterIPs[0]: Invalid value: [\"10.96.7.7\"]: may not change once set"]
    );
}

#[test]
fn a_second_family_comes_and_goes_with_the_policy() {
    let current = stored(&kind(), service(json!({})));
    let both = changed(&kind(), &current, |body| {
        body["spec"]["ipFamilyPolicy"] = json!("PreferDualStack");
    });
    let both = both.unwrap();
    assert_eq!(both["spec"]["clusterIPs"].as_array().unwrap().len(), 2);
    assert_eq!(both["spec"]["clusterIPs"][0], current["spec"]["clusterIP"]);
    let back = changed(&kind(), &both, |body| {
        body["spec"]["ipFamilyPolicy"] = json!("SingleStack");
    });
    assert_eq!(back.unwrap()["spec"], current["spec"]);
    let status = changed(&kind(), &both, |body| {
        body["spec"]["clusterIPs"].as_array_mut().unwrap().pop();
    });
    assert_eq!(
        faults(status.unwrap_err()),
        [
            "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be 'SingleStack' to \
             release the secondary cluster IP"
        ]
    );
}

#[test]
fn a_change_of_type_gives_back_what_it_has_no_use_for() {
    let current = stored(&kind(), service(json!({"type": "NodePort"})));
    let plain = changed(&kind(), &current, |body| {
        body["spec"]["type"] = json!("ClusterIP")
    });
    let plain = plain.unwrap();
    assert_eq!(plain["spec"]["ports"][0].get("nodePort"), None);
    assert_eq!(plain["spec"].get("externalTrafficPolicy"), None);
    assert_eq!(plain["spec"]["clusterIP"], current["spec"]["clusterIP"]);
    let external = changed(&kind(), &plain, |body| {
        body["spec"]["type"] = json!("ExternalName");
        body["spec"]["externalName"] = json!("a.example");
    });
    let external = external.unwrap();
    for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        assert_eq!(external["spec"].get(key), None, "{key}");
    }
    let again = changed(&kind(), &external, |body| {
        body["spec"]["type"] = json!("ClusterIP")
    });
    assert!(
        again.unwrap()["spec"]["clusterIP"]
            .as_str()
            .unwrap()
            .starts_with("10.96.")
    );
}

#[test]
fn every_address_of_a_range_is_given_once_and_then_none() {
    let range: AddressRange = "10.0.0.0/27".parse().unwrap();
    assert_eq!(range.first().to_string(), "10.0.0.1");
    let mut network = Network::new(vec![range], NODE_PORTS);
    let mut seen = HashSet::new();
    for _ in 0..30 {
        let object = made_in(&network, json!({})).unwrap();
        let address = object["spec"]["clusterIP"].as_str().unwrap().to_owned();
        network.take(&object);
        assert!(seen.insert(address));
    }
    assert!(!seen.contains("10.0.0.0") && !seen.contains("10.0.0.31"));
    let status = made_in(&network, json!({})).unwrap_err();
    assert_eq!(
        status.message,
        "Internal error occurred: failed to allocate a serviceIP for Service \"s\": range is full"
    );
}

#[test]
fn a_range_is_an_address_and_a_prefix() {
    for wrong in [
        "",
        "10.0.0.0",
        "10.0.0.0/33",
        "10.0.0.0/0",
        "10.0.0.0/31",
        "x/8",
        "::/127",
    ] {
        assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
    }
    assert_eq!(
        "fd00::/8"
            .parse::<AddressRange>()
            .unwrap()
            .first()
            .to_string(),
        "fd00::1"
    );
}
