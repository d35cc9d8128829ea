//! `holdfast cloud`: a hub beside a cluster. It keeps every node's store equal to its view.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use cloud::clerk::FROZEN_LONG;
use cloud::cluster;
use cloud::hub::Hub;
use cloud::nodes::Leases;
use cloud::owners::Waits;
use cloud::record::Mode;
use cloud::report::HubReport;
use cloud::run::{self, Config, Ports};
use cloud::view::Policy;
use cloud::waiting::Waiting;
use host::glass::{Page, Port, Shown, Socket};
use host::listen::Reserved;
use host::pki::Wanted;
use host::{Clock, Tasks, files, quic};
use jiff::SignedDuration;
use object::Resource;
use tracing::info;
use wire::join::NodeName;

use crate::cli::{ClusterFlags, LogFlags};
use crate::config::value::{Connections, Grace, Listen, LogFormat, LogLevel, ServerName, Window};
use crate::failure::Failure;
use crate::life::{self, Threads, Until};
use crate::log::{self, Style};

/// The flags of `holdfast cloud`.
#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct CloudFlags {
    #[command(flatten)]
    cluster: ClusterFlags,
    /// The address and port for agents; port 0 takes a free one
    #[arg(
        long,
        env = "HOLDFAST_LISTEN",
        hide_env_values = true,
        default_value = "0.0.0.0:8443",
        value_name = "IP:PORT"
    )]
    listen: Listen,
    /// The address and port for agents that use QUIC, over UDP; best the same port as --listen
    #[arg(
        long,
        env = "HOLDFAST_QUIC_LISTEN",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    quic_listen: Option<Listen>,
    /// What this hub is called among the hubs of the cluster [default: the host's name]
    #[arg(
        long,
        env = "HOLDFAST_HUB_NAME",
        hide_env_values = true,
        value_name = "NAME"
    )]
    hub_name: Option<String>,
    /// A name or address by which agents reach this hub; may be repeated
    #[arg(
        long = "server-name",
        env = "HOLDFAST_SERVER_NAMES",
        hide_env_values = true,
        value_name = "NAME",
        value_delimiter = ','
    )]
    server_names: Vec<ServerName>,
    /// A further kind that every node holds whole, as RESOURCE or RESOURCE.GROUP; may be repeated
    #[arg(
        long = "share",
        env = "HOLDFAST_SHARE",
        hide_env_values = true,
        value_name = "KIND",
        value_delimiter = ','
    )]
    share: Vec<String>,
    /// A kind that nodes were given by an earlier --share and are to hold no more, as RESOURCE or
    /// RESOURCE.GROUP; may be repeated
    #[arg(
        long = "unshare",
        env = "HOLDFAST_UNSHARE",
        hide_env_values = true,
        value_name = "KIND",
        value_delimiter = ','
    )]
    unshare: Vec<String>,
    /// How many agents may be connected at once; a further one is turned away
    #[arg(
        long,
        env = "HOLDFAST_SESSIONS_MAX",
        hide_env_values = true,
        default_value = "20000",
        allow_hyphen_values = true,
        value_name = "COUNT"
    )]
    sessions_max: Connections,
    /// How many deliveries may be on their way to an agent before it acks one; 1 waits for each
    #[arg(
        long,
        env = "HOLDFAST_WINDOW",
        hide_env_values = true,
        default_value = "1024",
        allow_hyphen_values = true,
        value_name = "COUNT"
    )]
    window: Window,
    /// Over how long agents are handed over to other hubs when this one stops
    #[arg(
        long,
        env = "HOLDFAST_DRAIN",
        hide_env_values = true,
        default_value = "5s",
        allow_hyphen_values = true,
        value_name = "DURATION"
    )]
    drain: Grace,
    /// Whether the leases of nodes are kept alive whose agents ask for it: a write every 25 s for
    /// each of them
    #[arg(
        long,
        env = "HOLDFAST_LEASES",
        hide_env_values = true,
        default_value = "on",
        value_name = "on|off"
    )]
    leases: Leases,
    /// Which objects on nodes have records in the cluster: those of a node alone, all, or none
    #[arg(
        long,
        env = "HOLDFAST_RECORDS",
        hide_env_values = true,
        default_value = "node",
        value_name = "node|all|off"
    )]
    records: Mode,
    /// Where `holdfast status` finds this hub: a folder for its socket
    #[arg(
        long,
        env = "HOLDFAST_RUN_DIR",
        hide_env_values = true,
        default_value = "/run/holdfast",
        value_name = "DIR"
    )]
    run_dir: PathBuf,
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
  holdfast cloud --kubeconfig hub.kubeconfig --server-name hub.example.com
  holdfast token create --node shop-17      then, on the node, what it prints

Nothing is kept on this machine: a hub may be stopped, moved and started anew at any time. Several
hubs may run beside one cluster.

Exit codes: 0 stopped as asked, 1 failed while running, 2 wrong usage or configuration.";

/// Runs a hub until it is asked to stop.
pub(crate) fn run(flags: CloudFlags, log_flags: &LogFlags, until: Until) -> Result<(), Failure> {
    log::start(Style {
        format: log_flags.log_format.unwrap_or(LogFormat::Text),
        level: log_flags.log_level.unwrap_or(LogLevel::Info),
    })
    .map_err(Failure::run)?;
    let grace = flags.drain.0 + AFTER_DRAIN;
    let config = config(&flags).map_err(Failure::Usage)?;
    life::live((Threads::Many, until), grace, async |tasks, clock| {
        start(flags, config, tasks, clock).await
    })
}

/// How long the last sessions have beside the time over which they are spread.
const AFTER_DRAIN: Duration = Duration::from_secs(10);

fn config(flags: &CloudFlags) -> anyhow::Result<Config> {
    let cluster = match &flags.cluster.kubeconfig {
        Some(path) => cluster::Config::from_kubeconfig(path),
        None => cluster::Config::in_cluster(),
    };
    let cluster = cluster.context("no cluster; name one with --kubeconfig")?;
    cluster.check(&Clock::machine())?;
    let shared = flags.share.iter().map(|kind| kind_named(kind));
    let ended = flags.unshare.iter().map(|kind| kind_named(kind));
    let policy = Policy::default().and(shared)?.ending(ended)?;
    let name = match &flags.hub_name {
        Some(name) => name.clone(),
        None => host::name().context("the host has no name; give --hub-name")?,
    };
    // It is part of names in the cluster.
    if name.len() > HUB_NAME_MAX || name.parse::<NodeName>().is_err() {
        bail!(
            "{name:?} cannot be a hub's name: give --hub-name with at most {HUB_NAME_MAX} \
             lower-case letters, digits, '-' and '.'"
        );
    }
    Ok(Config {
        cluster,
        wanted: wanted(&name, flags),
        name,
        policy,
        certificate_life: SignedDuration::from_hours(30 * 24),
        limits: wire::window::Limits {
            deliveries: flags.window.0,
            ..wire::window::Limits::default()
        },
        cache: cloud::cache::Limits::default(),
        sessions_max: flags.sessions_max.0,
        drain: flags.drain.0,
        leases: flags.leases,
        records: flags.records,
        peers: Waits::default(),
        frozen_long: FROZEN_LONG,
    })
}

/// Characters of a hub's name.
const HUB_NAME_MAX: usize = 200;

/// `endpointslices.discovery.k8s.io` is a kind of a group, `services` one of the core.
fn kind_named(kind: &str) -> Resource {
    let (plural, group) = kind.split_once('.').unwrap_or((kind, ""));
    Resource::new(group, plural)
}

fn wanted(name: &str, flags: &CloudFlags) -> Wanted {
    let mut dns = vec!["localhost".to_owned(), name.to_owned()];
    let mut ips: Vec<IpAddr> = vec![[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()];
    let bound = flags.listen.0.ip();
    if !bound.is_unspecified() {
        ips.push(bound);
    }
    for name in &flags.server_names {
        match name {
            ServerName::Dns(name) => dns.push(name.clone()),
            ServerName::Ip(ip) => ips.push(*ip),
        }
    }
    dns.dedup();
    Wanted::Server {
        name: name.to_owned(),
        dns,
        ips,
    }
}

async fn start(
    flags: CloudFlags,
    config: Config,
    tasks: &mut Tasks,
    clock: Clock,
) -> anyhow::Result<()> {
    files::create_dir(&flags.run_dir)?;
    let path = flags.run_dir.join(format!("{}.sock", config.name));
    let lock = files::lock(&flags.run_dir.join(format!("{}.lock", config.name)))?;
    let tcp = Reserved::bind(flags.listen.0)?;
    let address = tcp.address();
    let quic = flags
        .quic_listen
        .map(|Listen(udp)| quic::Listener::bind(udp));
    let quic = quic.transpose()?;
    if let Some(quic) = &quic {
        info!(address = %quic.address(), "QUIC");
    }
    let ports = Ports { tcp, quic };
    let name = config.name.clone();
    let face = Arc::new(Face {
        name: name.clone(),
        address,
        waiting: Waiting::default(),
        hub: OnceLock::new(),
    });
    show(&flags, &face, (&path, lock), tasks).await?;
    let hub = match run::start(config, ports, &face.waiting, clock, tasks).await {
        Ok(hub) => hub,
        Err(run::Error::Stopped) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    face.hub.get_or_init(|| hub);
    info!(hub = name, %address, socket = %path.display(), "ready");
    Ok(())
}

/// Shows the hub on its socket, and its metrics where the flags say so.
async fn show(
    flags: &CloudFlags,
    face: &Arc<Face>,
    (path, lock): (&Path, files::Lock),
    tasks: &mut Tasks,
) -> anyhow::Result<()> {
    let crowd = tasks.crowd("looks", LOOKS_MAX);
    let shutdown = tasks.shutdown().clone();
    let socket = Socket::bind(path)?;
    let shown = Arc::clone(face);
    let shown: Shown = Arc::new(move |path| shown.page(path));
    let looks = socket.run(shown, crowd.clone(), shutdown.clone());
    tasks.add("status", async move {
        let _lock = lock;
        looks.await
    });
    if let Some(Listen(address)) = flags.metrics {
        let port = Port::bind(address).await?;
        let face = Arc::clone(face);
        let public = |path: &str| matches!(path, "/metrics" | "/ready");
        let metrics: Shown = Arc::new(move |path| public(path).then(|| face.page(path))?);
        tasks.add("metrics", port.run(metrics, crowd, shutdown));
    }
    Ok(())
}

/// What can be looked at of a hub, while it waits for its cluster and when it has begun.
struct Face {
    name: String,
    address: SocketAddr,
    waiting: Waiting,
    hub: OnceLock<Arc<Hub>>,
}

impl Face {
    fn report(&self) -> HubReport {
        match self.hub.get() {
            Some(hub) => hub.report(&self.name),
            None => {
                let what = self.waiting.what();
                let what = what.unwrap_or_else(|| "its cluster".to_owned());
                HubReport::waiting(&self.name, what)
            }
        }
    }

    /// A page. A hub that has not begun is nowhere, and not ready.
    fn page(&self, path: &str) -> Option<Page> {
        let text = |body: String| Page {
            content_type: "text/plain; version=0.0.4",
            body: body.into_bytes(),
        };
        let json = |body: Vec<u8>| Page {
            content_type: "application/json",
            body,
        };
        match path {
            "/status" => serde_json::to_vec(&self.report()).ok().map(json),
            "/address" => self.hub.get().map(|_| text(self.address.to_string())),
            "/ready" => self.hub.get().map(|_| text("ready\n".to_owned())),
            "/metrics" => Some(text(self.report().metrics())),
            _ => {
                let node = path.strip_prefix("/nodes/")?;
                let report = self.hub.get()?.node_report(node)?;
                serde_json::to_vec(&report).ok().map(json)
            }
        }
    }
}

/// Looks at once.
const LOOKS_MAX: u32 = 16;
