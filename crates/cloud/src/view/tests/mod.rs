//! What nodes must hold, told as stories; the same against a plain model is in `model`.

mod model;

use bytes::Bytes;
use object::Object;
use serde_json::{Value, json};

use super::*;

fn of_kind(kind: Kind) -> Resource {
    resource(kind)
}

fn object(resource: &Resource, namespace: &str, name: &str, mut body: Value) -> Object {
    body["metadata"]["name"] = name.into();
    body["metadata"]["namespace"] = namespace.into();
    body["metadata"]["uid"] = name.into();
    body["metadata"]["resourceVersion"] = "1".into();
    let bytes = Bytes::from(body.to_string());
    Object::parse(resource, bytes, &[]).unwrap()
}

fn put(views: &mut Views, kind: Kind, name: &str, body: Value) -> Changed {
    let resource = of_kind(kind);
    let namespace = match kind {
        Kind::Volume | Kind::Attachment => "",
        _ => "shop",
    };
    let object = object(&resource, namespace, name, body);
    views.put(&resource, &object.header, &object.bytes).unwrap()
}

fn delete(views: &mut Views, kind: Kind, name: &str) -> Changed {
    views.delete(&of_kind(kind), &ObjectName::from_path(name))
}

fn settle(views: &mut Views, input: Input) -> Vec<Changed> {
    [Kind::Pod, Kind::Volume, Kind::Attachment]
        .map(|kind| views.input(&of_kind(kind), input))
        .into()
}

fn complete() -> Views {
    let mut views = Views::new(Policy::default());
    settle(&mut views, Input::Complete);
    views
}

/// A pod that mounts secrets.
fn pod(node: &str, secrets: &[&str]) -> Value {
    let volumes: Vec<Value> = secrets
        .iter()
        .map(|name| json!({"secret": {"secretName": name}}))
        .collect();
    json!({"spec": {"nodeName": node, "volumes": volumes}})
}

fn names(views: &Views, node: &str, kind: Kind) -> Option<Vec<String>> {
    let scopes = views.scopes(&node.into(), &of_kind(kind))?;
    let name = |scope: &Scope| match &scope.range {
        Range::Name(name) => name.to_string(),
        other => panic!("{other}"),
    };
    Some(scopes.iter().map(name).collect())
}

fn secrets(views: &Views, node: &str) -> Vec<String> {
    names(views, node, Kind::Secret).unwrap()
}

fn listed(items: impl Iterator<Item = (Resource, impl ToString)>) -> Vec<String> {
    items
        .map(|(resource, name)| format!("{resource} {}", name.to_string()))
        .collect()
}

fn nodes(changed: &Changed) -> Vec<&str> {
    changed.nodes.iter().map(|node| &**node).collect()
}

#[test]
fn every_node_holds_itself_its_pods_and_what_is_shared() {
    let views = complete();
    let view = views.of(&"edge-1".into());
    let shown: Vec<String> = view
        .iter()
        .map(|(resource, scopes)| match &**scopes {
            [] => format!("{resource}: nothing"),
            [scope] => format!("{resource}: {}", scope.range),
            more => panic!("{more:?}"),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "configmaps: nothing",
            "csidrivers.storage.k8s.io: all",
            "csinodes.storage.k8s.io: name edge-1",
            "endpointslices.discovery.k8s.io: all",
            "namespaces: all",
            "nodes: name edge-1",
            "persistentvolumeclaims: nothing",
            "persistentvolumes: nothing",
            "pods: node edge-1",
            "resourceclaims.resource.k8s.io: nothing",
            "runtimeclasses.node.k8s.io: all",
            "secrets: nothing",
            "serviceaccounts: nothing",
            "services: all",
            "volumeattachments.storage.k8s.io: nothing",
        ]
    );
    assert!(view.keys().eq(views.resources()));
}

#[test]
fn what_is_shared_is_there_once_however_many_nodes_hold_it() {
    let views = complete();
    let services = Resource::new("", "services");
    let one = views.scopes(&"a".into(), &services).unwrap();
    let other = views.scopes(&"b".into(), &services).unwrap();
    assert!(Arc::ptr_eq(&one, &other));
}

#[test]
fn a_kind_that_is_shared_is_held_whole_and_not_by_name() {
    let nodes = Resource::new("", "nodes");
    let maps = Resource::new("", "configmaps");
    let policy = Policy::default().and([nodes.clone(), maps.clone()]);
    let views = Views::new(policy.unwrap());
    for resource in [nodes, maps] {
        let scopes = views.scopes(&"a".into(), &resource).unwrap();
        assert_eq!(*scopes, [Scope::all()]);
        let header = object(&resource, "", "a", json!({})).header;
        assert_eq!(views.holders(&resource, &header), Holders::Everyone);
    }
}

#[test]
fn a_secret_leaves_a_node_with_the_last_pod_that_names_it() {
    let mut views = complete();
    let first = put(&mut views, Kind::Pod, "a", pod("n1", &["s"]));
    assert_eq!(nodes(&first), ["n1"]);
    assert_eq!(listed(first.needed()), ["secrets shop/s"]);
    let second = put(&mut views, Kind::Pod, "b", pod("n1", &["s"]));
    assert!(second.is_empty());
    let ended = json!({"spec": pod("n1", &["s"])["spec"], "status": {"phase": "Failed"}});
    assert!(put(&mut views, Kind::Pod, "b", ended).is_empty());

    assert!(delete(&mut views, Kind::Pod, "shop/a").is_empty());
    assert_eq!(secrets(&views, "n1"), ["shop/s"]);
    let last = delete(&mut views, Kind::Pod, "shop/b");
    assert_eq!(nodes(&last), ["n1"]);
    assert_eq!(listed(last.released()), ["secrets shop/s"]);
    assert!(secrets(&views, "n1").is_empty());
    assert!(delete(&mut views, Kind::Pod, "shop/b").is_empty());
}

#[test]
fn a_pod_of_the_same_name_on_another_node_takes_its_names_along() {
    let mut views = complete();
    put(&mut views, Kind::Pod, "a", pod("n1", &["s", "t"]));
    let moved = put(&mut views, Kind::Pod, "a", pod("n2", &["s"]));
    assert_eq!(nodes(&moved), ["n1", "n2"]);
    assert_eq!(listed(moved.needed()), [""; 0]);
    assert_eq!(listed(moved.released()), ["secrets shop/t"]);
    assert!(secrets(&views, "n1").is_empty());
    assert_eq!(secrets(&views, "n2"), ["shop/s"]);
    let unbound = put(&mut views, Kind::Pod, "a", pod("", &["s"]));
    assert_eq!(nodes(&unbound), ["n2"]);
}

#[test]
fn a_volume_comes_through_the_claim_that_it_is_bound_to_and_brings_its_secrets() {
    let mut views = complete();
    let volume = |claim: &str| {
        json!({"spec": {"claimRef": {"namespace": "shop", "name": claim},
            "csi": {"nodeStageSecretRef": {"namespace": "store", "name": "key"}}}})
    };
    put(&mut views, Kind::Volume, "v", volume("web-data"));
    let pod = json!({"spec": {"nodeName": "n1", "volumes": [{"name": "data", "ephemeral": {}}]}});
    put(&mut views, Kind::Pod, "web", pod);
    let claims = names(&views, "n1", Kind::Claim);
    assert_eq!(claims, Some(vec!["shop/web-data".into()]));
    assert_eq!(names(&views, "n1", Kind::Volume), Some(vec!["v".into()]));
    assert_eq!(secrets(&views, "n1"), ["store/key"]);

    let moved = put(&mut views, Kind::Volume, "v", volume("other"));
    assert_eq!(nodes(&moved), ["n1"]);
    assert_eq!(names(&views, "n1", Kind::Volume), Some(vec![]));
    put(&mut views, Kind::Volume, "v", volume("web-data"));
    delete(&mut views, Kind::Pod, "shop/web");
    assert!(secrets(&views, "n1").is_empty());
}

#[test]
fn a_mirror_pod_gives_its_node_nothing() {
    let mut views = complete();
    let mut mirror = pod("n1", &["s"]);
    mirror["metadata"]["annotations"] = json!({object::references::MIRROR: "x"});
    assert!(put(&mut views, Kind::Pod, "a", mirror).is_empty());
    let mut shy = pod("n1", &["s"]);
    shy["metadata"]["annotations"] = json!({"other": "x"});
    assert!(!put(&mut views, Kind::Pod, "a", shy).is_empty());
}

#[test]
fn what_was_never_complete_is_in_no_view() {
    let mut views = Views::new(Policy::default());
    put(&mut views, Kind::Pod, "a", pod("n1", &["s"]));
    assert_eq!(names(&views, "n1", Kind::Secret), None);
    assert_eq!(names(&views, "n1", Kind::ConfigMap), None);
    assert!(views.is_needed(&of_kind(Kind::Secret), &ObjectName::from_path("shop/s")));

    let pods = views.input(&of_kind(Kind::Pod), Input::Complete);
    assert!(pods.everyone);
    assert_eq!(names(&views, "n1", Kind::ConfigMap), Some(vec![]));
    assert_eq!(
        names(&views, "n1", Kind::Secret),
        None,
        "volumes name secrets too"
    );
    assert!(
        views
            .input(&of_kind(Kind::Volume), Input::Complete)
            .everyone
    );
    assert_eq!(secrets(&views, "n1"), ["shop/s"]);
    assert!(
        !views
            .input(&of_kind(Kind::Volume), Input::Complete)
            .everyone
    );
}

#[test]
fn frozen_views_grow_and_do_not_shrink() {
    let mut views = complete();
    put(&mut views, Kind::Pod, "a", pod("n1", &["s", "t"]));
    settle(&mut views, Input::Frozen);
    let shrunk = put(&mut views, Kind::Pod, "a", pod("n1", &["t", "u"]));
    assert_eq!(listed(shrunk.released()), [""; 0]);
    assert!(delete(&mut views, Kind::Pod, "shop/a").is_empty());
    assert_eq!(secrets(&views, "n1"), ["shop/s", "shop/t", "shop/u"]);
    put(&mut views, Kind::Pod, "b", pod("n1", &["t"]));

    let changed = settle(&mut views, Input::Complete);
    assert_eq!(
        changed.iter().map(nodes).collect::<Vec<_>>().concat(),
        ["n1"]
    );
    assert_eq!(secrets(&views, "n1"), ["shop/t"]);
}

#[test]
fn a_pod_that_cannot_be_read_changes_nothing_and_is_reported() {
    let mut views = complete();
    put(&mut views, Kind::Pod, "a", pod("n1", &["s"]));
    let pods = of_kind(Kind::Pod);
    let odd = json!({"spec": {"nodeName": "n1", "volumes": 7}});
    let odd = object(&pods, "shop", "a", odd);
    let refused = views.put(&pods, &odd.header, &odd.bytes).unwrap_err();
    assert!(matches!(refused.cause, Cause::Form(_)));
    assert_eq!(refused.to_string(), "cannot read what shop/a of pods names");
    let many: Vec<String> = (0..=POD_NAMES_MAX)
        .map(|number| format!("s{number}"))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let greedy = object(&pods, "shop", "a", pod("n1", &many));
    let refused = views.put(&pods, &greedy.header, &greedy.bytes).unwrap_err();
    assert!(matches!(refused.cause, Cause::TooMany(4097)));
    assert_eq!(secrets(&views, "n1"), ["shop/s"]);
}

#[test]
fn a_view_has_no_more_names_than_a_hello_can_carry() {
    let mut views = complete();
    for part in 0..5 {
        let few: Vec<String> = (0..4000)
            .map(|number| format!("s{part}-{number}"))
            .collect();
        let few: Vec<&str> = few.iter().map(String::as_str).collect();
        put(&mut views, Kind::Pod, &format!("p{part}"), pod("n1", &few));
    }
    assert_eq!(secrets(&views, "n1").len(), NAMES_MAX);
    assert_eq!(views.left_out(&"n1".into()), 20_000 - NAMES_MAX);
    delete(&mut views, Kind::Pod, "shop/p0");
    assert_eq!(secrets(&views, "n1").len(), 16_000);
    assert_eq!(views.left_out(&"n1".into()), 0);
}

#[test]
fn a_change_concerns_the_nodes_that_hold_the_object() {
    let mut views = complete();
    put(&mut views, Kind::Pod, "a", pod("n2", &["s"]));
    put(&mut views, Kind::Pod, "b", pod("n1", &["s"]));
    let these = |names: &[&str]| Holders::These(names.iter().map(|name| (*name).into()).collect());
    let ask = |resource: &Resource, name: &str, body: Value| {
        views.holders(resource, &object(resource, "shop", name, body).header)
    };
    let pods = of_kind(Kind::Pod);
    assert_eq!(
        ask(&of_kind(Kind::Secret), "s", json!({})),
        these(&["n1", "n2"])
    );
    assert_eq!(ask(&of_kind(Kind::Secret), "t", json!({})), these(&[]));
    assert_eq!(ask(&pods, "z", pod("n9", &[])), these(&["n9"]));
    assert_eq!(ask(&pods, "z", pod("", &[])), these(&[]));
    let nodes = Resource::new("", "nodes");
    let node = object(&nodes, "", "n3", json!({}));
    assert_eq!(views.holders(&nodes, &node.header), these(&["n3"]));
    let ours = Resource::new("holdfast.dev", "nodesyncs");
    assert_eq!(ask(&ours, "n1", json!({})), these(&[]));
    assert!(views.scopes(&"n1".into(), &ours).is_none());
}

#[test]
fn pods_of_one_workload_share_the_list_of_what_they_name() {
    let mut views = complete();
    for number in 0..100 {
        let node = format!("n{number}");
        put(
            &mut views,
            Kind::Pod,
            &format!("p{number}"),
            pod(&node, &["s", "t"]),
        );
    }
    assert_eq!(views.graph.lists(), 1);
    for number in 0..100 {
        delete(&mut views, Kind::Pod, &format!("shop/p{number}"));
    }
    assert_eq!(views.graph.lists(), 0);
}

#[test]
fn a_kind_that_is_not_spoken_of_stays_and_one_that_is_ended_goes() {
    let kind = Resource::new("example.com", "recipes");
    let node: NodeName = "n".into();
    let shared = Policy::default().and([kind.clone()]).unwrap();
    let shared = Views::new(shared);
    assert_eq!(shared.scopes(&node, &kind).unwrap().len(), 1);
    let silent = Views::new(Policy::default());
    assert_eq!(
        silent.scopes(&node, &kind),
        None,
        "nodes keep what they have"
    );
    let ended = Policy::default().ending([kind.clone()]).unwrap();
    let ended = Views::new(ended);
    assert_eq!(ended.scopes(&node, &kind).unwrap().len(), 0);
    assert!(ended.resources().contains(&kind), "it is followed");
    assert!(ended.of(&node).contains_key(&kind));
}
