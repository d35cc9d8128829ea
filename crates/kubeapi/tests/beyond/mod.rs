//! What a node answers while a cluster is behind it.

mod held; // what is held, and is not always what is answered
mod passing; // what is passed on, and how
mod written; // what was just written through it
