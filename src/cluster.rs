//! A command that asks the cluster: which one, and as whom.

use anyhow::Context;
use cloud::cluster::{Client, Config};
use host::{Clock, Shutdown, Tasks};

use crate::cli::ClusterFlags;
use crate::failure::Failure;

/// Runs a piece of work with a client of the cluster that the flags name.
pub(crate) fn ask<T>(
    flags: &ClusterFlags,
    work: impl AsyncFnOnce(Client, Clock) -> anyhow::Result<T>,
) -> Result<T, Failure> {
    let config = match &flags.kubeconfig {
        Some(path) => Config::from_kubeconfig(path),
        None => Config::in_cluster(),
    };
    let config = config
        .context("no cluster to ask; name one with --kubeconfig")
        .map_err(Failure::Usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::run)?;
    runtime.block_on(async {
        let clock = Clock::machine();
        // Dropped with the work: what is left of the connection is of no use to anyone.
        let mut tasks = Tasks::new(Shutdown::new());
        let crowd = tasks.crowd("requests", REQUESTS_MAX);
        let client = Client::new(config, crowd, clock.clone());
        work(client, clock).await.map_err(Failure::Run)
    })
}

/// A command asks for one thing at a time; a connection and a body take a place each.
const REQUESTS_MAX: u32 = 16;
