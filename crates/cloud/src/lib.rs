//! The hub: it watches the cluster and keeps every node's store equal to its view.

pub mod cluster; // the cluster's API: requests, lists, watches
