//! The agent: it keeps a node's part of the cluster on the node's disk.
