//! A program that we start and look after: it is started again when it ends, and ends when we do.
//!
//! It knows that we are there by its standard input: when that ends, so does the program. So it
//! does not outlive us, however we end.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child as Process, Command};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::clock::Clock;
use crate::shutdown::Shutdown;

/// How long to wait before a program that ended at once is started again.
const AGAIN_FIRST: Duration = Duration::from_millis(500);
/// The longest such wait.
const AGAIN_MAX: Duration = Duration::from_secs(30);
/// A program that ran so long is started again without a wait that grew.
const RAN_WELL: Duration = Duration::from_secs(60);

/// A program to look after.
#[derive(Debug, Clone)]
pub struct Child {
    /// What it is called here.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments: everybody on this machine can read them.
    pub arguments: Vec<OsString>,
    /// Where what it says is written.
    pub log: PathBuf,
    /// How long it has to end by itself.
    pub grace: Duration,
}

/// Why a program cannot be looked after.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its log cannot be written.
    #[error("cannot write the log {}", path.display())]
    Log {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be started.
    #[error("cannot start {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Child {
    /// Runs it until the shutdown, again and again.
    pub async fn run(self, clock: Clock, shutdown: Shutdown) -> Result<(), Error> {
        let mut wait = AGAIN_FIRST;
        loop {
            let began = clock.now();
            let mut process = self.start()?;
            // To wait for a program closes its input, unless that is held elsewhere.
            let input = process.stdin.take();
            let ended = tokio::select! {
                ended = process.wait() => ended,
                () = shutdown.triggered() => {
                    drop(input);
                    self.end(process).await;
                    return Ok(());
                }
            };
            let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            warn!(child = self.name, how, log = %self.log.display(), "ended; starting it again");
            wait = match clock.now() - began >= RAN_WELL {
                true => AGAIN_FIRST,
                false => (wait * 2).min(AGAIN_MAX),
            };
            tokio::select! {
                () = clock.sleep_until(clock.now() + wait) => {}
                () = shutdown.triggered() => return Ok(()),
            }
        }
    }

    fn start(&self) -> Result<Process, Error> {
        let log = || {
            let opened = OpenOptions::new().create(true).append(true).open(&self.log);
            opened.map_err(|source| Error::Log {
                path: self.log.clone(),
                source,
            })
        };
        let process = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(log()?)
            .stderr(log()?)
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| Error::Start {
                program: self.program.clone(),
                source,
            })?;
        info!(child = self.name, pid = process.id(), "started");
        Ok(process)
    }

    /// Lets it end by itself, and ends it if it does not.
    async fn end(&self, mut process: Process) {
        if timeout(self.grace, process.wait()).await.is_err() {
            warn!(child = self.name, "did not end in time");
            if let Err(error) = process.kill().await {
                warn!(child = self.name, %error, "cannot be ended");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn child(folder: &Path, script: &str) -> Child {
        Child {
            name: "child".to_owned(),
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            log: folder.join("log"),
            grace: Duration::from_secs(5),
        }
    }

    async fn said(folder: &Path, lines: usize) -> String {
        loop {
            let text = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            if text.lines().count() >= lines {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn what_ends_is_started_again_and_ends_with_us() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo begun; test $(wc -l < \"$0\") -lt 2 && exit 1; cat; echo over";
        let mut child = child(folder.path(), script);
        child.arguments.push(child.log.clone().into());
        let shutdown = Shutdown::new();
        let running = child.run(Clock::machine(), shutdown.clone());
        let ending = async {
            said(folder.path(), 2).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert_eq!(said(folder.path(), 2).await, "begun\nbegun\n", "it runs on");
            shutdown.trigger();
        };
        let (ran, ()) = tokio::join!(running, ending);
        ran.unwrap();
        assert_eq!(said(folder.path(), 3).await, "begun\nbegun\nover\n");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_said_to_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = child(folder.path(), "");
        child.program = folder.path().join("nothing");
        let ran = child.run(Clock::machine(), Shutdown::new()).await;
        assert!(ran.unwrap_err().to_string().contains("cannot start"));
    }
}
