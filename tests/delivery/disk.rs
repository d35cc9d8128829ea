//! Disks that are small, or that fail: file systems that are mounted for a test. It takes root.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system, mounted for as long as this lives.
pub(crate) struct Disk {
    path: PathBuf,
    image: Option<PathBuf>,
}

impl Disk {
    /// One in memory, of so many kilobytes.
    pub(crate) fn small(path: &Path, kilobytes: u32) -> Self {
        let options = format!("size={kilobytes}k,mode=0700");
        run(
            "mount",
            &["-t", "tmpfs", "-o", &options, "tmpfs", text(path)],
        );
        Self {
            path: path.to_owned(),
            image: None,
        }
    }

    /// One in a file, that can fail.
    pub(crate) fn ext4(path: &Path, image: &Path) -> Self {
        let file = File::create(image).unwrap();
        file.set_len(32 << 20).unwrap();
        run("mkfs.ext4", &["-q", text(image)]);
        Self::loaded(path, image)
    }

    fn loaded(path: &Path, image: &Path) -> Self {
        run("mount", &["-o", "loop", text(image), text(path)]);
        Self {
            path: path.to_owned(),
            image: Some(image.to_owned()),
        }
    }

    /// From now on nothing can be written, also by those who have files open.
    pub(crate) fn fail(&self) {
        run("mount", &["-o", "remount,abort", text(&self.path)]);
    }

    /// Repaired, with nobody using it meanwhile.
    pub(crate) fn mounted_again(self) -> Self {
        run("umount", &[text(&self.path)]);
        let image = self.image.clone().expect("one in a file");
        // It says with its code that it has mended something.
        drop(
            Command::new("e2fsck")
                .args(["-p", "-f"])
                .arg(&image)
                .output(),
        );
        let path = self.path.clone();
        std::mem::forget(self);
        Self::loaded(&path, &image)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.path).status());
    }
}

/// Writes a file until the disk is full.
pub(crate) fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    while file.write_all(&[0]).is_ok() {}
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn run(program: &str, words: &[&str]) {
    let said = Command::new(program).args(words).output();
    let said = said.unwrap_or_else(|error| panic!("{program} is needed: {error}"));
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{program} {words:?}: {complaint}");
}
