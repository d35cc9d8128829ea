//! The `holdfast` program: one small file per subcommand, wiring and words only.

mod authority; // holdfast authority
mod cli; // what can be typed
mod cloud; // holdfast cloud
mod cluster; // a command that asks the cluster
mod completions; // holdfast completions
mod config; // holdfast config, and the file itself
mod edge; // holdfast edge
mod failure; // what went wrong, as one message and an exit code
mod kubeconfig; // holdfast kubeconfig
mod life; // how a program that runs on starts and ends
mod log; // where the log goes and how it looks
mod node; // holdfast node
mod shown; // what is shown of an agent on its socket
mod status; // holdfast status
mod token; // holdfast token
mod up; // holdfast up
mod version; // holdfast version

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::refuse(error),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Up(flags) => up::run(*flags, cli.log),
        Command::Cloud(flags) => cloud::run(*flags, &cli.log, cli.until_stdin_ends.into()),
        Command::Edge(flags) => edge::run(*flags, &cli.log, cli.until_stdin_ends.into()),
        Command::Status(flags) => status::run(&flags),
        Command::Kubeconfig(flags) => kubeconfig::run(&flags),
        Command::Token { command, cluster } => token::run(command, &cluster),
        Command::Node { command, cluster } => node::run(command, &cluster),
        Command::Authority { command, cluster } => authority::run(command, &cluster),
        Command::Config { command } => config::check::run(command),
        Command::Completions { shell } => completions::run(shell),
        Command::Version { output } => version::run(output),
    }
}
