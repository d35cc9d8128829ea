//! The hub and the agents of an embedded cluster: programs of their own, which this one starts and
//! looks after.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use cloud::cluster::{Client, Config};
use cloud::join::authority;
use cloud::join::token::{self, Bound};
use cloud::record;
use host::child::Child;
use host::files::{self, Audience};
use host::listen::Reserved;
use host::pki::Pin;
use host::{Clock, Tasks, glass};
use jiff::SignedDuration;
use wire::join::NodeName;

/// What the hub is called.
const HUB: &str = "hub";
/// How long a child has to end by itself.
const GRACE: Duration = Duration::from_secs(8);
/// How long a node has to join with the token that is made for it.
const TOKEN_TIME: SignedDuration = SignedDuration::from_hours(1);
/// How long the hub may take to be there.
const HUB_TIME: Duration = Duration::from_secs(30);

/// What is started beside the API.
pub(crate) struct Family {
    /// Where everything is kept.
    pub(crate) data_dir: PathBuf,
    /// The administrator's kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// Where the hub listens.
    pub(crate) hub_listen: SocketAddr,
    /// How many nodes there are.
    pub(crate) nodes: u32,
}

/// A node, and where its things are.
pub(crate) struct Node {
    pub(crate) name: NodeName,
    pub(crate) data_dir: PathBuf,
}

impl Family {
    /// Starts the hub, waits until it is there, and starts the agents.
    pub(crate) async fn start(self, tasks: &mut Tasks, clock: &Clock) -> anyhow::Result<Vec<Node>> {
        // Whoever has the port is named now, and not in the log of a hub that starts in vain.
        drop(Reserved::bind(self.hub_listen).context("the hub's port (--hub-listen)")?);
        let program = std::env::current_exe().context("where this program is")?;
        let run_dir = self.data_dir.join("run");
        files::create_dir(&run_dir)?;
        let child = |name: &str, arguments: Vec<OsString>| Child {
            name: name.to_owned(),
            program: program.clone(),
            arguments,
            log: run_dir.join(format!("{name}.log")),
            grace: GRACE,
        };
        let config = Config::from_kubeconfig(&self.kubeconfig)?;
        let client = Client::new(config, tasks.crowd("requests", 16), clock.clone());
        record::install(&client)
            .await
            .context("the kinds of records")?;
        let shutdown = tasks.shutdown().clone();
        let hub = child(HUB, self.hub_words(&run_dir));
        tasks.add("hub", hub.run(clock.clone(), shutdown.clone()));
        let address = self.hub_address(&run_dir).await?;
        let nodes = self.join(&client, clock).await?;
        for (node, pin) in &nodes {
            let agent = child(node.name.as_str(), words(node, *pin, address));
            tasks.add("agent", agent.run(clock.clone(), shutdown.clone()));
        }
        Ok(nodes.into_iter().map(|(node, _)| node).collect())
    }

    fn hub_words(&self, run_dir: &Path) -> Vec<OsString> {
        vec![
            "cloud".into(),
            "--until-stdin-ends".into(),
            "--kubeconfig".into(),
            self.kubeconfig.clone().into(),
            "--listen".into(),
            self.hub_listen.to_string().into(),
            "--hub-name".into(),
            HUB.into(),
            "--run-dir".into(),
            run_dir.into(),
        ]
    }

    /// Where the hub listens, once it does.
    async fn hub_address(&self, run_dir: &Path) -> anyhow::Result<SocketAddr> {
        let socket = run_dir.join(format!("{HUB}.sock"));
        let asked = async {
            loop {
                if let Ok(said) = glass::look(&socket, "/address").await
                    && let Ok(address) = String::from_utf8_lossy(&said).trim().parse()
                {
                    return address;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let found = tokio::time::timeout(HUB_TIME, asked).await;
        let log = run_dir.join(format!("{HUB}.log"));
        found.with_context(|| format!("the hub does not start; see {}", log.display()))
    }

    /// Makes a token for each node that has not joined yet.
    async fn join(&self, client: &Client, clock: &Clock) -> anyhow::Result<Vec<(Node, Pin)>> {
        let now = clock.wall();
        let pin = Pin::of(authority::shared(client, now).await?.certificate())?;
        let mut nodes = Vec::new();
        for number in 1..=self.nodes {
            let name: NodeName = format!("node-{number}").parse()?;
            let data_dir = self.data_dir.join("nodes").join(name.as_str());
            files::create_dir(&self.data_dir.join("nodes"))?;
            files::create_dir(&data_dir)?;
            if !data_dir.join("identity").exists() {
                let bound = Bound::Node(name.clone());
                let (token, _) = token::create(client, bound, TOKEN_TIME, now).await?;
                let text = format!("{}\n", token.text());
                let path = data_dir.join("token");
                files::write(&path, text.as_bytes(), Audience::Owner)?;
            }
            nodes.push((Node { name, data_dir }, pin));
        }
        Ok(nodes)
    }
}

fn words(node: &Node, pin: Pin, hub: SocketAddr) -> Vec<OsString> {
    vec![
        "edge".into(),
        "--until-stdin-ends".into(),
        "--hub".into(),
        hub.to_string().into(),
        "--node".into(),
        node.name.as_str().into(),
        "--data-dir".into(),
        node.data_dir.clone().into(),
        "--token-file".into(),
        node.data_dir.join("token").into(),
        "--ca-hash".into(),
        pin.to_string().into(),
        "--api".into(),
        // Several nodes on one machine: each has a port of its own, and keeps it.
        "127.0.0.1:0".into(),
    ]
}
