//! Numbers as Prometheus' text, made for each request from what the program knows.

use std::fmt::Write;

/// What kind of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It rises and falls.
    Gauge,
}

/// A text of numbers.
#[derive(Debug, Default)]
pub struct Metrics(String);

impl Metrics {
    /// Adds one number.
    pub fn one(&mut self, kind: Kind, (name, help): (&str, &str), value: u64) {
        self.head(kind, name, help);
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{name} {value}");
    }

    /// Adds a number for each value of a label.
    pub fn each<L: AsRef<str>>(
        &mut self,
        kind: Kind,
        (name, help): (&str, &str),
        label: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) {
        self.head(kind, name, help);
        for (of, value) in values {
            let of = of.as_ref().replace('\\', "\\\\").replace('"', "\\\"");
            let of = of.replace('\n', "\\n");
            let _ = writeln!(self.0, "{name}{{{label}=\"{of}\"}} {value}");
        }
    }

    /// The text.
    pub fn text(self) -> String {
        self.0
    }

    fn head(&mut self, kind: Kind, name: &str, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_as_prometheus_reads_them() {
        let mut metrics = Metrics::default();
        metrics.one(Kind::Gauge, ("a_sessions", "Sessions now."), 3);
        let ends = [("lost", 1), ("a\"b", 2)];
        metrics.each(Kind::Counter, ("a_ends_total", "Ends."), "reason", ends);
        assert_eq!(
            metrics.text(),
            "# HELP a_sessions Sessions now.\n# TYPE a_sessions gauge\na_sessions 3\n\
             # HELP a_ends_total Ends.\n# TYPE a_ends_total counter\n\
             a_ends_total{reason=\"lost\"} 1\na_ends_total{reason=\"a\\\"b\"} 2\n"
        );
    }
}
