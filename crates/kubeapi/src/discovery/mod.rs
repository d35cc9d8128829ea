//! The catalog as clients ask for it: group by group (legacy), or all at once (aggregated).
//!
//! Pure functions of a snapshot. Hashes of storage versions are left out: they are for migrations
//! between them, and there is one.

mod aggregated; // /api and /apis in one answer each
mod legacy; // /api, /apis and every group and version below them

pub use aggregated::{Edition, Part, aggregated};
pub use legacy::{api_group, api_groups, api_resources, api_versions};

#[cfg(test)]
mod tests;
