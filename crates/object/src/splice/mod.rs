//! Small edits of an object's bytes, without decoding them.

pub(crate) mod scan; // where values begin and end

/// Why bytes cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSplice {
    /// The text is not JSON, or not an object where one must be.
    #[error("not JSON at byte {at}")]
    NotJson {
        /// Where the scanner stopped.
        at: usize,
    },
    /// The text nests deeper than objects may.
    #[error("nested too deep")]
    TooDeep,
    /// A key that the edit is about stands twice, and which one counts is a matter of taste.
    #[error("the key {0:?} stands twice")]
    Twice(&'static str),
}
