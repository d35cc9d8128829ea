//! Requests of nodes to the cluster: a stream of a link -> one request, and its answer back.
//!
//! The hub decides in whose name a request goes (`head`) and nothing else: what it may do, the
//! cluster decides. Bytes pass as they come, both ways.

mod head; // whose a request is, and what of its head goes on
mod compared; // what an answer is compared with
mod lanes; // connections to the cluster
mod shares; // how many requests a node may have on their way
mod refusal; // answers of the hub itself
mod patient; // a reader that is not waited for for ever
mod exchange; // one request from a stream to the cluster, and its answer

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use host::tasks::Crowd;
use host::{Clock, Tasks};
use http::Request;
use parking_lot::RwLock;
use tunnel::Arrived;
use tunnel::pieces::Base;
use wire::frame::Cause;

use crate::cache::Cache;
use crate::cluster::Config;
use lanes::Lanes;
use shares::Shares;

/// Requests that are on their way at once, of all nodes. Further ones are turned away, and whoever
/// sent them is told to come again. If nobody reads, each holds 240 KiB or a little more: the queue
/// and the window of its stream, the window of the connection to the cluster, a piece each way and
/// what was asked. One that is answered with an object may hold [`tunnel::BASE_BYTES_MAX`] beside
/// that, to compare with.
pub const EXCHANGES_MAX: u32 = 2_048;
/// Connections to the cluster, and requests with a body that is on its way.
const REQUESTS_MAX: u32 = EXCHANGES_MAX + 256;

/// What carries requests of nodes to the cluster. Clones share everything.
#[derive(Clone)]
pub struct Tunnels(Arc<Shared>);

struct Shared {
    /// With the hub's own credential, for requests in the name of nodes.
    own: Lanes,
    /// Without any, for requests that bring their own.
    bare: Lanes,
    crowd: Crowd,
    shares: Shares,
    clock: Clock,
    counts: Counts,
    /// What answers are compared with.
    cache: OnceLock<Arc<RwLock<Cache>>>,
}

/// How requests ended.
#[derive(Default)]
struct Counts([AtomicU64; Outcome::ALL.len()]);

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The cluster answered, to the node's name.
    Node,
    /// The cluster answered, to a credential that the request brought.
    Bearer,
    /// The hub refused it.
    Refused,
    /// The cluster gave no answer.
    Failed,
    /// There was no room.
    Busy,
    /// It was for nobody here.
    Strange,
}

impl Outcome {
    const ALL: [Self; 6] = [
        Self::Node,
        Self::Bearer,
        Self::Refused,
        Self::Failed,
        Self::Busy,
        Self::Strange,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Bearer => "bearer",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Busy => "busy",
            Self::Strange => "strange",
        }
    }
}

impl Tunnels {
    /// Carries requests to this cluster.
    pub fn new(config: &Config, clock: Clock, tasks: &mut Tasks) -> Self {
        let requests = tasks.crowd("tunnelled requests", REQUESTS_MAX);
        let bare = config.without_credentials();
        let tunnels = Self(Arc::new(Shared {
            own: Lanes::new(config.clone(), requests.clone(), clock.clone()),
            bare: Lanes::new(bare, requests, clock.clone()),
            crowd: tasks.crowd("tunnels", EXCHANGES_MAX),
            shares: Shares::default(),
            clock,
            counts: Counts::default(),
            cache: OnceLock::new(),
        }));
        let (closing, shutdown) = (tunnels.clone(), tasks.shutdown().clone());
        tasks.add("tunnels", async move {
            shutdown.triggered().await;
            closing.0.own.close();
            closing.0.bare.close();
            Ok::<(), Infallible>(())
        });
        tunnels
    }

    /// Answers about objects may go as differences from what is in this cache, where a node has the
    /// same.
    pub fn compare_with(&self, cache: Arc<RwLock<Cache>>) {
        // A hub has one.
        drop(self.0.cache.set(cache));
    }

    /// The bytes that a node says it has of the object that it asks for, if the hub has the same.
    fn held<B>(&self, request: &Request<B>) -> Option<Bytes> {
        compared::named(&self.0.cache.get()?.read(), request)
    }

    /// Takes a stream that a node opened. `node` is who it is by its certificate.
    pub fn serve(&self, node: &Arc<str>, arrived: Arrived) {
        let base = match &*arrived.purpose {
            tunnel::HTTP => None,
            tunnel::PACKED_HTTP => Some(Base::default()),
            _ => {
                self.count(Outcome::Strange);
                let words = "this hub takes requests alone";
                return arrived.tube.close(Cause::NotServed, words);
            }
        };
        let busy = self.0.crowd.busy();
        let Some(share) = self.0.shares.take(node, busy, EXCHANGES_MAX) else {
            return self.turn_away(arrived, "the hub is busy, and this node has much of it");
        };
        let Some(place) = self.0.crowd.place() else {
            return self.turn_away(arrived, "the hub has as many requests as it can have");
        };
        let from = (Arc::clone(node), share);
        place.spawn(exchange::run(self.clone(), from, arrived.tube, base));
    }

    /// There is no room now.
    fn turn_away(&self, arrived: Arrived, words: &str) {
        self.count(Outcome::Busy);
        arrived.tube.close(Cause::Busy, words);
    }

    /// Requests that are on their way now.
    pub fn open(&self) -> usize {
        self.0.crowd.busy()
    }

    /// How requests ended so far.
    pub fn outcomes(&self) -> BTreeMap<&'static str, u64> {
        let counts = &self.0.counts.0;
        let all = Outcome::ALL.iter().zip(counts);
        all.map(|(outcome, count)| (outcome.as_str(), count.load(Ordering::Relaxed)))
            .collect()
    }

    fn count(&self, outcome: Outcome) {
        self.0.counts.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}
