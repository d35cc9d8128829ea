//! A durable, watchable log of objects: one writer, many readers. It commits what it is given and
//! mints nothing.
//!
//! ```text
//! feeder ─▶ writer ─▶ log ─▶ disk          one sync makes many requests durable
//!                      └──▶ table ─▶ reader, watch      shown only when durable, by the log alone
//!                            └─▶ shelves               staged content and documents: not shown
//! ```
//!
//! Two feeders stand above the log: the [`Authority`] mints versions and compares before it swaps;
//! the [`Replica`] follows scopes, progress, resets and epochs from elsewhere. Everybody reads
//! through one [`Reader`].

pub mod authority; // swaps            -> log, minting versions
pub mod replica; // cuts             -> log, following a source
mod writer; // requests         -> groups that share a sync
mod log; // a group          -> bytes on disk, then tables
mod entry; // what records say
mod record; // how records are framed and checked
pub mod disk; // what is asked of a file system
mod files; // where bytes lie
mod seals; // what lies there sealed, and with which keys
mod ahead; // rows that lie side by side, read together
mod recover; // files            -> tables, at the start
mod compact; // tables           -> one base file
mod table; // rows, history and scopes of one resource
pub mod row; // a row, and a step of history
pub mod reader; // version, floor, covers, page
mod reach; // how far what is held is whole
pub mod watch; // history from a version on
mod holding; // what a node can say of what it has
pub mod failpoint;

pub use ahead::Ahead;
pub use authority::Authority;
pub use entry::FORMAT;
pub use files::Unreadable;
pub use holding::{Edition, Holding, Staged};
pub use log::{Durable, Failed, Options};
pub use object::{Extent, Range, Scope, Want};
pub use reader::{At, Page, Part, ReadFailed, Reader};
pub use recover::OpenError;
pub use replica::Replica;
pub use row::{Event, Row, What};
pub use seals::{KeyFile, NotKept, keys};
pub use table::{Held, Refused, Retention};
pub use watch::{Ended, Gauge, Step, Watch};
