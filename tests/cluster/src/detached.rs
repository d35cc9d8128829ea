//! A control plane that outlives the command that started it: up now, down later, by its folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::control_plane::ControlPlane;
use crate::roster::{self, Process};
use crate::running::Running;
use crate::{Error, Node, Setup, Site};

/// What `up` found or did.
pub enum Up {
    /// It was started now.
    Started(Site),
    /// It was running already.
    Running(Site),
}

/// Starts a control plane in this folder and leaves it running.
pub fn up(folder: &Path, setup: Setup) -> Result<Up, Error> {
    if roster::running(folder).next().is_some() {
        return Ok(Up::Running(Site::open(folder)?));
    }
    // What an ended one left would be taken for its own by the new one.
    remove(folder)?;
    let plane = ControlPlane::start(folder, setup)?;
    // Until here they go if we do; from here on the folder names them.
    plane.programs.into_iter().for_each(Running::leave);
    Ok(Up::Started(plane.site))
}

/// Starts a hub and an agent of the control plane in this folder, and leaves them running. Gives a
/// kubeconfig for the node's API.
pub fn node(folder: &Path, program: &Path) -> Result<PathBuf, Error> {
    let node = Node::start(program, &Site::open(folder)?, &folder.join("node"))?;
    let kubeconfig = node.kubeconfig();
    node.programs.into_iter().for_each(Running::leave);
    Ok(kubeconfig)
}

/// Ends what `up` left running in this folder and removes the folder. Gives how many processes it
/// ended.
pub fn down(folder: &Path) -> Result<usize, Error> {
    let ended = end(folder);
    remove(folder)?;
    Ok(ended)
}

/// Ends what `up` left running in this folder, whose logs are still wanted.
pub fn end(folder: &Path) -> usize {
    let found: Vec<Process> = roster::running(folder).collect();
    // The database last: the others complain otherwise.
    for process in found.iter().rev() {
        process.end();
    }
    found.len()
}

/// A folder is removed only if it is one of ours.
fn remove(folder: &Path) -> Result<(), Error> {
    if folder.join("logs").is_dir() {
        fs::remove_dir_all(folder).map_err(Error::file(folder))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_not_ours_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine"), "").unwrap();
        assert_eq!(down(folder.path()).unwrap(), 0);
        assert!(folder.path().join("mine").exists());
    }
}
