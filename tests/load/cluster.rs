//! The program under load: started on a free port, looked at from outside, ended by its id.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Door;
use crate::server::Server;

/// Where the program keeps its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Disk,
    Memory,
}

/// A running `holdfast up`. It is killed when this goes.
pub(crate) struct Cluster {
    child: Child,
    home: PathBuf,
    /// How it is seen from outside.
    pub(crate) server: Server,
    /// From the start of the program to its word that it is ready.
    pub(crate) ready_after: Duration,
}

impl Cluster {
    /// Starts the program on this folder and waits until it says that it is ready.
    pub(crate) fn start(home: &Path, storage: Storage) -> Self {
        let started = Instant::now();
        // Another build can be measured with the same client.
        let other = std::env::var_os("HOLDFAST_PROGRAM");
        let program = other.unwrap_or_else(|| env!("CARGO_BIN_EXE_holdfast").into());
        let mut command = Command::new(program);
        command
            .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(home);
        let log = home.with_extension("log");
        let log = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("a log file");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        if storage == Storage::Memory {
            command.arg("--ephemeral");
        }
        let mut child = command.spawn().expect("the program starts");
        let out = child.stdout.take().expect("it was asked for");
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let ready = lines.any(|line| line.contains("is ready"));
        let ready_after = started.elapsed();
        if !ready {
            drop(child.kill());
            panic!("the program ended before it was ready: {:?}", child.wait());
        }
        let server = Server {
            door: Door::of(home),
            processes: vec![child.id()],
        };
        let home = home.to_owned();
        Self {
            child,
            home,
            server,
            ready_after,
        }
    }

    /// Ends the program as a power cut would, and starts it again on what it left.
    pub(crate) fn killed_and_started_again(mut self) -> Self {
        self.child.kill().expect("it runs");
        self.child.wait().expect("its end");
        Self::start(&self.home, Storage::Disk)
    }

    /// Everything that the program wrote to its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home.with_extension("log")).expect("a log file")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("the program's log:\n{}", self.log());
        }
    }
}
