//! The program under load, as its clients and the machine see it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::cluster::{Holdfast, Signal};

use crate::client::Door;
use crate::server::Server;

/// Where the program keeps its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Disk,
    Memory,
}

/// A running `holdfast up`. It is killed when this goes.
pub(crate) struct Cluster {
    holdfast: Holdfast,
    /// How it is seen from outside.
    pub(crate) server: Server,
    /// From the start of the program to its word that it is ready.
    pub(crate) ready_after: Duration,
}

impl Cluster {
    /// Starts the program and waits until it says that it is ready.
    pub(crate) fn start(storage: Storage) -> Self {
        Self::start_on(storage, |_| ())
    }

    /// The same, on a folder that is filled before.
    pub(crate) fn start_on(storage: Storage, fill: impl FnOnce(&Path)) -> Self {
        // Another build can be measured with the same client.
        let other = std::env::var_os("HOLDFAST_PROGRAM").map(PathBuf::from);
        let program = other.unwrap_or_else(|| env!("CARGO_BIN_EXE_holdfast").into());
        let flags: &[&str] = match storage {
            Storage::Disk => &[],
            Storage::Memory => &["--ephemeral"],
        };
        let started = Holdfast::start_on(&program, flags, fill);
        Self::of(started.unwrap_or_else(|error| panic!("{error}")))
    }

    fn of(holdfast: Holdfast) -> Self {
        let server = Server {
            door: Door::of(holdfast.site().folder()),
            processes: vec![holdfast.process()],
        };
        let ready_after = holdfast.ready_after();
        Self {
            holdfast,
            server,
            ready_after,
        }
    }

    /// Ends the program as a power cut would, and starts it again on what it left.
    pub(crate) fn killed_and_started_again(self) -> Self {
        let mut holdfast = self.holdfast;
        holdfast.end_by(Signal::KILL);
        let started = holdfast.start_again();
        started.unwrap_or_else(|error| panic!("{error}"));
        Self::of(holdfast)
    }

    /// What the program has said since its last start.
    pub(crate) fn log(&self) -> String {
        self.holdfast.log()
    }
}
