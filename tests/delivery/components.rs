//! Programs of Kubernetes that run on a node, as they are, and talk to the node's API.

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
use crate::world::{CONVERGED, World};

const SOON: Duration = Duration::from_secs(60);
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// A program beside the agent, in its namespace, that has a token of its own.
struct Beside {
    program: PathBuf,
    name: &'static str,
    words: Vec<String>,
    logs: PathBuf,
    running: Option<Running>,
}

impl Beside {
    fn start(&mut self, net: &Net) {
        let before = net.inside();
        let mut command = Command::new(&before[0]);
        command.args(&before[1..]).arg(&self.program);
        command.args(&self.words);
        let started = Running::start(self.name, command, &self.logs);
        self.running = Some(started.unwrap_or_else(|error| panic!("{error}")));
    }

    fn restart(&mut self, net: &Net) {
        self.running = None;
        self.start(net);
    }
}

/// A kubeconfig for a program that has nothing but a token.
fn kubeconfig(world: &World, name: &str, token: &str) -> PathBuf {
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

/// The rules of a service, and who makes them.
struct Rules<'a> {
    net: &'a Net,
    address: String,
    log: PathBuf,
}

impl Rules<'_> {
    /// Waits until they lead to this endpoint, and not to the other.
    async fn lead_to(&self, endpoint: &str, other: &str) {
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
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                let log = crate::node::tail(&log);
                panic!("no rules for {endpoint}:\n{rules}\n{log}");
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root and a Go toolchain: just e2e"]
async fn kube_proxy_has_the_right_rules_with_the_link_cut_and_everything_restarted() {
    let (mut world, net) = behind_a_net().await;
    let program = Program::KubeProxy
        .built()
        .unwrap_or_else(|error| panic!("{error}"));
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
    let logs = world.path().join("logs");
    let made = Rules {
        net: &net,
        address,
        log: logs.join("kube-proxy.log"),
    };
    let mut proxy = Beside {
        program,
        name: "kube-proxy",
        words: [
            "--proxy-mode=nftables",
            "--conntrack-max-per-core=0",
            "--conntrack-min=0",
            "--hostname-override=node-1",
            "--v=2",
        ]
        .map(str::to_owned)
        .into(),
        logs,
        running: None,
    };
    proxy
        .words
        .push(format!("--kubeconfig={}", config.display()));
    proxy.start(&net);
    made.lead_to("10.99.1.1", "10.99.1.2").await;
    // What changes is in the rules soon.
    let patch = json!({"endpoints": [{"addresses": ["10.99.1.2"], "conditions": {"ready": true}}]});
    let slice = format!("{SLICES}/web-1");
    world.driver.must("PATCH", &slice, Some(&patch)).await;
    made.lead_to("10.99.1.2", "10.99.1.1").await;
    // Without a link everything is started anew, and the rules are made again from nothing.
    net.all(Fate {
        lost: 100,
        ..Fate::default()
    });
    world.nodes[0].restart();
    proxy.running = None;
    clear(&net);
    proxy.restart(&net);
    made.lead_to("10.99.1.2", "10.99.1.1").await;
    let patch = json!({"endpoints": [{"addresses": ["10.99.1.3"], "conditions": {"ready": true}}]});
    world.driver.must("PATCH", &slice, Some(&patch)).await;
    // What changed meanwhile is there when the link is.
    net.all(Fate::default());
    world.nodes[0].connected(CONVERGED).await;
    made.lead_to("10.99.1.3", "10.99.1.2").await;
}

fn clear(net: &Net) {
    let before = net.inside();
    let words = ["nft", "flush", "ruleset"];
    let mut command = Command::new(&before[0]);
    let done = command.args(&before[1..]).args(words).status().unwrap();
    assert!(done.success());
}
