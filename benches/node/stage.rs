//! Both APIs, measured in turn: a real kube-apiserver, and that of a node that is fed by it.

use ::cluster::client;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;

use crate::Scale;
use crate::client::Protocol;
use crate::generator::callers::{Callers, Until};
use crate::ground::{Agent, Ground, Hub, eventually};
use crate::kinds::{make, service};
use crate::objects::namespace;
use crate::server::Server;
use crate::sheet::{Figures, Sheet};

/// The node.
pub(crate) const NODE: &str = "edge-1";
/// Namespaces of the large and of the small list.
pub(crate) const MANY: &str = "many";
pub(crate) const FEW: &str = "few";

/// A kube-apiserver, a hub and an agent with an API, all running.
pub(crate) struct Stage {
    pub(crate) ground: Ground,
    pub(crate) hub: Option<Hub>,
    pub(crate) agent: Agent,
    /// The kube-apiserver, for who comes as the node.
    pub(crate) direct: Server,
    /// The node's API, for the same.
    pub(crate) local: Server,
    pub(crate) scale: Scale,
}

impl Stage {
    /// Starts everything, makes the services and waits until the node has them.
    pub(crate) async fn set(scale: Scale) -> Self {
        let ground = Ground::start_real().await;
        let hub = ground.hub(&[]).await;
        for (name, count) in [(FEW, scale.services / 10), (MANY, scale.services)] {
            make_namespace(&ground.server, name).await;
            make(&ground.server, (&services(name), count), service).await;
        }
        let agent = ground.agent(NODE, hub.address).await;
        let all = (scale.services / 10 + scale.services) as u64;
        eventually(async || agent.holds("services").await.1 >= all).await;
        let user = format!("system:node:{NODE}");
        let credential = ground.site().client(&user, &["system:nodes"]);
        let credential = credential.expect("a certificate");
        let direct = client::Door::open(ground.site(), Some(&credential));
        let direct = Server {
            door: direct.expect("a door").into(),
            processes: ground.server.processes.clone(),
        };
        let local = Server {
            door: node_door(&agent).await.into(),
            processes: vec![agent.program.id()],
        };
        // What is left to do after so many writes is done before anything is measured.
        tokio::time::sleep(scale.idle / 20).await;
        Self {
            ground,
            hub: Some(hub),
            agent,
            direct,
            local,
            scale,
        }
    }

    /// Measures both in turn, as often as there are rounds, and writes a row.
    pub(crate) async fn compare(
        &self,
        (what, connections): (&str, usize),
        (direct, local): (&Server, &Server),
        asked: impl Fn(usize) -> Request<Full<Bytes>> + Clone + Send + 'static,
        sheet: &mut Sheet,
    ) -> [Figures; 2] {
        let mut figures = [Figures::default(), Figures::default()];
        for _ in 0..self.scale.rounds {
            for (server, figures) in [direct, local].into_iter().zip(&mut figures) {
                let mut callers = Callers::open(server, connections).await;
                let warming = Until::Time(self.scale.warming);
                callers.run(server, warming, asked.clone()).await;
                let lasting = Until::Time(self.scale.lasting);
                figures.add(callers.run(server, lasting, asked.clone()).await);
            }
        }
        let [direct, local] = &figures;
        sheet.compared(what, direct, local);
        figures
    }

    /// The agent's memory now, and the most since the last time that this was asked.
    pub(crate) fn memory(&self) -> (f64, f64) {
        let megabytes = |field| self.agent.program.number("status", field) as f64 * 1024.0 / 1e6;
        let (now, most) = (megabytes("VmRSS:"), megabytes("VmHWM:"));
        // The kernel starts anew with what is there now.
        let path = format!("/proc/{}/clear_refs", self.agent.program.id());
        std::fs::write(path, "5").expect("the agent is ours");
        (now, most)
    }
}

/// A way into the node's own API, as the node.
pub(crate) async fn node_door(agent: &Agent) -> client::Door {
    let path = agent.folder.join("local/kubelet.kubeconfig");
    eventually(async || match client::Door::of_kubeconfig(&path) {
        Ok(door) => door.connect(Protocol::Http1).await.is_ok(),
        Err(_) => false,
    })
    .await;
    client::Door::of_kubeconfig(&path).expect("a kubeconfig")
}

/// Where the services of a namespace are.
pub(crate) fn services(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/services")
}

/// Makes a namespace.
pub(crate) async fn make_namespace(server: &Server, name: &str) {
    let mut admin = server.door.connect(Protocol::Http1).await;
    let body = namespace(name);
    admin.call("POST", "/api/v1/namespaces", body).await;
}
