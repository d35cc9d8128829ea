//! Watches: what is there, then every change once and in order, bookmarks, and an honest end.

mod conformance; // the five cases that every Kubernetes passes
mod events; // what a change is to a watcher
mod place; // clusters, namespaces, names and fields
mod start; // where a watch starts: versions x bookmarks x initial events
mod bookmark; // how far a watcher is
mod ends; // too old, too slow, out of time, shut down
