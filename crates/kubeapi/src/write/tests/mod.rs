//! Whole writes: what clients send, what is stored, what is refused and in which words.

mod create;
mod update;
mod delete;
mod defaults;
mod namespace;
mod service;
mod pod;
mod workload;
mod small;
mod patch;
mod cluster;
mod perform;

use serde_json::{Value, json};

use super::kinds::service::{NODE_PORTS, Network};
use super::update::Update;
use super::{
    Decision, Part, Surroundings, Target, create as creation, testing, update as updating,
};
use crate::Status;
use crate::catalog::Kind;

/// Creates `body` in the namespace `default`.
fn made(kind: &Kind, body: Value) -> Result<Value, Status> {
    let namespace = testing::namespace("default");
    let network = network();
    let inside = if kind.namespaced { "default" } else { "" };
    let target = Target {
        kind,
        namespace: inside,
        name: "",
    };
    let around = Surroundings {
        namespace: Some(&namespace),
        network: Some(&network),
        references: None,
        user: None,
    };
    creation::create(&target, body, &testing::stamp(), &around)
}

/// An object as it would be read after it was created.
fn stored(kind: &Kind, body: Value) -> Value {
    let mut object = made(kind, body).unwrap();
    object["metadata"]["resourceVersion"] = json!("10");
    object
}

/// Puts `body` in the place of `current`.
fn put(kind: &Kind, current: &Value, body: Value) -> Result<Decision, Status> {
    put_part(kind, Part::Whole, current, body)
}

fn put_part(kind: &Kind, part: Part, current: &Value, body: Value) -> Result<Decision, Status> {
    let network = network();
    let inside = if kind.namespaced { "default" } else { "" };
    let update = Update {
        target: Target {
            kind,
            namespace: inside,
            name: current["metadata"]["name"].as_str().unwrap(),
        },
        part,
        stamp: &testing::stamp(),
        around: Surroundings {
            namespace: None,
            network: Some(&network),
            references: None,
            user: None,
        },
    };
    updating::update(&update, current, body)
}

/// What `current` becomes when `change` is made to it.
fn changed(kind: &Kind, current: &Value, change: impl FnOnce(&mut Value)) -> Result<Value, Status> {
    let mut body = current.clone();
    change(&mut body);
    put(kind, current, body).map(|decision| match decision {
        Decision::Put(object) => object,
        Decision::Delete(_) | Decision::PutAndDelete(_) => panic!("it was deleted"),
        Decision::Unchanged => panic!("nothing changed"),
    })
}

/// The faults of a refusal, one by one.
fn faults(status: Status) -> Vec<String> {
    assert_eq!(status.code, 422, "{status}");
    let causes = status.details.unwrap().causes;
    causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect()
}

fn network() -> Network {
    let ranges = vec![
        "10.96.0.0/16".parse().unwrap(),
        "fd00:10::/108".parse().unwrap(),
    ];
    Network::new(ranges, NODE_PORTS)
}

fn pods() -> Kind {
    testing::kind("v1", "Pod", "pods")
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}
    })
}

fn config_maps() -> Kind {
    testing::plain_kind("v1", "ConfigMap", "configmaps")
}

fn config_map() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}
    })
}

fn deployments() -> Kind {
    testing::kind("apps/v1", "Deployment", "deployments")
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]}
            }
        }
    })
}
