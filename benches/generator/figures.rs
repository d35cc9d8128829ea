//! What is measured: how many, how long, and how much processor time on both sides.

use std::time::{Duration, Instant};

use crate::server::{Server, cpu};

/// A stretch of time in which something is counted.
pub(crate) struct Stretch {
    started: Instant,
    cpu: Duration,
    own_cpu: Duration,
}

impl Stretch {
    pub(crate) fn start(server: &Server) -> Self {
        Self {
            started: Instant::now(),
            cpu: server.cpu(),
            own_cpu: cpu(std::process::id()),
        }
    }

    pub(crate) fn end(self, server: &Server, count: usize) -> Measured {
        Measured {
            count,
            bytes: 0,
            took: self.started.elapsed(),
            cpu: server.cpu() - self.cpu,
            own_cpu: cpu(std::process::id()) - self.own_cpu,
            latencies: Latencies::default(),
        }
    }
}

/// What came of a stretch.
pub(crate) struct Measured {
    pub(crate) count: usize,
    /// Bytes of the bodies of answers, as they came.
    pub(crate) bytes: usize,
    pub(crate) took: Duration,
    /// Processor time of the server.
    pub(crate) cpu: Duration,
    /// Processor time of this program, which shares the machine with the server.
    pub(crate) own_cpu: Duration,
    pub(crate) latencies: Latencies,
}

impl Measured {
    pub(crate) fn per_second(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64()
    }

    /// Microseconds of the server's processor time for each.
    pub(crate) fn cpu_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.count as f64
    }

    /// Cores that the server kept busy.
    pub(crate) fn cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.took.as_secs_f64()
    }

    /// Cores that this program kept busy.
    pub(crate) fn own_cores(&self) -> f64 {
        self.own_cpu.as_secs_f64() / self.took.as_secs_f64()
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

    /// Half of them took no longer than the first of these milliseconds, 99 % than the second.
    pub(crate) fn p50_and_p99(&self) -> (f64, f64) {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        (at(&sorted, 0.5), at(&sorted, 0.99))
    }
}

fn at(sorted: &[u32], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let micros = sorted.get((last as f64 * part).round() as usize);
    f64::from(micros.copied().unwrap_or(0)) / 1000.0
}
