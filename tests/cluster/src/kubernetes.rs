//! A real control plane of one test's own.

use std::path::Path;

use tempfile::TempDir;

use crate::control_plane::ControlPlane;
use crate::{Error, Setup, Site};

/// etcd, kube-apiserver and some controllers, on loopback. Dropping it ends them and removes their
/// folder; if the test is failing, the folder stays and its logs are pointed to.
pub struct Kubernetes {
    plane: ControlPlane,
    folder: Option<TempDir>,
}

impl Kubernetes {
    /// Starts one as it is set up without flags.
    pub fn start() -> Result<Self, Error> {
        Self::start_with(Setup::default())
    }

    /// Builds what is not built yet, starts the programs, and waits until they are ready.
    pub fn start_with(setup: Setup) -> Result<Self, Error> {
        let folder = temporary_folder()?;
        let plane = match ControlPlane::start(folder.path(), setup) {
            Ok(plane) => plane,
            Err(error) => {
                drop(folder.keep());
                return Err(error);
            }
        };
        Ok(Self {
            plane,
            folder: Some(folder),
        })
    }

    /// Where it is and how one gets in.
    pub fn site(&self) -> &Site {
        &self.plane.site
    }

    /// Kills the API server, as a power cut would. What etcd has stays.
    pub fn kill_api(&mut self) {
        self.plane.kill_api();
    }

    /// Starts the API server again at its address, and waits until it is ready.
    pub fn start_api(&mut self) -> Result<(), Error> {
        self.plane.start_api()
    }

    /// The processes, with the names of their programs.
    pub fn processes(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.plane
            .programs
            .iter()
            .map(|program| (program.name(), program.id()))
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        // The database last: the others complain into their logs otherwise.
        while let Some(mut program) = self.plane.programs.pop() {
            program.kill();
        }
        leave_or_remove(self.folder.take(), "the real control plane");
    }
}

pub(crate) fn temporary_folder() -> Result<TempDir, Error> {
    let made = tempfile::Builder::new().prefix("holdfast-test-").tempdir();
    made.map_err(Error::file(Path::new("a temporary folder")))
}

/// Keeps a folder whose test is failing, and says where it is.
pub(crate) fn leave_or_remove(folder: Option<TempDir>, whose: &str) {
    if let Some(folder) = folder.filter(|_| std::thread::panicking()) {
        eprintln!(
            "the logs of {whose} are in {}",
            folder.keep().join("logs").display()
        );
    }
}
