//! Hubs and agents in one process beside `holdfast up`: what a hub does in the cluster, and how
//! hubs share it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod stage; // a cluster, hubs and agents
mod nodes; // nodes and leases that are kept for agents
mod picky; // a node that does not take everything
mod records; // what nodes hold, and what happens, told to people
mod rights; // what a hub may do, and that it is enough
mod several; // hubs that share nothing but the cluster
mod tunnel; // requests of nodes to the cluster
mod told; // what goes wrong, told to people
