//! What went wrong, as one message and an exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command ended badly. The exit codes are documented in `--help`.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line, the environment or the configuration is wrong: exit code 2. Trying again
    /// without changing it is no use.
    Usage(anyhow::Error),
    /// It was right, and something failed when it ran: exit code 1.
    Run(anyhow::Error),
}

impl Failure {
    /// Tells the user, once and on one line, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        // Nobody is left to tell if standard error is closed.
        drop(writeln!(io::stderr(), "holdfast: {self}"));
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Run(_) => ExitCode::from(1),
        }
    }

    /// For `map_err`: the user has to change something.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Failure::Usage(error.into())
    }

    /// For `map_err`: it failed when it ran.
    pub(crate) fn run(error: impl Into<anyhow::Error>) -> Self {
        Failure::Run(error.into())
    }
}

/// An error of a program that is running already, and that the user has to mend all the same: what
/// it was given turns out wrong when it looks at what is there.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub(crate) struct Wrong(anyhow::Error);

impl Wrong {
    /// For `map_err`.
    pub(crate) fn given(error: anyhow::Error) -> anyhow::Error {
        Self(error).into()
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Wrong>() {
            Ok(Wrong(error)) => Failure::Usage(error),
            Err(error) => Failure::Run(error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Usage(error) | Failure::Run(error)) = self;
        write!(f, "{error:#}")
    }
}

/// Writes a command's answer to standard output. A reader that went away (`| head`) is no failure.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
