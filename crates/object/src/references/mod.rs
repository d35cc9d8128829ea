//! What a node needs because of the pods that are bound to it: the fields of pods and volumes that
//! name other objects, and nothing else of them.
//!
//! One reading for two uses: the Node authorizer asks whether a node may read an object, a hub asks
//! which objects it must hold. So a hub never gives a node what the authorizer would not.

mod fields; // the few fields that are read, as structs

use serde::Deserialize;

use crate::ObjectName;
use fields::{ClaimStatus, ContainerFields, Named, PodSpec, PodStatus, Source, VolumeSpec};

/// The annotation of a pod that mirrors one which the node runs from a file.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// What a node can need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A pod that is bound to the node.
    Pod,
    /// A secret that such a pod names, or a volume of such a pod.
    Secret,
    /// A configmap that such a pod names.
    ConfigMap,
    /// The service account of such a pod.
    ServiceAccount,
    /// A claim on a volume that such a pod names, or that is made for it.
    Claim,
    /// A volume that is bound to such a claim.
    Volume,
    /// A claim on a device that such a pod names, or that is made for it.
    ResourceClaim,
    /// The attachment of a volume to the node.
    Attachment,
    /// A slice of the node's devices.
    Slice,
}

impl Kind {
    /// The resource, as [`crate::Resource::as_str`] writes it.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Pod => "pods",
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
            Self::ServiceAccount => "serviceaccounts",
            Self::Claim => "persistentvolumeclaims",
            Self::Volume => "persistentvolumes",
            Self::ResourceClaim => "resourceclaims.resource.k8s.io",
            Self::Attachment => "volumeattachments.storage.k8s.io",
            Self::Slice => "resourceslices.resource.k8s.io",
        }
    }
}

/// What is read of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    #[serde(deserialize_with = "fields::or_default")]
    metadata: fields::Metadata,
    #[serde(deserialize_with = "fields::or_default")]
    spec: PodSpec,
    #[serde(deserialize_with = "fields::or_default")]
    status: PodStatus,
}

impl Pod {
    /// The node that the pod is bound to, or an empty string.
    pub fn node(&self) -> &str {
        &self.spec.node_name
    }

    /// The pod's service account, or an empty string.
    pub fn service_account(&self) -> &str {
        &self.spec.service_account_name
    }

    /// Whether the pod has claims on devices.
    pub fn claims_devices(&self) -> bool {
        !self.spec.resource_claims.is_empty()
    }

    /// Whether the pod mirrors one that its node runs from a file.
    pub fn is_mirror(&self) -> bool {
        self.metadata.annotations.mirrors
    }

    /// Everything that the pod names and its node may therefore read, in order and each once.
    ///
    /// A mirror pod names nothing: a node can write it, and must not be able to give itself
    /// anything by that.
    pub fn names(&self, own: &ObjectName) -> Vec<(Kind, ObjectName)> {
        if self.is_mirror() {
            return Vec::new();
        }
        let namespace = own.namespace();
        let mut found = Vec::new();
        let mut add = |kind: Kind, name: &str| {
            if !name.is_empty() {
                found.push((kind, ObjectName::new(namespace, name)));
            }
        };
        add(Kind::ServiceAccount, &self.spec.service_account_name);
        self.secrets().for_each(|name| add(Kind::Secret, name));
        self.config_maps()
            .for_each(|name| add(Kind::ConfigMap, name));
        for volume in &self.spec.volumes {
            match &volume.ephemeral {
                Some(_) => add(Kind::Claim, &format!("{}-{}", own.name(), volume.name)),
                None => add(Kind::Claim, &volume.persistent_volume_claim.claim_name),
            }
        }
        self.resource_claims()
            .for_each(|name| add(Kind::ResourceClaim, name));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The secrets that the pod names; empty names among them.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let pull = self.spec.image_pull_secrets.iter();
        let variables = self
            .sources()
            .flat_map(|source| [&source.secret_ref, &source.secret_key_ref]);
        let volumes = self
            .spec
            .volumes
            .iter()
            .flat_map(fields::PodVolume::secrets);
        let named = pull.chain(variables).map(|named| named.name.as_str());
        named.chain(volumes)
    }

    /// The configmaps that the pod names; empty names among them.
    pub fn config_maps(&self) -> impl Iterator<Item = &str> {
        let variables = self
            .sources()
            .flat_map(|source| [&source.config_map_ref, &source.config_map_key_ref]);
        let volumes = self.spec.volumes.iter().flat_map(|volume| {
            let projected = volume.projected.sources.iter();
            std::iter::once(&volume.config_map).chain(projected.map(|source| &source.config_map))
        });
        variables.chain(volumes).map(|named| named.name.as_str())
    }

    /// Claims on devices: named in the pod, or made for it and named in its status.
    fn resource_claims(&self) -> impl Iterator<Item = &str> {
        let made: &[ClaimStatus] = &self.status.resource_claim_statuses;
        let named = self.spec.resource_claims.iter().map(|claim| {
            let from_template = || {
                made.iter()
                    .find(|made| made.name == claim.name)
                    .map_or("", |made| made.resource_claim_name.as_str())
            };
            match (
                &*claim.resource_claim_name,
                &*claim.resource_claim_template_name,
            ) {
                ("", "") => "",
                ("", _) => from_template(),
                (name, _) => name,
            }
        });
        let extended = &self
            .status
            .extended_resource_claim_status
            .resource_claim_name;
        named.chain(std::iter::once(extended.as_str()))
    }

    fn sources(&self) -> impl Iterator<Item = &Source> {
        let spec = &self.spec;
        let containers = spec
            .containers
            .iter()
            .chain(&spec.init_containers)
            .chain(&spec.ephemeral_containers);
        containers.flat_map(|container: &ContainerFields| {
            let variables = container.env.iter().map(|variable| &variable.value_from);
            container.env_from.iter().chain(variables)
        })
    }
}

/// What is read of a persistent volume.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    #[serde(deserialize_with = "fields::or_default")]
    spec: VolumeSpec,
}

impl PersistentVolume {
    /// The claim that the volume is bound to.
    pub fn claim(&self) -> Option<ObjectName> {
        let claim = &self.spec.claim_ref;
        (!claim.name.is_empty()).then(|| ObjectName::new(&claim.namespace, &claim.name))
    }

    /// The secrets that a node needs to mount the volume. Those that only controllers need are not
    /// among them. Where no namespace is given, the claim's is meant, but for the kinds that always
    /// give one.
    pub fn secrets(&self) -> Vec<ObjectName> {
        let spec = &self.spec;
        let azure = Named {
            name: spec.azure_file.secret_name.clone(),
            namespace: spec.azure_file.secret_namespace.clone(),
        };
        let near_claim = [
            &azure,
            &spec.cephfs.secret_ref,
            &spec.flex_volume.secret_ref,
            &spec.rbd.secret_ref,
            &spec.scale_io.secret_ref,
            &spec.iscsi.secret_ref,
        ];
        let elsewhere = [
            &spec.cinder.secret_ref,
            &spec.storageos.secret_ref,
            &spec.csi.node_publish_secret_ref,
            &spec.csi.node_stage_secret_ref,
            &spec.csi.node_expand_secret_ref,
        ];
        let near_claim = near_claim.into_iter().map(|named| match &*named.namespace {
            "" => (spec.claim_ref.namespace.as_str(), named),
            namespace => (namespace, named),
        });
        let elsewhere = elsewhere
            .into_iter()
            .map(|named| (named.namespace.as_str(), named));
        near_claim
            .chain(elsewhere)
            .filter(|(_, named)| !named.name.is_empty())
            .map(|(namespace, named)| ObjectName::new(namespace, &named.name))
            .collect()
    }
}

/// What is read of an object that belongs to a node: the attachment of a volume, a slice of
/// devices.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Owned {
    #[serde(deserialize_with = "fields::or_default")]
    spec: fields::OwnedSpec,
}

impl Owned {
    /// The node that it belongs to, or an empty string.
    pub fn node(&self) -> &str {
        &self.spec.node_name
    }
}

#[cfg(test)]
mod tests;
