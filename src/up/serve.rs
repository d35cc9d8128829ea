//! Where the API is started: the store is opened and connections meet their answers.

use anyhow::bail;
use host::listen::Listener;
use host::{Clock, Tasks};

use super::identity::Identity;
use super::settings::Settings;

/// What a cluster has when its API starts.
#[expect(dead_code, reason = "read by the API, which is plugged in here")]
pub(crate) struct Cluster {
    pub(crate) settings: Settings,
    pub(crate) identity: Identity,
    pub(crate) listener: Listener,
    pub(crate) clock: Clock,
}

/// Starts the API: adds its tasks, and returns once it answers.
pub(crate) async fn start(cluster: Cluster, _tasks: &mut Tasks) -> anyhow::Result<()> {
    bail!(
        "this build has no API server yet: {} is prepared, but nothing can be served from it",
        cluster.settings.data_dir.display()
    )
}
