//! Connections, limits, and the one place where a request meets its answer.

pub mod limits; // how much of everything one client and all clients together may have
mod gather; // the writes of one turn of a connection -> few large records
mod connection; // an accepted stream -> requests; watchers that are stuck are cut
mod line; // a stream -> its bytes, and whether its client hung up
mod patience; // how long an idle connection and a slow one are waited for
mod intake; // a request's body, within limits
mod identity; // a connection and its headers -> a user
mod route; // a request -> who may, and which part answers
mod shape; // whether a kind can be asked in this way at all
mod objects; // resources: reads here, writes where they are done
mod paths; // health, version, discovery, schemas, keys
mod papers; // what a cluster elsewhere says of itself -> version and discovery
mod schemas; // what a cluster elsewhere says of its schemas -> copies for later
mod beyond; // what is not answered here -> where it is
mod caller; // who asks it
mod coming; // what is on its way here, and is waited for
mod written; // what was passed on and has not come back yet
mod entrusted; // what is seen to beside: here or there
mod reviews; // questions that are asked as objects
mod answer; // an answer -> an HTTP response
mod gzip; // pieces -> fewer bytes
mod payload; // a response's body, made while the client reads
mod feed; // the log -> what the server itself must know: permissions and custom kinds

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use host::{Clock, Shutdown};
use parking_lot::RwLock;
use store::Reader;

use crate::catalog::{Catalog, Kind};
use crate::read::{Lens, Overlay};
use crate::who::token::Verifying;
use crate::who::{Authorizer, User};
use crate::write::order::Writes;

pub use beyond::{Beyond, InUse, Name, Passing};
pub use connection::{serve, serve_local};
pub use entrusted::{Entrusted, Seeing, Seen};
pub use feed::{FeedFailed, Feeds};
pub use limits::Limits;
pub use schemas::KEPT_BYTES_MAX;

/// Everything that answers requests. One for a process; connections share it.
pub struct Api {
    parts: Parts,
    /// What is in use of the limits.
    pub gate: limits::Gate,
    counter: AtomicU64,
    /// What was passed on and has not come back yet.
    written: written::Written,
}

impl std::ops::Deref for Api {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

/// The names by which pods and this machine reach an API, besides its own: what its certificate has
/// to have.
pub const SERVICE_NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// What the server says of itself.
#[derive(Debug, Clone)]
pub struct About {
    /// The version of Holdfast.
    pub version: String,
    /// `host:port` as clients reach it.
    pub address: String,
    /// Who signs service-account tokens.
    pub issuer: String,
}

impl Api {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            gate: limits::Gate::new(&parts.limits),
            counter: AtomicU64::new(0),
            written: written::Written::default(),
            parts,
        })
    }

    /// What is shown otherwise than it is stored.
    fn overlay(&self) -> Option<Arc<dyn Overlay>> {
        self.beyond.as_ref().and_then(|beyond| beyond.overlay())
    }

    /// What a caller sees objects of a kind through, if anything.
    fn lens(&self, user: &User, kind: &Kind) -> Option<Arc<dyn Lens>> {
        let beyond = self.beyond.as_ref()?;
        beyond.lens(user, kind)
    }

    /// A number from 0 to 1 that spreads things in time. It need not be secret, only even.
    fn spread(&self) -> f64 {
        // The golden ratio's fraction: successive multiples fall as far apart as they can.
        let turn = self.counter.load(std::sync::atomic::Ordering::Relaxed) as f64;
        (turn * 0.618_033_988_749_895).fract()
    }
}

/// The parts of an API.
pub struct Parts {
    /// Where reads are answered from.
    pub reader: Reader,
    /// Where writes are done; nothing for an API that only reads.
    pub writes: Option<Arc<dyn Writes>>,
    /// Where requests go that are not answered here; nothing for an API that has everything.
    pub beyond: Option<Arc<dyn Beyond>>,
    /// Which kinds there are.
    pub catalog: Arc<Catalog>,
    /// Who may what; empty at first, filled by [`Feeds`].
    pub authorizer: Arc<RwLock<Authorizer>>,
    /// Which tokens are good.
    pub verifier: Arc<Verifying>,
    /// What the server says of itself.
    pub about: About,
    /// The time.
    pub clock: Clock,
    /// Ends everything.
    pub shutdown: Shutdown,
    /// How much of everything there is.
    pub limits: Limits,
}
