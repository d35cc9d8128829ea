//! A hub from its start to its end, on one screen.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use host::listen::{self, Accepted, Listener, Reserved};
use host::pki::Wanted;
use host::quic;
use host::{Clock, Shutdown, Tasks, Times};
use jiff::SignedDuration;
use tokio::io::{AsyncRead, AsyncWrite};
use tracing::info;
use wire::frame::REGISTER_NODE;
use wire::join::NodeName;
use wire::session::{FEATURES, LEASES, PROTOCOL_NEWEST, PROTOCOL_OLDEST, Terms};
use wire::window::Limits;

use crate::cache;
use crate::clerk::{Clerk, Seen};
use crate::cluster::{self, Client};
use crate::discovery;
use crate::epochs::Epochs;
use crate::follow::Follow;
use crate::hub::{Happenings, Hub};
use crate::join::{
    self, Authorities, Desk, Entered, Happening, Linked, Revocations, Serving, Signer, authority,
    revoked,
};
use crate::nodes::{self, Leases};
use crate::notices::Notice;
use crate::owners::{Heard, Publisher, Waits};
use crate::papers;
use crate::record::{HubTruth, Mode, Recorder, Records, Scribe};
use crate::replay;
use crate::serve::{Caller, Service};
use crate::talk::Desk as _;
use crate::tunnel::Tunnels;
use crate::view::Policy;
use crate::waiting::{Asking, Waiting};

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
    /// Which objects on nodes have records.
    pub records: Mode,
    /// How long hubs wait for each other.
    pub peers: Waits,
    /// For how long a resource cannot be followed before people are told.
    pub frozen_long: Duration,
}

/// Where agents reach a hub.
pub struct Ports {
    /// Over TCP: links, and what leads to them. It is opened when the hub has begun.
    pub tcp: Reserved,
    /// Over UDP: links alone.
    pub quic: Option<quic::Listener>,
}

/// Why a hub does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has no certificate.
    #[error("no certificate for this hub")]
    Serving(#[from] authority::CannotServe),
    /// Its port cannot be opened.
    #[error(transparent)]
    Port(#[from] listen::Error),
    /// It was to stop before it had begun.
    #[error("stopped before it was ready")]
    Stopped,
}

/// Connections to the cluster, and requests that are on their way to it.
const CLUSTER_PLACES: u32 = 256;
/// How often every node is told how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(600);
/// How often it is looked whether they are to be told earlier.
const PROGRESS_LOOK: Duration = Duration::from_secs(1);
/// In how many turns they are told, and how far apart these are.
const PROGRESS_TURNS: u64 = 40;
const PROGRESS_TURN: Duration = Duration::from_millis(50);
/// How often an agent says that it is there.
const HEARTBEAT_SECONDS: u64 = 30;

/// Starts a hub: adds its tasks, and returns once it accepts links. A cluster that does not answer
/// is waited for, however long that takes, and `waiting` says so.
pub async fn start(
    config: Config,
    ports: Ports,
    waiting: &Waiting,
    clock: Clock,
    tasks: &mut Tasks,
) -> Result<Arc<Hub>, Error> {
    let (ground, epochs, happenings) = Ground::lay(&config, waiting, clock, tasks).await?;
    let tcp = ports.tcp.open()?;
    let eyes = Eyes::default();
    let recorder = ground.record(&config, tasks);
    ground.follow(&epochs, (&eyes, &recorder), tasks);
    let clerk = Clerk {
        hub: Arc::clone(&ground.hub),
        client: ground.client.clone(),
        epochs,
        happenings,
        seen: eyes.seen,
        scribe: Scribe::new(Arc::clone(&ground.hub), &config.name, recorder),
        frozen_long: config.frozen_long,
    };
    tasks.add("clerk", clerk.run(ground.shutdown.clone()));
    ground.register(tasks);
    let publisher = Publisher {
        hub: Arc::clone(&ground.hub),
        name: config.name.as_str().into(),
        client: ground.client.clone(),
        heard: eyes.heard,
        waits: config.peers,
    };
    tasks.add("owners", publisher.run(ground.shutdown.clone()));
    let hub = Arc::clone(&ground.hub);
    ground.listen(config, (tcp, ports.quic), tasks);
    Ok(hub)
}

/// What everything in a hub stands on.
struct Ground {
    client: Client,
    authorities: Authorities,
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
        waiting: &Waiting,
        clock: Clock,
        tasks: &mut Tasks,
    ) -> Result<(Self, Epochs<Client>, Happenings), Error> {
        let crowd = tasks.crowd("cluster", CLUSTER_PLACES);
        let client = Client::new(config.cluster.clone(), crowd, clock.clone());
        let asking = Asking {
            waiting,
            clock: &clock,
            shutdown: tasks.shutdown(),
        };
        let ask = async || authority::trusted(&client, clock.wall()).await;
        let authorities = asking.until_there("the authority of links", ask).await;
        let authorities = authorities.ok_or(Error::Stopped)?;
        let ask = async || Epochs::open(client.clone(), clock.clone()).await;
        let epochs = asking.until_there("the epoch of the cluster", ask).await;
        let epochs = epochs.ok_or(Error::Stopped)?;
        let serving = Serving::new(authorities.clone(), config.wanted.clone(), &clock)?;
        let times = Times::new(clock.clone());
        let policy = config.policy.clone();
        let (hub, happenings) = Hub::new(times, policy, epochs.now(), config.cache.clone());
        let tunnels = Tunnels::new(&config.cluster, clock.clone(), tasks);
        tunnels.compare_with(Arc::clone(hub.cache()));
        let hub = hub.with_leases(config.leases).with_tunnels(tunnels);
        let ground = Self {
            client,
            authorities,
            serving: Arc::new(serving),
            revocations: Revocations::default(),
            hub: Arc::new(hub),
            clock,
            shutdown: tasks.shutdown().clone(),
        };
        Ok((ground, epochs, happenings))
    }

    /// Follows the cluster: its objects, and who is revoked.
    fn follow(
        &self,
        epochs: &Epochs<Client>,
        (eyes, recorder): (&Eyes, &Arc<Recorder>),
        tasks: &mut Tasks,
    ) {
        let (seen, heard) = (Arc::clone(&eyes.seen), Arc::clone(&eyes.heard));
        let recorder = Arc::clone(recorder);
        let follow = Follow {
            client: self.client.clone(),
            hub: Arc::clone(&self.hub),
            epochs: epochs.begun(),
            tell: Arc::new(move |told| {
                seen.hear(told);
                heard.hear(told);
            }),
            served: Arc::new(move |served| {
                let resource = served.resource.clone();
                recorder.describe(resource, &served.api_version, &served.kind);
            }),
            clock: self.clock.clone(),
            shutdown: self.shutdown.clone(),
        };
        follow.start(tasks);
        let hub = Arc::clone(&self.hub);
        let cut = move |nodes: Vec<NodeName>| {
            for node in nodes {
                info!(%node, "revoked");
                hub.notice(Notice::from(&Happening::Revoked { node }));
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
        self.publish(tasks);
        let progress = progress(Arc::clone(&self.hub), self.shutdown.clone());
        tasks.add("progress", progress);
    }

    /// Puts together what nodes are to have beside objects.
    fn publish(&self, tasks: &mut Tasks) {
        let rules = papers::follow_rules(Arc::clone(&self.hub), self.shutdown.clone());
        tasks.add("rules", rules);
        let (hub, client) = (Arc::clone(&self.hub), self.client.clone());
        let keys = papers::follow_keys(hub, client, self.shutdown.clone());
        tasks.add("keys", keys);
        let (hub, client) = (Arc::clone(&self.hub), self.client.clone());
        let kinds = discovery::follow(hub, client, self.shutdown.clone());
        tasks.add("discovery", kinds);
    }

    /// Publishes what nodes hold, and what happens.
    fn record(&self, config: &Config, tasks: &mut Tasks) -> Arc<Recorder> {
        let records = Records::new(config.records, config.policy.clone());
        let recorder = Recorder::new(records, self.clock.clone());
        let (writing, truth) = (Arc::clone(&recorder), HubTruth(Arc::clone(&self.hub)));
        let (client, shutdown) = (self.client.clone(), self.shutdown.clone());
        add(tasks, "records", async move {
            writing.run(client, truth, shutdown).await;
        });
        let (hub, client) = (Arc::clone(&self.hub), self.client.clone());
        let shutdown = self.shutdown.clone();
        tasks.add("notices", async move {
            hub.notices().run(&client, hub.times(), &shutdown).await
        });
        recorder
    }

    /// Keeps nodes and their leases in the cluster, and writes what nodes report.
    fn register(&self, tasks: &mut Tasks) {
        let crowd = tasks.crowd("registrations", nodes::REQUESTS_MAX);
        let hub = Arc::clone(&self.hub);
        let registering = nodes::run(hub, self.client.clone(), crowd, self.shutdown.clone());
        tasks.add("register", registering);
        let crowd = tasks.crowd("reports", replay::WRITERS_MAX);
        let replay = Arc::clone(self.hub.replay());
        let with = (crowd, self.clock.clone());
        let (client, hub) = (self.client.clone(), Arc::clone(&self.hub));
        let writing = replay.run(client, with, hub, self.shutdown.clone());
        tasks.add("replay", writing);
    }

    /// Lets nodes in.
    fn listen(
        self,
        config: Config,
        (tcp, quic): (Listener, Option<quic::Listener>),
        tasks: &mut Tasks,
    ) {
        let renewing = Arc::clone(&self.serving).run(self.clock.clone(), self.shutdown.clone());
        add(tasks, "certificate", renewing);
        let leases = match config.leases {
            Leases::On => LEASES,
            Leases::Off => 0,
        };
        let service = Service {
            hub: self.hub,
            terms: Arc::new(Terms {
                oldest: PROTOCOL_OLDEST,
                newest: PROTOCOL_NEWEST,
                features: FEATURES | REGISTER_NODE | leases,
                hub: config.name.into(),
                heartbeat_seconds: HEARTBEAT_SECONDS,
                window: config.limits.deliveries as u64,
            }),
            limits: config.limits,
            revocations: self.revocations.clone(),
            shutdown: self.shutdown.clone(),
            drain: config.drain,
        };
        let signer = Signer::new(self.authorities, config.certificate_life);
        let desk = Desk::new(self.client, signer, self.revocations, self.clock);
        let desk = Arc::new(desk);
        let crowd = tasks.crowd("links", config.sessions_max);
        if let Some(quic) = quic {
            let (desk, service) = (Arc::clone(&desk), service.clone());
            let serve = move |accepted| enter_quic(accepted, Arc::clone(&desk), service.clone());
            let (tls, shutdown) = (self.serving.tls(), self.shutdown.clone());
            tasks.add("quic", quic.run(tls, crowd.clone(), shutdown, serve));
        }
        let serve = move |accepted| enter(accepted, Arc::clone(&desk), service.clone());
        let listening = tcp.run(self.serving.tls(), crowd, self.shutdown, serve);
        tasks.add("links", listening);
    }
}

/// What is looked at of what those see who follow the cluster.
#[derive(Default)]
struct Eyes {
    seen: Arc<Seen>,
    heard: Arc<Heard>,
}

/// Adds a task that cannot fail.
fn add(tasks: &mut Tasks, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
    tasks.add(name, async move {
        task.await;
        Ok::<(), Infallible>(())
    });
}

/// What becomes of a connection.
fn enter(
    accepted: Accepted,
    desk: Arc<Desk<Client>>,
    service: Service,
) -> impl Future<Output = ()> + Send {
    let entering = Box::pin(async move {
        let entered = Box::pin(join::enter(accepted, &desk)).await;
        go_on(entered, "websocket", service)
    });
    // What the door needed is not kept for the length of a session.
    async move {
        if let Some(session) = entering.await {
            session.await;
        }
    }
}

/// What becomes of a QUIC stream.
async fn enter_quic(accepted: quic::Accepted, desk: Arc<Desk<Client>>, service: Service) {
    let entered = join::enter_quic(accepted, &desk);
    if let Some(session) = go_on(entered, "quic", service) {
        session.await;
    }
}

/// Tells what happened, and gives the session if there is to be one.
fn go_on<S>(
    entered: Entered<S>,
    transport: &'static str,
    service: Service,
) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if let Some(happened) = entered.happened {
        info!(?happened, "join");
        service.hub.notice(Notice::from(&happened));
    }
    let Linked {
        socket,
        peer,
        remote,
    } = entered.link?;
    let caller = Caller {
        peer,
        remote: remote.to_string().into(),
        transport,
    };
    Some(Box::pin(service.serve(socket, caller)))
}

/// Tells every node now and then how far it is.
async fn progress(hub: Arc<Hub>, shutdown: Shutdown) -> Result<(), Infallible> {
    let clock = hub.times().clock().clone();
    let telling = async {
        let mut told = clock.now();
        loop {
            clock.sleep_until(clock.now() + PROGRESS_LOOK).await;
            if !hub.owes_progress() && clock.now() < told + PROGRESS_EVERY {
                continue;
            }
            told = clock.now();
            for turn in 0..PROGRESS_TURNS {
                hub.tell_progress(turn, PROGRESS_TURNS);
                clock.sleep_until(clock.now() + PROGRESS_TURN).await;
            }
        }
    };
    tokio::select! {
        () = telling => Ok(()),
        () = shutdown.triggered() => Ok(()),
    }
}
