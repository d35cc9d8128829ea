//! A cluster of one test: `holdfast up` in a folder of its own, on a free port.
//!
//! With `E2E_SERVER=real` it is a real control plane instead: what the cases expect of us must be
//! what Kubernetes does.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use ::cluster::{Kubernetes, Setup};
use tempfile::TempDir;

use crate::kubectl_run::{Kubectl, Running};

/// The embedded cluster. Dropping it ends the program; a failing test shows its log.
pub(crate) struct Cluster {
    folder: TempDir,
    flags: &'static [&'static str],
    program: Option<Child>,
    real: Option<Kubernetes>,
    starts: u32,
}

impl Cluster {
    /// Starts a cluster on disk and waits until it is ready.
    pub(crate) fn start() -> Self {
        Self::with_flags(&[])
    }

    /// The same with more flags.
    pub(crate) fn with_flags(flags: &'static [&'static str]) -> Self {
        let mut cluster = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            flags,
            program: None,
            real: None,
            starts: 0,
        };
        if is_real() {
            let real = Kubernetes::start_with(Setup::default());
            cluster.real = Some(real.unwrap_or_else(|error| panic!("{error}")));
        } else {
            cluster.start_again();
        }
        cluster
    }

    /// Starts the program on the folder that is there, after it was stopped or killed.
    pub(crate) fn start_again(&mut self) {
        assert!(self.program.is_none(), "it is running");
        assert!(self.real.is_none(), "a case of our own program alone");
        self.starts += 1;
        let said = self.path(&format!("stdout-{}", self.starts));
        let log = File::create(self.log_path()).expect("a log file");
        let program = self
            .command()
            .stdin(Stdio::null())
            .stdout(File::create(&said).expect("a file"))
            .stderr(log)
            .spawn()
            .expect("the program starts");
        let program = self.program.insert(program);
        for _ in 0..3000 {
            if fs::read_to_string(&said).is_ok_and(|text| text.contains("The cluster is ready")) {
                return;
            }
            if let Some(status) = program.try_wait().expect("its state") {
                panic!("holdfast up ended at once: {status}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("not ready within thirty seconds");
    }

    fn command(&self) -> Command {
        let mut command = Command::new(program());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HOLDFAST_") {
                command.env_remove(name);
            }
        }
        command
            .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(self.home())
            .args(self.flags);
        command
    }

    /// The folder that the program was given.
    pub(crate) fn home(&self) -> PathBuf {
        let real = self
            .real
            .as_ref()
            .map(|real| real.site().folder().to_owned());
        real.unwrap_or_else(|| self.path("home"))
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
        self.home().join("kubeconfig")
    }

    /// The address that clients dial, with its scheme.
    pub(crate) fn server(&self) -> String {
        let text = fs::read_to_string(self.kubeconfig()).expect("the kubeconfig");
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("server: "));
        line.expect("a server in it").to_owned()
    }

    /// The process that runs now.
    pub(crate) fn pid(&self) -> u32 {
        self.program.as_ref().expect("it runs").id()
    }

    /// Ends the program with this signal, and gives how it ended.
    pub(crate) fn signal(&mut self, signal: &str) -> ExitStatus {
        let mut program = self.program.take().expect("it runs");
        let sent = Command::new("kill")
            .args(["-s", signal, &program.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
        for _ in 0..2000 {
            if let Some(status) = program.try_wait().expect("its state") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.program = Some(program);
        panic!("SIG{signal} has not ended it within twenty seconds");
    }

    /// Takes leave of a program that the test has killed.
    pub(crate) fn reap(&mut self) {
        let mut program = self.program.take().expect("it was started");
        program.wait().expect("its end");
    }

    /// What the program has logged since its last start.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        self.path(&format!("log-{}", self.starts))
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

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut program) = self.program.take() {
            drop(program.kill());
            drop(program.wait());
        }
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
            eprintln!("--- the end of the log of holdfast up ---");
            eprintln!("{}", last.join("\n"));
        }
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

/// How much of the log a failing test shows.
const LOG_LINES_SHOWN: usize = 40;
