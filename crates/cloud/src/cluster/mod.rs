//! The cluster's API, as a client sees it: requests, lists and watches, all of them raw JSON.
//!
//! Objects pass as the bytes they came in; nothing here builds a tree of one. A [`Client`] has one
//! HTTP/2 connection for everything, opened when it is needed and opened anew when it breaks. It
//! never tries again by itself what may have been done already: who asks, decides.

mod config; // where the cluster is, whom we trust, who we are
mod kubeconfig; // a file -> Config
mod fault; // why there is no answer
mod connection; // Config -> the one connection
mod request; // one question, one answer
mod served; // which resources the cluster has, and where
pub mod cutter; // a list's bytes -> items, one at a time
mod listing; // a list, page by page, item by item
mod events; // a watch, event by event
mod canonical; // an object's bytes as they came -> as they are kept

#[cfg(test)]
mod tests;

pub use canonical::{Unkept, canonical, gone};
pub use config::{Config, ConfigError};
pub use connection::{Client, Windows};
pub use events::{Event, Events, Patience};
pub use fault::{Error, Status};
pub use listing::{Listing, Paging};
pub use request::{Answer, ContentType, Reading};
pub use served::Served;
pub(crate) use served::escaped;

/// Bytes that an object may have on its way to us. The managed fields that we leave out can be
/// larger than the rest of it, so this is more than [`object::header::OBJECT_BYTES_MAX`]. What is
/// larger ends the request.
pub const ITEM_BYTES_MAX: usize = 4 * 1024 * 1024;
