//! Where the API is started: the store is opened and connections meet their answers.

use std::sync::Arc;

use anyhow::Context;
use host::listen::Listener;
use host::{Clock, Tasks};
use kubeapi::catalog::Catalog;
use kubeapi::serve::{About, Api, Feeds, Limits, Parts};
use kubeapi::who::token::{SigningKey, Verifier};
use object::Resource;
use store::disk::{Disk, memory::MemoryDisk, real::RealDisk};
use store::{Authority, Options};

use super::identity::Identity;
use super::settings::{Settings, Storage};

/// Who signs service-account tokens: the name that Kubernetes clients expect in them.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// What a cluster has when its API starts.
pub(crate) struct Cluster {
    pub(crate) settings: Settings,
    pub(crate) identity: Identity,
    pub(crate) listener: Listener,
    pub(crate) clock: Clock,
}

/// Starts the API: adds its tasks, and returns once it answers.
pub(crate) async fn start(cluster: Cluster, tasks: &mut Tasks) -> anyhow::Result<()> {
    let Cluster { settings, identity, listener, clock } = cluster;
    let authority = open(&settings, clock.clone())?;
    let catalog = Arc::new(Catalog::new());
    let resources: Vec<Resource> = catalog.snapshot().kinds().map(|kind| kind.resource()).collect();
    authority.open_tables(resources).await?;
    let key = SigningKey::from_pkcs8(identity.signing_key().secret_pkcs8_der())?;
    let verifier = Verifier {
        keys: vec![key.public().clone()],
        issuers: vec![ISSUER.to_owned()],
        audiences: vec![ISSUER.to_owned()],
    };
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        address: listener.address().to_string(),
        issuer: ISSUER.to_owned(),
    };
    let shutdown = tasks.shutdown().clone();
    let api = Api::new(Parts {
        reader: authority.reader().clone(),
        writes: None,
        catalog,
        verifier,
        about,
        clock,
        shutdown: shutdown.clone(),
        limits: Limits::default(),
    });
    tasks.add("feeds", Feeds::start(api.clone())?.run());
    let crowd = tasks.crowd("connections", settings.connections_max);
    let serve = move |accepted| kubeapi::serve::serve(api.clone(), accepted);
    tasks.add("api", listener.run(identity.tls(), crowd, shutdown, serve));
    Ok(())
}

fn open(settings: &Settings, clock: Clock) -> anyhow::Result<Authority> {
    let folder = settings.data_dir.join("store");
    let disk: Arc<dyn Disk> = match settings.storage {
        Storage::Memory => Arc::new(MemoryDisk::default()),
        Storage::Disk => Arc::new(RealDisk::open(&folder).context("the store's folder")?),
    };
    let opened = Authority::open(disk, Options::new("cluster"), clock);
    opened.with_context(|| format!("the store in {} cannot be opened", folder.display()))
}
