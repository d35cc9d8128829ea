//! What is said about one stream: it opens, bytes, room for more of them, it closes.

use bytes::Bytes;
use object::codec::{Malformed, Taker, put_bytes, put_number, put_text};

use super::{CLOSE, DATA, OPEN, WINDOW, cut};

/// Bytes of what a stream is for.
pub const PURPOSE_BYTES_MAX: usize = 4096;

/// Something about a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It begins.
    Open {
        /// What it is for: who takes it on the other side, in the words of the two.
        purpose: Box<str>,
        /// Bytes that may be sent to whoever opens it.
        window: u64,
    },
    /// Bytes of it.
    Data {
        /// The bytes, after those that were sent before.
        bytes: Bytes,
        /// Whether more follow in this direction.
        end: End,
    },
    /// Room for more.
    Window {
        /// How many bytes may be sent beyond those that were granted before.
        bytes: u64,
    },
    /// It is over in both directions, and what is on its way is lost.
    Close {
        /// Why.
        cause: Cause,
        /// The same for people.
        words: Box<str>,
    },
}

/// Whether more bytes follow in a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// They may.
    More,
    /// These were the last.
    Last,
}

/// Why a stream is closed before both directions ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Whoever closes it does not need the rest.
    Cancelled,
    /// There is no room for another stream now.
    Busy,
    /// Nobody here takes streams of this purpose.
    NotServed,
    /// What the stream stood for broke.
    Broken,
    /// Something that this release does not know.
    Other(u64),
}

impl Said {
    /// Appends what is said of this stream. Returns its kind.
    pub(super) fn encode(&self, id: u64, out: &mut Vec<u8>) -> u64 {
        put_number(out, id);
        match self {
            Self::Open { purpose, window } => {
                put_text(out, purpose);
                put_number(out, *window);
                OPEN
            }
            Self::Data { bytes, end } => {
                put_bytes(out, bytes);
                put_number(out, u64::from(*end == End::Last));
                DATA
            }
            Self::Window { bytes } => {
                put_number(out, *bytes);
                WINDOW
            }
            Self::Close { cause, words } => {
                put_number(out, cause.number());
                put_text(out, cut(words));
                CLOSE
            }
        }
    }

    /// Takes what follows the number of the stream.
    pub(super) fn decode(kind: u64, taker: &mut Taker<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            OPEN => {
                let purpose = taker.text()?;
                if purpose.len() > PURPOSE_BYTES_MAX {
                    return Err(Malformed);
                }
                Self::Open {
                    purpose: purpose.into(),
                    window: taker.number()?,
                }
            }
            DATA => Self::Data {
                bytes: Bytes::copy_from_slice(taker.bytes()?),
                end: match taker.number()? {
                    0 => End::More,
                    1 => End::Last,
                    _ => return Err(Malformed),
                },
            },
            WINDOW => Self::Window {
                bytes: taker.number()?,
            },
            CLOSE => Self::Close {
                cause: Cause::from_number(taker.number()?),
                words: cut(taker.text()?).into(),
            },
            _ => return Err(Malformed),
        })
    }
}

impl Cause {
    pub(super) fn from_number(number: u64) -> Self {
        match number {
            1 => Self::Cancelled,
            2 => Self::Busy,
            3 => Self::NotServed,
            4 => Self::Broken,
            number => Self::Other(number),
        }
    }

    fn number(self) -> u64 {
        match self {
            Self::Cancelled => 1,
            Self::Busy => 2,
            Self::NotServed => 3,
            Self::Broken => 4,
            Self::Other(number) => number,
        }
    }
}
