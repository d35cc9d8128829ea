//! Flags, environment, file and defaults -> one answer each. A pure rule: what the process finds
//! around it is passed in.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::cli::{LogFlags, UpFlags};
use crate::config;
use crate::config::value::{LogFormat, LogLevel, ServerName};
use crate::log::Style;

/// How a cluster is to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Everything we keep is in here. Absolute, because the kubeconfig's path is shown to people.
    pub(crate) data_dir: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) storage: Storage,
    pub(crate) server_names: Vec<ServerName>,
    pub(crate) connections_max: u32,
    pub(crate) shutdown_grace: Duration,
    /// How many nodes run beside the API, with a hub.
    pub(crate) nodes: u32,
    /// Where the hub listens for them.
    pub(crate) hub_listen: SocketAddr,
    /// How long changes are kept; nothing for what the store thinks right.
    pub(crate) history: Option<Duration>,
}

/// Where the cluster's objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In the data folder.
    Disk,
    /// In memory: gone when the program ends.
    Memory,
}

/// What a process finds around it.
pub(crate) struct Surroundings {
    pub(crate) xdg_data_home: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) current_dir: Option<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn of_this_process() -> Self {
        let folder = |variable| std::env::var_os(variable).map(PathBuf::from);
        Self {
            xdg_data_home: folder("XDG_DATA_HOME"),
            home: folder("HOME"),
            current_dir: std::env::current_dir().ok(),
        }
    }

    /// Where programs of this user keep their data. Relative paths do not count: they would mean a
    /// different folder at each start.
    fn data_home(&self) -> Option<PathBuf> {
        let given = self.xdg_data_home.clone();
        let below_home = self.home.as_ref().map(|home| home.join(".local/share"));
        [given, below_home]
            .into_iter()
            .flatten()
            .find(|path| path.is_absolute())
    }
}

impl Settings {
    /// Takes each setting from its flag or environment variable, else from the file, else from its
    /// default.
    pub(crate) fn resolve(
        flags: UpFlags,
        file: config::File,
        around: &Surroundings,
    ) -> anyhow::Result<Self> {
        let data_dir = match flags.data_dir.or(file.data_dir) {
            Some(path) if path.as_os_str().is_empty() => bail!("--data-dir is empty"),
            Some(path) if path.is_absolute() => path,
            Some(path) => around
                .current_dir
                .as_ref()
                .context("the current directory is gone; give --data-dir as an absolute path")?
                .join(path),
            None => default_data_dir(around)
                .context("there is no home directory to keep data in; give --data-dir")?,
        };
        let storage = match flags.ephemeral.or(file.ephemeral).unwrap_or(false) {
            true => Storage::Memory,
            false => Storage::Disk,
        };
        let listen = flags.listen.or(file.listen).map(|listen| listen.0);
        let connections_max = flags.connections_max.or(file.connections_max);
        let shutdown_grace = flags.shutdown_grace.or(file.shutdown_grace);
        Ok(Self {
            data_dir,
            listen: listen.unwrap_or(DEFAULT_LISTEN),
            storage,
            server_names: flags.server_names.or(file.server_names).unwrap_or_default(),
            connections_max: connections_max.map_or(DEFAULT_CONNECTIONS, |count| count.0),
            shutdown_grace: shutdown_grace.map_or(DEFAULT_GRACE, |grace| grace.0),
            nodes: flags
                .nodes
                .or(file.nodes)
                .map_or(DEFAULT_NODES, |count| count.0),
            hub_listen: flags
                .hub_listen
                .or(file.hub_listen)
                .map_or(DEFAULT_HUB_LISTEN, |listen| listen.0),
            history: flags.history.or(file.history).map(|history| history.0),
        })
    }
}

/// Where data is kept if nobody says otherwise.
pub(crate) fn default_data_dir(around: &Surroundings) -> Option<PathBuf> {
    Some(around.data_home()?.join("holdfast"))
}

/// How the log looks, by the same precedence.
pub(crate) fn log_style(flags: &LogFlags, file: &config::File) -> Style {
    Style {
        format: flags
            .log_format
            .or(file.log_format)
            .unwrap_or(LogFormat::Text),
        level: flags.log_level.or(file.log_level).unwrap_or(LogLevel::Info),
    }
}

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 6443);
const DEFAULT_HUB_LISTEN: SocketAddr =
    SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8443);
const DEFAULT_NODES: u32 = 3;
const DEFAULT_CONNECTIONS: u32 = 10_000;
const DEFAULT_GRACE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn flags(words: &[&str]) -> UpFlags {
        let words = ["holdfast", "up"].iter().chain(words);
        match Cli::try_parse_from(words).unwrap().command {
            Command::Up(flags) => *flags,
            _ => unreachable!("we said up"),
        }
    }

    fn at_home() -> Surroundings {
        Surroundings {
            xdg_data_home: None,
            home: Some("/home/ada".into()),
            current_dir: Some("/here".into()),
        }
    }

    fn resolved(words: &[&str], file: config::File) -> Settings {
        Settings::resolve(flags(words), file, &at_home()).unwrap()
    }

    #[test]
    fn without_words_everything_has_its_default() {
        let settings = resolved(&[], config::File::default());
        assert_eq!(
            settings.data_dir,
            PathBuf::from("/home/ada/.local/share/holdfast")
        );
        assert_eq!(settings.listen, "127.0.0.1:6443".parse().unwrap());
        assert_eq!(settings.storage, Storage::Disk);
        assert_eq!(settings.shutdown_grace, Duration::from_secs(10));
        assert_eq!(settings.history, None);
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let file = || config::File {
            listen: Some("127.0.0.1:1111".parse().unwrap()),
            ephemeral: Some(true),
            ..Default::default()
        };
        let settings = resolved(&[], file());
        assert_eq!(
            (settings.listen.port(), settings.storage),
            (1111, Storage::Memory)
        );
        let settings = resolved(&["--listen", "127.0.0.1:2222", "--ephemeral=false"], file());
        assert_eq!(
            (settings.listen.port(), settings.storage),
            (2222, Storage::Disk)
        );
        assert_eq!(
            resolved(&["--ephemeral"], config::File::default()).storage,
            Storage::Memory
        );
    }

    #[test]
    fn the_data_folder_is_absolute_and_never_guessed() {
        let given = resolved(&["--data-dir", "below"], config::File::default());
        assert_eq!(given.data_dir, PathBuf::from("/here/below"));
        let homes = |xdg: Option<&str>, home: Option<&str>| {
            let around = Surroundings {
                xdg_data_home: xdg.map(PathBuf::from),
                home: home.map(PathBuf::from),
                current_dir: None,
            };
            Settings::resolve(flags(&[]), config::File::default(), &around)
        };
        let chosen = |xdg, home| homes(xdg, home).unwrap().data_dir;
        assert_eq!(chosen(Some("/x"), Some("/h")), PathBuf::from("/x/holdfast"));
        assert_eq!(
            chosen(Some("rel"), Some("/h")),
            PathBuf::from("/h/.local/share/holdfast")
        );
        assert!(
            homes(None, None)
                .unwrap_err()
                .to_string()
                .contains("--data-dir")
        );
    }
}
