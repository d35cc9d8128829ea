//! The whole system in one thread from one seed: a cluster, its API server, hubs, links, agents and
//! their disks. Everything bad happens to them for a while, then nothing bad any more; what must
//! hold is looked at after every step, and in the end every node has its view. For development.
//!
//! What is pure is the real thing: the hub's cache, views, followers, epochs and sessions, both
//! ends of a session, the agent's keeping and coming back, the store. What stands around it
//! (sockets, the API server, disks, clocks) is a model, and so is the order in which things happen.

mod chance; // a seed -> what happens
mod trace; // what happens, in words
mod seen; // what happened at least once
mod objects; // names and bytes of the cluster's objects
mod cluster; // the cluster: objects, revisions, all that ever was
mod records; // the records that hubs share
mod server; // the API server, as one hub sees it
mod link; // messages on their way
mod release; // what several releases at once can do, and make
mod around; // what all processes share
mod follow; // a hub that follows one resource
mod hub; // a hub
mod owners; // what hubs know of each other's sessions
mod session; // a hub's end of a link
mod disk; // a disk that dies at a chosen place
mod agent; // an agent
mod talk; // an agent's end of a link
mod report; // what an agent reports, and where that belongs
mod client; // who lists and watches at a node
mod world; // all of it together
mod faults; // what can happen to it
mod check; // what must hold at every step
mod heal; // what must hold in the end

pub use seen::Seen;
pub use world::{Ran, run};
