//! What came of a run, as Markdown: a table of both servers with ratios, and whether goals are met.

use std::fmt;

use crate::generator::figures::Measured;
use crate::generator::numbers::{grouped, micros, short, times};
use crate::pair::Pair;
use crate::server::Memory;

/// One round, or the median of several.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sample {
    pub(crate) per_second: f64,
    /// Milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Microseconds of the server's processor time for each.
    pub(crate) cpu_each: f64,
    /// Cores that the load generator kept busy.
    pub(crate) own_cores: f64,
    /// Bytes of a body.
    pub(crate) bytes_each: f64,
    pub(crate) watchers_cut: usize,
}

impl Sample {
    pub(crate) fn of(measured: &Measured) -> Self {
        let (p50, p99) = measured.latencies.p50_and_p99();
        Self {
            per_second: measured.per_second(),
            p50,
            p99,
            cpu_each: measured.cpu_each(),
            own_cores: measured.own_cores(),
            bytes_each: measured.bytes as f64 / measured.count as f64,
            watchers_cut: 0,
        }
    }

    /// The median of each figure by itself. Whoever was cut is counted.
    pub(crate) fn median(samples: &[Self]) -> Self {
        let middle = |figure: fn(&Self) -> f64| {
            let mut sorted: Vec<f64> = samples.iter().map(figure).collect();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        Self {
            per_second: middle(|sample| sample.per_second),
            p50: middle(|sample| sample.p50),
            p99: middle(|sample| sample.p99),
            cpu_each: middle(|sample| sample.cpu_each),
            own_cores: middle(|sample| sample.own_cores),
            bytes_each: middle(|sample| sample.bytes_each),
            watchers_cut: samples.iter().map(|sample| sample.watchers_cut).sum(),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, p50, p99) = (grouped(self.per_second), short(self.p50), short(self.p99));
        write!(f, "{rate}/s, {p50} / {p99} ms, {}", micros(self.cpu_each))?;
        if self.watchers_cut > 0 {
            write!(f, ", {} watches cut", grouped(self.watchers_cut as f64))?;
        }
        Ok(())
    }
}

/// The same load on both servers.
pub(crate) struct Compared {
    pub(crate) what: String,
    pub(crate) real: Sample,
    pub(crate) ours: Sample,
}

impl Compared {
    fn rate(&self) -> f64 {
        self.ours.per_second / self.real.per_second
    }

    fn p99(&self) -> f64 {
        self.ours.p99 / self.real.p99
    }

    fn cpu(&self) -> f64 {
        self.ours.cpu_each / self.real.cpu_each
    }
}

/// What a comparison counts for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    Reads,
    Writes,
    Events,
    /// Nothing: it is there to be known.
    Beside,
}

/// All of a run.
#[derive(Default)]
pub(crate) struct Report {
    compared: Vec<(Goal, Compared)>,
    memory: Vec<(&'static str, Memory, Memory)>,
    memory_after: Option<(Memory, Memory)>,
    flushes: Option<(f64, f64)>,
}

impl Report {
    pub(crate) fn add(&mut self, goal: Goal, compared: Compared) {
        self.compared.push((goal, compared));
    }

    pub(crate) fn memory(&mut self, when: &'static str, pair: &Pair) {
        let (real, ours) = (pair.real.memory(), pair.ours.memory());
        self.memory.push((when, real, ours));
    }

    /// Memory after everything: what the goal is about.
    pub(crate) fn memory_after(&mut self, pair: &Pair) {
        self.memory("after everything", pair);
        self.memory_after = Some((pair.real.memory(), pair.ours.memory()));
    }

    /// How often the disk was flushed for each write.
    pub(crate) fn flushes(&mut self, real: f64, ours: f64) {
        self.flushes = Some((real, ours));
    }

    pub(crate) fn print(&self) {
        println!("| what | kube-apiserver + etcd | holdfast | ratio: rate, p99, processor time |");
        println!("| --- | --- | --- | --- |");
        for (_, compared) in &self.compared {
            let Compared { what, real, ours } = compared;
            let (rate, p99) = (times(compared.rate()), times(compared.p99()));
            let cpu = times(compared.cpu());
            println!("| {what} | {real} | {ours} | **{rate}**, {p99}, {cpu} |");
        }
        for (when, real, ours) in &self.memory {
            let ratio = times(ours.resident as f64 / real.resident as f64);
            println!("| memory, {when} | {real} | {ours} | **{ratio}** |");
        }
        if let Some((real, ours)) = self.flushes {
            println!(
                "| flushes of the disk for each update, 1 connection | {real:.2} | {ours:.2} | |"
            );
        }
        self.print_goals();
        self.print_generator();
    }

    fn print_goals(&self) {
        println!("\n| goal | worst | met |\n| --- | --- | --- |");
        let yes = |met: bool| if met { "yes" } else { "**no**" };
        for (goal, says, bound) in [
            (Goal::Reads, "reads: at least 5 × the rate", 5.0),
            (Goal::Writes, "durable writes: at least 2 × the rate", 2.0),
        ] {
            let worst = self
                .all(goal)
                .min_by(|one, other| one.rate().total_cmp(&other.rate()));
            if let Some(worst) = worst {
                let (what, rate) = (&worst.what, worst.rate());
                let met = match goal == Goal::Writes && !self.durable() {
                    true => "**not judged: nothing shows that both flush the disk**",
                    false => yes(rate >= bound),
                };
                println!("| {says} | {}, {what} | {met} |", times(rate));
            }
        }
        let worst = self
            .all(Goal::Events)
            .max_by(|one, other| one.p99().total_cmp(&other.p99()));
        if let Some(worst) = worst {
            let (what, p99) = (&worst.what, worst.p99());
            let says = "events: at most half the p99";
            println!("| {says} | {}, {what} | {} |", times(p99), yes(p99 <= 0.5));
        }
        if let Some((real, ours)) = self.memory_after {
            let ratio = ours.resident as f64 / real.resident as f64;
            let says = "memory after: at most a tenth";
            println!("| {says} | {} | {} |", times(ratio), yes(ratio <= 0.1));
        }
    }

    /// Whether the disk was flushed for every write, on both sides.
    fn durable(&self) -> bool {
        self.flushes
            .is_some_and(|(real, ours)| real.min(ours) >= 0.99)
    }

    /// What the client took: where it is near the machine's cores, it is what limits the rate.
    fn print_generator(&self) {
        println!("\n| what | client's cores, bytes of a body | the same |\n| --- | --- | --- |");
        for (_, Compared { what, real, ours }) in &self.compared {
            let [real, ours] = [real, ours].map(|sample| {
                let bytes = grouped(sample.bytes_each);
                format!("{:.2}, {bytes}", sample.own_cores)
            });
            println!("| {what} | {real} | {ours} |");
        }
    }

    fn all(&self, goal: Goal) -> impl Iterator<Item = &Compared> {
        let of_goal = move |entry: &&(Goal, Compared)| entry.0 == goal;
        self.compared.iter().filter(of_goal).map(|entry| &entry.1)
    }
}
