//! What a node answers while a cluster is behind it.

mod passing; // what is passed on, and how
mod written; // what was just written through it
