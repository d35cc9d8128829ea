//! What a process takes of its machine, by the machine's own account: open files and memory.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// A process and what it takes.
pub(crate) struct Footprint(u32);

impl Footprint {
    pub(crate) fn of(process: u32) -> Self {
        Self(process)
    }

    /// Files and connections that it has open.
    pub(crate) fn files(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.0);
        std::fs::read_dir(folder).unwrap().count()
    }

    /// The most memory that it had since [`Footprint::forget_peak`], in bytes.
    pub(crate) fn peak(&self) -> u64 {
        let path = format!("/proc/{}/status", self.0);
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse::<u64>().unwrap() * 1024
    }

    /// From now on the peak is that of what comes, and at first what it has now.
    pub(crate) fn forget_peak(&self) -> u64 {
        let path = format!("/proc/{}/clear_refs", self.0);
        std::fs::write(path, "5").unwrap();
        self.peak()
    }

    /// Waits until it has no more files open than this.
    pub(crate) async fn closes_down_to(&self, most: usize, within: Duration) {
        let began = Instant::now();
        while self.files() > most {
            let open = self.files();
            assert!(
                began.elapsed() < within,
                "{open} files are open, not {most}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }
}
