//! A cluster of one test: `holdfast up` in a folder of its own, on a free port.
//!
//! With `E2E_SERVER=real` it is a real control plane instead: what the cases expect of us must be
//! what Kubernetes does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use ::cluster::{Holdfast, Kubernetes, Signal, Site};
use tempfile::TempDir;

use crate::kubectl_run::{Kubectl, Running};

/// The cluster of one test, and a folder for its files. Dropping it ends it.
pub(crate) struct Cluster {
    folder: TempDir,
    server: Server,
}

enum Server {
    Ours(Holdfast),
    Real(Kubernetes),
}

impl Cluster {
    /// Starts a cluster on disk and waits until it is ready.
    pub(crate) fn start() -> Self {
        Self::with_flags(&[])
    }

    /// The same with more flags for our program.
    pub(crate) fn with_flags(flags: &[&str]) -> Self {
        let server = match is_real() {
            true => Kubernetes::start().map(Server::Real),
            false => Holdfast::start(&program(), flags).map(Server::Ours),
        };
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            server: server.unwrap_or_else(|error| panic!("{error}")),
        }
    }

    /// Our program, which is more than an API.
    pub(crate) fn ours(&self) -> &Holdfast {
        match &self.server {
            Server::Ours(holdfast) => holdfast,
            Server::Real(_) => panic!("a case of our own program alone"),
        }
    }

    fn ours_mut(&mut self) -> &mut Holdfast {
        match &mut self.server {
            Server::Ours(holdfast) => holdfast,
            Server::Real(_) => panic!("a case of our own program alone"),
        }
    }

    /// Starts the program on the folder that is there, after it was ended.
    pub(crate) fn start_again(&mut self) {
        let started = self.ours_mut().start_again();
        started.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Ends the program with this signal, and gives how it ended.
    pub(crate) fn end_by(&mut self, signal: Signal) -> ExitStatus {
        self.ours_mut().end_by(signal)
    }

    fn site(&self) -> &Site {
        match &self.server {
            Server::Ours(holdfast) => holdfast.site(),
            Server::Real(kubernetes) => kubernetes.site(),
        }
    }

    /// A path for a file of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file of the test and gives its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("a file of the test");
        path.to_str().expect("a path in UTF-8").to_owned()
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.site().kubeconfig()
    }

    /// The address that clients dial, with its scheme.
    pub(crate) fn server(&self) -> &str {
        self.site().server()
    }

    /// A kubectl command as the administrator; words in single quotes are one word.
    pub(crate) fn kubectl(&self, line: &str) -> Kubectl {
        self.kubectl_as(&self.kubeconfig(), line)
    }

    /// A kubectl command with another kubeconfig.
    pub(crate) fn kubectl_as(&self, kubeconfig: &Path, line: &str) -> Kubectl {
        Kubectl::new(line, kubeconfig, self.folder.path())
    }

    /// Runs kubectl, which must succeed; gives what it printed.
    pub(crate) fn ok(&self, line: &str) -> String {
        self.kubectl(line).ok()
    }

    /// Runs kubectl, which must fail; gives what it complained.
    pub(crate) fn refused(&self, line: &str) -> String {
        self.kubectl(line).refused()
    }

    /// `kubectl apply -f -` of this text.
    pub(crate) fn apply(&self, yaml: &str) -> String {
        self.kubectl("apply -f -").stdin(yaml).ok()
    }

    /// `kubectl create -f -` of this text.
    pub(crate) fn create(&self, yaml: &str) -> String {
        self.kubectl("create -f -").stdin(yaml).ok()
    }

    /// One value of one object: `get SUBJECT -o jsonpath={PATH}`.
    pub(crate) fn value(&self, subject: &str, path: &str) -> String {
        self.ok(&format!("get {subject} -o jsonpath='{{{path}}}'"))
    }

    /// Starts kubectl and leaves it running.
    pub(crate) fn running(&self, line: &str) -> Running {
        self.kubectl(line).spawn()
    }
}

/// Whether a real control plane is asked instead of ours.
pub(crate) fn is_real() -> bool {
    std::env::var("E2E_SERVER").is_ok_and(|server| server == "real")
}

/// The program under test: the one that `tests/e2e/run` built, or the one that cargo did.
pub(crate) fn program() -> PathBuf {
    let built = || env!("CARGO_BIN_EXE_holdfast").into();
    std::env::var_os("E2E_HOLDFAST").map_or_else(built, PathBuf::from)
}
