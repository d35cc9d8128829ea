//! The hub: it watches the cluster and keeps every node's store equal to its view.

pub mod cluster; // the Kubernetes API: requests, lists, watches
pub mod watch; // lists and watches -> changes, in order or as a set
pub mod cache; // changes -> one copy of each object, and what can be sent of it
pub mod view; // pods -> what each node must hold
pub mod papers; // what the cluster says of itself, and of accounts -> documents of nodes
pub mod discovery; // what the cluster says of its version and kinds -> documents
pub mod sessions; // which node has a session here, and who is woken
pub mod guest; // a link that was let in -> its hello
pub mod tunnel; // a stream of a session -> a request to the cluster, and its answer
pub mod replay; // what nodes report -> the cluster, in their name
pub mod talk; // a session with a node over a link
pub mod hub; // what all sessions share: the cluster's objects, views, bells
pub mod ledger; // how each node is doing
pub mod lag; // how far a node is behind
pub mod serve; // a link that was let in -> a session, to its end
pub mod owners; // which hub has which node
pub mod nodes; // who has a session -> a Node and a Lease in the cluster
pub mod follow; // the hub's watches: which, in which order
pub mod epoch; // when the history of the cluster is another one
pub mod epochs; // the epoch that all hubs agree on
pub mod clerk; // what happens in sessions and concerns others
pub mod join; // who is a node: tokens, certificates, revocation
pub mod notices; // what happens -> Kubernetes Events, for people
pub mod record; // what nodes hold -> records in the cluster, for people
pub mod report; // how a hub is doing, for people and programs
pub mod waiting; // what a hub waits for before it can begin
pub mod run; // a hub from its start to its end

#[cfg(test)]
mod slow_tests; // guests over links that are slow
