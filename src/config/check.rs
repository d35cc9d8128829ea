//! `holdfast config check`: is this file right, and if not, what is wrong where.

use crate::cli::ConfigCommand;
use crate::failure::{Failure, print};

/// Checks a file without starting anything.
pub(crate) fn run(command: ConfigCommand) -> Result<(), Failure> {
    let ConfigCommand::Check { file } = command;
    super::load(&file).map_err(Failure::usage)?;
    print(&format!("{}: ok\n", file.display())).map_err(Failure::run)
}
