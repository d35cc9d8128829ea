//! The few fields of pods and volumes that are read. A field that is null is a field that is not
//! there, so all are optional; whatever else stands in an object is passed over.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::MIRROR;

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
    struct Metadata { annotations: Annotations, }

    struct PodSpec {
        node_name: String,
        service_account_name: String,
        image_pull_secrets: Vec<Named>,
        containers: Vec<ContainerFields>,
        init_containers: Vec<ContainerFields>,
        ephemeral_containers: Vec<ContainerFields>,
        volumes: Vec<PodVolume>,
        resource_claims: Vec<ClaimStatus>,
    }

    struct PodStatus {
        resource_claim_statuses: Vec<ClaimStatus>,
        extended_resource_claim_status: ClaimStatus,
    }

    struct ClaimStatus {
        name: String,
        resource_claim_name: String,
        resource_claim_template_name: String,
    }

    struct ContainerFields { env_from: Vec<Source>, env: Vec<Variable>, }

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
        ephemeral: Option<IgnoredAny>,
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

    struct OwnedSpec { node_name: String, }
}

impl PodVolume {
    /// The secrets that the volume names; empty names among them.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
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

/// Of a pod's annotations only one matters, and it only by being there.
#[derive(Debug, Clone, Default)]
pub(super) struct Annotations {
    pub(super) mirrors: bool,
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Annotations;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations, A::Error> {
                let mut mirrors = false;
                while let Some((key, _)) = map.next_entry::<String, IgnoredAny>()? {
                    mirrors |= key == MIRROR;
                }
                Ok(Annotations { mirrors })
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
