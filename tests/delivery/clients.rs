//! Programs on client libraries that follow a node's API while its link is cut and healed, and the
//! agent, the hub and everything is started anew, at random and all along.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::json;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::accounts::{bind, client, token};
use crate::components::kubeconfig;
use crate::links::through_a_proxy;
use crate::load::Dice;
use crate::proxy::{Flow, Proxy, Weather};
use crate::world::{CONVERGED, World};

const SOON: Duration = Duration::from_secs(20);
/// How long faults come, and changes.
const DURING: Duration = Duration::from_secs(50);
/// How long programs may take beyond that, to have everything and to compare it.
const BEYOND: Duration = Duration::from_secs(400);

/// What the programs follow.
const FOLLOWED: [&str; 2] = [
    "/api/v1/services",
    "/api/v1/pods?fieldSelector=spec.nodeName=node-1",
];

/// What can go wrong between a program and the cluster.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The link breaks.
    Break,
    /// It is cut for a while.
    Cut,
    /// The agent is killed and started again.
    Restart,
    /// The same while the link is cut.
    RestartOffline,
    /// The hub is killed, and started again a while later. It forgets everything.
    Hub,
}

const FAULTS: [Fault; 5] = [
    Fault::Break,
    Fault::Cut,
    Fault::Restart,
    Fault::RestartOffline,
    Fault::Hub,
];

/// A node that keeps its port, behind a proxy, with a program's account.
struct Stage {
    world: World,
    proxy: Proxy,
    kubeconfig: PathBuf,
}

impl Stage {
    async fn set() -> Self {
        let (mut world, proxy) = through_a_proxy().await;
        let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        bind(&world, &everything).await;
        let token = token(&world, "program", 0).await;
        world.settled(SOON).await;
        let kubeconfig = kubeconfig(&world, "program", &token);
        // Whom the node does not know yet the cluster answers, which is ahead of the node: a
        // program that began there and goes on here would be told what was before.
        let known = client(&world, 0, token).await;
        for path in FOLLOWED {
            known.is_answered_here(path, &world.nodes[0]).await;
        }
        let text = std::fs::read_to_string(&kubeconfig).unwrap();
        let (_, address) = text.split_once("https://").unwrap();
        // Programs are told once where the API is.
        world.nodes[0].api = address.split('"').next().unwrap().to_owned();
        Self {
            world,
            proxy,
            kubeconfig,
        }
    }

    /// A program on each library that follows what the node holds, and writes to the cluster.
    fn followers(&self, seed: u64) -> Vec<(&'static str, Child)> {
        let seconds = DURING.as_secs().to_string();
        let mut go = Command::new(program("E2E_GO_CLIENTS"));
        go.arg("-witness").arg(self.world.kubeconfig());
        go.args(["-run", "^followed-", "-seed", &seed.to_string()]);
        go.args(["-during", &format!("{seconds}s")]);
        let mut rust = Command::new(program("E2E_KUBE_RS_FOLLOW"));
        rust.arg(&seconds);
        let mut python = Command::new(program("E2E_PYTHON"));
        python.args(["tests/clients/python/follow.py", &seconds]);
        let all = [("client-go", go), ("kube-rs", rust), ("python", python)];
        let started = all.map(|(name, mut command)| {
            command
                .env("KUBECONFIG", &self.kubeconfig)
                .env("E2E_WITNESS", self.world.kubeconfig())
                .kill_on_drop(true);
            (name, command.spawn().unwrap())
        });
        started.into()
    }

    async fn suffer(&mut self, fault: Fault, dice: &mut Dice) {
        let a_while = Duration::from_millis(500 + dice.below(4_000));
        match fault {
            Fault::Break => self.proxy.cut(),
            Fault::Cut => {
                self.away();
                sleep(a_while).await;
                self.back();
            }
            Fault::Restart => self.world.nodes[0].restart(),
            Fault::RestartOffline => {
                self.away();
                sleep(a_while / 2).await;
                self.world.nodes[0].restart();
                sleep(a_while).await;
                self.back();
            }
            Fault::Hub => {
                self.world.hubs[0].program.kill();
                sleep(a_while).await;
                self.world.hubs[0].start().await;
            }
        }
        sleep(Duration::from_millis(dice.below(3_000))).await;
    }

    fn away(&self) {
        let hole = Weather::default().flow(Flow::Hole, Flow::Hole);
        self.proxy.weather(hole);
        self.proxy.cut();
    }

    fn back(&self) {
        self.proxy.weather(Weather::default());
        // Attempts that were swallowed would go on until they are given up.
        self.proxy.cut();
    }

    /// Every fault again and again, in an order and with pauses that the seed says.
    async fn suffer_all(&mut self, seed: u64) {
        let mut dice = Dice(seed);
        let began = Instant::now();
        let mut suffered = Vec::new();
        while began.elapsed() < DURING {
            let mut left = FAULTS.to_vec();
            while !left.is_empty() {
                let fault = left.swap_remove(dice.below(left.len() as u64) as usize);
                suffered.push(fault);
                self.suffer(fault, &mut dice).await;
            }
        }
        eprintln!("{suffered:?}");
    }
}

/// A program of the tests, by the variable that says where it is.
fn program(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable);
    path.unwrap_or_else(|| panic!("{variable} is not set: tests/e2e/run node builds it"))
        .into()
}

async fn ended(mut running: Child) -> ExitStatus {
    let ended = timeout(BEYOND, running.wait()).await;
    ended.expect("it ends").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs programs on client libraries: just e2e"]
async fn informers_lose_nothing_and_never_go_back_while_links_and_agents_come_and_go() {
    let mut stage = Stage::set().await;
    let seed = std::env::var("CLIENTS_SEED").map_or(6, |seed| seed.parse().unwrap());
    eprintln!("seed {seed}: CLIENTS_SEED chooses another");
    let running = stage.followers(seed);
    stage.suffer_all(seed).await;
    for (name, running) in running {
        let status = ended(running).await;
        assert!(status.success(), "{name} says that something is wrong");
    }
    stage.world.nodes[0].connected(CONVERGED).await;
    stage.world.settled(CONVERGED).await;
}
