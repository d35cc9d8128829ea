//! What is stored now, as a write looks at it before it decides.

use object::{Object, ObjectName, Resource, Version};
use serde_json::Value;
use store::authority::{Action, Expect, Swap};

use super::outcome::parsed;
use super::perform::Writes;
use super::{Target, draft, meta};
use crate::Status;
use crate::custom::{self, removal};

/// An object that was read, and the version that a swap must find.
pub(super) struct Current {
    pub(super) value: Value,
    pub(super) version: Version,
}

impl Current {
    /// That this cluster-wide object is still so when something else is stored.
    pub(super) fn guard(self, resource: Resource) -> Swap {
        Swap {
            resource,
            name: ObjectName::new("", meta::name(&self.value)),
            expect: Expect::Version(self.version),
            action: Action::Check,
        }
    }
}

impl Writes {
    pub(super) fn namespace(&self, name: &str) -> Result<Option<Current>, Status> {
        self.clusterwide(&Resource::new("", "namespaces"), name)
    }

    /// The definition of a custom kind, refused where it is on its way out.
    pub(super) fn definition_of(
        &self,
        target: &Target,
        new: &str,
    ) -> Result<Option<Current>, Status> {
        if target.kind.custom.is_none() {
            return Ok(None);
        }
        let name = target.kind.resource().to_string();
        match self.clusterwide(&definitions(), &name)? {
            Some(definition) if meta::is_deleting(&definition.value) => {
                let (group, plural) = target.resource();
                Err(removal::no_create(group, plural, new))
            }
            definition => Ok(definition),
        }
    }

    pub(super) fn clusterwide(
        &self,
        resource: &Resource,
        name: &str,
    ) -> Result<Option<Current>, Status> {
        let Some(object) = self.object(resource, &ObjectName::new("", name))? else {
            return Ok(None);
        };
        Ok(Some(Current {
            value: parsed(&object)?,
            version: object.header.version,
        }))
    }

    pub(super) fn existing(
        &self,
        target: &Target,
        resource: &Resource,
        name: &ObjectName,
    ) -> Result<Option<Value>, Status> {
        let object = self.object(resource, name)?;
        let value = object.map(|object| parsed(&object)).transpose()?;
        Ok(value.map(|value| draft::from_stored(target.kind, value)))
    }

    pub(super) fn object(
        &self,
        resource: &Resource,
        name: &ObjectName,
    ) -> Result<Option<Object>, Status> {
        let unread = |error| {
            tracing::error!(%resource, %name, %error, "an object could not be read");
            Status::internal("the stored object could not be read")
        };
        self.authority
            .reader()
            .object(resource, name)
            .map_err(unread)
    }
}

pub(super) fn definitions() -> Resource {
    Resource::new(custom::GROUP, "customresourcedefinitions")
}
