//! A process of the program under test: started, killed, paused and started again. Its log stays.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ::cluster::{Running, Signal};
use rustix::process::{Pid, kill_process};

/// The program under test: the one that `tests/e2e/run` built, or the one that cargo did.
pub(crate) fn path() -> PathBuf {
    let built = || env!("CARGO_BIN_EXE_holdfast").into();
    std::env::var_os("E2E_HOLDFAST").map_or_else(built, PathBuf::from)
}

/// A process with what it takes to start it again. Dropping it kills it.
pub(crate) struct Program {
    name: &'static str,
    /// What stands before the program's own words, such as a namespace to be in.
    before: Vec<OsString>,
    words: Vec<OsString>,
    logs: PathBuf,
    running: Option<Running>,
}

impl Program {
    /// One that is not started yet.
    pub(crate) fn new(name: &'static str, logs: &Path) -> Self {
        Self {
            name,
            before: Vec::new(),
            words: Vec::new(),
            logs: logs.to_owned(),
            running: None,
        }
    }

    /// The words with which it is started next.
    pub(crate) fn words<W: Into<OsString>>(&mut self, words: impl IntoIterator<Item = W>) {
        self.words = words.into_iter().map(Into::into).collect();
    }

    /// What stands before them.
    pub(crate) fn before<W: Into<OsString>>(&mut self, words: impl IntoIterator<Item = W>) {
        self.before = words.into_iter().map(Into::into).collect();
    }

    /// Starts it.
    pub(crate) fn start(&mut self) {
        assert!(self.running.is_none(), "{} runs", self.name);
        let mut all = self.before.clone();
        all.push(path().into());
        all.extend(self.words.iter().cloned());
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]);
        without_settings(&mut command);
        let started = Running::start(self.name, command, &self.logs);
        self.running = Some(started.unwrap_or_else(|error| panic!("{error}")));
    }

    /// Kills it, as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) -> std::process::ExitStatus {
        let mut running = self.running.take().expect("it runs");
        running.end_by(Signal::TERM)
    }

    /// The number of the process that runs now.
    pub(crate) fn id(&self) -> u32 {
        self.running.as_ref().expect("it runs").id()
    }

    /// Whether the process has ended by itself. It stays to be reaped.
    pub(crate) fn has_ended(&self) -> bool {
        let Some(running) = &self.running else {
            return true;
        };
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.id()));
        stat.map_or(true, |stat| stat.contains(") Z "))
    }

    /// Lets it stand still, or go on.
    pub(crate) fn signal(&self, signal: Signal) {
        let running = self.running.as_ref().expect("it runs");
        let id = i32::try_from(running.id()).ok().and_then(Pid::from_raw);
        kill_process(id.unwrap(), signal).unwrap();
    }

    /// Everything that it has said since its first start.
    pub(crate) fn log(&self) -> String {
        let path = self.logs.join(format!("{}.log", self.name));
        std::fs::read_to_string(path).unwrap_or_default()
    }
}

/// The program must not see settings of the person who runs the tests.
fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HOLDFAST_") {
            command.env_remove(name);
        }
    }
    command.env_remove("KUBECONFIG");
}

/// What a person types, with the administrator's kubeconfig; it must succeed.
pub(crate) fn type_in(kubeconfig: &Path, words: &[&str]) -> String {
    let mut command = Command::new(path());
    without_settings(&mut command);
    command.args(words).arg("--kubeconfig").arg(kubeconfig);
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the program starts");
    let complaint = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{words:?}: {complaint}");
    String::from_utf8(stdout).unwrap()
}
