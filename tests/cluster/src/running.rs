//! A program that runs for a test: its log, how it is waited for, and how it ends with its owner.

use std::fs::{self, File};
use std::io::{PipeWriter, pipe};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use host::Clock;
use rustix::process::{Pid, Signal, kill_process};

use crate::Error;

/// A process with its log. Dropping it ends it, and so does the end of its owner, whatever that is.
pub struct Running {
    name: &'static str,
    child: Child,
    guard: Guard,
    log: PathBuf,
}

impl Running {
    /// Starts a program. It is in a group of its own: what a terminal tells the test, such as
    /// Ctrl-C, is not told to it.
    pub fn start(name: &'static str, command: Command, logs: &Path) -> Result<Self, Error> {
        let log = logs.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log);
        let file = file.map_err(Error::file(&log))?;
        let also = file.try_clone().map_err(Error::file(&log))?;
        let (guard, tell) = Guard::start().map_err(Error::file(Path::new(SHELL)))?;
        let child = guarded(&command)
            .stdin(tell)
            .stdout(file)
            .stderr(also)
            .process_group(0)
            .spawn();
        let child = child.map_err(Error::file(Path::new(SHELL)))?;
        Ok(Self {
            name,
            child,
            guard,
            log,
        })
    }

    /// Waits until `is_ready`, which is asked every so often, says so. An early end, or a minute
    /// without, is an error that shows the end of the log.
    pub fn wait_until(
        &mut self,
        every: Duration,
        mut is_ready: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        let clock = Clock::machine();
        let began = clock.now();
        while !is_ready() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.not_ready(format!("ended: {status}")));
            }
            if clock.now() - began > READY_WITHIN {
                return Err(self.not_ready("is not ready after a minute".to_owned()));
            }
            std::thread::sleep(every);
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
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The name of the program.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Leaves the process running when this goes, and when we do.
    pub fn leave(mut self) {
        self.guard.dismiss();
        std::mem::forget(self);
    }

    /// Sends a signal that ends the process and gives how it ended. One that stays is killed.
    pub fn end_by(&mut self, signal: Signal) -> ExitStatus {
        self.guard.dismiss();
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
    pub fn kill(&mut self) {
        self.guard.dismiss();
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ends a process when we are gone without having done it: killed, aborted, or ended with tests
/// that share a cluster. It waits at a pipe that only we hold open, and is there before the
/// process.
struct Guard {
    shell: Child,
    /// Closed by our end, however that comes.
    _open: PipeWriter,
}

impl Guard {
    /// Starts a guard, and gives what the process tells it its number with.
    fn start() -> std::io::Result<(Self, PipeWriter)> {
        let (told, open) = pipe()?;
        let tell = open.try_clone()?;
        let shell = Command::new(SHELL)
            .args(["-c", WAIT_AND_KILL])
            .stdin(told)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok((Self { shell, _open: open }, tell))
    }

    /// Before the pipe closes: a process is ended by its owner, who waits for it, and then its
    /// number may be another's.
    fn dismiss(&mut self) {
        drop(self.shell.kill());
        drop(self.shell.wait());
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// A command that tells its guard its number and then becomes the program. Until it has told, it
/// holds the pipe open: there is no moment at which we can go and leave it behind.
fn guarded(command: &Command) -> Command {
    let mut guarded = Command::new(SHELL);
    guarded
        .args(["-c", TELL_AND_BECOME, SHELL])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => guarded.env(name, value),
            None => guarded.env_remove(name),
        };
    }
    guarded
}

const SHELL: &str = "/bin/sh";
const TELL_AND_BECOME: &str = "echo $$ >&0 && exec \"$@\" </dev/null";
const WAIT_AND_KILL: &str = "read -r id || exit; read -r _; kill -s KILL \"$id\"";
/// Built programs start in seconds; a busy machine of two cores is given more.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long a program may take to end in order.
const LEAVE_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How much of a log an error shows.
const LOG_LINES_SHOWN: usize = 30;
