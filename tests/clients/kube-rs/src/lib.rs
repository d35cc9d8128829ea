//! Tests only: what kube-rs asks of the cluster is in `tests`.
