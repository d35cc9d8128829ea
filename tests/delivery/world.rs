//! A cluster, its hubs and its nodes, and the one question: does every node hold what it must?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::cluster::{Holdfast, Kubernetes, Setup, Signal, Site};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::driver::Driver;
use crate::expected::{Kind, Lists};
use crate::hub::Hub;
use crate::node::{Node, tail};
use crate::program;

/// The nodes of a test, by name.
pub(crate) const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];
/// Its hubs.
const HUBS: [&str; 2] = ["hub-a", "hub-b"];
/// The longest that it may take until all is as it must be, once nothing is in the way any more: a
/// node that was away long waits up to a minute before it tries again.
pub(crate) const CONVERGED: Duration = Duration::from_secs(120);

/// What a test starts with.
pub(crate) struct Plan {
    /// How many nodes.
    pub(crate) nodes: usize,
    /// How many hubs.
    pub(crate) hubs: usize,
    /// How long the API remembers changes.
    pub(crate) history: Option<Duration>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            nodes: 1,
            hubs: 1,
            history: None,
        }
    }
}

/// Everything of a test. Dropping it ends all processes; if the test fails, its folder stays.
pub(crate) struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) hubs: Vec<Hub>,
    pub(crate) driver: Driver,
    /// Further kinds that every node holds whole.
    pub(crate) shared: Vec<Kind>,
    server: Server,
    folder: Option<TempDir>,
}

enum Server {
    Ours(Box<Holdfast>),
    Real(Box<Kubernetes>),
}

impl World {
    /// An API with hubs that run, and nodes that wait to be started.
    pub(crate) async fn new(plan: Plan) -> Self {
        let server = start(plan.history);
        let site = server.site().clone();
        let made = tempfile::Builder::new().prefix("holdfast-test-").tempdir();
        let folder = made.unwrap();
        let path = folder.path();
        std::fs::create_dir(path.join("logs")).unwrap();
        let kubeconfig = site.kubeconfig();
        let named = HUBS.iter().take(plan.hubs);
        let hubs = named.map(|name| Hub::new(name, path, &kubeconfig));
        let mut world = Self {
            nodes: Vec::new(),
            hubs: hubs.collect(),
            driver: Driver::new(&site),
            shared: Vec::new(),
            server,
            folder: Some(folder),
        };
        for hub in &mut world.hubs {
            hub.start().await;
        }
        let addresses: Vec<_> = world
            .hubs
            .iter()
            .map(|hub| hub.address().to_string())
            .collect();
        for name in NODES.iter().take(plan.nodes) {
            let mut node = Node::new(name, world.path(), &kubeconfig);
            node.hubs = addresses.clone();
            world.nodes.push(node);
        }
        world
    }

    /// The same with all nodes started.
    pub(crate) async fn started(plan: Plan) -> Self {
        let mut world = Self::new(plan).await;
        world.nodes.iter_mut().for_each(Node::start);
        world
    }

    /// The folder of the test.
    pub(crate) fn path(&self) -> &Path {
        self.folder
            .as_ref()
            .expect("it is there until we go")
            .path()
    }

    /// Where the API is and how one gets in.
    pub(crate) fn site(&self) -> &Site {
        self.server.site()
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.site().kubeconfig()
    }

    /// The process of the API.
    pub(crate) fn api_process(&self) -> u32 {
        match &self.server {
            Server::Ours(ours) => ours.process(),
            Server::Real(real) => {
                let mut all = real.processes();
                let api = all.find(|(name, _)| *name == "kube-apiserver");
                api.expect("it runs").1
            }
        }
    }

    /// Kills the API.
    pub(crate) fn kill_api(&mut self) {
        match &mut self.server {
            Server::Ours(ours) => drop(ours.end_by(Signal::KILL)),
            Server::Real(real) => real.kill_api(),
        }
    }

    /// Starts it again, with everything that it had on disk, at the same address.
    pub(crate) fn start_api(&mut self) {
        let started = match &mut self.server {
            Server::Ours(ours) => ours.start_again(),
            Server::Real(real) => real.start_api(),
        };
        started.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Waits until every node that runs holds exactly what it must; says how long that took.
    pub(crate) async fn settled(&self, within: Duration) -> Duration {
        let nodes: Vec<&Node> = self.nodes.iter().collect();
        self.settled_on(&nodes, within).await
    }

    /// The same of some nodes.
    pub(crate) async fn settled_on(&self, nodes: &[&Node], within: Duration) -> Duration {
        let began = Instant::now();
        loop {
            let differences = self.differences(nodes).await;
            if differences.is_empty() {
                return began.elapsed();
            }
            if began.elapsed() > within {
                let words = self.accounts(nodes).await;
                let more = differences.len().saturating_sub(40);
                panic!(
                    "not the same after {within:?}:\n{}\n({more} more)\n{words}",
                    differences[..differences.len().min(40)].join("\n")
                );
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// How what nodes hold differs from what they must hold, a line each.
    pub(crate) async fn differences(&self, nodes: &[&Node]) -> Vec<String> {
        let lists = match Lists::read(&self.driver, &self.shared).await {
            Ok(lists) => lists,
            Err(error) => return vec![format!("the API does not answer: {error}")],
        };
        let mut differences = Vec::new();
        for node in nodes {
            let expected = lists.of(node.name);
            if !lists.has_node(node.name) {
                differences.push(format!("{} is not registered", node.name));
            }
            let Some(held) = node.dump().await else {
                differences.push(format!("{} does not answer", node.name));
                continue;
            };
            let mut say = |sign: char, one: &BTreeSet<String>, other: &BTreeSet<String>| {
                let lines = one.difference(other);
                differences.extend(lines.map(|line| format!("{} {sign} {line}", node.name)));
            };
            say('-', &expected, &held);
            say('+', &held, &expected);
        }
        differences
    }

    async fn accounts(&self, nodes: &[&Node]) -> String {
        let mut words = String::new();
        for node in nodes {
            words += &format!("{}: {:?}\n", node.name, node.status().await);
            words += &format!("{}\n", tail(&node.program.log()));
        }
        for hub in &self.hubs {
            words += &format!("{}:\n{}\n", hub.name, tail(&hub.program.log()));
        }
        words
    }
}

impl Server {
    fn site(&self) -> &Site {
        match self {
            Self::Ours(ours) => ours.site(),
            Self::Real(real) => real.site(),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.nodes.clear();
        self.hubs.clear();
        if let Some(folder) = self.folder.take().filter(|_| std::thread::panicking()) {
            let path = folder.keep();
            eprintln!(
                "the logs of hubs and agents are in {}",
                path.join("logs").display()
            );
        }
    }
}

/// Our API, or with `E2E_SERVER=real` a real control plane.
fn start(history: Option<Duration>) -> Server {
    let real = std::env::var("E2E_SERVER").is_ok_and(|server| server == "real");
    let started = match real {
        true => {
            let mut setup = Setup::default();
            setup.history = history.unwrap_or(setup.history);
            Kubernetes::start_with(setup).map(|real| Server::Real(Box::new(real)))
        }
        false => {
            let seconds = history.map(|history| format!("{}s", history.as_secs()));
            let flags: Vec<&str> = match &seconds {
                Some(seconds) => vec!["--history", seconds],
                None => Vec::new(),
            };
            let started = Holdfast::start(&program::path(), &flags);
            started.map(|ours| Server::Ours(Box::new(ours)))
        }
    };
    started.unwrap_or_else(|error| panic!("{error}"))
}
