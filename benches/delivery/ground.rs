//! What every part stands on: a cluster, hubs and agents as programs of their own, and the
//! authority of links, so that nodes need not join one by one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::cluster::{Controllers, Holdfast, Kubernetes, Setup, Site};
use cloud::cluster::{Client, Config};
use cloud::join::authority;
use host::files::{self, Audience};
use host::pki::{Authority, Credential, Wanted};
use host::{Clock, Shutdown, Tasks, glass};
use serde_json::Value;
use tempfile::TempDir;
use wire::join::{NODES_GROUP, NodeName};

use crate::client::Door;
use crate::server::{Memory, Server, cpu};

/// A cluster, and a folder for what runs beside it.
pub(crate) struct Ground {
    cluster: Cluster,
    /// The cluster's API.
    pub(crate) server: Server,
    pub(crate) folder: TempDir,
    authority: Arc<Authority>,
    _tasks: Tasks,
}

/// Whose API it is.
enum Cluster {
    Embedded(Box<Holdfast>),
    Real(Box<Kubernetes>),
}

impl Cluster {
    fn site(&self) -> &Site {
        match self {
            Self::Embedded(holdfast) => holdfast.site(),
            Self::Real(kubernetes) => kubernetes.site(),
        }
    }

    fn processes(&self) -> Vec<u32> {
        match self {
            Self::Embedded(holdfast) => vec![holdfast.process()],
            Self::Real(kubernetes) => kubernetes.processes().map(|(_, id)| id).collect(),
        }
    }
}

/// A program of its own. It is killed when this goes.
pub(crate) struct Program {
    child: Child,
    /// From its start to its first answer.
    pub(crate) ready_after: Duration,
}

/// A hub that runs.
pub(crate) struct Hub {
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
    socket: PathBuf,
}

/// An agent that runs.
pub(crate) struct Agent {
    pub(crate) program: Program,
    pub(crate) folder: PathBuf,
}

impl Ground {
    /// Starts a cluster without a hub and without nodes.
    pub(crate) async fn start() -> Self {
        let started = tokio::task::block_in_place(|| Holdfast::start(&program(), &[]));
        let holdfast = started.unwrap_or_else(|error| panic!("{error}"));
        Self::of(Cluster::Embedded(Box::new(holdfast))).await
    }

    /// Starts a real kube-apiserver with etcd, without controllers, a hub or nodes.
    pub(crate) async fn start_real() -> Self {
        let setup = Setup {
            controllers: Controllers::None,
            ..Setup::default()
        };
        let started = tokio::task::block_in_place(|| Kubernetes::start_with(setup));
        let kubernetes = started.unwrap_or_else(|error| panic!("{error}"));
        Self::of(Cluster::Real(Box::new(kubernetes))).await
    }

    async fn of(cluster: Cluster) -> Self {
        let server = Server {
            door: Door::of(cluster.site().folder()),
            processes: cluster.processes(),
        };
        let mut tasks = Tasks::new(Shutdown::new());
        let clock = Clock::machine();
        let config = Config::from_kubeconfig(&cluster.site().kubeconfig()).expect("a kubeconfig");
        let client = Client::new(config, tasks.crowd("requests", 16), clock.clone());
        let shared = authority::shared(&client, clock.wall()).await;
        Self {
            cluster,
            server,
            folder: tempfile::tempdir().expect("a folder"),
            authority: Arc::new(shared.expect("an authority")),
            _tasks: tasks,
        }
    }

    /// Where the cluster is, and how one gets in.
    pub(crate) fn site(&self) -> &Site {
        self.cluster.site()
    }

    /// The authority of links.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// A node's key and certificate.
    pub(crate) fn credential(&self, node: &str) -> Credential {
        let node: NodeName = node.parse().expect("a node's name");
        let wanted = Wanted::Client {
            user: node.user(),
            groups: vec![NODES_GROUP.to_owned()],
        };
        let issued = self.authority.issue(&wanted, Clock::machine().wall());
        issued.expect("a certificate")
    }

    /// Starts a hub with these flags beside the usual ones, and waits until it is there.
    pub(crate) async fn hub(&self, flags: &[&str]) -> Hub {
        self.hub_of(&self.site().kubeconfig(), flags).await
    }

    /// The same, of a cluster that is reached another way.
    pub(crate) async fn hub_of(&self, kubeconfig: &Path, flags: &[&str]) -> Hub {
        let run_dir = self.folder.path().join("run");
        let mut command = holdfast("cloud");
        command.arg("--kubeconfig").arg(kubeconfig);
        command.arg("--run-dir").arg(&run_dir);
        command.args(["--hub-name", "hub"]).args(flags);
        if !flags.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let socket = run_dir.join("hub.sock");
        let log = self.folder.path().join("hub.log");
        let program = Program::start(command, &log, (&socket, "/address")).await;
        let said = glass::look(&socket, "/address").await.expect("an address");
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        let hub = Hub {
            program,
            address: said.parse().expect("an address"),
            socket,
        };
        hub.knows_the_cluster().await;
        hub
    }

    /// Starts an agent of this node, or starts it again on what it left.
    pub(crate) async fn agent(&self, node: &str, hub: SocketAddr) -> Agent {
        self.agent_by(holdfast("edge"), node, hub).await
    }

    /// The same, by a command of its own.
    pub(crate) async fn agent_by(
        &self,
        mut command: Command,
        node: &str,
        hub: SocketAddr,
    ) -> Agent {
        let folder = self.folder.path().join(node);
        self.give_identity(&folder, node);
        command.args(["--node", node, "--hub", &hub.to_string()]);
        command.arg("--data-dir").arg(&folder);
        // Many are on one machine.
        command.args(["--api", "127.0.0.1:0"]);
        let (socket, log) = (folder.join("status.sock"), folder.join("log"));
        let program = Program::start(command, &log, (&socket, "/status")).await;
        Agent { program, folder }
    }

    /// Makes a node's folder, as if it had joined.
    fn give_identity(&self, folder: &Path, node: &str) {
        let path = folder.join("identity/identity.pem");
        if path.exists() {
            return;
        }
        files::create_dir(folder).expect("a folder");
        files::create_dir(&folder.join("identity")).expect("a folder");
        let credential = self.credential(node);
        let authority = self.authority.certificate_pem();
        let text = [
            credential.key_pem(),
            credential.certificate_pem(),
            authority,
        ]
        .concat();
        files::write(&path, text.as_bytes(), Audience::Owner).expect("a file");
    }
}

/// The program with a command of its own, which ends with this one.
pub(crate) fn holdfast(command: &str) -> Command {
    let mut program = Command::new(program());
    program.args([command, "--until-stdin-ends"]);
    program
}

/// Another build can be measured with the same client.
pub(crate) fn program() -> PathBuf {
    let other = std::env::var_os("HOLDFAST_PROGRAM").map(PathBuf::from);
    other.unwrap_or_else(|| env!("CARGO_BIN_EXE_holdfast").into())
}

impl Program {
    async fn start(mut command: Command, log: &Path, (socket, path): (&Path, &str)) -> Self {
        // One that was killed leaves its socket behind.
        std::fs::remove_file(socket).ok();
        let log = std::fs::File::create(log).expect("a log");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.stderr(log);
        let began = Instant::now();
        let mut child = command.spawn().expect("the program starts");
        while glass::look(socket, path).await.is_err() {
            let ended = child.try_wait().expect("a child");
            assert!(ended.is_none(), "{command:?} ended: {ended:?}");
            assert!(began.elapsed() < PATIENCE, "{command:?} does not answer");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Self {
            child,
            ready_after: began.elapsed(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The processor time that it has taken.
    pub(crate) fn cpu(&self) -> Duration {
        cpu(self.id())
    }

    /// Its memory now.
    pub(crate) fn memory(&self, ground: &Ground) -> Memory {
        self.server(ground).memory()
    }

    /// A number of `/proc/ID/FILE`.
    pub(crate) fn number(&self, file: &str, field: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/{file}", self.id()));
        let text = text.expect("the program runs");
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        let digits = line.and_then(|rest| rest.split_ascii_whitespace().next());
        digits
            .and_then(|digits| digits.parse().ok())
            .expect("a number")
    }

    /// The program as something whose time is measured.
    pub(crate) fn server(&self, ground: &Ground) -> Server {
        Server {
            door: ground.server.door.clone(),
            processes: vec![self.id()],
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Hub {
    /// How it is doing.
    pub(crate) async fn status(&self) -> Value {
        let said = glass::look(&self.socket, "/status").await;
        serde_json::from_slice(&said.expect("a hub that answers")).expect("JSON")
    }

    /// How many sessions it has.
    pub(crate) async fn sessions(&self) -> u64 {
        let said = glass::look(&self.socket, "/metrics").await;
        let said = said.expect("a hub that answers");
        let said = String::from_utf8_lossy(&said);
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix("holdfast_hub_sessions "));
        line.and_then(|count| count.parse().ok()).expect("a number")
    }

    /// Waits until it has listed everything that the cluster has.
    async fn knows_the_cluster(&self) {
        eventually(async || {
            let status = self.status().await;
            let all = status["resources"].as_array().expect("resources").iter();
            let core = all.filter(|it| !it["resource"].as_str().unwrap_or("").contains('.'));
            core.clone().count() > 0 && core.into_iter().all(|it| it["state"] == "complete")
        })
        .await;
    }
}

impl Agent {
    /// How it is doing.
    pub(crate) async fn status(&self) -> Value {
        let said = glass::look(&self.folder.join("status.sock"), "/status").await;
        serde_json::from_slice(&said.expect("an agent that answers")).expect("JSON")
    }

    /// How far it is with a resource, on disk; and how many objects it has.
    pub(crate) async fn holds(&self, resource: &str) -> (u64, u64) {
        let status = self.status().await;
        let all = status["resources"].as_array().expect("resources");
        let found = all.iter().find(|held| held["resource"] == resource);
        let version = found.and_then(|held| held["version"].as_str()?.parse().ok());
        let objects = found.and_then(|held| held["objects"].as_u64());
        (version.unwrap_or(0), objects.unwrap_or(0))
    }

    /// Waits until it has everything of a resource up to a version on its disk.
    pub(crate) async fn reaches(&self, resource: &str, version: u64) -> Instant {
        eventually(async || self.holds(resource).await.0 >= version).await;
        Instant::now()
    }

    /// Waits until it has a session that began after so many others.
    pub(crate) async fn connects(&self, before: u64) -> u64 {
        let mut sessions = 0;
        eventually(async || {
            let status = self.status().await;
            sessions = status["sessions"].as_u64().unwrap_or(0);
            sessions > before && status["connected"] == true
        })
        .await;
        sessions
    }

    /// What it holds of a resource: names, uids and versions, sorted.
    pub(crate) async fn dump(&self, resource: &str) -> Vec<String> {
        let said = glass::look(&self.folder.join("status.sock"), "/dump").await;
        let said = String::from_utf8_lossy(&said.expect("an agent that answers")).into_owned();
        let start = format!("{resource} ");
        let rows = said.lines().filter_map(|line| line.strip_prefix(&start));
        let row = |line: &str| {
            assert!(!line.ends_with("unreadable"), "{line}");
            line.rsplit_once(' ').expect("a hash").0.to_owned()
        };
        let mut rows: Vec<String> = rows.map(row).collect();
        rows.sort();
        rows
    }
}

/// Waits until something is so. What is not so for long ends the run.
pub(crate) async fn eventually(mut so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !so().await {
        assert!(began.elapsed() < PATIENCE, "it does not become so");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// How long anything may take. Whatever takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(300);
