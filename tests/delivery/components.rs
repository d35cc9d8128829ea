//! Programs of Kubernetes that run on a node, as they are, and talk to the node's API.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ::cluster::Running;
use ::cluster::programs::Program;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::accounts::{bind, token};
use crate::driver::service;
use crate::net::{Fate, Net};
use crate::packets::behind_a_net;
use crate::world::{CONVERGED, Plan, World};

const SOON: Duration = Duration::from_secs(60);
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// A program beside the agent that has a token of its own.
pub(crate) struct Beside {
    name: &'static str,
    /// The program and its words, and before them where it is to run.
    pub(crate) words: Vec<String>,
    logs: PathBuf,
    /// Nothing once it was ended.
    pub(crate) running: Option<Running>,
}

impl Beside {
    pub(crate) fn new(world: &World, program: Program, before: &[String]) -> Self {
        let built = program.built().unwrap_or_else(|error| panic!("{error}"));
        let mut words = before.to_vec();
        words.push(built.to_str().unwrap().to_owned());
        Self {
            name: program.name(),
            words,
            logs: world.path().join("logs"),
            running: None,
        }
    }

    pub(crate) fn start(&mut self) {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        let started = Running::start(self.name, command, &self.logs);
        self.running = Some(started.unwrap_or_else(|error| panic!("{error}")));
    }

    pub(crate) fn log(&self) -> String {
        let path = self.logs.join(format!("{}.log", self.name));
        crate::node::tail(&std::fs::read_to_string(path).unwrap_or_default())
    }
}

/// A kubeconfig for a program that has nothing but a token.
pub(crate) fn kubeconfig(world: &World, name: &str, token: &str) -> PathBuf {
    let own = world.nodes[0].data_dir.join("local/admin.kubeconfig");
    let own = std::fs::read_to_string(own).unwrap();
    let line = |key: &str| {
        let found = own.lines().find_map(|line| line.trim().strip_prefix(key));
        found
            .unwrap_or_else(|| panic!("{key} in {own}"))
            .trim()
            .to_owned()
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "node", "cluster": {
            "server": line("server:"),
            "certificate-authority-data": line("certificate-authority-data:"),
        }}],
        "users": [{"name": "pod", "user": {"token": token}}],
        "contexts": [{"name": "pod", "context": {"cluster": "node", "user": "pod"}}],
        "current-context": "pod",
    });
    let path = world.path().join(name);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path);
    serde_json::to_writer(file.unwrap(), &config).unwrap();
    path
}

/// A service with endpoints at this address. Gives the service's own.
async fn furnish(world: &World, endpoint: &str) -> String {
    let mut made = service("web", "web");
    made["spec"]["selector"] = Value::Null;
    made["spec"]["ports"] = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    let made = world.driver.create("services", &made).await;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [endpoint], "conditions": {"ready": true}}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    });
    world.driver.must("POST", SLICES, Some(&slice)).await;
    made["spec"]["clusterIP"].as_str().unwrap().to_owned()
}

/// The rules in the node's namespace.
fn rules(net: &Net) -> String {
    let before = net.inside();
    let words = ["nft", "list", "table", "ip", "kube-proxy"];
    let said = Command::new(&before[0])
        .args(&before[1..])
        .args(words)
        .output();
    let said = said.unwrap_or_else(|error| panic!("nft (nftables) is needed: {error}"));
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// The rules of a service.
struct Rules<'a> {
    net: &'a Net,
    address: String,
}

impl Rules<'_> {
    /// Waits until they lead to this endpoint, and not to the other.
    async fn lead_to(&self, endpoint: &str, other: &str, maker: &Beside) {
        let began = Instant::now();
        loop {
            let rules = rules(self.net);
            let there = [&*self.address, endpoint]
                .iter()
                .all(|it| rules.contains(it));
            if there && !rules.contains(other) {
                return;
            }
            if began.elapsed() > SOON {
                panic!("no rules for {endpoint}:\n{rules}\n{}", maker.log());
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and a Go toolchain: just e2e"]
async fn kube_proxy_has_the_right_rules_with_the_link_cut_and_everything_restarted() {
    let (mut world, net) = behind_a_net().await;
    let rules = json!([
        {"apiGroups": [""], "resources": ["nodes", "services"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"],
         "verbs": ["list", "watch"]},
        {"apiGroups": ["networking.k8s.io"], "resources": ["servicecidrs"],
         "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"],
         "verbs": ["create", "patch", "update"]},
    ]);
    bind(&world, &rules).await;
    let token = token(&world, "kube-proxy", 0).await;
    let address = furnish(&world, "10.99.1.1").await;
    world.settled(SOON).await;
    let config = kubeconfig(&world, "kube-proxy.kubeconfig", &token);
    let made = Rules { net: &net, address };
    let mut proxy = Beside::new(&world, Program::KubeProxy, &net.inside());
    proxy.words.extend(
        [
            "--proxy-mode=nftables",
            "--conntrack-max-per-core=0",
            "--conntrack-min=0",
            "--hostname-override=node-1",
            "--kubeconfig",
            config.to_str().unwrap(),
        ]
        .map(str::to_owned),
    );
    proxy.start();
    made.lead_to("10.99.1.1", "10.99.1.2", &proxy).await;
    // What changes is in the rules soon.
    let patch = json!({"endpoints": [{"addresses": ["10.99.1.2"], "conditions": {"ready": true}}]});
    let slice = format!("{SLICES}/web-1");
    world.driver.must("PATCH", &slice, Some(&patch)).await;
    made.lead_to("10.99.1.2", "10.99.1.1", &proxy).await;
    // Without a link everything is started anew, and the rules are made again from nothing.
    net.all(Fate {
        lost: 100,
        ..Fate::default()
    });
    world.nodes[0].restart();
    proxy.running = None;
    clear(&net);
    proxy.start();
    made.lead_to("10.99.1.2", "10.99.1.1", &proxy).await;
    let patch = json!({"endpoints": [{"addresses": ["10.99.1.3"], "conditions": {"ready": true}}]});
    world.driver.must("PATCH", &slice, Some(&patch)).await;
    // What changed meanwhile is there when the link is.
    net.all(Fate::default());
    world.nodes[0].connected(CONVERGED).await;
    made.lead_to("10.99.1.3", "10.99.1.2", &proxy).await;
}

fn clear(net: &Net) {
    let before = net.inside();
    let words = ["nft", "flush", "ruleset"];
    let mut command = Command::new(&before[0]);
    let done = command.args(&before[1..]).args(words).status().unwrap();
    assert!(done.success());
}

/// Asks for the address of a name, as a program on the node does. Nothing if there is no answer.
fn lookup(port: u16, name: &str) -> Option<Vec<Ipv4Addr>> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let wait = Duration::from_secs(2);
    socket.set_read_timeout(Some(wait)).unwrap();
    // A number, "please recurse", one question; then the name by labels, type A, class IN.
    let mut question = vec![0x4a, 0x11, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend_from_slice(label.as_bytes());
    }
    question.extend_from_slice(&[0, 0, 1, 0, 1]);
    socket.send_to(&question, ("127.0.0.1", port)).unwrap();
    let mut answer = [0; 1500];
    let length = socket.recv(&mut answer).ok()?;
    let answer = &answer[..length];
    // The low half of the second flags is the code: 0 is "here it is", 3 "no such name".
    if !answer.starts_with(&question[..2]) || !matches!(answer[3] & 15, 0 | 3) {
        return None;
    }
    // How the record of an address ends: type, class, life, length, the address.
    let count = usize::from(u16::from_be_bytes([answer[6], answer[7]]));
    let end = answer.windows(14).filter_map(|bytes| match bytes {
        [0, 1, 0, 1, _, _, _, _, 0, 4, a, b, c, d] => Some(Ipv4Addr::new(*a, *b, *c, *d)),
        _ => None,
    });
    Some(end.take(count).collect())
}

/// Waits until a name has exactly these addresses.
async fn is_found(port: u16, name: &str, addresses: &[&str], maker: &Beside) {
    let began = Instant::now();
    let wanted: Vec<Ipv4Addr> = addresses.iter().map(|it| it.parse().unwrap()).collect();
    loop {
        let found = tokio::task::block_in_place(|| lookup(port, name));
        if found.as_ref() == Some(&wanted) {
            return;
        }
        let late = began.elapsed() > SOON;
        assert!(!late, "{name}: {found:?}\n{}", maker.log());
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Go toolchain: just e2e"]
async fn coredns_answers_with_the_link_cut_and_everything_restarted() {
    let mut world = World::started(Plan::default()).await;
    let reads = json!(["list", "watch"]);
    let rules = json!([
        {"apiGroups": [""], "resources": ["namespaces", "services"], "verbs": reads},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": reads},
    ]);
    bind(&world, &rules).await;
    let token = token(&world, "coredns", 0).await;
    let address = furnish(&world, "10.99.1.1").await;
    world.settled(SOON).await;
    let config = kubeconfig(&world, "coredns.kubeconfig", &token);
    let port = {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let config = config.display();
    let corefile = format!(
        "cluster.local:{port} {{\n bind 127.0.0.1\n errors\n \
         kubernetes {{\n  kubeconfig {config}\n }}\n}}\n"
    );
    let path = world.path().join("Corefile");
    std::fs::write(&path, corefile).unwrap();
    let mut dns = Beside::new(&world, Program::Coredns, &[]);
    let conf = ["-conf", path.to_str().unwrap()];
    dns.words.extend(conf.map(str::to_owned));
    dns.start();
    let (web, none) = (
        "web.default.svc.cluster.local",
        "none.default.svc.cluster.local",
    );
    is_found(port, web, &[&address], &dns).await;
    is_found(port, none, &[], &dns).await;
    // Without a hub everything is started anew.
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    world.nodes[0].restart();
    dns.running = None;
    dns.start();
    is_found(port, web, &[&address], &dns).await;
    is_found(port, none, &[], &dns).await;
    // What is new is answered when there is a hub again.
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    let new = world
        .driver
        .create("services", &service("new", "new"))
        .await;
    let address = new["spec"]["clusterIP"].as_str().unwrap();
    is_found(port, "new.default.svc.cluster.local", &[address], &dns).await;
}
