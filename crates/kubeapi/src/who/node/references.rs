//! What a pod and a volume name: the fields of the objects that matter here, and nothing else of
//! them.

use object::ObjectName;
use serde::Deserialize;

use super::graph::Kind;
use crate::who::Metadata;
use crate::who::rbac::or_default;

/// The annotation of a pod that mirrors one which the node runs from a file.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

/// A field that is null is a field that is not there; so the fields here are all optional.
macro_rules! fields {
    ($(struct $name:ident { $($(#[$attr:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            #[derive(Debug, Clone, Default, Deserialize)]
            #[serde(rename_all = "camelCase", default)]
            pub(super) struct $name {
                $(
                    #[serde(deserialize_with = "or_default")]
                    $(#[$attr])*
                    pub(super) $field: $type,
                )*
            }
        )*
    };
}

fields! {
    struct Pod { metadata: Metadata, spec: PodSpec, status: PodStatus, }

    struct PodSpec {
        node_name: String,
        service_account_name: String,
        image_pull_secrets: Vec<Named>,
        containers: Vec<Container>,
        init_containers: Vec<Container>,
        ephemeral_containers: Vec<Container>,
        volumes: Vec<PodVolume>,
        resource_claims: Vec<PodClaim>,
    }

    struct PodStatus {
        resource_claim_statuses: Vec<PodClaim>,
        extended_resource_claim_status: PodClaim,
    }

    struct PodClaim {
        name: String,
        resource_claim_name: String,
        resource_claim_template_name: String,
    }

    struct Container { env_from: Vec<Source>, env: Vec<Variable>, }

    struct Variable { value_from: Source, }

    struct Source {
        secret_ref: Named,
        config_map_ref: Named,
        secret_key_ref: Named,
        config_map_key_ref: Named,
    }

    struct PodVolume {
        name: String,
        secret: SecretVolume,
        config_map: Named,
        projected: Projected,
        persistent_volume_claim: ClaimVolume,
        ephemeral: Option<serde::de::IgnoredAny>,
        azure_file: SecretVolume,
        cephfs: WithSecret,
        cinder: WithSecret,
        flex_volume: WithSecret,
        rbd: WithSecret,
        #[serde(rename = "scaleIO")]
        scale_io: WithSecret,
        iscsi: WithSecret,
        storageos: WithSecret,
        csi: Csi,
    }

    struct SecretVolume { secret_name: String, secret_namespace: String, }
    struct ClaimVolume { claim_name: String, }
    struct Projected { sources: Vec<ProjectedSource>, }
    struct ProjectedSource { secret: Named, config_map: Named, }
    struct WithSecret { secret_ref: Named, }
    struct Csi {
        node_publish_secret_ref: Named,
        node_stage_secret_ref: Named,
        node_expand_secret_ref: Named,
    }
    struct Named { name: String, namespace: String, }

    struct PersistentVolume { spec: VolumeSpec, }
    struct VolumeSpec {
        claim_ref: Named,
        azure_file: SecretVolume,
        cephfs: WithSecret,
        cinder: WithSecret,
        flex_volume: WithSecret,
        rbd: WithSecret,
        #[serde(rename = "scaleIO")]
        scale_io: WithSecret,
        iscsi: WithSecret,
        storageos: WithSecret,
        csi: Csi,
    }

    struct Attachment { spec: OwnedByNode, }
    struct Slice { spec: OwnedByNode, }
    struct OwnedByNode { node_name: String, }
}

impl Pod {
    /// Whether the pod mirrors one that its node runs from a file.
    pub(super) fn is_mirror(&self) -> bool {
        self.metadata.annotations.contains_key(MIRROR)
    }

    /// Everything that the pod names and its node may therefore read.
    ///
    /// A mirror pod names nothing: a node can write it, and must not be able to give itself
    /// anything by that.
    pub(super) fn names(&self, own: &ObjectName) -> Vec<(Kind, ObjectName)> {
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
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let pull = self.spec.image_pull_secrets.iter();
        let variables = self
            .sources()
            .flat_map(|source| [&source.secret_ref, &source.secret_key_ref]);
        let volumes = self.spec.volumes.iter().flat_map(PodVolume::secrets);
        let named = pull.chain(variables).map(|named| named.name.as_str());
        named.chain(volumes)
    }

    /// The configmaps that the pod names; empty names among them.
    pub(super) fn config_maps(&self) -> impl Iterator<Item = &str> {
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
        let status = &self.status;
        let named = self.spec.resource_claims.iter().map(|claim| {
            let made = || {
                status
                    .resource_claim_statuses
                    .iter()
                    .find(|made| made.name == claim.name)
                    .map_or("", |made| made.resource_claim_name.as_str())
            };
            match (
                &*claim.resource_claim_name,
                &*claim.resource_claim_template_name,
            ) {
                ("", "") => "",
                ("", _) => made(),
                (name, _) => name,
            }
        });
        let extended = &status.extended_resource_claim_status.resource_claim_name;
        named.chain(std::iter::once(extended.as_str()))
    }

    fn sources(&self) -> impl Iterator<Item = &Source> {
        let spec = &self.spec;
        let containers = spec
            .containers
            .iter()
            .chain(&spec.init_containers)
            .chain(&spec.ephemeral_containers);
        containers.flat_map(|container| {
            let variables = container.env.iter().map(|variable| &variable.value_from);
            container.env_from.iter().chain(variables)
        })
    }
}

impl PodVolume {
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let by_reference = [
            &self.cephfs,
            &self.cinder,
            &self.flex_volume,
            &self.rbd,
            &self.scale_io,
            &self.iscsi,
            &self.storageos,
        ];
        let projected = self.projected.sources.iter().map(|source| &source.secret);
        let named = by_reference
            .into_iter()
            .map(|volume| &volume.secret_ref)
            .chain(projected)
            .chain([&self.csi.node_publish_secret_ref])
            .map(|named| named.name.as_str());
        [&self.secret, &self.azure_file]
            .into_iter()
            .map(|volume| volume.secret_name.as_str())
            .chain(named)
    }
}

impl PersistentVolume {
    /// The claim that the volume is bound to.
    pub(super) fn claim(&self) -> Option<ObjectName> {
        let claim = &self.spec.claim_ref;
        (!claim.name.is_empty()).then(|| ObjectName::new(&claim.namespace, &claim.name))
    }

    /// The secrets that a node needs to mount the volume. Those that only controllers need are not
    /// among them. Where no namespace is given, the claim's is meant, but for the kinds that always
    /// give one.
    pub(super) fn secrets(&self) -> Vec<ObjectName> {
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
