//! The Kubernetes API of the node: it answers reads from the node's store, with or without a hub,
//! and passes everything else on to the cluster.

pub mod rights; // who may read what of the store
mod papers; // what the hub says of accounts and keys -> rights
pub mod identity; // the certificates of the API and of its own clients
mod pods; // what leads pods of the node to the API
mod copies; // what the cluster answered -> files, for a time without it
mod doors; // a port and a socket -> clients
mod gate; // what is not answered here -> the tunnel
mod visits; // how much clients have open

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use host::listen::socket::{self, Socket};
use host::listen::{self, Listener};
use host::tasks::Crowd;
use host::{Clock, Shutdown, Tasks, chain};
use kubeapi::catalog::{Catalog, Told};
use kubeapi::serve::{About, Api, Limits, Parts};
use rustls::ServerConfig;
use tracing::{error, info};
use wire::join::NodeName;

use crate::keep::{Keep, TOLD};
use crate::tunnel::Tunnel;
use copies::Copies;
use doors::Doors;
pub use gate::Beside;
use gate::Gate;
pub(crate) use gate::refused;
use identity::Identity;
use papers::Rights;
use pods::Leading;
pub use visits::Visits;

/// Connections that the API has open at once. A node has tens of clients; and where a process may
/// open 1,024 files, as is usual, the link and the store have theirs whoever comes.
const CONNECTIONS_MAX: u32 = 512;
/// How often it is looked whether a certificate is due.
const RENEWAL_EVERY: Duration = Duration::from_secs(6 * 3600);
/// How long nobody is let in after the certificates could not be read.
const PAUSE: Duration = Duration::from_secs(1);

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
    /// What it has beside that.
    pub beside: Beside,
    /// The node.
    pub node: &'a NodeName,
    /// Where everything of the node is kept. It must be locked by us.
    pub data_dir: &'a Path,
    /// Where to listen. Port 0 is the one of last time, or any.
    pub listen: SocketAddr,
    /// A socket to listen on as well, for root and whoever runs the agent.
    pub socket: Option<PathBuf>,
    /// Whether pods of the node are led to it.
    pub for_pods: bool,
    /// Sees how much clients have open.
    pub visits: Visits,
    /// The time.
    pub clock: Clock,
}

/// Why there is no API.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The port is not to be had.
    #[error(transparent)]
    Listen(#[from] listen::Error),
    /// The socket is not to be had.
    #[error(transparent)]
    Socket(#[from] socket::Error),
    /// There is no certificate to show.
    #[error("the certificates of the node's API")]
    Identity(#[from] identity::Failed),
}

impl Local<'_> {
    /// Starts the API: adds its task, and returns where it listens. What answers there is made when
    /// somebody comes: it takes memory, and on many nodes nobody does.
    pub async fn start(self, tasks: &mut Tasks) -> Result<SocketAddr, Failed> {
        let port = self.listener().await?;
        let address = port.address();
        let socket = self.socket.as_deref().map(Socket::bind).transpose()?;
        let crowd = tasks.crowd("api connections", CONNECTIONS_MAX);
        self.visits.come_into(&crowd);
        let resting = Resting {
            visits: self.visits,
            keep: self.keep.clone(),
            tunnel: self.tunnel,
            beside: self.beside,
            node: self.node.clone(),
            data_dir: self.data_dir.to_owned(),
            address,
            for_pods: self.for_pods,
            clock: self.clock,
            crowd,
            shutdown: tasks.shutdown().clone(),
        };
        resting.see_to_kubeconfigs()?;
        match &socket {
            Some(socket) => {
                info!(%address, socket = %socket.path().display(), "the node's API is ready");
            }
            None => info!(%address, "the node's API is ready"),
        }
        tasks.add("api", resting.run(Doors { port, socket }));
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
}

/// An API that nobody has asked yet.
struct Resting {
    keep: Keep,
    tunnel: Tunnel,
    beside: Beside,
    node: NodeName,
    data_dir: PathBuf,
    address: SocketAddr,
    for_pods: bool,
    clock: Clock,
    crowd: Crowd,
    visits: Visits,
    shutdown: Shutdown,
}

impl Resting {
    /// Waits for the first client, and answers from then on until the shutdown.
    async fn run(self, mut doors: Doors) -> Result<(), Failed> {
        loop {
            tokio::select! {
                knocked = doors.knock() => knocked?,
                () = tokio::time::sleep(RENEWAL_EVERY) => {
                    if let Err(failed) = self.see_to_kubeconfigs() {
                        not_renewed(&failed);
                    }
                    continue;
                }
                () = self.shutdown.triggered() => return Ok(()),
            }
            match self.identity() {
                Ok(identity) => return self.answer(doors, identity).await,
                // Whoever came is turned away, and the next one finds out whether it is better.
                Err(failed) => {
                    not_renewed(&failed);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Answers whoever comes.
    async fn answer(
        self,
        doors: Doors,
        (identity, tls): (Identity, Arc<ServerConfig>),
    ) -> Result<(), Failed> {
        let rights = Rights::new(self.keep.clone(), &self.node);
        let authority = || identity.authority_pem();
        let leading = self
            .for_pods
            .then(|| Leading::new(self.address, authority()));
        let api = self.api(leading, &rights);
        self.visits.are_answered_by(&api);
        let listening = doors.run(api, tls, self.crowd, self.shutdown.clone());
        let rights = rights.run(self.shutdown.clone());
        let renewal = renew(identity, self.address, self.shutdown);
        let (listened, Ok(()), Ok(())) = tokio::join!(listening, rights, renewal);
        listened
    }

    fn identity(&self) -> Result<(Identity, Arc<ServerConfig>), identity::Failed> {
        let ip = self.address.ip();
        let identity = Identity::open(&self.data_dir, &self.node, ip, &self.clock)?;
        identity.renew(self.address)?;
        let tls = identity.tls(&self.clock)?;
        Ok((identity, tls))
    }

    /// Writes the kubeconfigs, unless there are good ones.
    fn see_to_kubeconfigs(&self) -> Result<(), identity::Failed> {
        match identity::is_ready(&self.data_dir, self.address, self.clock.wall()) {
            true => Ok(()),
            false => self.identity().map(drop),
        }
    }

    fn api(&self, leading: Option<Leading>, rights: &Rights) -> Arc<Api> {
        let copies = Copies::new(&self.data_dir, &self.clock);
        let beside = (copies, self.beside.clone());
        let gate = Gate::new(self.tunnel.clone(), &self.node, beside).leading(leading);
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
                address: self.address.to_string(),
                issuer: String::new(),
            },
            clock: self.clock.clone(),
            shutdown: self.shutdown.clone(),
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
            not_renewed(&failed);
        }
    }
}

fn not_renewed(failed: &identity::Failed) {
    error!(
        error = chain(failed),
        "cannot make or renew the certificates of the node's API"
    );
}
