//! A control plane that outlives the command that started it: up now, down later, by its folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::Clock;
use rustix::process::{Pid, Signal, kill_process};

use crate::control_plane::ControlPlane;
use crate::{Error, Setup, Site};

/// What `up` found or did.
pub enum Up {
    /// It was started now.
    Started(Site),
    /// It was running already.
    Running(Site),
}

/// Starts a control plane in this folder and leaves it running.
pub fn up(folder: &Path, setup: Setup) -> Result<Up, Error> {
    if processes(folder).next().is_some() {
        return Ok(Up::Running(Site::open(folder)?));
    }
    // What an ended one left would be taken for its own by the new one.
    remove(folder)?;
    let plane = ControlPlane::start(folder, setup)?;
    let mut text = String::new();
    for program in &plane.programs {
        let began = beginning(program.id()).unwrap_or_default();
        text += &format!("{} {} {began}\n", program.id(), program.name());
    }
    let path = folder.join(PROCESSES);
    fs::write(&path, text).map_err(Error::file(&path))?;
    plane
        .programs
        .into_iter()
        .for_each(crate::running::Running::leave);
    Ok(Up::Started(plane.site))
}

/// Ends what `up` left running in this folder and removes the folder. Gives how many processes it
/// ended.
pub fn down(folder: &Path) -> Result<usize, Error> {
    let found: Vec<Process> = processes(folder).collect();
    // The database last: the others complain otherwise.
    for process in found.iter().rev() {
        process.end();
    }
    remove(folder)?;
    Ok(found.len())
}

/// A folder is removed only if it is one of ours.
fn remove(folder: &Path) -> Result<(), Error> {
    if folder.join("logs").is_dir() {
        fs::remove_dir_all(folder).map_err(Error::file(folder))?;
    }
    Ok(())
}

/// A process of a control plane that runs.
struct Process(Pid);

impl Process {
    fn end(&self) {
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
fn processes(folder: &Path) -> impl Iterator<Item = Process> {
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
        assert_eq!(processes(folder.path()).count(), 1);
        write("1");
        assert_eq!(processes(folder.path()).count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_ours_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine"), "").unwrap();
        assert_eq!(down(folder.path()).unwrap(), 0);
        assert!(folder.path().join("mine").exists());
    }
}
