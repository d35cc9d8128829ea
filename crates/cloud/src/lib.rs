//! The hub: it watches the cluster and keeps every node's store equal to its view.

pub mod cluster; // the Kubernetes API: requests, lists, watches
pub mod view; // pods and what they name -> what each node must hold
