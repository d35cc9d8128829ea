//! Where the API is started: the store is opened and connections meet their answers.

use std::sync::Arc;

use anyhow::Context;
use host::listen::Listener;
use host::{Clock, Tasks};
use kubeapi::catalog::Catalog;
use kubeapi::serve::{About, Api, Feeds, Limits, Parts};
use kubeapi::who::token::{Bound, SigningKey, Verifier, Verifying};
use kubeapi::write::Writes;
use kubeapi::write::caretaker::Caretaker;
use kubeapi::write::desk::Desk;
use kubeapi::write::kinds::service::AddressRange;
use kubeapi::write::token_request::TokenMaker;
use store::disk::{Disk, memory::MemoryDisk, real::RealDisk};
use store::{Authority, KeyFile, Options, Retention};

use super::identity::Identity;
use super::settings::{Settings, Storage};

/// Who signs service-account tokens: the name that Kubernetes clients expect in them.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Where services get their addresses from: the ranges that kubeadm uses.
const SERVICE_RANGES: [&str; 2] = ["10.96.0.0/12", "fd00:10:96::/112"];

/// The ports that services of type NodePort get: Kubernetes' own.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30000..=32767;

/// What a cluster has when its API starts.
pub(crate) struct Cluster {
    pub(crate) settings: Settings,
    pub(crate) identity: Identity,
    pub(crate) listener: Listener,
    pub(crate) clock: Clock,
}

/// Starts the API: adds its tasks, and returns once it answers.
pub(crate) async fn start(cluster: Cluster, tasks: &mut Tasks) -> anyhow::Result<()> {
    let Cluster {
        settings,
        identity,
        listener,
        clock,
    } = cluster;
    let shutdown = tasks.shutdown().clone();
    let authority = open(&settings, clock.clone())?;
    let catalog = Arc::new(Catalog::new());
    let kinds = catalog.snapshot();
    let resources = kinds.kinds().map(|kind| kind.stored_as()).collect();
    authority.open_tables(resources).await?;
    let reader = authority.reader().clone();
    let authorizer = Arc::default();
    let (verifier, tokens) = tokens(&identity, &clock)?;
    let ranges: Result<Vec<AddressRange>, _> = SERVICE_RANGES.iter().map(|r| r.parse()).collect();
    let writes = Arc::new(Writes::new(authority, clock.clone(), ranges?, NODE_PORTS));
    let caretaker = Caretaker {
        writes: writes.clone(),
        catalog: catalog.clone(),
        root_certificates: identity.authority_pem(),
        shutdown: shutdown.clone(),
    };
    caretaker
        .furnish()
        .await
        .context("the cluster could not be furnished")?;
    let desk = Desk {
        writes,
        authorizer: Arc::clone(&authorizer),
        tokens,
    };
    let api = Api::new(Parts {
        reader,
        writes: Some(Arc::new(desk)),
        beyond: None,
        catalog,
        authorizer,
        verifier: Arc::new(Verifying::new(verifier)),
        about: about(&listener),
        clock,
        shutdown: shutdown.clone(),
        limits: Limits::default(),
    });
    tasks.add("feeds", Feeds::start(api.clone())?.run());
    tasks.add("upkeep", caretaker.run());
    let crowd = tasks.crowd("connections", settings.connections_max);
    let serve = move |accepted| kubeapi::serve::serve(api.clone(), accepted);
    tasks.add("api", listener.run(identity.tls(), crowd, shutdown, serve));
    Ok(())
}

fn about(listener: &Listener) -> About {
    About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        address: listener.address().to_string(),
        issuer: ISSUER.to_owned(),
    }
}

/// What verifies service-account tokens, and what makes them.
fn tokens(identity: &Identity, clock: &Clock) -> anyhow::Result<(Verifier, TokenMaker)> {
    let key = SigningKey::from_pkcs8(identity.signing_key().secret_pkcs8_der())?;
    let audiences = vec![ISSUER.to_owned()];
    let verifier = Verifier {
        keys: vec![key.public().clone()],
        issuers: audiences.clone(),
        audiences: audiences.clone(),
        bound: Bound::Any,
    };
    let maker = TokenMaker {
        key,
        issuer: ISSUER.to_owned(),
        audiences,
        clock: clock.clone(),
    };
    Ok((verifier, maker))
}

fn open(settings: &Settings, clock: Clock) -> anyhow::Result<Authority> {
    let folder = settings.data_dir.join("store");
    let mut options = Options::new("cluster");
    let disk: Arc<dyn Disk> = match settings.storage {
        Storage::Memory => Arc::new(MemoryDisk::default()),
        Storage::Disk => {
            let disk = RealDisk::open(&folder).context("the store's folder")?;
            let file = settings.data_dir.join("secrets.key");
            let keys = store::keys(KeyFile::Own(&file), &disk);
            options.keys = Some(keys.context("no key for Secrets on the disk")?);
            Arc::new(disk)
        }
    };
    if let Some(age_max) = settings.history {
        // Who names a time means it for every change, also for the last thousand.
        let events_min = 0;
        options.retention = Retention {
            age_max,
            events_min,
            ..options.retention
        };
    }
    let opened = Authority::open(disk, options, clock);
    opened.with_context(|| format!("the store in {} cannot be opened", folder.display()))
}
