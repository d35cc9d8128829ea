//! Servers that tests talk to: a real control plane, built from its Go modules, and ours.
//!
//! Nothing here is part of Holdfast. A test starts a [`Kubernetes`] or a [`Holdfast`], is given its
//! [`Site`] and talks to it; both are ended with the test, however the test ends.

pub mod programs; // Go modules       -> a program in the cache
mod running; //      a program        -> a process with a log, that ends with its owner
pub mod site; //     a folder         -> where a server is and how one gets in
pub mod client; //   a site           -> requests and answers
pub mod catalogue; // bad input, and what must come of it
mod roster; //       processes        -> a file, and back
mod control_plane; // programs, a site -> the flags of each program
pub mod detached; // a control plane that outlives the command that started it
mod holdfast; //     our own program
mod node; //         a cluster        -> a hub and an agent of it, and who is known there
mod kubernetes; //   the real control plane of one test

pub use control_plane::{Controllers, Setup};
pub use holdfast::Holdfast;
pub use kubernetes::Kubernetes;
pub use node::Node;
pub use running::Running;
pub use rustix::process::Signal;
pub use site::Site;

/// Why a server for tests could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program could not be built.
    #[error(transparent)]
    Build(#[from] programs::Error),
    /// Certificates or keys could not be made or read.
    #[error("certificates of the test cluster")]
    Certificates(#[from] host::pki::Error),
    /// A file of the cluster could not be used.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A program ended, or did not become ready. Its log says why.
    #[error("{name} {what}; the end of its log {log}:\n{tail}")]
    NotReady {
        /// The program.
        name: String,
        /// What was seen of it.
        what: String,
        /// Where all of its log is.
        log: std::path::PathBuf,
        /// The last lines of it.
        tail: String,
    },
}

impl Error {
    fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { path, error }
    }
}
