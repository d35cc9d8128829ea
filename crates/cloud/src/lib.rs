//! The hub: it watches the cluster and keeps every node's store equal to its view.

pub mod cluster; // the cluster's API: requests, lists, watches
pub mod cache; // one copy of each object, and what became of it lately
pub mod watch; // the cluster -> the cache, one loop for each resource
