//! Whether writes reach the disk: the kernel counts how often a disk was told to flush its cache.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A disk with a count of its flushes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// The disk that holds this file. A file system in memory, or one without a disk that the
    /// kernel names, has none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let device = std::fs::metadata(path).ok()?.dev();
        let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
        let minor = (device & 0xff) | (device >> 12 & !0xff);
        let folder = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        // A part of a disk is flushed with the whole of it.
        let whole = match folder.join("partition").exists() {
            true => folder.canonicalize().ok()?.parent()?.to_owned(),
            false => folder,
        };
        whole.join("stat").exists().then_some(Self(whole))
    }

    /// How often it was flushed since the machine started, for whomever.
    pub(crate) fn flushes(&self) -> u64 {
        let text = std::fs::read_to_string(self.0.join("stat")).unwrap_or_default();
        let count = text.split_ascii_whitespace().nth(FLUSHES);
        count.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

/// The sixteenth number of a disk's `stat`.
const FLUSHES: usize = 15;
