//! A hub from its start to its end, on one screen.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use host::listen::{Accepted, Listener};
use host::pki::{Authority, Wanted};
use host::{Clock, Shutdown, Tasks, Times};
use jiff::SignedDuration;
use tracing::info;
use wire::frame::REGISTER_NODE;
use wire::join::NodeName;
use wire::session::{PROTOCOL_NEWEST, PROTOCOL_OLDEST, Terms};
use wire::window::Limits;

use crate::cache;
use crate::clerk::{Clerk, Seen};
use crate::cluster::{self, Client};
use crate::epochs::Epochs;
use crate::follow::Follow;
use crate::hub::{Happenings, Hub};
use crate::join::{self, Desk, Linked, Revocations, Serving, Signer, authority, revoked};
use crate::nodes::{self, Leases};
use crate::serve::{Caller, Service};
use crate::talk::Desk as _;
use crate::view::Policy;

/// How a hub is to run.
pub struct Config {
    /// The cluster.
    pub cluster: cluster::Config,
    /// Which hub this is: its name among the others, and for people.
    pub name: String,
    /// The names and addresses by which agents reach it.
    pub wanted: Wanted,
    /// Which kinds every node holds whole.
    pub policy: Policy,
    /// How long a node's certificate lives.
    pub certificate_life: SignedDuration,
    /// How much may be on its way to a node.
    pub limits: Limits,
    /// How much of the cluster's past is remembered.
    pub cache: cache::Limits,
    /// How many sessions there may be at once. A further one is turned away.
    pub sessions_max: u32,
    /// Over how long sessions end when the hub stops.
    pub drain: Duration,
    /// Whether leases of nodes are kept alive.
    pub leases: Leases,
}

/// Why a hub does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no authority of links.
    #[error("no authority for links")]
    Authority(#[from] authority::NoAuthority),
    /// It has no certificate.
    #[error("no certificate for this hub")]
    Serving(#[from] authority::CannotServe),
    /// The epoch is not known.
    #[error("the cluster's epoch cannot be read or written")]
    Epoch(#[source] join::RecordError),
}

/// Connections to the cluster, and requests that are on their way to it.
const CLUSTER_PLACES: u32 = 256;
/// How often every node is told how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(600);
/// How often an agent says that it is there.
const HEARTBEAT_SECONDS: u64 = 30;

/// Starts a hub: adds its tasks, and returns once it accepts links.
pub async fn start(
    config: Config,
    listener: Listener,
    clock: Clock,
    tasks: &mut Tasks,
) -> Result<Arc<Hub>, Error> {
    let (ground, epochs, happenings) = Ground::lay(&config, clock, tasks).await?;
    let seen = Arc::new(Seen::default());
    ground.follow(&epochs, Arc::clone(&seen), tasks);
    let clerk = Clerk {
        hub: Arc::clone(&ground.hub),
        client: ground.client.clone(),
        epochs,
        happenings,
        seen,
    };
    tasks.add("clerk", clerk.run(ground.shutdown.clone()));
    ground.register(tasks);
    let hub = Arc::clone(&ground.hub);
    ground.listen(config, listener, tasks);
    Ok(hub)
}

/// What everything in a hub stands on.
struct Ground {
    client: Client,
    authority: Arc<Authority>,
    serving: Arc<Serving>,
    revocations: Revocations,
    hub: Arc<Hub>,
    clock: Clock,
    shutdown: Shutdown,
}

impl Ground {
    /// Asks the cluster for what hubs share: the authority of links and the epoch.
    async fn lay(
        config: &Config,
        clock: Clock,
        tasks: &mut Tasks,
    ) -> Result<(Self, Epochs<Client>, Happenings), Error> {
        let crowd = tasks.crowd("cluster", CLUSTER_PLACES);
        let client = Client::new(config.cluster.clone(), crowd, clock.clone());
        let authority = Arc::new(authority::shared(&client, clock.wall()).await?);
        let serving = Serving::new(Arc::clone(&authority), config.wanted.clone(), &clock)?;
        let opened = Epochs::open(client.clone(), clock.clone()).await;
        let epochs = opened.map_err(Error::Epoch)?;
        let times = Times::new(clock.clone());
        let policy = config.policy.clone();
        let (hub, happenings) = Hub::new(times, policy, epochs.now(), config.cache.clone());
        let ground = Self {
            client,
            authority,
            serving: Arc::new(serving),
            revocations: Revocations::default(),
            hub: Arc::new(hub.with_leases(config.leases)),
            clock,
            shutdown: tasks.shutdown().clone(),
        };
        Ok((ground, epochs, happenings))
    }

    /// Follows the cluster: its objects, and who is revoked.
    fn follow(&self, epochs: &Epochs<Client>, seen: Arc<Seen>, tasks: &mut Tasks) {
        let follow = Follow {
            client: self.client.clone(),
            hub: Arc::clone(&self.hub),
            epochs: epochs.begun(),
            tell: Arc::new(move |told| seen.hear(told)),
            clock: self.clock.clone(),
            shutdown: self.shutdown.clone(),
        };
        follow.start(tasks);
        let cut = |nodes: Vec<NodeName>| {
            for node in nodes {
                info!(%node, "revoked");
            }
        };
        let following = revoked::follow(
            self.client.clone(),
            self.revocations.clone(),
            cut,
            self.clock.clone(),
            self.shutdown.clone(),
        );
        add(tasks, "revocations", following);
        let progress = progress(Arc::clone(&self.hub), self.shutdown.clone());
        tasks.add("progress", progress);
    }

    /// Keeps nodes and their leases in the cluster.
    fn register(&self, tasks: &mut Tasks) {
        let crowd = tasks.crowd("registrations", nodes::REQUESTS_MAX);
        let hub = Arc::clone(&self.hub);
        let registering = nodes::run(hub, self.client.clone(), crowd, self.shutdown.clone());
        tasks.add("register", registering);
    }

    /// Lets nodes in.
    fn listen(self, config: Config, listener: Listener, tasks: &mut Tasks) {
        let renewing = Arc::clone(&self.serving).run(self.clock.clone(), self.shutdown.clone());
        add(tasks, "certificate", renewing);
        let service = Service {
            hub: self.hub,
            terms: Arc::new(Terms {
                oldest: PROTOCOL_OLDEST,
                newest: PROTOCOL_NEWEST,
                features: REGISTER_NODE,
                hub: config.name.into(),
                heartbeat_seconds: HEARTBEAT_SECONDS,
                window: config.limits.deliveries as u64,
            }),
            limits: config.limits,
            revocations: self.revocations.clone(),
            shutdown: self.shutdown.clone(),
            drain: config.drain,
        };
        let signer = Signer::new(self.authority, config.certificate_life);
        let desk = Desk::new(self.client, signer, self.revocations, self.clock);
        let desk = Arc::new(desk);
        let crowd = tasks.crowd("links", config.sessions_max);
        let serve = move |accepted| enter(accepted, Arc::clone(&desk), service.clone());
        let listening = listener.run(self.serving.tls(), crowd, self.shutdown, serve);
        tasks.add("links", listening);
    }
}

/// Adds a task that cannot fail.
fn add(tasks: &mut Tasks, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
    tasks.add(name, async move {
        task.await;
        Ok::<(), Infallible>(())
    });
}

/// What becomes of a connection.
async fn enter(accepted: Accepted, desk: Arc<Desk<Client>>, service: Service) {
    let entered = Box::pin(join::enter(accepted, &desk)).await;
    if let Some(happened) = entered.happened {
        info!(?happened, "join");
    }
    if let Some(Linked {
        socket,
        peer,
        remote,
    }) = entered.link
    {
        let remote = remote.to_string().into();
        service.serve(socket, Caller { peer, remote }).await;
    }
}

/// Tells every node now and then how far it is.
async fn progress(hub: Arc<Hub>, shutdown: Shutdown) -> Result<(), Infallible> {
    let clock = hub.times().clock().clone();
    loop {
        tokio::select! {
            () = clock.sleep_until(clock.now() + PROGRESS_EVERY) => hub.tell_progress(),
            () = shutdown.triggered() => return Ok(()),
        }
    }
}
