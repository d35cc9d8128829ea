//! Services, endpoints, ingresses and addresses.

use super::*;

#[test]
fn a_service_shows_where_it_is_reachable() {
    let service = |spec: Value, status: Value| {
        cells("", "Service", &object("s", spec, status))[1..5].join(" ")
    };
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP",
        "nodePort": 30053}]);
    let spec = json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1",
        "fd00::1"], "ports": ports});
    assert_eq!(
        service(spec, json!({})),
        "ClusterIP 10.0.0.1 <none> 80/TCP,53:30053/UDP"
    );
    assert_eq!(
        service(json!({"type": "ClusterIP", "clusterIP": "None"}), json!({})),
        "ClusterIP None <none> <none>"
    );
    let spec = json!({"type": "NodePort", "externalIPs": ["1.2.3.4", "5.6.7.8"]});
    assert_eq!(
        service(spec, json!({})),
        "NodePort <none> 1.2.3.4,5.6.7.8 <none>"
    );
    let balanced = |given: Value, fixed: Value| {
        let status = json!({"loadBalancer": {"ingress": given}});
        service(
            json!({"type": "LoadBalancer", "externalIPs": fixed}),
            status,
        )
    };
    assert_eq!(
        balanced(json!([]), json!([])),
        "LoadBalancer <none> <pending> <none>"
    );
    let given = json!([{"hostname": "b.example.com"}, {"ip": "9.9.9.9"}, {"ip": "9.9.9.9"}]);
    assert_eq!(
        balanced(given.clone(), json!([])),
        "LoadBalancer <none> 9.9.9.9,b.example.com <none>"
    );
    assert_eq!(
        balanced(given, json!(["1.1.1.1"])),
        "LoadBalancer <none> 9.9.9.9,b.example.com,1.1.1.1 <none>"
    );
    assert_eq!(
        balanced(json!([]), json!(["1.1.1.1"])),
        "LoadBalancer <none> 1.1.1.1 <none>"
    );
    let named = json!({"type": "ExternalName", "externalName": "x.example.com"});
    assert_eq!(
        service(named, json!({})),
        "ExternalName <none> x.example.com <none>"
    );
}

#[test]
fn endpoints_are_shown_up_to_three() {
    let shown = |subsets: Value| {
        cells(
            "",
            "Endpoints",
            &json!({"metadata": meta("e"), "subsets": subsets}),
        )[1]
        .clone()
    };
    let addresses = json!([{"ip": "10.0.0.1"}, {"ip": "fd00::2"}]);
    assert_eq!(shown(json!([])), "<none>");
    assert_eq!(
        shown(json!([{"addresses": addresses, "ports": [{"port": 80}]}])),
        "10.0.0.1:80,[fd00::2]:80"
    );
    assert_eq!(
        shown(json!([{"addresses": addresses, "ports": [{"port": 80}, {"port": 443}]}])),
        "10.0.0.1:80,[fd00::2]:80,10.0.0.1:443 + 1 more..."
    );
    assert_eq!(shown(json!([{"addresses": addresses}])), "10.0.0.1,fd00::2");
    assert_eq!(
        shown(json!([{"notReadyAddresses": addresses, "ports": [{"port": 80}]}])),
        ""
    );
}

#[test]
fn a_slice_of_endpoints_shows_ports_and_addresses() {
    let slice = json!({
        "metadata": meta("s"), "addressType": "IPv4",
        "ports": [{"port": 80, "name": "http"}, {"name": "any"}, {}],
        "endpoints": [
            {"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["10.0.0.3", "10.0.0.4"]},
        ],
    });
    assert_eq!(
        cells("discovery.k8s.io", "EndpointSlice", &slice),
        [
            "s",
            "IPv4",
            "80,any,*",
            "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more...",
            "3d"
        ]
    );
    let empty = json!({"metadata": meta("s"), "addressType": "IPv6"});
    assert_eq!(
        cells("discovery.k8s.io", "EndpointSlice", &empty)[2..4],
        ["<unset>", "<unset>"]
    );
}

#[test]
fn an_ingress_shows_hosts_and_ports() {
    let hosts = |hosts: &[&str]| {
        let rules: Vec<Value> = hosts.iter().map(|host| json!({"host": host})).collect();
        let spec = json!({"ingressClassName": "nginx", "rules": rules, "tls": [{}]});
        let status = json!({"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}});
        cells("networking.k8s.io", "Ingress", &object("i", spec, status)).join(" ")
    };
    assert_eq!(hosts(&["a", "b"]), "i nginx a,b 1.1.1.1 80, 443 3d");
    assert_eq!(
        hosts(&["a", "b", "c", "d", "e"]),
        "i nginx a,b,c + 2 more... 1.1.1.1 80, 443 3d"
    );
    assert_eq!(hosts(&["", ""]), "i nginx * 1.1.1.1 80, 443 3d");
    let bare = object("i", json!({}), json!({}));
    assert_eq!(
        cells("networking.k8s.io", "Ingress", &bare),
        ["i", "<none>", "*", "", "80", "3d"]
    );
}

#[test]
fn the_default_classes_are_marked() {
    let mut class = json!({"metadata": meta("nginx"), "spec": {"controller": "k8s.io/nginx",
        "parameters": {"apiGroup": "example.com", "kind": "Params", "name": "p"}}});
    class["metadata"]["annotations"] =
        json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    assert_eq!(
        cells("networking.k8s.io", "IngressClass", &class),
        [
            "nginx (default)",
            "k8s.io/nginx",
            "Params.example.com/p",
            "3d"
        ]
    );
    let mut class =
        json!({"metadata": meta("fast"), "provisioner": "disk.csi", "allowVolumeExpansion": true});
    assert_eq!(
        cells("storage.k8s.io", "StorageClass", &class),
        ["fast", "disk.csi", "Delete", "Immediate", "true", "3d"]
    );
    class["metadata"]["annotations"] =
        json!({"storageclass.kubernetes.io/is-default-class": "true"});
    assert_eq!(
        cells("storage.k8s.io", "StorageClass", &class)[0],
        "fast (default)"
    );
}

#[test]
fn addresses_name_what_has_them() {
    let parent =
        json!({"group": "", "resource": "services", "namespace": "default", "name": "web"});
    let address = json!({"metadata": meta("10.0.0.1"), "spec": {"parentRef": parent}});
    assert_eq!(
        cells("networking.k8s.io", "IPAddress", &address),
        ["10.0.0.1", "services/default/web"]
    );
    let range =
        json!({"metadata": meta("kubernetes"), "spec": {"cidrs": ["10.0.0.0/16", "fd00::/112"]}});
    assert_eq!(
        cells("networking.k8s.io", "ServiceCIDR", &range)[1],
        "10.0.0.0/16,fd00::/112"
    );
    let policy = json!({"metadata": meta("deny"), "spec": {"podSelector": {}}});
    assert_eq!(
        cells("networking.k8s.io", "NetworkPolicy", &policy),
        ["deny", "<none>", "3d"]
    );
}
