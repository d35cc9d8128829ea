//! The program under load: started on a free port, looked at from outside, ended by its id.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Door;

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
    /// How clients get in.
    pub(crate) door: Door,
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
        let door = Door::from_kubeconfig(&home.join("kubeconfig"));
        let home = home.to_owned();
        Self {
            child,
            home,
            door,
            ready_after,
        }
    }

    /// Ends the program as a power cut would, and starts it again on what it left.
    pub(crate) fn killed_and_started_again(mut self) -> Self {
        self.child.kill().expect("it runs");
        self.child.wait().expect("its end");
        Self::start(&self.home, Storage::Disk)
    }

    /// What the program takes of the machine's memory now.
    pub(crate) fn memory(&self) -> Memory {
        let text = self.proc("status");
        let kib = |field: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(field));
            let number = line.and_then(|rest| rest.split_ascii_whitespace().next());
            number
                .and_then(|digits| digits.parse::<u64>().ok())
                .expect("a number of KiB")
        };
        Memory {
            resident: kib("VmRSS:") * 1024,
            anonymous: kib("RssAnon:") * 1024,
        }
    }

    /// The processor time that the program has taken.
    pub(crate) fn cpu(&self) -> Duration {
        let text = self.proc("stat");
        // The name in parentheses may hold anything; what follows it is words.
        let (_, rest) = text.rsplit_once(") ").expect("a name in parentheses");
        let words: Vec<&str> = rest.split(' ').collect();
        let ticks: u64 = words[11..13]
            .iter()
            .map(|word| word.parse::<u64>().expect("ticks"))
            .sum();
        // Linux tells user space a hundredth of a second whatever its own clock does.
        Duration::from_millis(ticks * 10)
    }

    /// Everything that the program wrote to its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home.with_extension("log")).expect("a log file")
    }

    fn proc(&self, file: &str) -> String {
        let path = format!("/proc/{}/{file}", self.child.id());
        std::fs::read_to_string(path).expect("the program runs")
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

/// Bytes of memory that the system counts for a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// All of it, files that are mapped included.
    pub(crate) resident: u64,
    /// What belongs to it alone.
    pub(crate) anonymous: u64,
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let (resident, anonymous) = (megabytes(self.resident), megabytes(self.anonymous));
        write!(
            f,
            "{resident:.1} MB resident, {anonymous:.1} MB of it anonymous"
        )
    }
}
