//! What a node answers while a cluster is behind it.

mod written; // what was just written through it
