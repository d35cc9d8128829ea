//! Kubernetes Events: what happened, for whoever looks at a node with kubectl.
//!
//! They are for people and nothing depends on them. They are told after the fact, the same one
//! again and again becomes one with a count, a few are written each second, and when there are too
//! many the rest is dropped and counted.
//!
//! What can be told is [`Notice`]; [`Board`] has the rules, without I/O and with the time passed
//! in; [`Notices`] is what the rest of the hub tells, and writes.

mod notice; // what can be told, in words
mod board; // notices -> which event is written, and when
mod post; // the same, in the cluster

#[cfg(test)]
mod tests;

pub use board::{Board, Counts, Next, Outcome, Write};
pub use notice::Notice;
pub use post::Notices;
