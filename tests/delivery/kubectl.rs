//! kubectl on a node, as the one who looks after it, with and without a link.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use ::cluster::programs::Program;
use serde_json::json;
use tokio::time::Instant;

use crate::driver::{config_map, pod, secret, service};
use crate::hubs::hub_of;
use crate::world::{CONVERGED, NODES, Plan, World};

const SOON: Duration = Duration::from_secs(20);
/// The longest that somebody at a prompt waits to be told that there is no link: kubectl tries ten
/// times before it says so.
const TOLD_WITHIN: Duration = Duration::from_secs(30);

/// kubectl with the kubeconfig of a node.
pub(crate) struct Kubectl {
    program: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    home: PathBuf,
}

impl Kubectl {
    pub(crate) fn of(world: &World) -> Self {
        let program = Program::Kubectl.built();
        let home = world.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        Self {
            program: program.unwrap_or_else(|error| panic!("{error}")),
            kubeconfig: world.nodes[0].data_dir.join("local/admin.kubeconfig"),
            home,
        }
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(line.split(' '))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.home)
            .stdin(Stdio::null());
        command
    }

    /// It must succeed. Gives what it printed.
    pub(crate) fn ok(&self, line: &str) -> String {
        let said = self.command(line).output().unwrap();
        let complaint = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "kubectl {line}: {complaint}");
        String::from_utf8(said.stdout).unwrap()
    }

    /// It must fail. Gives what it complained of.
    pub(crate) fn fails(&self, line: &str) -> String {
        let began = Instant::now();
        let said = self.command(line).output().unwrap();
        let complaint = String::from_utf8(said.stderr).unwrap();
        assert!(!said.status.success(), "kubectl {line} succeeds");
        let took = began.elapsed();
        assert!(took < TOLD_WITHIN, "kubectl {line} takes {took:?}");
        complaint
    }
}

/// What a person sees of a node at any time.
fn is_seen(kubectl: &Kubectl) {
    for (line, words) in [
        ("get pods", &["NAME", "READY", "one"][..]),
        ("get pods -A -o wide", &["NODE", "node-1"]),
        ("get pod one -o yaml", &["kind: Pod", "nodeName: node-1"]),
        ("get services", &["CLUSTER-IP", "one"]),
        ("get namespaces", &["default", "kube-system"]),
        ("get secrets -A -o name", &["secret/one"]),
        ("get nodes node-1", &["NAME", "node-1"]),
        ("describe pod one", &["Name:", "example.test/main:1"]),
        ("describe service one", &["Selector:", "app=one"]),
        ("api-resources", &["endpointslices", "discovery.k8s.io/v1"]),
        ("explain pod.spec.nodeName", &["FIELD: nodeName"]),
        ("version", &["Server Version"]),
    ] {
        let said = kubectl.ok(line);
        for word in words {
            assert!(
                said.contains(word),
                "kubectl {line}: no {word:?} in\n{said}"
            );
        }
    }
    // Of what the node holds only a part of, it says so.
    let said = kubectl.command("get pods -A").output().unwrap();
    let warning = String::from_utf8_lossy(&said.stderr);
    assert!(warning.contains("that this node holds"), "{warning}");
}

async fn furnished(plan: Plan) -> World {
    let world = World::started(plan).await;
    let driver = &world.driver;
    driver.create("configmaps", &config_map("one", "one")).await;
    driver.create("secrets", &secret("one", "b25l")).await;
    driver.create("pods", &pod("one", NODES[0], "one")).await;
    driver.create("services", &service("one", "one")).await;
    world.settled(SOON).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Go toolchain: just e2e"]
async fn kubectl_works_on_a_node_and_says_what_cannot_be_done_without_a_link() {
    let mut world = furnished(Plan::default()).await;
    let kubectl = Kubectl::of(&world);
    tokio::task::block_in_place(|| {
        is_seen(&kubectl);
        // What the node may write, its keeper may, and what it may not is said by the cluster.
        let said = kubectl.ok("annotate node node-1 note=hello");
        assert!(said.contains("annotated"), "{said}");
        let said = kubectl.fails("create configmap mine --from-literal=a=b");
        assert!(said.contains("system:node:node-1"), "{said}");
        let said = kubectl.fails("get nothing");
        assert!(said.contains("doesn't have a resource type"), "{said}");
    });
    world.hubs[0].program.kill();
    world.nodes[0].alone(SOON).await;
    for _ in 0..2 {
        tokio::task::block_in_place(|| {
            is_seen(&kubectl);
            for line in [
                "annotate node node-1 --overwrite note=again",
                "delete pod one",
                "create configmap mine --from-literal=a=b",
                "get leases -A",
            ] {
                let said = kubectl.fails(line);
                let why =
                    said.contains("cannot be reached since") || said.contains("not reached since");
                assert!(why, "kubectl {line}: {said}");
            }
        });
        world.nodes[0].restart();
        world.nodes[0].alone(SOON).await;
    }
    world.hubs[0].start().await;
    world.nodes[0].connected(CONVERGED).await;
    let said = tokio::task::block_in_place(|| kubectl.ok("delete pod one --wait=false"));
    assert!(said.contains("deleted"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Go toolchain: just e2e"]
async fn kubectl_watches_on_when_a_hub_takes_over_from_another() {
    let plan = Plan {
        hubs: 2,
        ..Plan::default()
    };
    let mut world = furnished(plan).await;
    let kubectl = Kubectl::of(&world);
    let mut watching = kubectl.command("get services -w -o name");
    let mut watching = watching.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut until = |wanted: &str| {
        let mut found = (&mut lines).map(Result::unwrap);
        assert!(found.any(|line| line == wanted), "no {wanted}");
    };
    tokio::task::block_in_place(|| until("service/one"));
    let patch = json!({"metadata": {"annotations": {"note": "two"}}});
    world
        .driver
        .create("services", &service("two", "two"))
        .await;
    tokio::task::block_in_place(|| until("service/two"));
    let hub = hub_of(&world, 0).await;
    world.hubs[hub].program.kill();
    world
        .driver
        .create("services", &service("three", "three"))
        .await;
    world.driver.patch("services", "three", &patch).await;
    tokio::task::block_in_place(|| until("service/three"));
    watching.kill().unwrap();
    watching.wait().unwrap();
}
