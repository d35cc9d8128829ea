//! The catalog as clients ask for it: group by group (legacy), or all at once (aggregated).
//!
//! Pure functions of a snapshot.

mod aggregated; // /api and /apis in one answer each
mod legacy; // /api, /apis and every group and version below them

pub use aggregated::{AGGREGATED, Part, aggregated, is_aggregated};
pub use legacy::{api_group, api_groups, api_resources, api_versions};

#[cfg(test)]
mod tests;
