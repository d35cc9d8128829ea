//! The catalog as clients ask for it: group by group (legacy), or all at once (aggregated).
//!
//! Pure functions of a snapshot.

mod aggregated; // /api and /apis in one answer each
mod legacy; // /api, /apis and every group and version below them
mod document; // what a cluster says of its kinds -> groups

pub use aggregated::{AGGREGATED, Part, aggregated, etag, is_aggregated};
pub use document::{Document, Unread};
pub use legacy::{api_group, api_groups, api_resources, api_versions};

#[cfg(test)]
mod tests;
