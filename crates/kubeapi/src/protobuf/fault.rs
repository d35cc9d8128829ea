//! What can be wrong with the bytes of a message. It is always the sender who is wrong.

use crate::schema::DEPTH_MAX;
use crate::write::quantity::NOT_A_QUANTITY;

/// Why bytes are not the message that they should be. Where the Go library has words for it, these
/// are the words, because people search for them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Fault {
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Prefix,
    #[error("a message in another encoding within the envelope")]
    Encoding,
    /// A kind, and the version in which it is not known.
    #[error("no kind {0:?} is registered for version {1:?}")]
    Kind(String, String),
    #[error("unexpected EOF")]
    Truncated,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: illegal tag {0}")]
    Tag(u64),
    #[error("proto: illegal wireType {0}")]
    Group(u64),
    #[error("proto: wrong wireType = {0}")]
    WireType(u8),
    #[error("proto: nested deeper than {DEPTH_MAX} messages")]
    Depth,
    #[error("proto: string contains invalid UTF-8")]
    Text,
    #[error("a number is not finite")]
    Double,
    #[error("a time is not between the years 1 and 9999")]
    Time,
    #[error("{NOT_A_QUANTITY}")]
    Quantity,
    #[error("impossible IntOrString.Type")]
    IntOrString,
    #[error("embedded bytes are not JSON: {0}")]
    Json(String),
    /// Not wrong as such, but more than a body may be. The number is how much that is.
    #[error("limit is {0}")]
    Size(usize),
    #[error("{0}: {1}")]
    Field(&'static str, Box<Fault>),
}

impl Fault {
    /// Says which field this is about, where it is not said yet.
    pub(super) fn in_field(self, name: &'static str) -> Self {
        match self {
            Self::Size(_) | Self::Field(..) => self,
            other => Self::Field(name, Box::new(other)),
        }
    }
}
