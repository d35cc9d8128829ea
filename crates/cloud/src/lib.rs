//! The hub: it watches the cluster and keeps every node's store equal to its view.
