//! A cluster as a program, and hubs and agents in this process, each of which can be stopped and
//! killed alone.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::cluster::Holdfast;
use cloud::cluster::{Client, Config};
use cloud::join::token::{self, Bound};
use cloud::join::{authority, signer};
use cloud::nodes::Leases;
use cloud::record::Mode;
use cloud::run;
use cloud::view::Policy;
use cloud::waiting::Waiting;
use edge::agent::{Agent, Registration};
use edge::join::{Home, Hub as Address, Joining, Rotation, join_until};
use edge::keep::Keep;
use edge::status::{Report, Status};
use edge::tunnel::{REQUESTS_MAX, Tunnel};
use host::listen::Reserved;
use host::pki::{Pin, Wanted};
use host::{Clock, Shutdown, Tasks, Times};
use jiff::SignedDuration;
use serde_json::Value;
use store::disk::memory::MemoryDisk;
use store::{Options, Replica};
use tempfile::TempDir;
use wire::frame::Machine;
use wire::join::NodeName;

/// How long anything may take that has to happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A cluster.
pub(crate) struct Stage {
    pub(crate) cluster: Holdfast,
    pub(crate) client: Client,
    pub(crate) folder: TempDir,
    _tasks: Tasks,
}

/// A hub.
pub(crate) struct Hub {
    pub(crate) hub: Arc<cloud::hub::Hub>,
    pub(crate) address: Address,
    tasks: Tasks,
}

/// An agent.
pub(crate) struct Node {
    pub(crate) keep: Keep,
    /// Carries requests to the cluster.
    pub(crate) tunnel: Tunnel,
    status: Arc<Status>,
    tasks: Tasks,
}

impl Stage {
    pub(crate) async fn open() -> Self {
        Self::with(&["--ephemeral"]).await
    }

    /// A cluster that is found again when it is started again.
    pub(crate) async fn lasting() -> Self {
        Self::with(&[]).await
    }

    async fn with(flags: &[&str]) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_holdfast"));
        let cluster = Holdfast::start(program, flags).unwrap();
        let mut tasks = Tasks::new(Shutdown::new());
        let client = client(&cluster.site().kubeconfig(), &mut tasks);
        Self {
            cluster,
            client,
            folder: tempfile::tempdir().unwrap(),
            _tasks: tasks,
        }
    }

    pub(crate) async fn hub(&self, name: &str) -> Hub {
        self.hub_with(name, |_| ()).await
    }

    /// A hub that is configured otherwise.
    pub(crate) async fn hub_with(&self, name: &str, change: impl FnOnce(&mut run::Config)) -> Hub {
        self.hub_on(0, name, change).await
    }

    /// A hub on a port, such as that of one that ended. A port of 0 is any.
    pub(crate) async fn hub_on(
        &self,
        port: u16,
        name: &str,
        change: impl FnOnce(&mut run::Config),
    ) -> Hub {
        let mut config = config(name, &self.cluster.site().kubeconfig());
        change(&mut config);
        let listener = Reserved::bind(([127, 0, 0, 1], port).into()).unwrap();
        let port = listener.address().port();
        let mut tasks = Tasks::new(Shutdown::new());
        let ports = run::Ports {
            tcp: listener,
            quic: None,
        };
        let (waiting, clock) = (Waiting::default(), Clock::machine());
        let hub = run::start(config, ports, &waiting, clock, &mut tasks).await;
        Hub {
            hub: hub.unwrap(),
            address: format!("localhost:{port}").parse().unwrap(),
            tasks,
        }
    }

    /// An agent that joined by the first of these hubs, and that may use each of them.
    pub(crate) async fn node(&self, name: &str, hubs: &[&Hub]) -> Node {
        self.node_with(name, hubs, Registration::Hub).await
    }

    pub(crate) async fn node_with(
        &self,
        name: &str,
        hubs: &[&Hub],
        registration: Registration,
    ) -> Node {
        let options = Options::new(format!("node {name}"));
        let disk = Arc::new(MemoryDisk::default());
        let replica = Replica::open(disk, options, Clock::machine());
        let keep = Keep::new(replica.unwrap());
        self.start(name, hubs, registration, keep).await
    }

    /// A second agent with the store and the name of a node, which goes to other hubs.
    pub(crate) async fn moved(&self, node: &Node, name: &str, hubs: &[&Hub]) -> Node {
        let keep = node.keep.clone();
        self.start(name, hubs, Registration::Hub, keep).await
    }

    async fn start(
        &self,
        name: &str,
        hubs: &[&Hub],
        registration: Registration,
        keep: Keep,
    ) -> Node {
        let clock = Clock::machine();
        let hubs: Vec<Address> = hubs.iter().map(|hub| hub.address.clone()).collect();
        let rotation = self.join(name, &hubs, &clock).await;
        let status = Arc::new(Status::default());
        let agent = Agent {
            keep: keep.clone(),
            hubs,
            identity: rotation.current(),
            status: Arc::clone(&status),
            times: Times::new(clock),
            program: "test".into(),
            machine: Machine {
                host: "shop".into(),
                os: "linux".into(),
                arch: "arm64".into(),
            },
            registration,
            reports: None,
            transport: Default::default(),
        };
        let shutdown = Shutdown::new();
        let mut tasks = Tasks::new(shutdown.clone());
        let crowd = tasks.crowd("requests", REQUESTS_MAX);
        let tunnel = Tunnel::new(crowd, agent.times.clone(), Arc::clone(&status));
        let tunnelled = tunnel.clone();
        tasks.add("agent", async move {
            // Its certificate lives longer than any test.
            let _rotation = rotation;
            agent.run_with(tunnelled, shutdown).await
        });
        Node {
            keep,
            status,
            tunnel,
            tasks,
        }
    }

    pub(crate) async fn join(&self, name: &str, hubs: &[Address], clock: &Clock) -> Rotation {
        let node: NodeName = name.parse().unwrap();
        let home = Home::open(&self.folder.path().join(name)).unwrap();
        let joining = Joining {
            hubs: hubs.to_vec(),
            node: node.clone(),
            token: self.token(&node, clock).await,
            pin: self.pin(clock).await,
        };
        let joined = join_until(&home, &joining, clock, &Shutdown::new(), |_| {}).await;
        Rotation::new(home, joined.unwrap(), hubs.to_vec(), clock.clone())
    }

    async fn token(&self, node: &NodeName, clock: &Clock) -> wire::join::Token {
        let bound = Bound::Node(node.clone());
        let ttl = SignedDuration::from_hours(1);
        let made = token::create(&self.client, bound, ttl, clock.wall()).await;
        made.unwrap().0
    }

    async fn pin(&self, clock: &Clock) -> Pin {
        let shared = authority::shared(&self.client, clock.wall()).await.unwrap();
        Pin::of(shared.certificate()).unwrap()
    }

    /// What is at a path, if there is anything.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        match self.client.get(path).await {
            Ok(bytes) => Some(serde_json::from_slice(&bytes).unwrap()),
            Err(error) if error.is_code(404) => None,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Waits until what is at a path is as it should be, and gives it.
    pub(crate) async fn sees(&self, path: &str, good: impl Fn(&Value) -> bool) -> Value {
        let mut last = None;
        let looking = async {
            loop {
                last = self.get(path).await;
                match &last {
                    Some(found) if good(found) => return found.clone(),
                    _ => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        match tokio::time::timeout(DEADLINE, looking).await {
            Ok(found) => found,
            Err(_) => panic!("{path} is never as it should be: {last:#?}"),
        }
    }

    /// Waits until there is nothing at a path.
    pub(crate) async fn loses(&self, path: &str) {
        let looking = async {
            while self.get(path).await.is_some() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let looked = tokio::time::timeout(DEADLINE, looking).await;
        assert!(looked.is_ok(), "{path} stays");
    }

    /// Puts an object back as it was, whatever is at its path now.
    pub(crate) async fn leave(&self, path: &str, mut object: Value) {
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.retain(|field, _| ["name", "namespace", "labels"].contains(&field.as_str()));
        let (lease, map) = (("coordination.k8s.io/v1", "Lease"), ("v1", "ConfigMap"));
        // Items of a list do not say what they are.
        let (version, kind) = if object["spec"].is_null() { map } else { lease };
        object["apiVersion"] = version.into();
        object["kind"] = kind.into();
        if self.get(path).await.is_some() {
            self.client.delete(path, None).await.unwrap();
        }
        let (collection, _) = path.rsplit_once('/').unwrap();
        self.create(collection, &object).await;
    }

    /// Creates an object.
    pub(crate) async fn create(&self, path: &str, object: &Value) {
        let body = object.to_string().into();
        self.client.create(path, body).await.unwrap();
    }
}

impl Hub {
    /// The port on which agents reach it.
    pub(crate) fn port(&self) -> u16 {
        let (_, port) = self.address.address().rsplit_once(':').unwrap();
        port.parse().unwrap()
    }

    /// Stops in order: its nodes are sent elsewhere.
    pub(crate) async fn stop(self) {
        self.tasks.shutdown().trigger();
        self.tasks.join(DEADLINE).await.unwrap();
    }

    /// Ends where it stands.
    pub(crate) async fn kill(self) {
        self.tasks.shutdown().trigger();
        drop(self.tasks.join(Duration::ZERO).await);
    }
}

impl Node {
    pub(crate) fn report(&self) -> Report {
        let now = Clock::machine().now();
        self.status.report("", self.keep.held(), now)
    }

    /// Waits until the agent has a session with this hub.
    pub(crate) async fn is_with(&self, hub: &str) {
        let what = format!("the session with {hub}");
        until(&what, || self.report().hub.as_deref() == Some(hub)).await;
    }

    pub(crate) async fn stop(self) {
        self.tasks.shutdown().trigger();
        self.tasks.join(DEADLINE).await.unwrap();
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, good: impl Fn() -> bool) {
    let looking = async {
        while !good() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let looked = tokio::time::timeout(DEADLINE, looking).await;
    assert!(looked.is_ok(), "{what}: not within {DEADLINE:?}");
}

/// A client of the cluster.
pub(crate) fn client(kubeconfig: &Path, tasks: &mut Tasks) -> Client {
    let config = Config::from_kubeconfig(kubeconfig).unwrap();
    let crowd = tasks.crowd("requests", 64);
    Client::new(config, crowd, Clock::machine())
}

fn config(name: &str, kubeconfig: &Path) -> run::Config {
    run::Config {
        cluster: Config::from_kubeconfig(kubeconfig).unwrap(),
        name: name.to_owned(),
        wanted: Wanted::Server {
            name: name.to_owned(),
            dns: vec!["localhost".to_owned()],
            ips: Vec::new(),
        },
        policy: Policy::default(),
        certificate_life: signer::LIFE,
        limits: wire::window::Limits::default(),
        cache: cloud::cache::Limits::default(),
        sessions_max: 100,
        drain: Duration::from_millis(200),
        leases: Leases::On,
        records: Mode::Node,
        peers: cloud::owners::Waits::default(),
        frozen_long: cloud::clerk::FROZEN_LONG,
    }
}
