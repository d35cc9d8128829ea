//! The hub's client, its cache and its loops against an embedded cluster, over TLS on loopback.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod stage; // a cluster that can be cut off, forget its history, or go back
mod client; // requests, lists, watches
mod start; // a hub waits for its cluster
mod watch; // the cache is the cluster, whatever happens in between
