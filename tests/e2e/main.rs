//! The real program and the real kubectl, as people use them: run by `tests/e2e/run`.
//!
//! Each test starts a cluster of its own on a free port of 127.0.0.1, and leaves nothing running.
//! They need a kubectl, which `tests/e2e/run` builds, so a plain `cargo test` lists them as
//! ignored and says why.

mod cluster; // holdfast up, started and ended
mod kubectl_run; // one kubectl command and what it said

mod access; // who may: tokens, roles, impersonation
mod asking; // what is there: discovery, explain, versions, health
mod custom; // a custom resource from its definition to its end
mod deleting; // finalizers, grace, namespaces, waiting
mod describing; // describe and events
mod life; // restarts, kill -9, Ctrl-C, --ephemeral
mod patching; // patch, label, annotate, edit, set, scale
mod reading; // get in all its forms
mod refusing; // what is wrong, and how it is said
mod writing; // create, apply, replace
