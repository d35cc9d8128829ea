//! A hub from its start to its end, on one screen.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use host::listen::{Accepted, Listener};
use host::pki::Wanted;
use host::quic;
use host::{Clock, Shutdown, Tasks, Times, chain};
use jiff::SignedDuration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tracing::{info, warn};
use wire::session::{FEATURES, PROTOCOL_NEWEST, PROTOCOL_OLDEST, Terms};
use wire::window::Limits;

use crate::cache::{self, Applied};
use crate::clerk::{Clerk, Seen};
use crate::cluster::{self, Client};
use crate::epochs::Epochs;
use crate::follow::Follow;
use crate::hub::Hub;
use crate::join::{self, Desk, Entered, Linked, Revocations, Serving, Signer, authority, revoked};
use crate::serve::{Caller, Service};
use crate::talk::Desk as _;
use crate::view::Policy;
use crate::watch::Told;

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
}

/// Where agents reach a hub.
pub struct Ports {
    /// Over TCP: links, and what leads to them.
    pub tcp: Listener,
    /// Over UDP: links alone.
    pub quic: Option<quic::Listener>,
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
/// How often revocations are looked for, though nobody said that there are any.
const REVOCATIONS_EVERY: Duration = Duration::from_secs(10);
/// How often every node is told how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(600);
/// How often an agent says that it is there.
const HEARTBEAT_SECONDS: u64 = 30;
/// How long to wait before the cluster is asked again, while the hub starts.
const START_AGAIN: Duration = Duration::from_secs(1);

/// Starts a hub: adds its tasks, and returns once it accepts links.
pub async fn start(
    config: Config,
    ports: Ports,
    clock: Clock,
    tasks: &mut Tasks,
) -> Result<Arc<Hub>, Error> {
    let shutdown = tasks.shutdown().clone();
    let crowd = tasks.crowd("cluster", CLUSTER_PLACES);
    let client = Client::new(config.cluster.clone(), crowd, clock.clone());
    let authority = authority::shared(&client, clock.wall()).await?;
    let authority = Arc::new(authority);
    let serving = Serving::new(Arc::clone(&authority), config.wanted.clone(), &clock)?;
    let serving = Arc::new(serving);
    let revocations = Revocations::default();
    let opened = Epochs::open(client.clone(), clock.clone()).await;
    let epochs = opened.map_err(Error::Epoch)?;
    let times = Times::new(clock.clone());
    let (hub, happenings) = Hub::new(times, config.policy, epochs.now(), config.cache);
    let hub = Arc::new(hub);
    let seen = Arc::new(Seen::default());

    let due = Arc::new(Notify::new());
    let follow = Follow {
        client: client.clone(),
        hub: Arc::clone(&hub),
        epochs: epochs.begun(),
        tell: tell(Arc::clone(&seen), Arc::clone(&due)),
        clock: clock.clone(),
        shutdown: shutdown.clone(),
    };
    follow.start(tasks);
    let clerk = Clerk {
        hub: Arc::clone(&hub),
        client: client.clone(),
        epochs,
        happenings,
        seen,
    };
    tasks.add("clerk", clerk.run(shutdown.clone()));
    tasks.add(
        "revocations",
        watch_revocations(
            client.clone(),
            revocations.clone(),
            due,
            tasks.shutdown().clone(),
        ),
    );
    tasks.add("progress", progress(Arc::clone(&hub), shutdown.clone()));
    let renewing = Arc::clone(&serving).run(clock.clone(), shutdown.clone());
    tasks.add("certificate", async move {
        renewing.await;
        Ok::<(), Infallible>(())
    });

    let signer = Signer::new(authority, config.certificate_life);
    let service = Service {
        hub: Arc::clone(&hub),
        terms: Arc::new(Terms {
            oldest: PROTOCOL_OLDEST,
            newest: PROTOCOL_NEWEST,
            features: FEATURES,
            hub: config.name.into(),
            heartbeat_seconds: HEARTBEAT_SECONDS,
            window: config.limits.deliveries as u64,
        }),
        limits: config.limits,
        revocations: revocations.clone(),
        shutdown: shutdown.clone(),
        drain: config.drain,
    };
    let desk = Arc::new(Desk::new(client, signer, revocations, clock));
    let crowd = tasks.crowd("links", config.sessions_max);
    if let Some(quic) = ports.quic {
        let (desk, service) = (Arc::clone(&desk), service.clone());
        let serve = move |accepted| enter_quic(accepted, Arc::clone(&desk), service.clone());
        let listening = quic.run(serving.tls(), crowd.clone(), shutdown.clone(), serve);
        tasks.add("quic", listening);
    }
    let serve = move |accepted| enter(accepted, Arc::clone(&desk), service.clone());
    let listening = ports.tcp.run(serving.tls(), crowd, shutdown, serve);
    tasks.add("links", listening);
    Ok(hub)
}

/// What becomes of a connection.
async fn enter(accepted: Accepted, desk: Arc<Desk<Client>>, service: Service) {
    let entered = Box::pin(join::enter(accepted, &desk)).await;
    go_on(entered, service).await;
}

/// What becomes of a QUIC stream.
async fn enter_quic(accepted: quic::Accepted, desk: Arc<Desk<Client>>, service: Service) {
    let entered = join::enter_quic(accepted, &desk);
    go_on(entered, service).await;
}

async fn go_on<S>(entered: Entered<S>, service: Service)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
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

/// What those who follow the cluster see, for those who are concerned.
fn tell(seen: Arc<Seen>, due: Arc<Notify>) -> Arc<dyn Fn(&Told) + Send + Sync> {
    Arc::new(move |told| {
        seen.hear(told);
        if let Told::Changed(resource, applied) = told
            && resource.group().is_empty()
            && resource.plural() == "configmaps"
            && applied.iter().any(is_of_revocations)
        {
            due.notify_one();
        }
    })
}

fn is_of_revocations(applied: &Applied) -> bool {
    let header = applied.after.as_ref().or(applied.before.as_ref());
    header.is_some_and(|header| {
        header.name.namespace() == join::NAMESPACE && header.name.name() == revoked::RECORD
    })
}

/// Keeps the list of revoked nodes as it is in the cluster. Until it was read nobody is let in.
async fn watch_revocations(
    client: Client,
    revocations: Revocations,
    due: Arc<Notify>,
    shutdown: Shutdown,
) -> Result<(), Infallible> {
    loop {
        let wait = match revoked::fetch(&client).await {
            Ok(record) => {
                for node in revocations.handle_record(record.as_ref()) {
                    info!(%node, "revoked");
                }
                REVOCATIONS_EVERY
            }
            Err(error) => {
                warn!(
                    error = chain(&error),
                    "the list of revoked nodes cannot be read"
                );
                START_AGAIN
            }
        };
        tokio::select! {
            () = due.notified() => {}
            () = tokio::time::sleep(wait) => {}
            () = shutdown.triggered() => return Ok(()),
        }
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
