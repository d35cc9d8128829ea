//! Our own program as a server for tests.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use host::Clock;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::kubernetes::{leave_or_remove, temporary_folder};
use crate::running::Running;
use crate::{Error, Site};

/// `holdfast up` in a folder of its own, on a free port of loopback. Dropping it ends it and
/// removes its folder; if the test is failing, the folder stays and its log is pointed to.
pub struct Holdfast {
    path: PathBuf,
    flags: Vec<String>,
    folder: Option<TempDir>,
    /// A free port at first, and from then on the one that it had: its clients find it again.
    listen: String,
    starts: u32,
    turn: Option<Turn>,
}

/// The program from one start to its end.
struct Turn {
    program: Running,
    site: Site,
    ready_after: Duration,
}

impl Holdfast {
    /// Starts this build of the program with more flags, and waits until it is ready.
    pub fn start(program: &Path, flags: &[&str]) -> Result<Self, Error> {
        Self::start_on(program, flags, |_| ())
    }

    /// The same, on a folder that is filled before.
    pub fn start_on(
        program: &Path,
        flags: &[&str],
        fill: impl FnOnce(&Path),
    ) -> Result<Self, Error> {
        let mut holdfast = Self {
            path: program.to_owned(),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            folder: Some(temporary_folder()?),
            listen: "127.0.0.1:0".to_owned(),
            starts: 0,
            turn: None,
        };
        fill(&holdfast.home());
        if let Err(error) = holdfast.start_again() {
            // It points to the log.
            drop(holdfast.folder.take().map(TempDir::keep));
            return Err(error);
        }
        Ok(holdfast)
    }

    /// Starts the program on the folder that is there, after it has ended.
    pub fn start_again(&mut self) -> Result<(), Error> {
        assert!(self.turn.is_none(), "it is running");
        self.starts += 1;
        let (home, logs) = (self.home(), self.logs());
        std::fs::create_dir_all(&logs).map_err(Error::file(&logs))?;
        let mut command = Command::new(&self.path);
        // The program must not see settings of the person who runs the tests.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HOLDFAST_") {
                command.env_remove(name);
            }
        }
        command.args(["up", "--listen", &self.listen, "--data-dir"]);
        command.arg(&home).args(&self.flags);
        // Most tests are about the API: a hub and nodes are for those that ask for them.
        if !self.flags.iter().any(|flag| flag == "--nodes") {
            command.args(["--nodes", "0"]);
        }
        let clock = Clock::machine();
        let began = clock.now();
        let mut program = Running::start("holdfast", command, &logs)?;
        program.wait_until(LOOK_EVERY, || self.log().contains("The cluster is ready"))?;
        let ready_after = clock.now() - began;
        let site = Site::open(&home)?;
        self.listen = site.address().to_owned();
        self.turn = Some(Turn {
            program,
            site,
            ready_after,
        });
        Ok(())
    }

    /// Where it is and how one gets in.
    pub fn site(&self) -> &Site {
        &self.turn().site
    }

    /// The number of the process that runs now.
    pub fn process(&self) -> u32 {
        self.turn().program.id()
    }

    /// From the last start of the program to its word that it is ready, to a millisecond or two.
    pub fn ready_after(&self) -> Duration {
        self.turn().ready_after
    }

    /// The folder that the program was given.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// What the program has said since its last start.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.logs().join("holdfast.log")).unwrap_or_default()
    }

    /// Sends the program a signal that ends it, and gives how it ended. A program that stays is
    /// killed, which its status says.
    pub fn end_by(&mut self, signal: Signal) -> ExitStatus {
        let mut turn = self.turn.take().expect("it runs");
        turn.program.end_by(signal)
    }

    fn turn(&self) -> &Turn {
        self.turn.as_ref().expect("it runs")
    }

    fn root(&self) -> &Path {
        self.folder
            .as_ref()
            .expect("it is there until we go")
            .path()
    }

    /// Each start has a log of its own.
    fn logs(&self) -> PathBuf {
        self.root().join("logs").join(self.starts.to_string())
    }
}

impl Drop for Holdfast {
    fn drop(&mut self) {
        self.turn = None;
        leave_or_remove(self.folder.take(), "holdfast up");
    }
}

/// It starts in a few hundredths of a second, which is measured.
const LOOK_EVERY: Duration = Duration::from_millis(1);
