//! `holdfast up`: a small Kubernetes-compatible cluster on this machine, with nothing else needed.

mod announce; // what to try next
mod family; // the hub and the agents, as programs of their own
mod identity; // the authority, the certificates and keys of the cluster
mod kubeconfig; // how kubectl finds it
mod serve; // where the API is started
mod settings; // flags, environment, file and defaults -> one answer each

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use host::listen::Listener;
use host::shutdown::Signals;
use host::{Clock, Shutdown, Tasks, files};
use tracing::info;

use crate::cli::{LogFlags, UpFlags};
use crate::failure::Failure;
use crate::life::told_twice;
use crate::{config, log};
use family::Family;
use identity::Identity;
use serve::Cluster;
use settings::{Settings, Surroundings};

/// Runs the cluster until it is asked to stop.
pub(crate) fn run(flags: UpFlags, log_flags: LogFlags) -> Result<(), Failure> {
    let file = flags
        .config
        .as_deref()
        .map(config::load)
        .transpose()
        .map_err(Failure::usage)?;
    let file = file.unwrap_or_default();
    log::start(settings::log_style(&log_flags, &file)).map_err(Failure::run)?;
    let settings =
        Settings::resolve(flags, file, &Surroundings::of_this_process()).map_err(Failure::usage)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::run)?;
    let ended = runtime.block_on(cluster(settings)).map_err(Failure::Run);
    // Tasks have ended by now; what is left is a thread in a system call, which is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ended
}

/// Where an embedded cluster of this user keeps its data, if nobody says otherwise.
pub(crate) fn default_data_dir() -> Option<PathBuf> {
    settings::default_data_dir(&Surroundings::of_this_process())
}

/// The whole life of a cluster, on one screen.
async fn cluster(settings: Settings) -> anyhow::Result<()> {
    let clock = Clock::machine();
    let shutdown = Shutdown::new();
    let mut signals = Signals::listen()?;
    let mut tasks = Tasks::new(shutdown.clone());

    files::create_dir(&settings.data_dir)?;
    let _lock = files::lock(&settings.data_dir.join("lock"))?;
    let identity = Identity::open(&settings, &clock)?;
    let listener = Listener::bind(settings.listen).await?;
    let address = listener.address();
    let kubeconfig = kubeconfig::write(&settings.data_dir, address, &identity)?;

    tasks.add(
        "certificates",
        identity.renewal(settings.data_dir.clone(), address, shutdown.clone()),
    );
    let grace = settings.shutdown_grace;
    let data_dir = settings.data_dir.clone();
    let (nodes, hub_listen) = (settings.nodes, settings.hub_listen);
    serve::start(
        Cluster {
            settings,
            identity,
            listener,
            clock: clock.clone(),
        },
        &mut tasks,
    )
    .await?;

    let family = Family {
        data_dir,
        kubeconfig: kubeconfig.clone(),
        hub_listen,
        nodes,
    };
    let started = match nodes {
        0 => Some(Vec::new()),
        _ => tokio::select! {
            started = family.start(&mut tasks, &clock) => Some(started?),
            _ = signals.next() => None,
        },
    };
    match started {
        Some(nodes) => announce::ready(address, &kubeconfig, &nodes)?,
        None => shutdown.trigger(),
    }
    tokio::select! {
        joined = tasks.join(grace) => joined?,
        () = told_twice(&mut signals, &shutdown) => bail!("stopped at once, as asked"),
    }
    info!("stopped");
    Ok(())
}
