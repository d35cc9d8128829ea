//! A server as clients and the machine see it: a door, and processes that take time and memory.

use std::time::Duration;

use crate::client::Door;

/// A server that runs.
pub(crate) struct Server {
    /// How clients get in.
    pub(crate) door: Door,
    /// The numbers of its processes.
    pub(crate) processes: Vec<u32>,
}

impl Server {
    /// What the server takes of the machine's memory now.
    pub(crate) fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for id in &self.processes {
            let text = proc(*id, "status");
            let kib = |field: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(field));
                let number = line.and_then(|rest| rest.split_ascii_whitespace().next());
                number
                    .and_then(|digits| digits.parse::<u64>().ok())
                    .expect("a number of KiB")
            };
            memory.resident += kib("VmRSS:") * 1024;
            memory.anonymous += kib("RssAnon:") * 1024;
        }
        memory
    }

    /// The processor time that the server has taken.
    pub(crate) fn cpu(&self) -> Duration {
        self.processes.iter().map(|id| cpu(*id)).sum()
    }
}

/// The processor time that a process has taken, in user and in system mode.
pub(crate) fn cpu(id: u32) -> Duration {
    let text = proc(id, "stat");
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

fn proc(id: u32, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{id}/{file}")).expect("the program runs")
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
