//! The configuration file: what may stand in it, and exactly where it is wrong.
//!
//! Each value is read as text and parsed by the type that also parses its flag, so that a file, a
//! flag and an environment variable accept the same words. docs/operating/configuration.md is the
//! list for people.

pub(crate) mod check; // holdfast config check
pub(crate) mod value; // what a setting may be
mod yaml; // bytes -> text with places

use std::path::{Path, PathBuf};

use value::{Connections, Grace, History, Listen, LogFormat, LogLevel, Nodes, ServerName};
use yaml::{Document, Place, Setting};

/// A configuration file, read and checked. What it does not mention is `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) listen: Option<Listen>,
    pub(crate) ephemeral: Option<bool>,
    pub(crate) server_names: Option<Vec<ServerName>>,
    pub(crate) connections_max: Option<Connections>,
    pub(crate) shutdown_grace: Option<Grace>,
    pub(crate) history: Option<History>,
    pub(crate) nodes: Option<Nodes>,
    pub(crate) hub_listen: Option<Listen>,
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) log_level: Option<LogLevel>,
}

/// Why a configuration file is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file itself cannot be read.
    #[error("cannot read the configuration")]
    Read(#[from] host::files::Error),
    /// It is not a text that could be YAML.
    #[error("{}: {reason}", path.display())]
    NotText { path: PathBuf, reason: &'static str },
    /// Something in it is wrong.
    #[error("{}:{problem}", path.display())]
    Wrong { path: PathBuf, problem: Problem },
}

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}{message}", key.as_ref().map(|key| format!("{key}: ")).unwrap_or_default())]
pub(crate) struct Problem {
    place: Place,
    key: Option<String>,
    message: String,
}

/// Bytes that a configuration file may have. Ours have about a thousand.
pub(crate) const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Reads and checks a file.
pub(crate) fn load(path: &Path) -> Result<File, Error> {
    let bytes = host::files::read(path, FILE_BYTES_MAX)?;
    let not_text = |reason| Error::NotText {
        path: path.to_owned(),
        reason,
    };
    let text = yaml::text(&bytes).map_err(not_text)?;
    let wrong = |problem| Error::Wrong {
        path: path.to_owned(),
        problem,
    };
    let document = yaml::parse(text).map_err(wrong)?;
    check(document).map_err(wrong)
}

fn check(document: Document) -> Result<File, Problem> {
    let log = document.log.unwrap_or_default();
    let limits = document.limits.unwrap_or_default();
    let listen: Option<Listen> = parsed("listen", document.listen.as_ref())?;
    if let (Some(setting), Some(Listen(address))) = (&document.listen, listen)
        && address.port() == 0
    {
        let message = "port 0 is for trying things out with --listen; \
                       a file describes a service that clients find again";
        return Err(setting.problem("listen", message));
    }
    let names = document.server_names.map(|names| {
        names
            .iter()
            .map(|name| name.parse("serverNames"))
            .collect::<Result<Vec<_>, _>>()
    });
    Ok(File {
        data_dir: parsed("dataDir", document.data_dir.as_ref())?.map(value::Folder::into_path),
        listen,
        ephemeral: parsed("ephemeral", document.ephemeral.as_ref())?
            .map(|switch: value::Switch| switch.into()),
        server_names: names.transpose()?,
        connections_max: parsed("limits.connections", limits.connections.as_ref())?,
        shutdown_grace: parsed("shutdownGrace", document.shutdown_grace.as_ref())?,
        history: parsed("history", document.history.as_ref())?,
        nodes: parsed("nodes", document.nodes.as_ref())?,
        hub_listen: parsed("hubListen", document.hub_listen.as_ref())?,
        log_format: parsed("log.format", log.format.as_ref())?,
        log_level: parsed("log.level", log.level.as_ref())?,
    })
}

fn parsed<T>(key: &'static str, setting: Option<&Setting>) -> Result<Option<T>, Problem>
where
    T: std::str::FromStr<Err = value::Wrong>,
{
    setting.map(|setting| setting.parse(key)).transpose()
}

#[cfg(test)]
mod tests;
