//! What each test of kube-rs needs: a client for the cluster of KUBECONFIG, and a namespace.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A client, and a namespace that no other test uses.
pub struct Place {
    /// Of the cluster that KUBECONFIG names.
    pub client: Client,
    /// The namespace's name.
    pub namespace: String,
}

impl Place {
    /// Makes a namespace of this name with the number of this process behind it.
    pub async fn new(name: &str) -> Self {
        let client = Client::try_default()
            .await
            .expect("KUBECONFIG names a cluster");
        let namespace = format!("{name}-{}", std::process::id());
        let made = Namespace {
            metadata: ObjectMeta {
                name: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let all: Api<Namespace> = Api::all(client.clone());
        all.create(&PostParams::default(), &made)
            .await
            .expect("a namespace");
        Self { client, namespace }
    }

    /// The config maps of the namespace.
    pub fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates a config map with a label `ours`, so that a selector finds only what tests made.
    pub async fn create(&self, name: &str) -> ConfigMap {
        let created = self
            .maps()
            .create(&PostParams::default(), &config_map(name))
            .await;
        created.expect("a config map")
    }
}

/// A config map with the label `ours`.
pub fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([("ours".to_owned(), "yes".to_owned())])),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}
