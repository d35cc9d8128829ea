//! The load of our benchmarks: what is asked of a server, by how many, and what it took.

pub(crate) mod callers; // requests, each as soon as the one before is answered
pub(crate) mod crowd; // one change to many watchers
pub(crate) mod figures; // rates, latencies, processor time
pub(crate) mod numbers; // as people read them
pub(crate) mod parts; // which of them are to run
