//! Our own program as a server for tests.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::kubernetes::{leave_or_remove, temporary_folder};
use crate::running::{Guard, Running};
use crate::{Error, Site};

/// `holdfast up` in a folder of its own, on a free port of loopback. Dropping it ends it and
/// removes its folder; if the test is failing, the folder stays and its log is pointed to.
pub struct Holdfast {
    // In the order in which they must go.
    guard: Option<Guard>,
    program: Running,
    site: Site,
    folder: Option<TempDir>,
}

impl Holdfast {
    /// Starts this build of the program with more flags, and waits until it is ready.
    pub fn start(program: &Path, flags: &[&str]) -> Result<Self, Error> {
        let folder = temporary_folder()?;
        let (home, logs) = (folder.path().join("home"), folder.path().join("logs"));
        std::fs::create_dir(&logs).map_err(Error::file(&logs))?;
        let mut command = Command::new(program);
        // The program must not see settings of the person who runs the tests.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HOLDFAST_") {
                command.env_remove(name);
            }
        }
        command
            .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&home)
            .args(flags);
        let mut program = Running::start("holdfast", command, &logs)?;
        let log = logs.join("holdfast.log");
        program.wait_until(|| {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains("The cluster is ready"))
        })?;
        let site = Site::open(&home)?;
        let guard = Some(Guard::over(&[&program])?);
        Ok(Self {
            guard,
            program,
            site,
            folder: Some(folder),
        })
    }

    /// Where it is and how one gets in.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The number of the process.
    pub fn process(&self) -> u32 {
        self.program.id()
    }
}

impl Drop for Holdfast {
    fn drop(&mut self) {
        self.guard = None;
        self.program.kill();
        leave_or_remove(self.folder.take(), "holdfast up");
    }
}
