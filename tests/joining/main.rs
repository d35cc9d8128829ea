//! A node joins a hub, renews, expires, is revoked and comes back: both ends over real TLS on
//! loopback, with records in memory and in a cluster.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cluster; // with `holdfast up`, and the commands that people type
mod hub; // a hub's port with joining behind it
mod life; // a node's certificates from the first to the last
mod takeover; // another authority takes over from the one that issues
mod trust; // whom a node trusts, and when
