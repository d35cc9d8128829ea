//! The Kubernetes API of the node: it answers reads from the node's store, with or without a hub,
//! and passes everything else on to the cluster.

pub mod rights; // who may read what of the store
mod papers; // what the hub says of accounts and keys -> rights
pub mod identity; // the certificates of the API and of its own clients
mod copies; // what the cluster answered -> files, for a time without it
mod gate; // what is not answered here -> the tunnel

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use host::listen::{self, Listener};
use host::{Clock, Shutdown, Tasks, chain};
use kubeapi::catalog::{Catalog, Told};
use kubeapi::serve::{About, Api, Limits, Parts, serve};
use tracing::{error, info};
use wire::join::NodeName;

use crate::keep::{Keep, TOLD};
use crate::tunnel::Tunnel;
use copies::Copies;
use gate::Gate;
use identity::Identity;
use papers::Rights;

/// Connections that the API has open at once. A node has tens of clients.
const CONNECTIONS_MAX: u32 = 1024;
/// How often it is looked whether a certificate is due.
const RENEWAL_EVERY: Duration = Duration::from_secs(6 * 3600);

/// How much a node's API does at once: less than a cluster's, since its clients are fewer and its
/// memory is small.
const LIMITS: Limits = Limits {
    requests_max: 200,
    requests_per_user_max: 100,
    watches_max: 4096,
    watches_per_user_max: 2048,
    stall_time_max: Duration::from_secs(30),
};

/// What the API of a node is made of.
pub struct Local<'a> {
    /// The node's store.
    pub keep: &'a Keep,
    /// The way to the cluster.
    pub tunnel: Tunnel,
    /// The node.
    pub node: &'a NodeName,
    /// Where everything of the node is kept. It must be locked by us.
    pub data_dir: &'a Path,
    /// Where to listen. Port 0 is the one of last time, or any.
    pub listen: SocketAddr,
    /// The time.
    pub clock: Clock,
}

/// Why there is no API.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The port is not to be had.
    #[error(transparent)]
    Listen(#[from] listen::Error),
    /// There is no certificate to show.
    #[error("the certificates of the node's API")]
    Identity(#[from] identity::Failed),
}

impl Local<'_> {
    /// Starts the API: adds its tasks, and returns where it listens once it answers.
    pub async fn start(self, tasks: &mut Tasks) -> Result<SocketAddr, Failed> {
        let shutdown = tasks.shutdown().clone();
        let listener = self.listener().await?;
        let address = listener.address();
        let identity = Identity::open(self.data_dir, self.node, address.ip(), &self.clock)?;
        identity.renew(address)?;
        let tls = identity.tls(&self.clock)?;
        let rights = Rights::new(self.keep.clone(), self.node);
        let api = self.api(address, &rights, &shutdown);
        tasks.add("api rights", rights.run(shutdown.clone()));
        let crowd = tasks.crowd("api connections", CONNECTIONS_MAX);
        let answer = move |accepted| serve(api.clone(), accepted);
        tasks.add("api", listener.run(tls, crowd, shutdown.clone(), answer));
        tasks.add("api certificates", renew(identity, address, shutdown));
        info!(%address, "the node's API is ready");
        Ok(address)
    }

    /// Clients keep the address: with port 0 the one of last time is tried first.
    async fn listener(&self) -> Result<Listener, listen::Error> {
        if self.listen.port() == 0
            && let Some(before) = identity::last_address(self.data_dir)
            && before.ip() == self.listen.ip()
            && let Ok(listener) = Listener::bind(before).await
        {
            return Ok(listener);
        }
        Listener::bind(self.listen).await
    }

    fn api(&self, address: SocketAddr, rights: &Rights, shutdown: &Shutdown) -> Arc<Api> {
        let copies = Copies::new(self.data_dir, &self.clock);
        let gate = Gate::new(self.tunnel.clone(), self.node, copies);
        let told = Told::new(self.keep.reader().clone(), TOLD);
        Api::new(Parts {
            reader: self.keep.reader().clone(),
            writes: None,
            beyond: Some(Arc::new(gate)),
            catalog: Arc::new(Catalog::told_by(told)),
            authorizer: rights.authorizer(),
            verifier: rights.verifying(),
            about: About {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                address: address.to_string(),
                issuer: String::new(),
            },
            clock: self.clock.clone(),
            shutdown: shutdown.clone(),
            limits: LIMITS,
        })
    }
}

/// Renews what is due while the agent runs. A failure is logged and tried again: what is there
/// stays good for a third of its life.
async fn renew(
    identity: Identity,
    address: SocketAddr,
    shutdown: Shutdown,
) -> Result<(), std::convert::Infallible> {
    loop {
        tokio::select! {
            () = tokio::time::sleep(RENEWAL_EVERY) => {}
            () = shutdown.triggered() => return Ok(()),
        }
        if let Err(failed) = identity.renew(address) {
            error!(
                error = chain(&failed),
                "cannot renew the certificates of the node's API"
            );
        }
    }
}
