//! A kind in one version of its group, as it is served.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use object::Resource;

use crate::custom::scale::ScalePaths;
use crate::schema::SchemaRef;

/// A kind in one version of its group.
#[derive(Debug, Clone)]
pub struct Kind {
    /// The API group, empty for the core group.
    pub group: Arc<str>,
    /// The version of the group: `v1`.
    pub version: Arc<str>,
    /// `Deployment`.
    pub kind: Arc<str>,
    /// `DeploymentList`.
    pub list_kind: Arc<str>,
    /// `deployments`.
    pub plural: Arc<str>,
    /// `deployment`.
    pub singular: Arc<str>,
    /// `deploy`.
    pub short_names: Vec<Arc<str>>,
    /// `all`.
    pub categories: Vec<Arc<str>>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What may be done with the main resource: `get`, `list`, `watch`, `create`, …
    pub verbs: Vec<Arc<str>>,
    /// `status`, `scale`, `token`, …
    pub subresources: Vec<Subresource>,
    /// The shape of an object, where it is known.
    pub schema: Option<SchemaRef>,
    /// What only custom kinds have.
    pub custom: Option<Arc<CustomKind>>,
    /// Whether a cluster elsewhere says so. Then nobody here can make another version of an object:
    /// it is shown as it is stored, or not at all.
    pub told: bool,
}

/// A part of an object that is read or written on its own.
#[derive(Debug, Clone)]
pub struct Subresource {
    /// `status`.
    pub name: Arc<str>,
    /// Group of the kind that goes in and out, empty for the core group.
    pub group: Arc<str>,
    /// Version of that kind.
    pub version: Arc<str>,
    /// `Pod`, `Scale`, `TokenRequest`, …
    pub kind: Arc<str>,
    /// What may be done with it.
    pub verbs: Vec<Arc<str>>,
}

/// What a CustomResourceDefinition says of one version of its kind.
#[derive(Debug, Clone, Default)]
pub struct CustomKind {
    /// additionalPrinterColumns.
    pub columns: Vec<PrinterColumn>,
    /// selectableFields: JSON paths such as `.spec.color`.
    pub selectable: Vec<Arc<str>>,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// The version that objects are stored in.
    pub stored_in: Arc<str>,
    /// What is kept of an object when it is stored, where that is not this version's own schema.
    pub stored_schema: Option<SchemaRef>,
    /// Unknown fields are kept everywhere (spec.preserveUnknownFields).
    pub preserve_unknown: bool,
    /// What users of this version are told, if it is deprecated.
    pub deprecation: Option<String>,
    /// Where its replicas stand, if it can be scaled.
    pub scale: Option<ScalePaths>,
}

/// An entry of additionalPrinterColumns.
#[derive(Debug, Clone)]
pub struct PrinterColumn {
    /// The heading.
    pub name: String,
    /// integer, number, string, boolean or date.
    pub kind: String,
    /// An OpenAPI format.
    pub format: String,
    /// Words for people.
    pub description: String,
    /// 0 shows in a narrow table, more in a wide one.
    pub priority: i32,
    /// Where the value stands in the object.
    pub json_path: String,
}

/// How every object begins that is stored; its version follows.
pub(crate) const LABEL: &[u8] = b"{\"apiVersion\":\"";
/// Of a hash of where objects are stored, this much is told.
const HASH_BYTES: usize = 8;

impl Kind {
    /// The resource as the API names it.
    pub fn resource(&self) -> Resource {
        Resource::new(&self.group, &self.plural)
    }

    /// What users of this kind are told, if it is deprecated.
    pub fn deprecation(&self) -> Option<String> {
        match &self.custom {
            Some(custom) => custom.deprecation.clone(),
            None if self.group.is_empty() && &*self.kind == "Endpoints" => {
                let instead = "discovery.k8s.io/v1 EndpointSlice";
                Some(format!(
                    "v1 Endpoints is deprecated in v1.33+; use {instead}"
                ))
            }
            None => None,
        }
    }

    /// The resource that objects of this kind are stored under: events of both groups are the same
    /// objects.
    pub fn stored_as(&self) -> Resource {
        match self.is_event_view() {
            true => Resource::new("", "events"),
            false => self.resource(),
        }
    }

    /// Whether objects of this kind are events as `events.k8s.io` shows them: stored in the older
    /// form.
    pub fn is_event_view(&self) -> bool {
        &*self.group == "events.k8s.io" && &*self.plural == "events"
    }

    /// Whether the store has objects of this kind in another version, which only the cluster can
    /// turn into this one.
    pub fn is_held_otherwise(&self) -> bool {
        let storage = self.custom.as_ref().is_none_or(|custom| custom.storage);
        self.told && !storage
    }

    /// Whether objects may lie here in another version than the cluster prefers by now. The core
    /// group has had one version ever since.
    pub fn may_differ(&self) -> bool {
        self.told && !self.group.is_empty() && !self.is_event_view()
    }

    /// Whether an object, as it is stored, is in the version of this kind.
    pub fn is_version_of(&self, bytes: &[u8]) -> bool {
        let rest = bytes.strip_prefix(LABEL);
        let rest = rest.and_then(|rest| rest.strip_prefix(self.api_version().as_bytes()));
        rest.is_some_and(|rest| rest.starts_with(b"\""))
    }

    /// Whether objects are stored in the form in which this kind shows them.
    pub fn is_stored_as_shown(&self) -> bool {
        let storage = self.custom.as_ref().is_none_or(|custom| custom.storage);
        storage && !self.is_event_view()
    }

    /// `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        match &*self.group {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// What names the version and kind that objects are stored as, for clients that must know
    /// whether it has changed. Nothing for what is not stored, nor where only the cluster knows.
    pub fn storage_hash(&self) -> Option<String> {
        if self.told {
            return None;
        }
        let version = match &self.custom {
            Some(custom) => &custom.stored_in,
            None => &self.version,
        };
        let group = match self.is_event_view() {
            true => "",
            false => &*self.group,
        };
        let name = format!("{group}/{version}/{}", self.kind);
        let hash = digest(&SHA256, name.as_bytes());
        self.allows("get")
            .then(|| STANDARD.encode(&hash.as_ref()[..HASH_BYTES]))
    }

    /// Whether this may be done with the main resource.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| &**allowed == verb)
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|candidate| &*candidate.name == name)
    }
}
