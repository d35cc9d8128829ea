//! A table that is printed as it grows: what, how much, and what was to be reached.

/// A table.
pub(crate) struct Table(());

impl Table {
    pub(crate) fn new() -> Self {
        println!("| what | measured | goal |");
        println!("| --- | --- | --- |");
        Self(())
    }

    /// A figure that nothing was set for.
    pub(crate) fn row(&mut self, what: &str, measured: &str) {
        println!("| {what} | {measured} | |");
    }

    /// A figure that should be at most, or at least, something.
    pub(crate) fn goal(&mut self, what: &str, measured: &str, goal: Goal) {
        let (words, met) = match goal {
            Goal::AtMost(figure, most, unit) => (format!("at most {most} {unit}"), figure <= most),
            Goal::AtLeast(figure, least, unit) => {
                (format!("at least {least} {unit}"), figure >= least)
            }
        };
        let met = if met { "met" } else { "**missed**" };
        println!("| {what} | {measured} | {words}: {met} |");
    }
}

/// What was to be reached: the figure, the bound and the unit of both.
pub(crate) enum Goal {
    AtMost(f64, f64, &'static str),
    AtLeast(f64, f64, &'static str),
}

/// A figure that was taken several times.
pub(crate) struct Several(Vec<f64>);

impl Several {
    pub(crate) fn new(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        Self(figures)
    }

    pub(crate) fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }

    pub(crate) fn worst(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}
