//! `holdfast version`: which program this is.

use serde::Serialize;

use crate::cli::Output;
use crate::failure::{Failure, print};

/// Which program this is.
#[derive(Serialize)]
struct Version {
    version: &'static str,
    /// The commit it was built from, if the build said so (`HOLDFAST_COMMIT` at compile time).
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    platform: String,
}

/// Prints it.
pub(crate) fn run(output: Output) -> Result<(), Failure> {
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("HOLDFAST_COMMIT").filter(|commit| !commit.is_empty()),
        platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    };
    let text = match output {
        Output::Json => serde_json::to_string_pretty(&version).map_err(Failure::run)?,
        Output::Text => {
            let commit = version.commit.map(|commit| format!(" ({commit})"));
            let commit = commit.unwrap_or_default();
            format!("holdfast {}{commit} {}", version.version, version.platform)
        }
    };
    print(&format!("{text}\n")).map_err(Failure::run)
}
