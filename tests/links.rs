//! A hub and an agent in one process, with a link over QUIC between them, or over WebSocket where
//! that does not get through.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cloud::cluster::{Client, Config};
use cloud::join::token::{self, Bound};
use cloud::join::{authority, revoked};
use cloud::nodes::Leases;
use cloud::record::Mode;
use cloud::run::{self, Ports};
use cloud::view::Policy;
use cloud::waiting::Waiting;
use cluster::Holdfast;
use edge::agent::{Agent, Registration};
use edge::join::{Home, Hub, Joining, Rotation, join_until};
use edge::keep::Keep;
use edge::status::Status;
use edge::transport::Transport;
use host::listen::Reserved;
use host::pki::{Pin, Wanted};
use host::{Clock, Shutdown, Tasks, Times, quic};
use jiff::SignedDuration;
use object::Resource;
use store::disk::memory::MemoryDisk;
use store::{Options, Replica};
use tempfile::TempDir;
use wire::frame::Machine;
use wire::join::NodeName;

const WITHIN: Duration = Duration::from_secs(30);

/// A cluster, a hub beside it and a node that has joined.
struct Stage {
    client: Client,
    address: SocketAddr,
    keep: Keep,
    status: Arc<Status>,
    tasks: Tasks,
    node: NodeName,
    folder: TempDir,
    _cluster: Holdfast,
}

impl Stage {
    /// `udp` is what happens on the hub's port over UDP.
    async fn new(udp: impl FnOnce(SocketAddr) -> Option<quic::Listener>, over: Transport) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_holdfast"));
        let cluster = Holdfast::start(program, &["--ephemeral", "--nodes", "0"]).unwrap();
        let clock = Clock::machine();
        let mut tasks = Tasks::new(Shutdown::new());
        let crowd = tasks.crowd("requests", 64);
        let config = Config::from_kubeconfig(&cluster.site().kubeconfig()).unwrap();
        let client = Client::new(config.clone(), crowd, clock.clone());
        let tcp = Reserved::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = tcp.address();
        let quic = udp(address);
        let ports = Ports { tcp, quic };
        let hub = hub_config(config);
        let waiting = Waiting::default();
        run::start(hub, ports, &waiting, clock.clone(), &mut tasks)
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let node: NodeName = "n1".parse().unwrap();
        let options = Options::new(node.as_str());
        let disk = Arc::new(MemoryDisk::default());
        let keep = Keep::new(Replica::open(disk, options, clock.clone()).unwrap());
        let mut stage = Self {
            client,
            address,
            keep,
            status: Arc::new(Status::default()),
            tasks,
            node,
            folder,
            _cluster: cluster,
        };
        stage.start_agent(over, clock).await;
        stage
    }

    async fn start_agent(&mut self, transport: Transport, clock: Clock) {
        let now = clock.wall();
        let shared = authority::shared(&self.client, now).await.unwrap();
        let bound = Bound::Node(self.node.clone());
        let hour = SignedDuration::from_hours(1);
        let (token, _) = token::create(&self.client, bound, hour, now).await.unwrap();
        let hubs: Vec<Hub> = vec![self.address.to_string().parse().unwrap()];
        let joining = Joining {
            hubs: hubs.clone(),
            node: self.node.clone(),
            token,
            pin: Pin::of(shared.certificate()).unwrap(),
        };
        let home = Home::open(&self.folder.path().join("identity")).unwrap();
        let shutdown = self.tasks.shutdown().clone();
        let joined = join_until(&home, &joining, &clock, &shutdown, |_| {})
            .await
            .unwrap();
        let rotation = Rotation::new(home, joined, hubs.clone(), clock.clone());
        let agent = Agent {
            keep: self.keep.clone(),
            hubs,
            transport,
            identity: rotation.current(),
            status: Arc::clone(&self.status),
            times: Times::new(clock),
            program: "test".into(),
            machine: Machine::default(),
            registration: Registration::Elsewhere,
            reports: None,
        };
        self.tasks.add("agent", agent.run(shutdown));
    }

    /// Waits until the node holds so many services.
    async fn holds(&self, services: u64) {
        let resource = Resource::new("", "services");
        let held = async {
            loop {
                let holding = self.keep.reader().holding(&resource);
                if holding.is_some_and(|it| it.standing.is_some() && it.objects == services) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(WITHIN, held).await;
        let report = self
            .status
            .report("n1", self.keep.held(), Clock::machine().now());
        in_time.unwrap_or_else(|_| panic!("{}", serde_json::to_string(&report).unwrap()));
    }

    async fn create_service(&self, name: &str) {
        let path = "/api/v1/namespaces/default/services";
        let service = format!(
            r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{name}"}},
                "spec":{{"ports":[{{"port":80}}]}}}}"#
        );
        self.client
            .create(path, Bytes::from(service))
            .await
            .unwrap();
    }

    async fn services(&self) -> u64 {
        let list = self.client.get("/api/v1/services").await.unwrap();
        let list: serde_json::Value = serde_json::from_slice(&list).unwrap();
        list["items"].as_array().unwrap().len() as u64
    }

    async fn stop(self) {
        // Its connections are tasks as well.
        drop(self.client);
        self.tasks.shutdown().trigger();
        self.tasks.join(WITHIN).await.unwrap();
    }
}

fn hub_config(cluster: Config) -> run::Config {
    run::Config {
        cluster,
        name: "hub".into(),
        wanted: Wanted::Server {
            name: "hub".into(),
            dns: vec!["localhost".into()],
            ips: vec![[127, 0, 0, 1].into()],
        },
        policy: Policy::default(),
        certificate_life: SignedDuration::from_hours(24),
        limits: wire::window::Limits::default(),
        cache: cloud::cache::Limits::default(),
        sessions_max: 16,
        drain: Duration::ZERO,
        leases: Leases::Off,
        records: Mode::Off,
        peers: cloud::owners::Waits::default(),
        frozen_long: cloud::clerk::FROZEN_LONG,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_kept_up_to_date_over_quic_until_it_is_revoked() {
    let listener = |address| Some(quic::Listener::bind(address).unwrap());
    let stage = Stage::new(listener, Transport::Quic).await;
    let before = stage.services().await;
    stage.holds(before).await;
    for number in 0..100 {
        stage.create_service(&format!("s{number}")).await;
    }
    stage.holds(before + 100).await;
    let now = Clock::machine().wall();
    let revoking = revoked::revoke(&stage.client, &stage.node, "", now);
    revoking.await.unwrap();
    let ended = async {
        loop {
            let report = stage
                .status
                .report("n1", Vec::new(), Clock::machine().now());
            let words = serde_json::to_string(&report).unwrap();
            if words.contains("revoked") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WITHIN, ended)
        .await
        .expect("it is cut");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_udp_is_swallowed_the_link_goes_over_websocket() {
    let mut swallows = None;
    let listener = |address: SocketAddr| {
        swallows = Some(UdpSocket::bind(address).unwrap());
        None
    };
    let stage = Stage::new(listener, Transport::Auto).await;
    let before = stage.services().await;
    stage.holds(before).await;
    stage.create_service("later").await;
    stage.holds(before + 1).await;
    stage.stop().await;
}
