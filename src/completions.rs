//! `holdfast completions`: a script that lets a shell complete our commands and flags.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::{Failure, print};

/// Prints the script for this shell.
pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "holdfast", &mut script);
    print(&String::from_utf8_lossy(&script)).map_err(Failure::run)
}
