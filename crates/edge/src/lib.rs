//! The agent: it keeps a node's part of the cluster on the node's disk.

pub mod join; // how a machine becomes a node and stays one
