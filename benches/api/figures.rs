//! What is measured: how many, how long, and the program's processor time; one row each.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;

/// A table that is printed as it grows.
pub(crate) struct Table(());

impl Table {
    pub(crate) fn new() -> Self {
        println!("| what | rate | p50 / p99 | processor time of the program |");
        println!("| --- | --- | --- | --- |");
        Self(())
    }

    pub(crate) fn row(&mut self, what: &str, rate: &str, latency: &str, cpu: &str) {
        println!("| {what} | {rate} | {latency} | {cpu} |");
    }

    /// A row of something that happened often.
    pub(crate) fn measured(&mut self, what: &str, unit: &str, measured: &mut Measured) {
        let rate = format!("{:.0} {unit}/s", measured.per_second());
        let cpu = format!(
            "{:.1} µs each, {:.2} cores",
            measured.cpu.as_secs_f64() * 1e6 / measured.count as f64,
            measured.cpu.as_secs_f64() / measured.took.as_secs_f64()
        );
        self.row(what, &rate, &measured.latencies.to_string(), &cpu);
    }
}

/// A stretch of time in which something is counted.
pub(crate) struct Stretch {
    started: Instant,
    cpu: Duration,
}

impl Stretch {
    pub(crate) fn start(cluster: &Cluster) -> Self {
        Self {
            started: Instant::now(),
            cpu: cluster.cpu(),
        }
    }

    pub(crate) fn end(self, cluster: &Cluster, count: usize, latencies: Latencies) -> Measured {
        Measured {
            count,
            took: self.started.elapsed(),
            cpu: cluster.cpu() - self.cpu,
            latencies,
        }
    }
}

/// What came of a stretch.
pub(crate) struct Measured {
    pub(crate) count: usize,
    pub(crate) took: Duration,
    pub(crate) cpu: Duration,
    pub(crate) latencies: Latencies,
}

impl Measured {
    pub(crate) fn per_second(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64()
    }
}

/// How long each took, in microseconds.
#[derive(Default)]
pub(crate) struct Latencies(Vec<u32>);

impl Latencies {
    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(took.as_micros().try_into().unwrap_or(u32::MAX));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn at(&self, sorted: &[u32], part: f64) -> f64 {
        let last = sorted.len().saturating_sub(1);
        let micros = sorted.get((last as f64 * part).round() as usize);
        f64::from(micros.copied().unwrap_or(0)) / 1000.0
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let (half, most) = (self.at(&sorted, 0.5), self.at(&sorted, 0.99));
        write!(f, "{half:.2} / {most:.2} ms")
    }
}
