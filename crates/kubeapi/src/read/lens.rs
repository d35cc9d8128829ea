//! What one caller is shown otherwise than everybody else, at the same version.

use std::fmt::Debug;

use bytes::Bytes;

/// What objects of a kind are seen through by a caller.
pub trait Lens: Debug + Send + Sync + 'static {
    /// An object as the caller sees it; nothing if that is as it is.
    fn through(&self, object: &Bytes) -> Option<Bytes>;
}
