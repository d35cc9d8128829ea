//! The plan, played against a cluster that is a map.

mod cluster;
mod model;
mod stories;

use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::view::Policy;
use cluster::Cluster;

const NOW: Duration = Duration::ZERO;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn records(mode: Mode) -> Records {
    let mut records = Records::new(mode, Policy::default());
    records.describe(Resource::new("", "pods"), "v1", "Pod");
    records.describe(Resource::new("", "nodes"), "v1", "Node");
    records.describe(Resource::new("", "services"), "v1", "Service");
    records
}

fn holding(resource: &str, name: &str, uid: &str, version: u64) -> Holding {
    Holding {
        resource: Resource::new("", resource),
        name: ObjectName::from_path(name),
        uid: uid.into(),
        version: version.to_string().parse().unwrap(),
    }
}

fn pod(uid: &str, version: u64) -> Holding {
    holding("pods", "shop/web", uid, version)
}

fn summary(objects: u64) -> Summary {
    Summary {
        hub: "hub-1".into(),
        session: 7,
        link: Link::Connected("2026-01-01T12:00:00.7Z".parse().unwrap()),
        resources: vec![ResourceSummary {
            resource: Resource::new("", "pods"),
            version: Some("41".parse().unwrap()),
            objects,
            digest_equal: Some(true),
            since: "2026-01-01T12:00:01Z".parse().unwrap(),
        }],
        set_aside: Vec::new(),
        sent: 10,
        received: 20,
    }
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}
