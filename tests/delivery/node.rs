//! An agent of the test: a process, its disk, and a look into it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::glass;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::program::{Program, type_in};

/// An agent and what it keeps.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    pub(crate) data_dir: PathBuf,
    pub(crate) token: PathBuf,
    pin: String,
    /// Where it looks for hubs.
    pub(crate) hubs: Vec<String>,
    /// Where its API listens.
    pub(crate) api: String,
    /// Further words of its command.
    pub(crate) extra: Vec<String>,
}

impl Node {
    /// An agent that may join, not started yet.
    pub(crate) fn new(name: &'static str, folder: &Path, kubeconfig: &Path) -> Self {
        let data_dir = folder.join(name);
        std::fs::create_dir_all(&data_dir).unwrap();
        let mut node = Self {
            name,
            program: Program::new(name, &folder.join("logs")),
            data_dir,
            token: folder.join(format!("{name}.token")),
            pin: String::new(),
            hubs: Vec::new(),
            // Many nodes are on one machine: each has a port of its own.
            api: "127.0.0.1:0".to_owned(),
            extra: Vec::new(),
        };
        node.invite(kubeconfig);
        node
    }

    /// Another machine with the identity of a node: its whole disk, copied while it is stopped.
    pub(crate) fn clone_of(other: &Self, name: &'static str, folder: &Path) -> Self {
        let data_dir = folder.join(name);
        copy_folder(&other.data_dir, &data_dir);
        Self {
            name: other.name,
            program: Program::new(name, &folder.join("logs")),
            data_dir,
            token: other.token.clone(),
            pin: other.pin.clone(),
            hubs: other.hubs.clone(),
            api: "127.0.0.1:0".to_owned(),
            extra: other.extra.clone(),
        }
    }

    /// Makes a new token for it, as an administrator does.
    pub(crate) fn invite(&mut self, kubeconfig: &Path) {
        drop(std::fs::remove_file(&self.token));
        let token = self.token.to_str().unwrap();
        let made = type_in(
            kubeconfig,
            &[
                "token",
                "create",
                "--node",
                self.name,
                "--token-file",
                token,
                "-o",
                "json",
            ],
        );
        let made: Value = serde_json::from_str(&made).unwrap();
        self.pin = made["caHash"].as_str().unwrap().to_owned();
    }

    /// Starts it and does not wait.
    pub(crate) fn start(&mut self) {
        let mut words = vec!["edge".to_owned(), "--node".to_owned(), self.name.to_owned()];
        for hub in &self.hubs {
            words.extend(["--hub".to_owned(), hub.clone()]);
        }
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        words.extend(["--data-dir".to_owned(), text(&self.data_dir)]);
        words.extend(["--token-file".to_owned(), text(&self.token)]);
        words.extend(["--ca-hash".to_owned(), self.pin.clone()]);
        words.extend(["--api".to_owned(), self.api.clone()]);
        words.extend(self.extra.iter().cloned());
        self.program.words(words);
        self.program.start();
    }

    /// Kills it and starts it again.
    pub(crate) fn restart(&mut self) {
        self.program.kill();
        self.start();
    }

    /// What it holds, a line for each object; nothing while it does not answer.
    pub(crate) async fn dump(&self) -> Option<BTreeSet<String>> {
        let said = glass::look(&self.socket(), "/dump").await.ok()?;
        let text = String::from_utf8(said).unwrap();
        Some(text.lines().map(str::to_owned).collect())
    }

    /// How it is doing; nothing while it does not answer.
    pub(crate) async fn status(&self) -> Option<Value> {
        let said = glass::look(&self.socket(), "/status").await.ok()?;
        serde_json::from_slice(&said).ok()
    }

    /// Bytes of messages that it received since it was started.
    pub(crate) async fn received(&self) -> u64 {
        let status = self.status().await.expect("it runs");
        status["receivedBytes"].as_u64().unwrap()
    }

    /// Sessions since it was started.
    pub(crate) async fn sessions(&self) -> u64 {
        let status = self.status().await.expect("it runs");
        status["sessions"].as_u64().unwrap()
    }

    /// Waits until its status is as wanted, and says how long that took.
    pub(crate) async fn until(
        &self,
        within: Duration,
        what: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Duration {
        let began = Instant::now();
        let mut last = None;
        while began.elapsed() < within {
            last = self.status().await.or(last);
            if last.as_ref().is_some_and(&is_so) {
                return began.elapsed();
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!(
            "{}: {what} does not happen within {within:?}; it says {last:?}\n{}",
            self.name,
            tail(&self.program.log())
        );
    }

    /// Waits until it has a session.
    pub(crate) async fn connected(&self, within: Duration) -> Duration {
        let is_so = |status: &Value| status["connected"] == true;
        self.until(within, "a session", is_so).await
    }

    /// Waits until it has none.
    pub(crate) async fn alone(&self, within: Duration) -> Duration {
        let is_so = |status: &Value| status["connected"] == false;
        self.until(within, "the end of its session", is_so).await
    }

    fn socket(&self) -> PathBuf {
        self.data_dir.join("status.sock")
    }
}

/// The end of a log.
pub(crate) fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(25)..].join("\n")
}

/// Copies the files of a folder, and those of its folders.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let there = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy_folder(&entry.path(), &there),
            kind if kind.is_file() => drop(std::fs::copy(entry.path(), there).unwrap()),
            _ => {}
        }
    }
}
