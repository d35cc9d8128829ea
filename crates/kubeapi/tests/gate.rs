//! The gate of the reads: the real server over TLS, asked as clients ask it, over both feeders.
//!
//! `docs/conformance.md` says which upstream case each test re-expresses.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]
#![allow(unreachable_pub, reason = "this is the whole crate")]

mod stage; // a server over each feeder, something to drive it with, and clients
mod get; // one object
mod list; // resourceVersion, match, limit, continue, selectors
mod watch; // events, bookmarks, ends
mod form; // tables, metadata, gzip, HEAD, refusals, discovery
mod replica; // what only a replica can meet
mod papers; // what a node answers in its cluster's name
mod beyond; // what a node answers with a cluster behind it
mod hostile; // the catalogue of bad inputs
