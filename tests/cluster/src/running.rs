//! A program that runs for a test: its log, how it is waited for, and how it ends with its owner.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use host::Clock;
use rustix::process::{Pid, Signal, kill_process};

use crate::Error;

/// A process with its log. Dropping it ends it.
pub(crate) struct Running {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a program. It is in a group of its own: what a terminal tells the test, such as
    /// Ctrl-C, is not told to it.
    pub(crate) fn start(
        name: &'static str,
        mut command: Command,
        logs: &Path,
    ) -> Result<Self, Error> {
        use std::os::unix::process::CommandExt;
        let log = logs.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log);
        let file = file.map_err(Error::file(&log))?;
        let also = file.try_clone().map_err(Error::file(&log))?;
        command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(also)
            .process_group(0);
        let program = PathBuf::from(command.get_program());
        let child = command.spawn().map_err(Error::file(&program))?;
        Ok(Self { name, child, log })
    }

    /// Waits until `is_ready` says so. An early end, or a minute without, is an error that shows
    /// the end of the log.
    pub(crate) fn wait_until(&mut self, mut is_ready: impl FnMut() -> bool) -> Result<(), Error> {
        let clock = Clock::machine();
        let began = clock.now();
        while !is_ready() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.not_ready(format!("ended: {status}")));
            }
            if clock.now() - began > READY_WITHIN {
                return Err(self.not_ready("is not ready after a minute".to_owned()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn not_ready(&self, what: String) -> Error {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n");
        Error::NotReady {
            name: self.name.to_owned(),
            what,
            log: self.log.clone(),
            tail,
        }
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The name of the program.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Leaves the process running when this goes.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }

    /// Sends a signal that ends the process and gives how it ended. One that stays is killed.
    pub(crate) fn end_by(&mut self, signal: Signal) -> ExitStatus {
        let clock = Clock::machine();
        let began = clock.now();
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        let _ = kill_process(id.expect("processes have small numbers"), signal);
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return status;
            }
            if clock.now() - began > LEAVE_WITHIN {
                drop(self.child.kill());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Ends the process as a power cut would, and waits for its end.
    pub(crate) fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ends processes when we are gone without having done it: killed, aborted, or ended with tests
/// that share a cluster. It waits at a pipe that only we hold open.
pub(crate) struct Guard(Child);

impl Guard {
    /// Guards these processes.
    pub(crate) fn over(programs: &[&Running]) -> Result<Self, Error> {
        use std::os::unix::process::CommandExt;
        let shell = Path::new("/bin/sh");
        let child = Command::new(shell)
            .args(["-c", "read -r _; kill -s KILL \"$@\" 2>/dev/null", "guard"])
            .args(programs.iter().map(|program| program.id().to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        Ok(Self(child.map_err(Error::file(shell))?))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Before its pipe closes: the processes are ended by their owners, who wait for them.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Built programs start in seconds; a busy machine of two cores is given more.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long a program may take to end in order.
const LEAVE_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How much of a log an error shows.
const LOG_LINES_SHOWN: usize = 30;
