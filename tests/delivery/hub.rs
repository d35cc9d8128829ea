//! A hub of the test: a process, and a look into it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::glass;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::program::Program;

/// A hub. It keeps its port over restarts, so that agents find it again.
pub(crate) struct Hub {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    kubeconfig: PathBuf,
    run_dir: PathBuf,
    listen: SocketAddr,
    /// Further words of its command.
    pub(crate) extra: Vec<String>,
}

impl Hub {
    /// A hub of the cluster, not started yet.
    pub(crate) fn new(name: &'static str, folder: &Path, kubeconfig: &Path) -> Self {
        Self {
            name,
            program: Program::new(name, &folder.join("logs")),
            kubeconfig: kubeconfig.to_owned(),
            run_dir: folder.join("run"),
            listen: "127.0.0.1:0".parse().unwrap(),
            extra: Vec::new(),
        }
    }

    /// Where it listens from its first start on.
    pub(crate) fn listen(&mut self, address: &str) {
        self.listen = address.parse().unwrap();
    }

    /// Another way to the cluster, from its next start on.
    pub(crate) fn kubeconfig(&mut self, path: &Path) {
        self.kubeconfig = path.to_owned();
    }

    /// Starts it and does not wait.
    pub(crate) fn launch(&mut self) {
        let listen = self.listen.to_string();
        let words: [&str; 9] = [
            "cloud",
            "--kubeconfig",
            self.kubeconfig.to_str().unwrap(),
            "--listen",
            &listen,
            "--hub-name",
            self.name,
            "--run-dir",
            self.run_dir.to_str().unwrap(),
        ];
        let drain = ["--drain", "1s"].map(str::to_owned);
        let words = words.map(str::to_owned).into_iter();
        self.program
            .words(words.chain(drain).chain(self.extra.iter().cloned()));
        self.program.start();
    }

    /// Starts it and waits until it listens.
    pub(crate) async fn start(&mut self) {
        self.launch();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Ok(said) = glass::look(&self.socket(), "/address").await {
                self.listen = String::from_utf8(said).unwrap().trim().parse().unwrap();
                return;
            }
            assert!(
                Instant::now() < deadline,
                "the hub does not start:\n{}",
                self.program.log()
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Where agents reach it.
    pub(crate) fn address(&self) -> SocketAddr {
        assert_ne!(self.listen.port(), 0, "it was started once");
        self.listen
    }

    /// How it is doing.
    pub(crate) async fn status(&self) -> Value {
        let said = glass::look(&self.socket(), "/status").await.unwrap();
        serde_json::from_slice(&said).unwrap()
    }

    /// What it waits for before it begins; nothing if nobody answers, or if it has begun.
    pub(crate) async fn waits_for(&self) -> Option<String> {
        let said = glass::look(&self.socket(), "/status").await.ok()?;
        let status: Value = serde_json::from_slice(&said).unwrap();
        Some(status["waitsFor"].as_str()?.to_owned())
    }

    /// How a node is doing by its account; nothing if it has not seen it.
    pub(crate) async fn node(&self, node: &str) -> Option<Value> {
        let said = glass::look(&self.socket(), &format!("/nodes/{node}")).await;
        Some(serde_json::from_slice(&said.ok()?).unwrap())
    }

    /// How it follows a resource: `complete`, `unlisted` or `frozen`.
    pub(crate) async fn state(&self, resource: &str) -> String {
        let status = self.status().await;
        let all = status["resources"].as_array().unwrap();
        let found = all.iter().find(|it| it["resource"] == resource);
        found.unwrap()["state"].as_str().unwrap().to_owned()
    }

    fn socket(&self) -> PathBuf {
        self.run_dir.join(format!("{}.sock", self.name))
    }
}
