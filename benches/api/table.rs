//! Rows of a table that is printed as it grows.

use crate::generator::figures::Measured;

/// A table.
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
    pub(crate) fn measured(&mut self, what: &str, unit: &str, measured: &Measured) {
        let rate = format!("{:.0} {unit}/s", measured.per_second());
        let (half, most) = measured.latencies.p50_and_p99();
        let (each, cores) = (measured.cpu_each(), measured.cores());
        self.row(
            what,
            &rate,
            &format!("{half:.2} / {most:.2} ms"),
            &format!("{each:.1} µs each, {cores:.2} cores"),
        );
    }
}
