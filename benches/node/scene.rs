//! A cluster with two nodes of forty pods: one under Holdfast, and one whose programs talk to the
//! kube-apiserver themselves. The bytes of both links are counted.

use std::net::SocketAddr;
use std::time::Duration;

use ::cluster::Site;
use ::cluster::client::Door;
use bytes::Bytes;
use host::files::{self, Audience};
use serde_json::{Value, json};

use crate::client::{self, Client, Protocol, whole};
use crate::ground::{Agent, Ground, Hub, eventually, holdfast};
use crate::kinds::{self, make};
use crate::proxy::Proxy;
use crate::server::Server;
use crate::shop::{self, APPLICATIONS, NAMESPACES, PODS, SERVICES, SHOP, shop, slices};
use crate::side::{Doors, Pod, Side};
use crate::stage::{make_namespace, node_door};

/// The node under Holdfast, and the other.
const HELD: &str = "held-1";
const DIRECT: &str = "direct-1";

/// Everything that a day needs.
pub(crate) struct Scene {
    pub(crate) held: Side,
    pub(crate) direct: Side,
    pub(crate) admin: Admin,
    pub(crate) agent: Agent,
    pub(crate) ground: Ground,
    _hub: Hub,
}

/// Whoever changes the cluster. What he sends is not counted.
pub(crate) struct Admin {
    door: client::Door,
    open: Client,
}

impl Admin {
    async fn of(server: &Server) -> Self {
        let door = server.door.clone();
        let open = door.connect(Protocol::Http1).await;
        Self { door, open }
    }

    /// Connects anew: a server closes a connection on which nothing is asked for a while.
    pub(crate) async fn come_again(&mut self) {
        self.open = self.door.connect(Protocol::Http1).await;
    }

    /// Makes an object.
    pub(crate) async fn make(&mut self, path: &str, object: &Value) -> Value {
        let answer = self
            .open
            .call("POST", path, object.to_string().into())
            .await;
        serde_json::from_slice(&answer).expect("JSON")
    }

    /// Changes an object, and gives its version.
    pub(crate) async fn patch(&mut self, path: &str, patch: &Value) -> u64 {
        let request = hyper::Request::builder()
            .method("PATCH")
            .uri(format!("https://127.0.0.1{path}"))
            .header("content-type", "application/merge-patch+json")
            .body(http_body_util::Full::new(patch.to_string().into()));
        let request = request.expect("a request that can be said");
        crate::objects::version(&whole(self.open.ask(request).await).await)
    }

    /// Has an object end, and gives its version.
    pub(crate) async fn delete(&mut self, path: &str) -> u64 {
        crate::objects::version(&self.open.call("DELETE", path, Bytes::new()).await)
    }

    /// Makes a pod of an application on a node.
    pub(crate) async fn make_pod(&mut self, (name, node): (&str, &str), number: usize) -> Made {
        let pod = shop::pod(name, node, number);
        let made = self.make(&shop("pods"), &pod).await;
        let metadata = &made["metadata"];
        let text = |field: &str| metadata[field].as_str().expect("a text").to_owned();
        Made {
            pod: Pod {
                name: name.to_owned(),
                uid: text("uid"),
            },
            version: text("resourceVersion").parse().expect("a number"),
        }
    }
}

/// A pod that was made.
pub(crate) struct Made {
    pub(crate) pod: Pod,
    pub(crate) version: u64,
}

impl Scene {
    /// Starts everything, and waits until both nodes know everything. What passed their links for
    /// that is what a new node costs.
    pub(crate) async fn set() -> Self {
        let ground = Ground::start_real().await;
        let mut admin = Admin::of(&ground.server).await;
        furnish(&ground, &mut admin).await;
        let mut pods = Vec::new();
        for node in [HELD, DIRECT] {
            pods.push(inhabit(&mut admin, node).await);
        }
        let hub = ground.hub(&[]).await;
        let link = Proxy::to(hub.address, Duration::ZERO).await;
        let mut command = holdfast("edge");
        command.arg("--register-node=false");
        let agent = ground.agent_by(command, HELD, link.address()).await;
        is_filled(&agent).await;
        let door = node_door(&agent).await;
        let doors = Doors {
            kubelet: door.clone(),
            kube_proxy: door.clone(),
            coredns: door,
        };
        let own = pods.pop().expect("two nodes");
        let held = Side::open(HELD, doors, link, pods.pop().expect("two nodes")).await;
        let target = ground.site().address().parse().expect("an address");
        let link = Proxy::to(target, Duration::ZERO).await;
        let doors = straight(&ground, link.address());
        let direct = Side::open(DIRECT, doors, link, own).await;
        Self {
            held,
            direct,
            admin,
            agent,
            ground,
            _hub: hub,
        }
    }

    /// What the cluster has, the node has: nothing was lost on the way.
    pub(crate) async fn is_whole(&self) {
        let mut hand = kinds::Hand::of(&self.ground.server).await;
        for (resource, path) in [
            ("services", "/api/v1/services".to_owned()),
            (
                SLICES,
                "/apis/discovery.k8s.io/v1/endpointslices".to_owned(),
            ),
            (
                "pods",
                format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{HELD}"),
            ),
        ] {
            let cluster = hand.list(&path).await;
            assert_eq!(self.agent.dump(resource).await, cluster, "{resource}");
        }
    }
}

/// Makes what is in the cluster beside nodes and their pods.
async fn furnish(ground: &Ground, admin: &mut Admin) {
    let server = &ground.server;
    make_namespace(server, SHOP).await;
    for number in 0..NAMESPACES {
        make_namespace(server, &format!("team-{number:02}")).await;
    }
    let account = json!({"metadata": {"name": "default"}});
    admin.make(&shop("serviceaccounts"), &account).await;
    let root = ground.site().authority().expect("an authority");
    let root = json!({"metadata": {"name": "kube-root-ca.crt"},
        "data": {"ca.crt": root.certificate_pem()}});
    admin.make(&shop("configmaps"), &root).await;
    let maps = shop("configmaps");
    make(server, (&maps, APPLICATIONS), kinds::config_map).await;
    make(server, (&shop("secrets"), APPLICATIONS), shop::secret).await;
    make(server, (&shop("services"), SERVICES), kinds::service).await;
    make(server, (&slices(), SERVICES), shop::slice).await;
}

/// Makes a node and its pods.
async fn inhabit(admin: &mut Admin, name: &str) -> Vec<Pod> {
    let (node, status) = shop::node(name);
    admin.make("/api/v1/nodes", &node).await;
    let mut status = status;
    let whole = status["status"].as_object_mut().expect("a status");
    whole.remove("$setElementOrder/conditions");
    let path = format!("/api/v1/nodes/{name}/status");
    admin.patch(&path, &status).await;
    let mut pods = Vec::new();
    for number in 0..PODS {
        let pod = format!(
            "{}-6d4cf56db6-{name}-{number:02}",
            shop::application(number)
        );
        pods.push(admin.make_pod((&pod, name), number).await.pod);
    }
    pods
}

/// Waits until an agent has everything that the programs of its node ask for.
async fn is_filled(agent: &Agent) {
    for (resource, objects) in [
        ("pods", PODS),
        ("nodes", 1),
        ("configmaps", APPLICATIONS + 1),
        ("secrets", APPLICATIONS),
        ("services", SERVICES),
        (SLICES, SERVICES),
        ("namespaces", NAMESPACES),
        ("csidrivers.storage.k8s.io", 0),
        ("runtimeclasses.node.k8s.io", 0),
    ] {
        eventually(async || {
            let (version, held) = agent.holds(resource).await;
            version > 0 && held >= objects as u64
        })
        .await;
        eprintln!("-- the node has its {resource}");
    }
}

/// Ways to a kube-apiserver through a link.
fn straight(ground: &Ground, link: SocketAddr) -> Doors {
    let door = |name, user: &str, groups: &[&str]| {
        door_at((ground.site(), link), name, (user, groups), ground)
    };
    let node = format!("system:node:{DIRECT}");
    Doors {
        kubelet: door("kubelet", &node, &["system:nodes"]),
        kube_proxy: door("kube-proxy", "system:kube-proxy", &[]),
        coredns: door("coredns", "coredns", &["system:masters"]),
    }
}

fn door_at(
    (site, address): (&Site, SocketAddr),
    name: &str,
    (user, groups): (&str, &[&str]),
    ground: &Ground,
) -> Door {
    let credential = site.client(user, groups).expect("a certificate");
    let written = site.write_kubeconfig(&format!("direct-{name}"), &credential);
    let text = std::fs::read_to_string(written.expect("a file")).expect("a kubeconfig");
    let text = text.replace(site.address(), &address.to_string());
    let path = ground.folder.path().join(format!("{name}.kubeconfig"));
    files::write(&path, text.as_bytes(), Audience::Owner).expect("a file");
    Door::of_kubeconfig(&path).expect("a kubeconfig")
}

const SLICES: &str = "endpointslices.discovery.k8s.io";
