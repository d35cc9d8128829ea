//! Rows of a table with both APIs side by side, printed as it grows.

use std::fmt;
use std::time::Duration;

use crate::generator::figures::{Latencies, Measured};
use crate::generator::numbers::{grouped, micros, short, times};

/// What came of all rounds.
#[derive(Default)]
pub(crate) struct Figures {
    latencies: Latencies,
    count: usize,
    bytes: usize,
    cpu: Duration,
}

impl Figures {
    /// One round more.
    pub(crate) fn add(&mut self, round: Measured) {
        self.latencies = std::mem::take(&mut self.latencies).join(round.latencies);
        self.count += round.count;
        self.bytes += round.bytes;
        self.cpu += round.cpu;
    }

    /// Half took no longer than the first of these milliseconds, 99 % than the second.
    pub(crate) fn p50_and_p99(&self) -> (f64, f64) {
        self.latencies.p50_and_p99()
    }

    fn cpu_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.count as f64
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p50, p99) = self.p50_and_p99();
        write!(f, "{} / {} ms, ", short(p50), short(p99))?;
        write!(f, "{}, ", micros(self.cpu_each()))?;
        f.write_str(&sized(self.bytes as f64 / self.count as f64))
    }
}

/// A table.
pub(crate) struct Sheet(());

impl Sheet {
    pub(crate) fn new() -> Self {
        println!("\n| what | kube-apiserver + etcd | the node's API | ratio |");
        println!("| --- | --- | --- | --- |");
        Self(())
    }

    /// A row of anything.
    pub(crate) fn row(&mut self, what: &str, direct: &str, local: &str, ratio: &str) {
        println!("| {what} | {direct} | {local} | {ratio} |");
    }

    /// The same requests to both: p50 / p99, processor time of each, bytes of a body.
    pub(crate) fn compared(&mut self, what: &str, direct: &Figures, local: &Figures) {
        let (p50, p99) = direct.p50_and_p99();
        let (own_p50, own_p99) = local.p50_and_p99();
        let cpu = times(local.cpu_each() / direct.cpu_each());
        let (half, most) = (times(own_p50 / p50), times(own_p99 / p99));
        let ratio = format!("**{half}**, {most}, {cpu}");
        self.row(what, &direct.to_string(), &local.to_string(), &ratio);
    }
}

/// Bytes as people say them.
pub(crate) fn sized(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e3 => format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => format!("{} kB", short(bytes / 1e3)),
        bytes => format!("{} MB", short(bytes / 1e6)),
    }
}

/// Megabytes of memory: now, and the most meanwhile.
pub(crate) fn memory((now, most): (f64, f64)) -> String {
    format!("{now:.1} MB, at most {most:.1} MB")
}

/// A count as people write it.
pub(crate) fn counted(count: usize) -> String {
    match count < 10 {
        true => count.to_string(),
        false => grouped(count as f64),
    }
}
