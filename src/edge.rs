//! `holdfast edge`: the agent on a node. It keeps the node's part of the cluster on its disk.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::{ArgAction, Args};
use edge::agent::{Agent, Registration};
use edge::join::{Failed, Home, Hub, Identity, Joining, Plan, Rotation, join_until, plan};
use edge::keep::Keep;
use edge::local::{self, Beside, Local, Visits};
use edge::overlay::{Desk, Overlay};
use edge::reports::{self, Reports};
use edge::status::Status;
use edge::transport::Transport;
use edge::tunnel::{self, Tunnel};
use edge::wants::Wants;
use host::pki::Pin;
use host::{Clock, Shutdown, Tasks, Times, files};
use store::disk::real::RealDisk;
use store::{KeyFile, OpenError, Options, Replica};
use tracing::{info, warn};
use wire::frame::Machine;
use wire::join::{NodeName, Token};

use crate::cli::LogFlags;
use crate::config::value::{Listen, LocalApi, LogFormat, LogLevel};
use crate::failure::{Failure, Wrong};
use crate::life::{self, Threads, Until};
use crate::log::{self, Style};
use crate::shown::{show, shown};

/// The flags of `holdfast edge`.
#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct EdgeFlags {
    /// A hub, as HOST:PORT; may be repeated, each of them will do
    #[arg(
        long = "hub",
        env = "HOLDFAST_HUBS",
        hide_env_values = true,
        value_name = "HOST:PORT",
        value_delimiter = ',',
        required = true
    )]
    hubs: Vec<Hub>,
    /// Over what links go: websocket, quic (the hub's port, over UDP), or auto (QUIC if it works)
    #[arg(
        long,
        env = "HOLDFAST_TRANSPORT",
        hide_env_values = true,
        default_value = "websocket",
        value_name = "NAME"
    )]
    transport: Transport,
    /// The node's name in the cluster [default: the name it joined with, else the host's]
    #[arg(
        long,
        env = "HOLDFAST_NODE",
        hide_env_values = true,
        value_name = "NAME"
    )]
    node: Option<NodeName>,
    /// Where the node's store, key and certificate are kept
    #[arg(
        long,
        env = "HOLDFAST_DATA_DIR",
        hide_env_values = true,
        default_value = "/var/lib/holdfast",
        value_name = "DIR"
    )]
    data_dir: PathBuf,
    /// A file with the token to join with; needed once, or when the certificate is lost or expired
    #[arg(
        long,
        env = "HOLDFAST_TOKEN_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    token_file: Option<PathBuf>,
    /// The pin of the hubs' authority, as `holdfast token create` prints it; needed to join
    #[arg(
        long,
        env = "HOLDFAST_CA_HASH",
        hide_env_values = true,
        value_name = "sha256:HEX"
    )]
    ca_hash: Option<Pin>,
    /// Whether the hub registers this node in the cluster and keeps its lease alive; false where a
    /// kubelet does it
    #[arg(
        long,
        env = "HOLDFAST_REGISTER_NODE", hide_env_values = true,
        value_name = "true|false",
        action = ArgAction::Set,
        default_value_t = true
    )]
    register_node: bool,
    /// Where the node's own Kubernetes API listens: IP:PORT, or off. Port 0 is the port of last
    /// time, or any that is free [default: 127.0.0.1:10443, if it is free]
    #[arg(
        long,
        env = "HOLDFAST_API",
        hide_env_values = true,
        value_name = "IP:PORT|off"
    )]
    api: Option<LocalApi>,
    /// A unix socket on which the node's API listens as well, without TLS, for root and whoever
    /// runs the agent; or off [default: api.sock in the data directory]
    #[arg(
        long,
        env = "HOLDFAST_API_SOCKET",
        hide_env_values = true,
        value_name = "PATH|off"
    )]
    api_socket: Option<PathBuf>,
    /// Lead pods to the node's API: a kubelet that reads there gives them its address and
    /// authority. Needs --api with an address of this machine that pods reach
    #[arg(long, env = "HOLDFAST_API_FOR_PODS", hide_env_values = true)]
    api_for_pods: bool,
    /// A file with the key that Secrets on this node's disk are sealed with, for its owner alone
    /// (0600): 64 hexadecimal digits. Of several lines the first seals, all of them open [default:
    /// secrets.key in the data directory, made at the first start]
    #[arg(
        long,
        env = "HOLDFAST_SECRETS_KEY_FILE",
        hide_env_values = true,
        value_name = "FILE"
    )]
    secrets_key_file: Option<PathBuf>,
    /// Show Prometheus metrics on this address and port, to whoever can reach it
    #[arg(
        long,
        env = "HOLDFAST_METRICS",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    metrics: Option<Listen>,
}

const HELP: &str = "\
Examples:
  holdfast edge --hub hub.example.com:8443 --token-file token --ca-hash sha256:…
  holdfast edge --hub hub-a:8443 --hub hub-b:8443      once it has joined
  holdfast status --agent /var/lib/holdfast            how it is doing
  holdfast edge --hub hub-a:8443 --api off             without a Kubernetes API on the node
  holdfast kubeconfig --output config                  for kubectl on the node
  curl --unix-socket /var/lib/holdfast/api.sock http://node/api/v1/pods

The agent starts from its disk without any hub, also with an expired certificate.

Exit codes: 0 stopped as asked, 1 failed while running, 2 wrong usage or configuration.";

/// Where the node's own Kubernetes API listens, if nothing else is said.
const API: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10443);
/// The file in the data directory that has the key of Secrets, if no other is named.
const SECRETS_KEY: &str = "secrets.key";
/// How long the agent has to end its session and close its store.
const GRACE: Duration = Duration::from_secs(10);
/// Bytes of a file with a token.
const TOKEN_FILE_BYTES_MAX: u64 = 4096;

/// Runs the agent until it is asked to stop.
pub(crate) fn run(flags: EdgeFlags, log_flags: &LogFlags, until: Until) -> Result<(), Failure> {
    log::start(Style {
        format: log_flags.log_format.unwrap_or(LogFormat::Text),
        level: log_flags.log_level.unwrap_or(LogLevel::Info),
    })
    .map_err(Failure::run)?;
    check_pods(&flags)?;
    life::live((Threads::One, until), GRACE, async |tasks, clock| {
        start(flags, tasks, clock).await
    })
}

async fn start(flags: EdgeFlags, tasks: &mut Tasks, clock: Clock) -> anyhow::Result<()> {
    files::create_dir(&flags.data_dir)?;
    let lock = files::lock(&flags.data_dir.join("lock"))?;
    let home = Home::open(&flags.data_dir.join("identity"))?;
    let who = who(&home, &flags, &clock)?;
    let node = who.node().clone();
    let keep = open(&flags, &node, &clock)?;
    let status = Arc::new(Status::default());
    let reports = Reports::open(keep.clone(), reports::LIMITS);
    let times = Times::new(clock.clone());
    let requests = tasks.crowd("requests", tunnel::REQUESTS_MAX);
    let tunnel = Tunnel::new(requests, times.clone(), Arc::clone(&status));
    tunnel.compare_with(keep.reader().clone());
    let visits = Visits::default();
    let seen = (Arc::clone(&status), tunnel.clone(), visits.clone());
    let shown = shown((keep.clone(), reports.clone()), seen, &node, clock.clone());
    let path = flags.data_dir.join("status.sock");
    show(&path, flags.metrics, shown, tasks).await?;
    let shutdown = tasks.shutdown().clone();
    tasks.add("reports", reports.clone().run(shutdown));
    if let LocalApi(Some(listen)) = flags.api.unwrap_or(LocalApi(Some(API))) {
        let beside = (&keep, &tunnel, &reports);
        let around = (&times, visits);
        serve_api((&flags, listen), &node, beside, around, tasks).await?;
    }
    let life = Life {
        home,
        who,
        hubs: flags.hubs,
        registration: match flags.register_node {
            true => Registration::Hub,
            false => Registration::Elsewhere,
        },
        transport: flags.transport,
        keep,
        tunnel,
        reports,
        times,
        status,
        clock,
        shutdown: tasks.shutdown().clone(),
    };
    tasks.add("agent", async move {
        // Nobody else may open the store before it is closed.
        let _lock = lock;
        life.live().await
    });
    info!(%node, socket = %path.display(), "ready");
    Ok(())
}

/// Starts the node's own Kubernetes API, and what stands behind it.
async fn serve_api(
    (flags, listen): (&EdgeFlags, SocketAddr),
    node: &NodeName,
    (keep, tunnel, reports): (&Keep, &Tunnel, &Reports),
    (times, visits): (&Times, Visits),
    tasks: &mut Tasks,
) -> anyhow::Result<()> {
    let shutdown = tasks.shutdown().clone();
    let clock = times.clock().clone();
    let overlay = Overlay::new(keep.clone(), reports.clone(), node, clock.clone());
    tasks.add("overlay", overlay.clone().run(shutdown.clone()));
    let ways = (tunnel.clone(), reports.clone());
    let desk = Desk::new(node, ways, overlay, times.clone());
    tasks.add("kubelet", desk.clone().run(shutdown.clone()));
    let wants = Wants::open(keep.clone(), reports.clone(), times.clone());
    tasks.add("wants", wants.clone().run(shutdown));
    let local = Local {
        beside: Beside {
            desk: Some(desk),
            wants: Some(wants),
        },
        keep,
        tunnel: tunnel.clone(),
        node,
        data_dir: &flags.data_dir,
        listen,
        socket: api_socket(flags),
        for_pods: flags.api_for_pods,
        visits,
        clock,
    };
    match (local.start(tasks).await, flags.api) {
        // A node must get what it is to hold, whoever else has a port that nobody chose.
        (Err(local::Failed::Listen(why)), None) => {
            warn!(%why, "no Kubernetes API on this node: say with --api where it is to be");
        }
        (started, _) => drop(started?),
    }
    Ok(())
}

/// Pods are led to one address, which somebody must have chosen.
fn check_pods(flags: &EdgeFlags) -> Result<(), Failure> {
    if !flags.api_for_pods {
        return Ok(());
    }
    match flags.api {
        None | Some(LocalApi(None)) => Err(Failure::usage(anyhow!(PODS_REACH))),
        Some(LocalApi(Some(listen))) if listen.ip().is_unspecified() => {
            Err(Failure::usage(anyhow!(PODS_REACH)))
        }
        Some(LocalApi(Some(listen))) => {
            if listen.ip().is_loopback() {
                warn!(%listen, "only pods with the network of this machine reach the node's API");
            }
            Ok(())
        }
    }
}

/// What is said to who would lead pods nowhere.
const PODS_REACH: &str = "--api-for-pods needs --api with an address of this machine that pods \
    reach, such as 169.254.20.11:10443 (docs/operating/edge-node.md)";

/// Who the node is, or who it is about to be.
enum Who {
    /// It has joined.
    Known(Box<Identity>),
    /// It joins, for the first time or anew.
    Joins(Box<Joining>),
}

impl Who {
    fn node(&self) -> &NodeName {
        match self {
            Self::Known(identity) => &identity.node,
            Self::Joins(joining) => &joining.node,
        }
    }
}

/// The agent, from joining to its end. What is on disk is served meanwhile.
struct Life {
    home: Home,
    who: Who,
    hubs: Vec<Hub>,
    registration: Registration,
    transport: Transport,
    keep: Keep,
    tunnel: Tunnel,
    reports: Reports,
    times: Times,
    status: Arc<Status>,
    clock: Clock,
    shutdown: Shutdown,
}

impl Life {
    async fn live(self) -> anyhow::Result<()> {
        let identity = match self.who {
            Who::Known(identity) => *identity,
            Who::Joins(joining) => {
                let (clock, shutdown) = (&self.clock, &self.shutdown);
                let told = |failed: &Failed| {
                    let words = format!("not joined yet: {}", host::chain(failed));
                    self.status.ended("join", &words, clock.wall());
                };
                let joined = join_until(&self.home, &joining, clock, shutdown, told).await;
                match (joined, self.home.identity()) {
                    (Err(Failed::Shutdown), _) => return Ok(()),
                    // What it is already it stays.
                    (Err(Failed::Refused { words, .. }), Ok(Some(held)))
                        if held.node == joining.node =>
                    {
                        warn!(%words, "the token was refused: it goes on as it joined before");
                        held
                    }
                    (joined, _) => joined?,
                }
            }
        };
        let rotation = Rotation::new(self.home, identity, self.hubs.clone(), self.clock.clone());
        let agent = Agent {
            keep: self.keep.clone(),
            hubs: self.hubs,
            transport: self.transport,
            identity: rotation.current(),
            status: self.status,
            times: self.times,
            program: concat!("holdfast ", env!("CARGO_PKG_VERSION")).into(),
            machine: machine(),
            registration: self.registration,
            reports: Some(self.reports),
        };
        let renewing = async {
            rotation.run(self.shutdown.clone()).await;
            // At the shutdown the agent still has its last words to say.
            std::future::pending().await
        };
        // An agent that gives up ends the program, whatever becomes of its certificate.
        let ended = tokio::select! {
            ended = agent.run_with(self.tunnel, self.shutdown.clone()) => ended,
            never = renewing => never,
        };
        self.keep.close();
        Ok(ended?)
    }
}

/// The socket of the node's API, if there is to be one.
fn api_socket(flags: &EdgeFlags) -> Option<PathBuf> {
    match &flags.api_socket {
        Some(path) if path.as_os_str() == "off" => None,
        Some(path) => Some(path.clone()),
        None => Some(flags.data_dir.join("api.sock")),
    }
}

/// This machine, in the words that Kubernetes has for it.
fn machine() -> Machine {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        "loongarch64" => "loong64",
        other => other,
    };
    Machine {
        host: host::name().unwrap_or_default().into(),
        os: std::env::consts::OS.into(),
        arch: arch.into(),
    }
}

/// Who the node is: as it joined, or as it joins now.
fn who(home: &Home, flags: &EdgeFlags, clock: &Clock) -> anyhow::Result<Who> {
    let known = home.identity()?;
    let token = match flags.token_file.as_deref().map(token).transpose() {
        Err(error) if known.is_some() => {
            warn!(
                error = format!("{error:#}"),
                "no token: the node goes on as it joined before"
            );
            None
        }
        token => token.map_err(Wrong::given)?,
    };
    let validity = known.as_ref().map(|identity| &identity.validity);
    let joined_with = home.joined_with();
    let plan = plan(
        validity,
        joined_with.as_deref(),
        token.as_ref(),
        clock.wall(),
    );
    let node = node_name(flags, known.as_ref()).map_err(Wrong::given)?;
    let joins = |token, pin| {
        Who::Joins(Box::new(Joining {
            hubs: flags.hubs.clone(),
            node,
            token,
            pin,
        }))
    };
    match (plan, known, token) {
        (Plan::Use | Plan::Alone, Some(identity), _) => {
            if plan == Plan::Alone {
                let ended = identity.validity.not_after;
                warn!(%ended, "the certificate is over: what is on disk is kept, and no hub lets \
                    the node in; join anew with a token from `holdfast token create --node`");
            }
            Ok(Who::Known(Box::new(identity)))
        }
        (Plan::Join, known, Some(token)) => match (flags.ca_hash, known) {
            (Some(pin), _) => Ok(joins(token, pin)),
            (None, Some(known)) => Ok(joins(token, known.pin()?)),
            (None, None) => Err(Wrong::given(anyhow!(
                "--ca-hash is needed to join; `holdfast token create` prints it"
            ))),
        },
        _ => Err(Wrong::given(anyhow!(
            "this machine is no node yet; give --token-file and --ca-hash, as \
             `holdfast token create` prints them"
        ))),
    }
}

fn node_name(flags: &EdgeFlags, known: Option<&Identity>) -> anyhow::Result<NodeName> {
    match (&flags.node, known.map(|known| &known.node)) {
        (Some(name), Some(known)) if name != known => bail!(
            "this machine joined as {known}, and a node keeps its name: leave out --node, or give \
             another --data-dir to join as {name}"
        ),
        (Some(name), _) | (None, Some(name)) => return Ok(name.clone()),
        (None, None) => {}
    }
    let host = host::name().context("the host has no name; give --node")?;
    host.parse()
        .with_context(|| format!("the host's name {host:?} cannot be a node's; give --node"))
}

fn token(path: &Path) -> anyhow::Result<Token> {
    let bytes = files::read(path, TOKEN_FILE_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&bytes);
    let token = text.trim().parse::<Token>();
    token.with_context(|| format!("{} does not hold a token", path.display()))
}

/// What to do with a store of another node, which may be one that never was.
const WRONG_NAME: &str = "; if it joined under a wrong name, in vain, remove that folder";

fn open(flags: &EdgeFlags, node: &NodeName, clock: &Clock) -> anyhow::Result<Keep> {
    let folder = flags.data_dir.join("store");
    let disk = RealDisk::open(&folder).context("the store's folder")?;
    let own = flags.data_dir.join(SECRETS_KEY);
    let file = match &flags.secrets_key_file {
        Some(given) => KeyFile::Given(given),
        None => KeyFile::Own(&own),
    };
    let mut options = Options::new(format!("node {node}"));
    let keys = store::keys(file, &disk).context("no key for Secrets on the disk")?;
    options.keys = Some(Arc::clone(&keys));
    let opened = Replica::open(Arc::new(disk), options, clock.clone());
    let foreign = matches!(opened, Err(OpenError::Foreign { .. }));
    let hint = if foreign { WRONG_NAME } else { "" };
    let shown = folder.display();
    let replica = opened.with_context(|| format!("the store in {shown} cannot be opened{hint}"))?;
    Ok(Keep::new(replica).with_keys(keys))
}
