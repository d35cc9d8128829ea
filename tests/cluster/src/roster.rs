//! The processes of a control plane, written down in its folder as they start.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::Clock;
use rustix::process::{Pid, Signal, kill_process};

use crate::Error;
use crate::running::Running;

/// Writes down a program that has just been started.
pub(crate) fn enter(folder: &Path, program: &Running) -> Result<(), Error> {
    let path = folder.join(PROCESSES);
    let (id, name) = (program.id(), program.name());
    let began = beginning(id).unwrap_or_default();
    let file = File::options().create(true).append(true).open(&path);
    let written =
        file.and_then(|mut file| file.write_all(format!("{id} {name} {began}\n").as_bytes()));
    written.map_err(Error::file(&path))
}

/// A process of a control plane that runs.
pub(crate) struct Process(Pid);

impl Process {
    /// Ends it in order, or, if it stays, at once.
    pub(crate) fn end(&self) {
        let clock = Clock::machine();
        let began = clock.now();
        let _ = kill_process(self.0, Signal::TERM);
        while beginning(self.0.as_raw_nonzero().get().unsigned_abs()).is_some() {
            if clock.now() - began > LEAVE_WITHIN {
                let _ = kill_process(self.0, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Those that the folder names and that still run. A number that another process has by now is told
/// by the time at which that began.
pub(crate) fn running(folder: &Path) -> impl Iterator<Item = Process> {
    let text = fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.into_iter().filter_map(|line| {
        let mut words = line.split(' ');
        let id: u32 = words.next()?.parse().ok()?;
        let began = words.nth(1)?;
        (beginning(id).as_deref() == Some(began))
            .then(|| Pid::from_raw(id.try_into().ok()?).map(Process))?
    })
}

/// When a process began, in the kernel's own count. What has ended has no beginning.
fn beginning(id: u32) -> Option<String> {
    let text = fs::read_to_string(PathBuf::from(format!("/proc/{id}/stat"))).ok()?;
    // The name, in parentheses, may hold anything; the state and the rest follow its last one.
    let rest = text.rsplit_once(") ")?.1;
    let mut words = rest.split(' ');
    (words.next()? != "Z").then(|| words.nth(BEGINNING_AFTER_STATE).map(str::to_owned))?
}

const PROCESSES: &str = "processes";
/// Field 22 of `/proc/ID/stat`, counted from the one after the state, field 3.
const BEGINNING_AFTER_STATE: usize = 18;
const LEAVE_WITHIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_another_process_has_is_not_taken_for_ours() {
        let folder = tempfile::tempdir().unwrap();
        let me = std::process::id();
        let began = beginning(me).unwrap();
        let write = |began: &str| {
            fs::write(
                folder.path().join(PROCESSES),
                format!("{me} etcd {began}\n"),
            )
            .unwrap();
        };
        write(&began);
        assert_eq!(running(folder.path()).count(), 1);
        write("1");
        assert_eq!(running(folder.path()).count(), 0);
    }
}
