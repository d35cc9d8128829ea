//! A node's summary: how far it is, and what stands in the way.

use jiff::Timestamp;
use object::{ObjectName, Resource, Version};
use serde_json::{Value, json};

/// Objects that a summary names which a node could not take; of more, only the number is told.
const SET_ASIDE_MAX: usize = 100;
/// Resources that a summary lists; the first by name.
const RESOURCES_MAX: usize = 1024;
/// Bytes of the words on why an object was set aside.
const WHY_BYTES_MAX: usize = 1024;

/// How far a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The hub that the node is connected to, or was last.
    pub hub: Box<str>,
    /// The number of the session.
    pub session: u64,
    /// Whether it is connected, and since when.
    pub link: Link,
    /// Of each resource.
    pub resources: Vec<ResourceSummary>,
    /// What it could not take.
    pub set_aside: Vec<SetAside>,
    /// Bytes to the node in this session.
    pub sent: u64,
    /// Bytes from the node in this session.
    pub received: u64,
}

/// Whether a node is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// It is, since then.
    Connected(Timestamp),
    /// It is not, since then.
    Disconnected(Timestamp),
}

/// How far a node is with a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceSummary {
    /// The resource.
    pub resource: Resource,
    /// Up to where the node has everything, if it ever had.
    pub version: Option<Version>,
    /// How many objects it holds.
    pub objects: u64,
    /// Whether it holds exactly what it must; nothing if that was not compared.
    pub digest_equal: Option<bool>,
    /// Since when that is so.
    pub since: Timestamp,
}

/// An object that a node could not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Its resource.
    pub resource: Resource,
    /// Its name.
    pub name: ObjectName,
    /// Why, in the node's words.
    pub why: Box<str>,
}

impl Summary {
    /// The status of the node's record. What is not known is null, which takes it out.
    pub(super) fn to_json(&self) -> Value {
        let (connected, since) = match self.link {
            Link::Connected(since) => (true, since),
            Link::Disconnected(since) => (false, since),
        };
        let at = |wanted: bool| (connected == wanted).then(|| stamp(since));
        let equal = |resource: &ResourceSummary| resource.digest_equal == Some(true);
        let objects = self.resources.iter().map(|resource| resource.objects);
        let resources = self.resources.iter().take(RESOURCES_MAX);
        let set_aside = self.set_aside.iter().take(SET_ASIDE_MAX);
        json!({
            "hub": self.hub,
            "session": bounded(self.session),
            "connected": connected,
            "since": stamp(since),
            "connectedSince": at(true),
            "disconnectedSince": at(false),
            "inSync": self.set_aside.is_empty() && self.resources.iter().all(equal),
            "objects": bounded(objects.fold(0, u64::saturating_add)),
            "resources": resources.map(ResourceSummary::to_json).collect::<Vec<_>>(),
            "setAside": set_aside.map(SetAside::to_json).collect::<Vec<_>>(),
            "setAsideTotal": self.set_aside.len(),
            "bytes": {"sent": bounded(self.sent), "received": bounded(self.received)},
        })
    }
}

impl ResourceSummary {
    fn to_json(&self) -> Value {
        let mut json = json!({
            "resource": self.resource.as_str(),
            "objects": bounded(self.objects),
            "since": stamp(self.since),
        });
        // A null within a list would stay, where it is no value of the field's type.
        if let Some(version) = &self.version {
            json["version"] = version.to_string().into();
        }
        if let Some(equal) = self.digest_equal {
            json["digestEqual"] = equal.into();
        }
        json
    }
}

impl SetAside {
    fn to_json(&self) -> Value {
        let why = &self.why[..self.why.floor_char_boundary(WHY_BYTES_MAX)];
        json!({"resource": self.resource.as_str(), "name": self.name.as_str(), "why": why})
    }
}

/// A number that fits into the format of the field.
fn bounded(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A moment as objects have it: whole seconds, in UTC.
fn stamp(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
