//! Copies of what the cluster answered, for a time without it: files in a folder, the oldest of
//! which go when there are too many. They can be lost at any time, and nothing is asked of the
//! disk to prevent that.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use host::{Clock, chain, files, secret};
use parking_lot::Mutex;
use tracing::{debug, warn};

/// Bytes of all copies. Past this the one goes that was not used for longest.
pub(super) const BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How many there are, at most.
pub(super) const COPIES_MAX: usize = 256;
/// Bytes of one, its head included.
const COPY_BYTES_MAX: u64 = kubeapi::serve::KEPT_BYTES_MAX as u64 + 64 * 1024;

/// A folder with copies.
pub(super) struct Copies {
    folder: PathBuf,
    clock: Clock,
    /// Whoever writes counts first: one after the other.
    writing: Mutex<()>,
}

/// A copy that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct There {
    used: SystemTime,
    bytes: u64,
    path: PathBuf,
}

impl Copies {
    /// The copies of a node's folder. It is made when there is something to keep.
    pub(super) fn new(data_dir: &Path, clock: &Clock) -> Self {
        Self {
            folder: data_dir.join("copies"),
            clock: clock.clone(),
            writing: Mutex::new(()),
        }
    }

    /// Keeps a copy. What cannot be kept is not.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) {
        if let Err(error) = self.try_put(name, bytes) {
            warn!(
                name,
                error = chain(&error),
                "an answer of the cluster is not kept"
            );
        }
    }

    /// A copy. It was used just now, then.
    pub(super) fn get(&self, name: &str) -> Option<Bytes> {
        let path = self.path(name);
        let file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        let mut bytes = Vec::new();
        (&file).take(COPY_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        if let Err(error) = file.set_modified(self.now()) {
            debug!(name, %error, "when a copy was used is not noted");
        }
        Some(bytes.into())
    }

    fn try_put(&self, name: &str, bytes: &[u8]) -> Result<(), NotKept> {
        let _one = self.writing.lock();
        files::create_dir(&self.folder)?;
        let path = self.path(name);
        let size = bytes.len() as u64;
        if size > COPY_BYTES_MAX {
            return Ok(());
        }
        let mut others = self.there()?;
        others.retain(|there| there.path != path);
        for gone in superfluous(others, size) {
            fs::remove_file(gone)?;
        }
        let fresh = self.folder.join("fresh");
        let mut file = create(&fresh)?;
        file.write_all(bytes)?;
        file.set_modified(self.now())?;
        drop(file);
        Ok(fs::rename(fresh, path)?)
    }

    fn there(&self) -> io::Result<Vec<There>> {
        let mut there = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let found = entry.metadata()?;
            there.push(There {
                used: found.modified()?,
                bytes: found.len(),
                path: entry.path(),
            });
        }
        Ok(there)
    }

    fn path(&self, name: &str) -> PathBuf {
        let sum = secret::sha256(name.as_bytes());
        let word: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(word)
    }

    fn now(&self) -> SystemTime {
        self.clock.wall().into()
    }
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error(transparent)]
    Folder(#[from] files::Error),
    #[error("its file cannot be written")]
    File(#[from] io::Error),
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

/// What must go so that another one of this size has room: what was not used for longest.
fn superfluous(mut there: Vec<There>, bytes: u64) -> Vec<PathBuf> {
    there.sort_by_key(|copy| std::cmp::Reverse(copy.used));
    let (mut room, mut places) = (BYTES_MAX.saturating_sub(bytes), COPIES_MAX - 1);
    let stays = |copy: &There| {
        let fits = places > 0 && copy.bytes <= room;
        // Whatever is older than one that has no room has none either.
        (room, places) = match fits {
            true => (room - copy.bytes, places - 1),
            false => (0, 0),
        };
        fits
    };
    let (_, gone): (Vec<There>, Vec<There>) = there.into_iter().partition(stays);
    gone.into_iter().map(|copy| copy.path).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    fn copies() -> (tempfile::TempDir, Copies, host::clock::Hands) {
        let folder = tempfile::tempdir().unwrap();
        let (clock, hands) = Clock::manual("2026-11-15T08:00:00Z".parse().unwrap());
        let copies = Copies::new(folder.path(), &clock);
        (folder, copies, hands)
    }

    #[test]
    fn a_copy_is_for_its_owner_alone_and_the_last_one_counts() {
        let (folder, copies, _) = copies();
        assert_eq!(copies.get("a"), None);
        copies.put("a", b"one");
        copies.put("a", b"two");
        copies.put("b", b"three");
        assert_eq!(copies.get("a").unwrap(), "two");
        let again = Copies::new(folder.path(), &copies.clock);
        assert_eq!(again.get("b").unwrap(), "three");
        let all = fs::read_dir(folder.path().join("copies")).unwrap();
        let modes = all.map(|it| it.unwrap().metadata().unwrap().permissions().mode() & 0o777);
        assert_eq!(modes.collect::<Vec<u32>>(), [0o600, 0o600]);
    }

    #[test]
    fn the_one_that_was_not_used_for_longest_goes() {
        let (_folder, copies, hands) = copies();
        let large = vec![7; usize::try_from(BYTES_MAX / 4).unwrap()];
        for name in ["a", "b", "c", "d"] {
            copies.put(name, &large);
            hands.advance(Duration::from_secs(1));
        }
        assert!(copies.get("a").is_some());
        hands.advance(Duration::from_secs(1));
        copies.put("e", &large);
        let left = ["a", "b", "c", "d", "e"].map(|name| copies.get(name).is_some());
        assert_eq!(left, [true, false, true, true, true]);
    }

    #[test]
    fn there_are_not_too_many_and_none_is_too_large() {
        let copy = |number: u64| There {
            used: SystemTime::UNIX_EPOCH + Duration::from_secs(number),
            bytes: 1,
            path: PathBuf::from(number.to_string()),
        };
        let there: Vec<There> = (0..COPIES_MAX as u64).map(copy).collect();
        assert_eq!(superfluous(there, 1), [PathBuf::from("0")]);
        assert_eq!(superfluous(vec![copy(1)], BYTES_MAX).len(), 1);
        let (_folder, copies, _) = copies();
        copies.put("a", &vec![0; usize::try_from(COPY_BYTES_MAX).unwrap() + 1]);
        assert_eq!(copies.get("a"), None);
    }
}
