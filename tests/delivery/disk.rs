//! Disks that are small, or that cannot be written: a file system in memory. It takes root.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system, mounted for as long as this lives.
pub(crate) struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts one of this size on an empty folder.
    pub(crate) fn mount(path: &Path, kilobytes: u32) -> Self {
        std::fs::create_dir_all(path).unwrap();
        let options = format!("size={kilobytes}k,mode=0700");
        run(&["-t", "tmpfs", "-o", &options, "tmpfs"], path);
        Self {
            path: path.to_owned(),
        }
    }

    /// Makes it larger.
    pub(crate) fn resize(&self, kilobytes: u32) {
        run(&["-o", &format!("remount,size={kilobytes}k")], &self.path);
    }

    /// Lets nobody write, or lets them again. Files that are open for writing stand in the way of the
    /// first.
    pub(crate) fn read_only(&self, yes: bool) {
        let options = if yes { "remount,ro" } else { "remount,rw" };
        run(&["-o", options], &self.path);
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.path).status());
    }
}

fn run(words: &[&str], path: &Path) {
    let said = Command::new("mount")
        .args(words)
        .arg(path)
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "mount {words:?}: {complaint}");
}
