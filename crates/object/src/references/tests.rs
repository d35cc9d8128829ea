//! Every place in a pod or a volume that names something, by a text that has them all.

use super::*;

fn pod(text: &str) -> Pod {
    serde_json::from_str(text).unwrap()
}

fn named(text: &str) -> Vec<String> {
    let names = pod(text).names(&ObjectName::new("shop", "web"));
    names
        .into_iter()
        .map(|(kind, name)| format!("{} {name}", kind.resource()))
        .collect()
}

#[test]
fn a_pod_names_what_stands_in_any_of_its_fields_once_and_in_order() {
    let text = r#"{"metadata":{"annotations":null},"spec":{"nodeName":"n",
        "serviceAccountName":"seller","imagePullSecrets":[{"name":"s-pull"},{}],
        "containers":[{"env":[{"name":"A","value":"b"},
            {"valueFrom":{"secretKeyRef":{"name":"s-env","key":"k"}}},
            {"valueFrom":{"configMapKeyRef":{"name":"c-env"}}}],
            "envFrom":[{"secretRef":{"name":"s-from"}},{"configMapRef":{"name":"c-from"}}]}],
        "initContainers":[{"envFrom":[{"secretRef":{"name":"s-init"}}]}],
        "ephemeralContainers":[{"envFrom":[{"configMapRef":{"name":"c-debug"}}]}],
        "resourceClaims":[{"name":"gpu","resourceClaimName":"r-own"},
            {"name":"fpga","resourceClaimTemplateName":"t"}],
        "volumes":[{"name":"a","secret":{"secretName":"s-vol"}},
            {"name":"b","configMap":{"name":"c-vol"}},
            {"name":"c","projected":{"sources":[{"serviceAccountToken":{"path":"token"}},
                {"configMap":{"name":"kube-root-ca.crt"}},{"secret":{"name":"s-proj"}}]}},
            {"name":"d","persistentVolumeClaim":{"claimName":"disk"}},
            {"name":"e","ephemeral":{"volumeClaimTemplate":{}}},
            {"azureFile":{"secretName":"s-azure"}},{"cephfs":{"secretRef":{"name":"s-cephfs"}}},
            {"cinder":{"secretRef":{"name":"s-cinder"}}},
            {"flexVolume":{"secretRef":{"name":"s-flex"}}},{"rbd":{"secretRef":{"name":"s-rbd"}}},
            {"scaleIO":{"secretRef":{"name":"s-scale"}}},
            {"iscsi":{"secretRef":{"name":"s-iscsi"}}},
            {"storageos":{"secretRef":{"name":"s-os"}}},
            {"csi":{"nodePublishSecretRef":{"name":"s-csi"}}},{"emptyDir":{}},
            {"secret":{"secretName":"s-vol"}}]},
        "status":{"resourceClaimStatuses":[{"name":"fpga","resourceClaimName":"r-made"}]}}"#;
    let secrets = [
        "azure", "cephfs", "cinder", "csi", "env", "flex", "from", "init", "iscsi", "os", "proj",
        "pull", "rbd", "scale", "vol",
    ];
    let config_maps = ["c-debug", "c-env", "c-from", "c-vol", "kube-root-ca.crt"];
    let mut expected: Vec<String> = Vec::new();
    expected.extend(secrets.map(|name| format!("secrets shop/s-{name}")));
    expected.extend(config_maps.map(|name| format!("configmaps shop/{name}")));
    expected.push("serviceaccounts shop/seller".into());
    expected.push("persistentvolumeclaims shop/disk".into());
    expected.push("persistentvolumeclaims shop/web-e".into());
    expected.push("resourceclaims.resource.k8s.io shop/r-made".into());
    expected.push("resourceclaims.resource.k8s.io shop/r-own".into());
    assert_eq!(named(text), expected);
}

#[test]
fn a_mirror_pod_names_nothing_whatever_the_annotation_says() {
    for value in [r#""""#, r#""x""#, "null", "7"] {
        let text = format!(
            r#"{{"metadata":{{"annotations":{{"a":"b","{MIRROR}":{value}}}}},
                "spec":{{"nodeName":"n","serviceAccountName":"seller"}}}}"#
        );
        assert!(named(&text).is_empty(), "{text}");
    }
}

#[test]
fn a_volume_names_its_claim_and_what_its_mount_needs() {
    let text = r#"{"spec":{"claimRef":{"namespace":"shop","name":"disk"},
        "azureFile":{"secretName":"a","secretNamespace":"far"},
        "iscsi":{"secretRef":{"name":"b"}},"storageos":{"secretRef":{"name":"os"}},
        "csi":{"nodePublishSecretRef":{"name":"c","namespace":"x"},
            "nodeStageSecretRef":{"name":"d","namespace":"x"},
            "nodeExpandSecretRef":{"name":"e","namespace":"x"},
            "controllerPublishSecretRef":{"name":"f","namespace":"x"}}}}"#;
    let volume: PersistentVolume = serde_json::from_str(text).unwrap();
    assert_eq!(volume.claim(), Some(ObjectName::new("shop", "disk")));
    let secrets: Vec<String> = volume.secrets().iter().map(ToString::to_string).collect();
    assert_eq!(secrets, ["far/a", "shop/b", "os", "x/c", "x/d", "x/e"]);
    let free: PersistentVolume = serde_json::from_str("{}").unwrap();
    assert_eq!(free.claim(), None);
}

#[test]
fn what_has_another_form_is_an_error_and_not_a_guess() {
    for text in [
        r#"{"spec":{"volumes":"many"}}"#,
        r#"{"spec":{"nodeName":7}}"#,
        r#"{"metadata":{"annotations":[]}}"#,
        "7",
    ] {
        assert!(serde_json::from_str::<Pod>(text).is_err(), "{text}");
    }
}
