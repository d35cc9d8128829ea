//! What can be typed: commands, flags, and the environment variables that stand in for flags.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::cloud::CloudFlags;
use crate::config::value::{
    Connections, Grace, History, Listen, LogFormat, LogLevel, Nodes, PoolName, ServerName, Ttl,
};
use crate::edge::EdgeFlags;
use crate::status::StatusFlags;
use edge::join::Hub;
use wire::join::NodeName;

/// Keeps each edge node's part of a Kubernetes cluster present, current and usable on the node.
#[derive(Parser)]
#[command(
    name = "holdfast",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = AFTER_HELP
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) log: LogFlags,
    /// End when standard input ends: how `holdfast up` takes its hub and agents with it
    #[arg(long, global = true, hide = true)]
    pub(crate) until_stdin_ends: bool,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a small Kubernetes-compatible cluster on this machine
    Up(Box<UpFlags>),
    /// Run a hub beside a cluster: it keeps what nodes need on the nodes
    Cloud(Box<CloudFlags>),
    /// Run the agent on a node: it keeps the node's part of the cluster on its disk
    Edge(Box<EdgeFlags>),
    /// Tell how nodes are doing: connected or not, in sync or not, and since when
    Status(Box<StatusFlags>),
    /// Print a kubeconfig for the API of this node
    #[command(after_help = KUBECONFIG_HELP)]
    Kubeconfig(KubeconfigFlags),
    /// Let nodes join: make, list and revoke tokens
    Token {
        #[command(subcommand)]
        command: TokenCommand,
        #[command(flatten)]
        cluster: ClusterFlags,
    },
    /// Revoke nodes, and take it back
    Node {
        #[command(subcommand)]
        command: NodeCommand,
        #[command(flatten)]
        cluster: ClusterFlags,
    },
    /// Replace the authority that issues the certificates of nodes and hubs, step by step
    #[command(after_help = AUTHORITY_HELP)]
    Authority {
        #[command(subcommand)]
        command: AuthorityCommand,
        #[command(flatten)]
        cluster: ClusterFlags,
    },
    /// Work with configuration files
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print the completion script for a shell
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// The shell that will read it
        shell: Shell,
    },
    /// Print the version of this program
    Version {
        /// How to print it
        #[arg(short, long, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
        output: Output,
    },
}

/// The flags of `holdfast kubeconfig`.
#[derive(Args)]
pub(crate) struct KubeconfigFlags {
    /// Where the node's store, key and certificate are kept
    #[arg(
        long,
        env = "HOLDFAST_DATA_DIR",
        hide_env_values = true,
        default_value = "/var/lib/holdfast",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,
    /// Who it is for: admin, who looks after the node, or kubelet, which runs as the node
    #[arg(long = "for", value_enum, default_value_t = Holder::Admin, value_name = "WHO")]
    pub(crate) holder: Holder,
    /// Write it to this file, for its owner alone, instead of printing it
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Who a kubeconfig is for.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Holder {
    /// Whoever looks after the node
    Admin,
    /// What runs as the node
    Kubelet,
}

const KUBECONFIG_HELP: &str = "\
Examples:
  holdfast kubeconfig --output config && kubectl --kubeconfig config get pods -A
  holdfast kubeconfig --for kubelet --output /etc/kubernetes/holdfast-kubelet.conf

It holds a key: keep it to yourself. The agent writes it when it starts, to the folder
local of its data folder, for its owner alone.";

/// What to do with a configuration file.
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Read a configuration file and say what is wrong with it, without starting anything
    Check {
        /// The file
        file: PathBuf,
    },
}

/// What to do with join tokens.
#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token that lets one node join once, and print how
    #[command(after_help = TOKEN_CREATE_HELP)]
    Create(TokenFlags),
    /// Show all tokens: whom they are for, until when, and who used them
    List {
        /// How to print them
        #[arg(short, long, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
        output: Output,
    },
    /// Remove a token, so that nobody can join with it
    Revoke {
        /// The part of the token before its dot
        id: String,
    },
}

/// The flags of `holdfast token create`.
#[derive(Args)]
pub(crate) struct TokenFlags {
    /// The node that may join; if it has joined before, it may do so again
    #[arg(
        long,
        required_unless_present = "pool",
        conflicts_with = "pool",
        value_name = "NAME"
    )]
    pub(crate) node: Option<NodeName>,
    /// The pool in which a new node of any free name may join
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Option<PoolName>,
    /// How long the token is good, from 1m to 720h
    #[arg(
        long,
        default_value = "1h",
        allow_hyphen_values = true,
        value_name = "DURATION"
    )]
    pub(crate) ttl: Ttl,
    /// Write the token to this file (mode 0600) instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A hub, for the command that is printed; may be repeated
    #[arg(long = "hub", value_name = "HOST:PORT")]
    pub(crate) hubs: Vec<Hub>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// What to do with nodes.
/// What can be done with the authority of links.
#[derive(Subcommand)]
pub(crate) enum AuthorityCommand {
    /// Show which authority issues, which other one is trusted, and what comes next
    Show,
    /// Make the next authority: it is trusted and does not issue yet
    Prepare,
    /// Let the next authority issue; the one before stays trusted
    Switch {
        /// Do not wait: nodes that do not know the next authority yet have to join anew
        #[arg(long)]
        even_now: bool,
    },
    /// Trust the authority before no more
    Retire {
        /// Do not wait: nodes with certificates of the old authority have to join anew
        #[arg(long)]
        even_now: bool,
    },
}

#[derive(Subcommand)]
pub(crate) enum NodeCommand {
    /// Cut a node off: every certificate that it has is void from now on
    Revoke {
        /// The node
        name: NodeName,
        /// Why, for whoever looks later
        #[arg(long, default_value = "", value_name = "WORDS")]
        reason: String,
    },
    /// Take a revocation back: certificates that it voided are good again
    Unrevoke {
        /// The node
        name: NodeName,
    },
}

/// Which cluster a command is about.
#[derive(Args)]
pub(crate) struct ClusterFlags {
    /// The kubeconfig of the cluster [default: the service account, if in a pod]
    #[arg(
        long,
        global = true,
        env = "KUBECONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// How an answer is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Text,
    /// For programs
    Json,
}

/// The flags of `holdfast up`. A value that is not given comes from the file, then from a default.
#[derive(Args)]
#[command(after_help = UP_HELP)]
pub(crate) struct UpFlags {
    /// Read settings from this YAML file; flags and environment variables win over it
    #[arg(
        long,
        env = "HOLDFAST_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Where data, certificates and the kubeconfig are kept
    /// [default: $XDG_DATA_HOME/holdfast or ~/.local/share/holdfast]
    #[arg(
        long,
        env = "HOLDFAST_DATA_DIR",
        hide_env_values = true,
        value_name = "DIR"
    )]
    pub(crate) data_dir: Option<PathBuf>,
    /// The address and port of the API; port 0 takes a free one [default: 127.0.0.1:6443]
    #[arg(
        long,
        env = "HOLDFAST_LISTEN",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    pub(crate) listen: Option<Listen>,
    /// Keep the cluster's objects in memory only; certificates and kubeconfig stay on disk
    #[arg(
        long,
        env = "HOLDFAST_EPHEMERAL", hide_env_values = true,
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub(crate) ephemeral: Option<bool>,
    /// A further name or address by which clients reach the API; may be repeated
    #[arg(
        long = "server-name",
        env = "HOLDFAST_SERVER_NAMES",
        hide_env_values = true,
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub(crate) server_names: Option<Vec<ServerName>>,
    /// How many connections may be open at once [default: 10000]
    #[arg(
        long,
        env = "HOLDFAST_CONNECTIONS_MAX",
        hide_env_values = true,
        allow_hyphen_values = true,
        value_name = "COUNT"
    )]
    pub(crate) connections_max: Option<Connections>,
    /// How long open requests have to end when the program stops [default: 10s]
    #[arg(
        long,
        env = "HOLDFAST_SHUTDOWN_GRACE",
        hide_env_values = true,
        allow_hyphen_values = true,
        value_name = "DURATION"
    )]
    pub(crate) shutdown_grace: Option<Grace>,
    /// How long changes are kept for watchers that come back [default: 10m, and the last 1000]
    #[arg(
        long,
        env = "HOLDFAST_HISTORY",
        hide_env_values = true,
        allow_hyphen_values = true,
        value_name = "DURATION"
    )]
    pub(crate) history: Option<History>,
    /// How many nodes run beside the API, each an agent with a store of its own, and a hub for
    /// them; 0 for the API alone [default: 3]
    #[arg(
        long,
        env = "HOLDFAST_NODES",
        hide_env_values = true,
        allow_hyphen_values = true,
        value_name = "COUNT"
    )]
    pub(crate) nodes: Option<Nodes>,
    /// The address and port of the hub; port 0 takes a free one [default: 127.0.0.1:8443]
    #[arg(
        long,
        env = "HOLDFAST_HUB_LISTEN",
        hide_env_values = true,
        value_name = "IP:PORT"
    )]
    pub(crate) hub_listen: Option<Listen>,
}

/// The flags that say how the log looks.
#[derive(Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LogFlags {
    /// How log lines are written to standard error [default: text]
    #[arg(
        long,
        global = true,
        env = "HOLDFAST_LOG_FORMAT",
        hide_env_values = true,
        value_name = "text|json"
    )]
    pub(crate) log_format: Option<LogFormat>,
    /// The least important lines that are written [default: info]
    #[arg(
        long,
        global = true,
        env = "HOLDFAST_LOG_LEVEL",
        hide_env_values = true,
        value_name = "error|warn|info|debug|trace"
    )]
    pub(crate) log_level: Option<LogLevel>,
}

/// Prints what clap says, which is help as well as refusals. If the refused value came from the
/// environment, that is said too: nobody looks there first.
pub(crate) fn refuse(error: clap::Error) -> ExitCode {
    drop(error.print());
    if error.kind() == ErrorKind::ValueValidation || error.kind() == ErrorKind::InvalidValue {
        let word = |kind| match error.get(kind) {
            Some(ContextValue::String(word)) => Some(word.as_str()),
            _ => None,
        };
        let flag = word(ContextKind::InvalidArg).unwrap_or_default();
        let value = word(ContextKind::InvalidValue).unwrap_or_default();
        let variable = variable(flag);
        if std::env::var(&variable).is_ok_and(|set| set.contains(value)) {
            eprintln!("\n  note: this value may come from the environment variable {variable}");
        }
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// `--log-level <…>` -> `HOLDFAST_LOG_LEVEL`
fn variable(flag: &str) -> String {
    let name = flag.trim_start_matches('-');
    let end = name
        .find(|c: char| c != '-' && !c.is_ascii_alphanumeric())
        .unwrap_or(name.len());
    let name = name[..end].replace('-', "_").to_ascii_uppercase();
    match name.as_str() {
        "SERVER_NAME" => "HOLDFAST_SERVER_NAMES".to_owned(),
        name => format!("HOLDFAST_{name}"),
    }
}

const AFTER_HELP: &str = "\
Examples:
  holdfast up                           start a cluster; its kubeconfig is printed
  holdfast up --ephemeral               the same, with its objects in memory only
  holdfast config check holdfast.yaml   is this file right?
  holdfast up --config holdfast.yaml    start with it
  holdfast token create --node edge-7   let a node join
  holdfast node revoke edge-7           cut it off

Exit codes:
  0  done
  1  something failed while running
  2  the command line, the environment or the configuration is wrong

Secrets are never taken from the command line.";

const UP_HELP: &str = "\
Examples:
  holdfast up
  holdfast up --data-dir ./cluster --listen 127.0.0.1:7443
  HOLDFAST_LOG_FORMAT=json holdfast up --ephemeral

Each setting is taken from its flag, else from its environment variable, else from the file, else
from its default. docs/operating/configuration.md lists them all.

Exit codes: 0 stopped as asked, 1 failed while running, 2 wrong usage or configuration.";

const TOKEN_CREATE_HELP: &str = "\
Examples:
  holdfast token create --node edge-7 --token-file edge-7.token --hub hub.example:8443
  holdfast token create --pool shop --ttl 24h > shop.token

The token is a secret and goes to the file or to standard output. Bring it to the node in a file; it
is never part of a command. The printed command pins the authority of the hubs, so that the node
trusts no other.";

const AUTHORITY_HELP: &str = "\
No node is lost if each step waits for the one before, and if all hubs are restarted after each:
  holdfast authority prepare       nodes learn of the next authority
  holdfast authority switch        31 days later: it issues
  holdfast authority retire        31 days later: the old one is trusted no more";

const COMPLETIONS_HELP: &str = "\
Examples:
  holdfast completions bash > ~/.local/share/bash-completion/completions/holdfast
  holdfast completions zsh > \"${fpath[1]}/_holdfast\"
  holdfast completions fish > ~/.config/fish/completions/holdfast.fish";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_that_takes_a_value_has_the_environment_variable_that_we_point_to() {
        let command = Cli::command();
        let up = command.find_subcommand("up").unwrap();
        for arg in up.get_arguments().chain(command.get_arguments()) {
            let Some(env) = arg.get_env() else { continue };
            let flag = format!("--{} <X>", arg.get_long().unwrap());
            assert_eq!(env.to_str().unwrap(), variable(&flag));
        }
    }
}
