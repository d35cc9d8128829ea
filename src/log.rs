//! Where the log goes and how it looks: standard error, as text for people or JSON for machines.

use std::io::{self, IsTerminal};
use std::panic::{self, PanicHookInfo};

use tracing::error;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, fmt};

use crate::config::value::{LogFormat, LogLevel};

/// How the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) format: LogFormat,
    pub(crate) level: LogLevel,
}

/// Starts the log. Panics become log lines too, so that a JSON log is JSON throughout.
pub(crate) fn start(style: Style) -> Result<(), TryInitError> {
    let layer = fmt::layer().with_writer(io::stderr);
    let layer = match style.format {
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
        LogFormat::Text => {
            let plain = std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
            layer
                .with_ansi(io::stderr().is_terminal() && !plain)
                .boxed()
        }
    };
    let filtered = layer.with_filter(targets(style.level));
    tracing_subscriber::registry().with(filtered).try_init()?;
    panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Our own crates speak at the chosen level; libraries only when something is wrong, unless
/// everything is asked for.
fn targets(level: LogLevel) -> Targets {
    let ours = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let others = match level {
        LogLevel::Trace => LevelFilter::TRACE,
        _ => ours.min(LevelFilter::WARN),
    };
    Targets::new()
        .with_default(others)
        .with_targets(OWN.map(|target| (target, ours)))
}

/// The program and its crates.
const OWN: [&str; 9] = [
    "holdfast", "host", "object", "wire", "tunnel", "store", "kubeapi", "cloud", "edge",
];

fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("no message");
    let location = panic
        .location()
        .map(ToString::to_string)
        .unwrap_or_default();
    error!(message, location, "panicked; this is a bug");
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn every_crate_of_ours_speaks_at_the_chosen_level_and_libraries_when_something_is_wrong() {
        let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/crates");
        for entry in std::fs::read_dir(crates).unwrap() {
            let name = entry.unwrap().file_name();
            // The simulator is for development, and not in the program.
            if name == "sim" {
                continue;
            }
            let target = format!("{}::part", name.to_str().unwrap());
            let said = targets(LogLevel::Info).would_enable(&target, &Level::INFO);
            assert!(said, "{target}");
        }
        let info = targets(LogLevel::Info);
        assert!(!info.would_enable("hyper", &Level::INFO));
        assert!(info.would_enable("hyper", &Level::WARN));
    }
}
