//! The store as its users see it: through its public doors, against models, crashes and damage.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench_objects; // objects, drafts and chance
mod authority_model; // random swaps against a simple model
mod replica_model; // random cuts against a simple source
mod replica_stages; // what those stage
mod replica_source; // the cluster, as a hub sees it
mod replica_rules; // how a replica follows, one sentence each
mod passed_over; // versions at which a replica never stood
mod renewing; // other bytes of the same version
mod staging; // what is shown to nobody, one sentence each
mod resuming; // the same, told so that it can be gone on with
mod staging_power; // the same, when the power goes or bits flip
mod rules; // one sentence each: what was wrong once, or could be
mod power; // the power goes, the disk fills, a sync fails
mod kill; // the process dies at each named place
mod damage; // bits flip, pages go, files are swapped
mod made_up; // records that nobody wrote, with the right checksums
mod machine; // a real disk: syncs, locks, links
mod sealing; // Secrets, as they lie on the disk
mod golden; // stores of every format
mod stress; // many threads at once
